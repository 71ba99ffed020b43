//! `[methods.oyama2016]`: measured times of SPRINT's threads. All keys are optional; the method estimates missing
//! values from data sheets and warns about it.

use crate::fault::{Fault, KeyPath};
use crate::files::Files;
use crate::fitted::LinearKernel;
use crate::fitted::artefact::{self, Artefact, ArtefactKind};
use crate::fitted::gemm::{GemmModel, Transposition, Variant};
use crate::keys::{Check, document_keys, keys, positive, section_of};
use crate::precision::Precision;
use crate::quantity::{BytesPerSec, Seconds};
use crate::scenario::resolve::below;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Assumed rate at which one host thread accesses memory, if nothing was measured.
pub const ASSUMED_HOST_MEMORY_RATE: BytesPerSec = BytesPerSec::new(8e9);

/// Largest number of sizes per dimension in a table of matrix products: 64³ times take 2 MiB per variant.
const MAX_SIZES: usize = 64;

/// A memory-bound kernel. The paper mentions only `im2col` and the existence of `softmax`; the others are the usual
/// ones in the same form (errata 2.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CudaKernel {
    /// Unfolds patches of the input into a matrix.
    Im2col,
    /// The reverse of `im2col`, for the gradient of a convolution's input.
    Col2im,
    Activation,
    /// Derivative of the non-linearity.
    ActivationGradient,
    /// Max-pooling, if the layer has any.
    Pool,
    PoolGradient,
    /// Softmax and loss.
    Softmax,
}

// Their names in the paper, or the usual ones.
crate::variant_names!(CudaKernel {
    Im2col = "im2col",
    Col2im = "col2im",
    Activation = "activation",
    ActivationGradient = "activation-gradient",
    Pool = "pool",
    PoolGradient = "pool-gradient",
    Softmax = "softmax",
});

/// A time for each parameter.
const A_TIME: Check = Check::NotNegative("a time such as \"1.2 ns\"");

keys! {
    /// A time that grows with a number: each · n + fixed.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    struct Line;
    /// A time that grows with a number: `{ each = "1 ms", fixed = "4 ms" }`.
    section LineSection;
    keys {
        /// For each sample, element or doubling.
        each: Seconds => Seconds, default(Seconds::ZERO), A_TIME, Resolved;
        /// Once.
        fixed: Seconds => Seconds, default(Seconds::ZERO), A_TIME, Resolved;
    }
}

section_of!(Line, LineSection);

impl Line {
    pub fn time(self, count: f64) -> Seconds {
        self.each * count + self.fixed
    }
}

keys! {
    /// Times for each parameter of the model, where they were measured.
    #[derive(Debug, Clone, Copy, PartialEq, Default)]
    struct PerParameter;
    /// `[methods.oyama2016.per-parameter]`: times for each parameter of the model.
    section PerParameterSection;
    keys {
        /// Copying new weights to a device.
        fetch_weights: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// Scaling the gradient by the learning rate.
        compute_update: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// Adding the gradient to its buffer on the host.
        update_gradient: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// Summing one buffer.
        sum_gradient: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// Keeping the old weights, of the node's own slice.
        update_old_weights: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// Adding old weights and momentum, likewise.
        add_momentum: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// Deriving the new momentum, likewise.
        update_momentum: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// Publishing the new weights.
        update_weights: Seconds => Seconds, optional("an estimate"), A_TIME, Resolved;
        /// The all-reduce: for each doubling of the nodes, and once.
        all_reduce: LineSection => Line, optional("an estimate"), Check::Any, Resolved;
    }
}

section_of!(PerParameter, PerParameterSection);

document_keys! {
    /// `[methods.oyama2016.kernels]`: times of the kernels that a gradient is made of, by element.
    KernelsSection {
        /// Patches of the input laid out as a matrix.
        im2col: LineSection, "line", "no time";
        /// Backward pass of `im2col`.
        col2im: LineSection, "line", "no time";
        /// Non-linearity.
        activation: LineSection, "line", "no time";
        /// Derivative of the non-linearity.
        activation_gradient: LineSection, "line", "no time";
        /// Max-pooling.
        pool: LineSection, "line", "no time";
        /// Backward pass of max-pooling.
        pool_gradient: LineSection, "line", "no time";
        /// Softmax and loss.
        softmax: LineSection, "line", "no time";
        /// Matrix products, see below.
        sgemm: SgemmSection, "table", "required";
        /// Artefact of [`stepcast fit kernels`](fit.md) with all seven lines, for those that are not given.
        fitted: String, "path", "–";
    }
}

document_keys! {
    /// `[methods.oyama2016.kernels.sgemm]`: measured products of an m×k and a k×n matrix.
    SgemmSection {
        /// The sizes that m, n and k were given: 2 to 64, ascending.
        sizes: Vec<u32>, "list of integers", "–";
        /// Times of all (m, n, k), k changing fastest; neither matrix transposed.
        nn: Vec<Seconds>, "list of times", "–";
        /// Times with the first matrix transposed.
        tn: Vec<Seconds>, "list of times", "–";
        /// Times with the second matrix transposed.
        nt: Vec<Seconds>, "list of times", "–";
        /// Artefact of [`stepcast fit gemm`](fit.md), in place of sizes and times; used in the scenario's `precision`.
        fitted: String, "path", "–";
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct SgemmTable {
    /// The sizes that were measured for m, n and k: two or more, in ascending order.
    pub sizes: Vec<u32>,
    /// Times of all (m, n, k) with k varying fastest; neither matrix transposed.
    pub nn: Vec<Seconds>,
    /// Times with the first matrix transposed.
    pub tn: Vec<Seconds>,
    /// Times with the second matrix transposed.
    pub nt: Vec<Seconds>,
}

/// Time of a kernel as a function of the number of elements.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct KernelTime {
    pub line: Line,
    /// Smallest and largest number of elements in the fit; none if the scenario gives the time.
    pub fitted_to: Option<[f64; 2]>,
}

impl KernelTime {
    /// The time for `elements`, and whether the fit is extrapolated.
    pub fn time(self, elements: f64) -> (Seconds, bool) {
        let stretched = |[least, most]: [f64; 2]| !(least..=most).contains(&elements);
        (self.line.time(elements), self.fitted_to.is_some_and(stretched))
    }
}

/// Times of the kernels that compute a gradient.
#[derive(Debug, Clone, PartialEq)]
pub struct KernelTimes {
    pub fitted: Option<String>,
    /// In the order of [`CudaKernel`].
    kernels: [KernelTime; CudaKernel::ALL.len()],
    pub products: Products,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Products {
    /// Interpolated between measured products, as in the paper.
    Table(SgemmTable),
    Fitted {
        path: String,
        /// The fitted model, which includes this precision with either matrix or none transposed.
        model: Arc<GemmModel>,
        precision: Precision,
    },
}

keys! {
    /// Inputs of Oyama 2016 beside the scenario.
    #[derive(Debug, Clone, PartialEq, Default)]
    struct Oyama2016;
    /// `[methods.oyama2016]`: times of SPRINT's threads.
    section Oyama2016Section;
    keys {
        /// Whether nodes exchange with the servers of `[cluster.servers]`, each independently, in place of the all-reduce
        /// (beyond the paper); only `simulate`.
        through_servers: bool => bool, default(false), Check::Any, Resolved;
        /// Rate of one host thread on memory, for times that are not given below.
        host_memory_rate: BytesPerSec => BytesPerSec, optional("`\"8 GB/s\"`"), Check::Positive("a rate such as \"8 GB/s\""), Resolved;
        /// Loading images from disk to the device, by sample.
        load_image: LineSection => Line, optional("the link to the device"), Check::Any, Resolved;
        /// Deforming images on the device, by sample.
        deform_image: LineSection => Line, default(LineSection::default()), Check::Any, Resolved;
        /// Computing the gradient, by sample; overrides `kernels`.
        compute_gradient: LineSection => Line, optional("from `kernels`, or from operation counts"), Check::Any, Resolved;
        /// Times for each parameter of the model, see below.
        per_parameter: PerParameterSection => PerParameter, default(PerParameterSection::default()), Check::Any, Resolved;
    }
    after {
        /// Times of the kernels that a gradient is made of, see below.
        kernels: KernelsSection, "table", "none";
        /// Artefact of [`stepcast fit sprint`](fit.md), for the times that are not given.
        fitted: String, "path", "–";
    }
    made {
        /// Times of the kernels that a gradient is made of.
        kernels: Option<Arc<KernelTimes>>;
    }
}

pub(super) fn resolve(
    mut section: Oyama2016Section,
    precision: Precision,
    files: &dyn Files,
) -> Result<Oyama2016, Fault> {
    if let Some(path) = section.fitted.take() {
        fill_fitted(&mut section, &path, files).map_err(below("fitted"))?;
    }
    let kernels = section.kernels.take().map(|given| resolve_kernels(given, precision, files));
    let kernels = kernels.transpose().map_err(|fault| fault.below("kernels".into()))?;
    let oyama2016 = section.fill(None, files, kernels.map(Arc::new))?;
    if oyama2016.compute_gradient.is_some_and(|line| line.time(1.0) <= Seconds::ZERO) {
        let (reason, remedy) = ("computing a gradient takes time", "use a time such as \"60 ms\" for `each`");
        return Err(Fault::in_key("compute-gradient", reason, remedy));
    }
    Ok(oyama2016)
}

/// Fills missing times of the section from fitted components.
fn fill_fitted(section: &mut Oyama2016Section, path: &str, files: &dyn Files) -> Result<(), Fault> {
    let lines = match artefact::load(path, files)? {
        Artefact::Sprint(lines) => lines,
        other => return Err(artefact::unwanted(path, other.kind(), &[ArtefactKind::Sprint])),
    };
    let line = |key: &str, own: &mut Option<LineSection>| {
        if let Some(fitted) = lines.get(key).filter(|_| own.is_none()) {
            *own = Some(LineSection { each: Some(fitted.per_element), fixed: Some(fitted.start) });
        }
    };
    line("load-image", &mut section.load_image);
    line("deform-image", &mut section.deform_image);
    if section.kernels.is_none() {
        line("compute-gradient", &mut section.compute_gradient);
    }
    let own = section.per_parameter.get_or_insert_default();
    line("all-reduce", &mut own.all_reduce);
    for (key, time) in [
        ("fetch-weights", &mut own.fetch_weights),
        ("compute-update", &mut own.compute_update),
        ("update-gradient", &mut own.update_gradient),
        ("sum-gradient", &mut own.sum_gradient),
        ("update-old-weights", &mut own.update_old_weights),
        ("add-momentum", &mut own.add_momentum),
        ("update-momentum", &mut own.update_momentum),
        ("update-weights", &mut own.update_weights),
    ] {
        *time = time.or(lines.get(key).map(|fitted| fitted.per_element));
    }
    Ok(())
}

/// Times of the kernels, each given in the scenario or fitted.
fn resolve_kernels(
    mut section: KernelsSection,
    precision: Precision,
    files: &dyn Files,
) -> Result<KernelTimes, Fault> {
    let Some(products) = section.sgemm.take() else {
        let reason = "kernels without matrix products: most of a gradient is made of them";
        let remedy =
            "add [methods.oyama2016.kernels.sgemm] with `fitted`, or with `sizes`, `nn`, `tn` and `nt`";
        return Err(Fault::new(reason, remedy));
    };
    let fitted = section.fitted.as_deref().map(|path| fitted_kernels(path, files)).transpose();
    let fitted = fitted.map_err(below("fitted"))?.unwrap_or_default();
    let mut kernels = [KernelTime::default(); CudaKernel::ALL.len()];
    for ((kernel, given), own) in CudaKernel::ALL.iter().zip(section.lines()).zip(&mut kernels) {
        let key = kernel.name();
        let given = given.take().map(|line| line.fill(None, files)).transpose().map_err(below(key))?;
        let given = given.map(|line| KernelTime { line, fitted_to: None });
        let measured = fitted.get(key).map(|kernel| KernelTime {
            line: Line { each: kernel.per_element, fixed: kernel.start },
            fitted_to: Some([kernel.least, kernel.most]),
        });
        *own = given.or(measured).unwrap_or_default();
    }
    let products = products_of(products, precision, files).map_err(below("sgemm"))?;
    Ok(KernelTimes { fitted: section.fitted, kernels, products })
}

fn fitted_kernels(path: &str, files: &dyn Files) -> Result<BTreeMap<String, LinearKernel>, Fault> {
    let kernels = match artefact::load(path, files)? {
        Artefact::Kernels(kernels) => kernels,
        other => return Err(artefact::unwanted(path, other.kind(), &[ArtefactKind::Kernels])),
    };
    let names: Vec<&str> = CudaKernel::ALL.iter().map(|kernel| kernel.name()).collect();
    if let Some(missing) = names.iter().find(|name| !kernels.contains_key(**name)) {
        let reason = format!("{path} has no kernel \"{missing}\"");
        let remedy = format!("measure {}", names.join(", "));
        return Err(Fault::new(reason, remedy));
    }
    Ok(kernels)
}

fn products_of(
    mut section: SgemmSection,
    precision: Precision,
    files: &dyn Files,
) -> Result<Products, Fault> {
    let Some(path) = section.fitted.take() else { return sgemm(section).map(Products::Table) };
    let at = |fault: Fault| fault.below(KeyPath::of("fitted"));
    if section != SgemmSection::default() {
        let reason = "fitted products and measured ones say the same twice";
        return Err(at(Fault::new(reason, "keep `fitted`, or `sizes` and the times")));
    }
    let model: Arc<GemmModel> = match artefact::load(&path, files).map_err(at)? {
        Artefact::Gemm(model) => Arc::from(model),
        other => return Err(at(artefact::unwanted(&path, other.kind(), &[ArtefactKind::Gemm]))),
    };
    for transposition in [Transposition::Nn, Transposition::Tn, Transposition::Nt] {
        let variant = Variant { precision, transposition };
        if !model.variants.contains_key(&variant) {
            let reason = format!("{path} has no products {variant}");
            let remedy = "measure them, or use another `precision`";
            return Err(at(Fault::new(reason, remedy)));
        }
    }
    Ok(Products::Fitted { path, model, precision })
}

fn sgemm(section: SgemmSection) -> Result<SgemmTable, Fault> {
    let sizes = section.sizes.unwrap_or_default();
    let ascending = sizes.windows(2).all(|pair| pair[0] < pair[1]);
    if !(2..=MAX_SIZES).contains(&sizes.len()) || sizes[0] == 0 || !ascending {
        let reason = format!("needs 2 to {MAX_SIZES} positive sizes, each larger than the one before");
        return Err(Fault::in_key("sizes", reason, "use sizes such as [1, 2, 3, 4, 6, 8, 11, 16]"));
    }
    let wanted = sizes.len().pow(3);
    let times = |key: &'static str, given: Option<Vec<Seconds>>| {
        let times = given.unwrap_or_default();
        if times.len() != wanted {
            let reason =
                format!("has {} times, and {} sizes make {wanted} products", times.len(), sizes.len());
            let remedy = "give the time of every (m, n, k), k changing fastest";
            return Err(Fault::in_key(key, reason, remedy));
        }
        for (index, time) in times.iter().enumerate() {
            positive("time", time.get(), "a time such as \"12 us\"")
                .map_err(|fault| Fault { key: KeyPath::of(key).index(index), ..fault })?;
        }
        Ok(times)
    };
    let (nn, tn, nt) = (times("nn", section.nn)?, times("tn", section.tn)?, times("nt", section.nt)?);
    Ok(SgemmTable { sizes, nn, tn, nt })
}

impl Oyama2016 {
    pub(super) fn to_section(&self) -> Oyama2016Section {
        let kernels = self.kernels.as_deref().map(KernelTimes::section);
        Oyama2016Section { kernels, ..self.section() }
    }
}

impl KernelsSection {
    /// Its lines in the order of [`CudaKernel`].
    fn lines(&mut self) -> [&mut Option<LineSection>; CudaKernel::ALL.len()] {
        let Self { im2col, col2im, activation, activation_gradient, pool, pool_gradient, softmax, .. } = self;
        [im2col, col2im, activation, activation_gradient, pool, pool_gradient, softmax]
    }
}

impl KernelTimes {
    pub fn kernel(&self, kernel: CudaKernel) -> KernelTime {
        self.kernels[kernel as usize]
    }

    fn section(&self) -> KernelsSection {
        let sgemm = match &self.products {
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
        };
        let mut section =
            KernelsSection { fitted: self.fitted.clone(), sgemm: Some(sgemm), ..Default::default() };
        for (line, time) in section.lines().into_iter().zip(self.kernels) {
            *line = time.fitted_to.is_none().then(|| time.line.section());
        }
        section
    }
}
