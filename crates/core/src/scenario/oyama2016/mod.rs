//! `[methods.oyama2016]`: what SPRINT's threads were measured to take. Everything is optional; what is left out is
//! estimated from data sheets by the method, which says so.

mod kernels;

use super::Files;
use super::resolve::{below, not_negative, positive};
use super::sections::section;
use crate::fault::Fault;
use crate::fitted::gemm::GemmModel;
use crate::precision::Precision;
use crate::quantity::{BytesPerSec, Seconds};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Rate at which one thread of a host is assumed to move memory where nothing was measured.
pub const ASSUMED_HOST_MEMORY_RATE: BytesPerSec = BytesPerSec::new(8e9);

section!(
    /// A time that grows with a number: `{ each = "1 ms", fixed = "4 ms" }`.
    LineSection {
        /// For each sample, element or doubling.
        each: Seconds,
        /// Once.
        fixed: Seconds,
    }
);

section!(
    /// `[methods.oyama2016]`: what SPRINT's threads take.
    OyamaSection {
        /// Whether nodes exchange with the cluster's parameter servers, each by itself, in place of the all-reduce.
        through_servers: bool,
        /// Rate of one host thread on memory, for what is not given below.
        host_memory_rate: BytesPerSec,
        /// Loading images from disk to the device, by sample.
        load_image: LineSection,
        /// Deforming images on the device, by sample.
        deform_image: LineSection,
        /// Computing the gradient, by sample; overrides `kernels`.
        compute_gradient: LineSection,
        /// Times for each parameter of the model.
        per_parameter: PerParameterSection,
        /// Times of the kernels that a gradient is made of.
        kernels: KernelsSection,
    }
);

section!(
    /// `[methods.oyama2016.per-parameter]`: times for each parameter of the model.
    PerParameterSection {
        /// Copying new weights to a device.
        fetch_weights: Seconds,
        /// Scaling the gradient by the learning rate.
        compute_update: Seconds,
        /// Adding the gradient to its buffer on the host.
        update_gradient: Seconds,
        /// Summing one buffer.
        sum_gradient: Seconds,
        /// Keeping the old weights, of the node's own slice.
        update_old_weights: Seconds,
        /// Adding old weights and momentum, likewise.
        add_momentum: Seconds,
        /// Deriving the new momentum, likewise.
        update_momentum: Seconds,
        /// Publishing the new weights.
        update_weights: Seconds,
        /// The all-reduce: for each doubling of the nodes, and once.
        all_reduce: LineSection,
    }
);

section!(
    /// `[methods.oyama2016.kernels]`: times of the kernels that a gradient is made of, by element.
    KernelsSection {
        /// Patches of the input laid out as a matrix.
        im2col: LineSection,
        /// The same backwards.
        col2im: LineSection,
        /// Non-linearity.
        activation: LineSection,
        /// Its derivative.
        activation_gradient: LineSection,
        /// Max-pooling.
        pool: LineSection,
        /// The same backwards.
        pool_gradient: LineSection,
        /// Softmax and loss.
        softmax: LineSection,
        /// Matrix products.
        sgemm: SgemmSection,
        /// File with fitted kernels, for those that are not given.
        fitted: String,
    }
);

section!(
    /// `[methods.oyama2016.kernels.sgemm]`: measured products of an m×k and a k×n matrix.
    SgemmSection {
        /// The sizes that m, n and k were given, ascending.
        sizes: Vec<u32>,
        /// Times of all (m, n, k), k changing fastest; neither matrix transposed.
        nn: Vec<Seconds>,
        /// The same, the first transposed.
        tn: Vec<Seconds>,
        /// The same, the second transposed.
        nt: Vec<Seconds>,
        /// File with fitted products, in place of measured ones.
        fitted: String,
    }
);

/// A time that grows with a number: each · n + fixed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Line {
    /// For each sample, element or doubling.
    pub each: Seconds,
    /// Once.
    pub fixed: Seconds,
}

impl Line {
    /// The time for `count` of what is counted.
    pub fn time(self, count: f64) -> Seconds {
        self.each * count + self.fixed
    }
}

/// Times for each parameter of the model, where they were measured.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PerParameter {
    /// Copying new weights to a device.
    pub fetch_weights: Option<Seconds>,
    /// Scaling the gradient by the learning rate.
    pub compute_update: Option<Seconds>,
    /// Adding the gradient to its buffer on the host.
    pub update_gradient: Option<Seconds>,
    /// Summing one buffer.
    pub sum_gradient: Option<Seconds>,
    /// Keeping the old weights, of the node's own slice.
    pub update_old_weights: Option<Seconds>,
    /// Adding old weights and momentum, likewise.
    pub add_momentum: Option<Seconds>,
    /// Deriving the new momentum, likewise.
    pub update_momentum: Option<Seconds>,
    /// Publishing the new weights.
    pub update_weights: Option<Seconds>,
    /// The all-reduce: for each doubling of the nodes, and once.
    pub all_reduce: Option<Line>,
}

/// Measured matrix products.
#[derive(Debug, Clone, PartialEq)]
pub struct SgemmTable {
    /// The sizes that m, n and k were given: two or more, ascending.
    pub sizes: Vec<u32>,
    /// Times of all (m, n, k), k changing fastest; neither matrix transposed.
    pub nn: Vec<Seconds>,
    /// The same, the first transposed.
    pub tn: Vec<Seconds>,
    /// The same, the second transposed.
    pub nt: Vec<Seconds>,
}

/// The time of a kernel by the elements it touches.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KernelTime {
    /// The time.
    pub line: Line,
    /// Fewest and most elements it was fitted to; none where the scenario gives it.
    pub fitted_to: Option<[f64; 2]>,
}

impl KernelTime {
    /// The time for `elements`, and whether the fit is stretched beyond what was measured.
    pub fn time(self, elements: f64) -> (Seconds, bool) {
        let stretched = |[least, most]: [f64; 2]| !(least..=most).contains(&elements);
        (self.line.time(elements), self.fitted_to.is_some_and(stretched))
    }
}

/// Times of the kernels that a gradient is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTimes {
    /// The file that those which are fitted came from.
    pub fitted: Option<String>,
    /// Patches of the input laid out as a matrix.
    pub im2col: KernelTime,
    /// The same backwards.
    pub col2im: KernelTime,
    /// Non-linearity.
    pub activation: KernelTime,
    /// Its derivative.
    pub activation_gradient: KernelTime,
    /// Max-pooling.
    pub pool: KernelTime,
    /// The same backwards.
    pub pool_gradient: KernelTime,
    /// Softmax and loss.
    pub softmax: KernelTime,
    /// Matrix products.
    pub products: Products,
}

/// Times of matrix products.
#[derive(Debug, Clone, PartialEq)]
pub enum Products {
    /// Between measured ones, as the paper has it.
    Table(SgemmTable),
    /// By what kernels do.
    Fitted {
        /// The file they came from.
        path: String,
        /// What was fitted; it has this precision with either matrix transposed or none.
        model: Arc<GemmModel>,
        /// Number format of the scenario.
        precision: Precision,
    },
}

/// What Oyama 2016 takes as inputs beside the scenario.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct OyamaOptions {
    /// Whether nodes exchange with parameter servers, each by itself, in place of the all-reduce (beyond the paper).
    pub through_servers: bool,
    /// Rate of one host thread on memory, for what is not given.
    pub host_memory_rate: Option<BytesPerSec>,
    /// Loading images from disk to the device, by sample.
    pub load_image: Option<Line>,
    /// Deforming images on the device, by sample.
    pub deform_image: Line,
    /// Computing the gradient, by sample.
    pub compute_gradient: Option<Line>,
    /// Times for each parameter of the model.
    pub per_parameter: PerParameter,
    /// Times of the kernels that a gradient is made of.
    pub kernels: Option<Arc<KernelTimes>>,
}

/// Checks every value.
pub(super) fn resolve(
    section: OyamaSection,
    precision: Precision,
    files: &dyn Files,
) -> Result<OyamaOptions, Fault> {
    let kernels = |section| kernels::resolve(section, precision, files).map_err(below("kernels"));
    if let Some(rate) = section.host_memory_rate {
        positive("host-memory-rate", rate.get(), "a rate such as \"8 GB/s\"")?;
    }
    let gradient = optional_line("compute-gradient", section.compute_gradient)?;
    if gradient.is_some_and(|line| line.time(1.0) <= Seconds::ZERO) {
        let (reason, remedy) = ("computing a gradient takes time", "use a time such as \"60 ms\" for `each`");
        return Err(Fault::in_key("compute-gradient", reason, remedy));
    }
    Ok(OyamaOptions {
        through_servers: section.through_servers.unwrap_or_default(),
        host_memory_rate: section.host_memory_rate,
        load_image: optional_line("load-image", section.load_image)?,
        deform_image: line("deform-image", section.deform_image)?,
        compute_gradient: gradient,
        per_parameter: per_parameter(section.per_parameter.unwrap_or_default())
            .map_err(below("per-parameter"))?,
        kernels: section.kernels.map(kernels).transpose()?.map(Arc::new),
    })
}

fn time(key: &str, given: Option<Seconds>) -> Result<Option<Seconds>, Fault> {
    if let Some(time) = given {
        not_negative(key, time.get(), "a time such as \"1.2 ns\"")?;
    }
    Ok(given)
}

fn optional_line(key: &'static str, section: Option<LineSection>) -> Result<Option<Line>, Fault> {
    let Some(section) = section else { return Ok(None) };
    let given = |name, value| time(name, value).map(Option::unwrap_or_default).map_err(below(key));
    Ok(Some(Line { each: given("each", section.each)?, fixed: given("fixed", section.fixed)? }))
}

fn line(key: &'static str, section: Option<LineSection>) -> Result<Line, Fault> {
    optional_line(key, section).map(Option::unwrap_or_default)
}

fn per_parameter(section: PerParameterSection) -> Result<PerParameter, Fault> {
    Ok(PerParameter {
        fetch_weights: time("fetch-weights", section.fetch_weights)?,
        compute_update: time("compute-update", section.compute_update)?,
        update_gradient: time("update-gradient", section.update_gradient)?,
        sum_gradient: time("sum-gradient", section.sum_gradient)?,
        update_old_weights: time("update-old-weights", section.update_old_weights)?,
        add_momentum: time("add-momentum", section.add_momentum)?,
        update_momentum: time("update-momentum", section.update_momentum)?,
        update_weights: time("update-weights", section.update_weights)?,
        all_reduce: optional_line("all-reduce", section.all_reduce)?,
    })
}

impl OyamaOptions {
    /// The section that says the same.
    pub(super) fn to_section(&self) -> OyamaSection {
        let of = |line: Line| LineSection { each: Some(line.each), fixed: Some(line.fixed) };
        let kernel = |time: KernelTime| time.fitted_to.is_none().then(|| of(time.line));
        let given = &self.per_parameter;
        OyamaSection {
            through_servers: Some(self.through_servers),
            host_memory_rate: self.host_memory_rate,
            load_image: self.load_image.map(of),
            deform_image: Some(of(self.deform_image)),
            compute_gradient: self.compute_gradient.map(of),
            per_parameter: Some(PerParameterSection {
                fetch_weights: given.fetch_weights,
                compute_update: given.compute_update,
                update_gradient: given.update_gradient,
                sum_gradient: given.sum_gradient,
                update_old_weights: given.update_old_weights,
                add_momentum: given.add_momentum,
                update_momentum: given.update_momentum,
                update_weights: given.update_weights,
                all_reduce: given.all_reduce.map(of),
            }),
            kernels: self.kernels.as_deref().map(|kernels| KernelsSection {
                im2col: kernel(kernels.im2col),
                col2im: kernel(kernels.col2im),
                activation: kernel(kernels.activation),
                activation_gradient: kernel(kernels.activation_gradient),
                pool: kernel(kernels.pool),
                pool_gradient: kernel(kernels.pool_gradient),
                softmax: kernel(kernels.softmax),
                fitted: kernels.fitted.clone(),
                sgemm: Some(match &kernels.products {
                    Products::Fitted { path, .. } => {
                        SgemmSection { fitted: Some(path.clone()), ..SgemmSection::default() }
                    }
                    Products::Table(table) => SgemmSection {
                        sizes: Some(table.sizes.clone()),
                        nn: Some(table.nn.clone()),
                        tn: Some(table.tn.clone()),
                        nt: Some(table.nt.clone()),
                        fitted: None,
                    },
                }),
            }),
        }
    }
}
