//! The constants of `catalog/priors.toml`, by name.

use super::file::Section;
use crate::keys::is_name;
use crate::quantity::{BytesPerSec, Seconds};
use std::ops::{Div, Mul};

/// A rate in GB/s, the unit of the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GigabytesPerSec(f64);

impl From<GigabytesPerSec> for BytesPerSec {
    fn from(rate: GigabytesPerSec) -> Self {
        Self::new(rate.0 * 1e9)
    }
}

impl Mul<f64> for GigabytesPerSec {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self(self.0 * factor)
    }
}

impl Div<f64> for GigabytesPerSec {
    type Output = Self;

    fn div(self, parts: f64) -> Self {
        Self(self.0 / parts)
    }
}

impl GigabytesPerSec {
    /// The geometric mean of rates.
    #[must_use]
    pub fn mean<const N: usize>(rates: [Self; N]) -> Self {
        Self((rates.iter().map(|rate| rate.0.ln()).sum::<f64>() / N as f64).exp())
    }

    fn get(self) -> f64 {
        self.0
    }
}

/// The type of a constant: a plain number, a time or a rate.
trait ConstantType: Copy + Mul<f64, Output = Self> {
    fn from_number(number: f64) -> Self;

    fn number(self) -> f64;
}

macro_rules! constant_types {
    ($($type:ty: $from:path, $to:path;)*) => {$(
        impl ConstantType for $type {
            fn from_number(number: f64) -> Self {
                $from(number)
            }

            fn number(self) -> f64 {
                $to(self)
            }
        }
    )*};
}

constant_types! {
    f64: std::convert::identity, std::convert::identity;
    Seconds: Seconds::new, Seconds::get;
    GigabytesPerSec: GigabytesPerSec, GigabytesPerSec::get;
}

/// The name of a constant in the file: the name of its field, unless the file has another one.
macro_rules! name_in_file {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $name:literal) => {
        $name
    };
}

/// Declares a struct of constants that a section of the file defines.
macro_rules! constants {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident $(as $key:literal)?: $type:ty,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: $type,)*
        }

        impl $name {
            pub(super) fn read(section: &Section) -> Result<Self, String> {
                let value = |name: &str| {
                    let name = crate::keys::kebab(name);
                    let constant = section.constants.get(&name);
                    constant.map(|constant| constant.value).ok_or_else(|| format!("`{name}` is missing"))
                };
                Ok(Self { $($field: <$type>::from_number(value(name_in_file!($field $($key)?))?),)* })
            }

            /// Multiplies every constant by its factor.
            pub(super) fn scale(&mut self, factor: impl Fn(&'static str, f64) -> Option<f64>) {
                $(if let Some(factor) = factor(name_in_file!($field $($key)?), self.$field.number()) {
                    self.$field = <$type>::from_number(self.$field.number() * factor);
                })*
            }

            pub(super) fn get(&self, name: &str) -> Option<f64> {
                $(if is_name(name_in_file!($field $($key)?), name) {
                    return Some(self.$field.number());
                })*
                None
            }
        }
    };
}

constants! {
    /// Several workers that all-reduce.
    AllReduce {
        /// Rate of an owned host over TCP.
        tcp_flow: GigabytesPerSec,
        /// Rate of a rented machine over TCP.
        tcp_vm: GigabytesPerSec,
        /// Factor of the geometric mean of both rates, if the kind of machines is unknown.
        either: f64,
        /// Share of the nominal rate over RDMA.
        rdma: f64,
        /// Share of the nominal rate of PCIe between GPUs with peer-to-peer access.
        p2p: f64,
        /// Rate between two GPUs that copy through host memory.
        bounce: GigabytesPerSec,
        /// Rate of the path through host memory that all GPUs of a machine share.
        shared: GigabytesPerSec,
        /// Share of the nominal rate of NVLink.
        nv: f64,
        /// Rate of MPI that sums on the host.
        mpi: GigabytesPerSec,
        /// Rate of a worker's exchange through gloo, which sums on the host.
        gloo: GigabytesPerSec,
        /// Share of intra-node communication that stays exposed.
        exposed_intra_node as "shows-in": f64,
        /// Share of inter-node communication that stays exposed.
        exposed_inter_node as "shows-x": f64,
        /// Share of the backward pass that can hide communication.
        hideable_backward as "hides": f64,
        /// Share of computing lost with each doubling of the GPUs in a machine.
        loss_per_gpu_doubling as "loss-in": f64,
        /// Share of computing lost with each doubling of machines.
        loss_per_machine_doubling as "loss-x": f64,
        /// Share of computing lost to reading real data with each doubling of the GPUs in a machine.
        loss_per_doubling_real_data as "loss-real": f64,
        /// Start-up of a collective for each doubling of the GPUs in a machine, one way.
        hop_in: Seconds,
        /// Start-up of a collective for each doubling of machines, one way.
        hop_x: Seconds,
        /// Start-up of a collective through gloo for each doubling of workers, one way.
        gloo_hop: Seconds,
        /// Host work for each gradient tensor.
        tensor: Seconds,
        /// Waiting for Horovod's cycle and agreement, for each doubling of GPUs.
        cycle: Seconds,
    }
}

constants! {
    /// One GPU, or one CPU.
    OneGpu {
        /// Share of the FP32 peak that 3x3 convolutions of stride 1 reach on ordinary units; fast algorithms exceed 1.
        square: f64,
        /// Share of the FP32 peak for other convolutions.
        conv: f64,
        /// Share of the FP32 peak for matrix products.
        linear: f64,
        /// Share of the FP32 peak for convolutions of at most four input channels.
        stem: f64,
        /// Share of the FP32 peak for depth-wise convolutions.
        depthwise: f64,
        /// Share of the FP32 peak for grouped convolutions.
        grouped: f64,
        /// Factor for devices whose FP32 units double as integer units.
        dual: f64,
        /// Factor for devices of the Kepler generation.
        kepler: f64,
        /// Factor for devices of AMD.
        amd: f64,
        /// Exponent of the power limit.
        power: f64,
        /// Share of the peak of tensor units.
        tensor: f64,
        /// Limit to which 3x3 convolutions can feed tensor units, in multiples of the lane rate.
        feed_square: f64,
        /// Limit to which other convolutions can feed tensor units.
        feed_conv: f64,
        /// Limit to which matrix products can feed tensor units.
        feed_linear: f64,
        /// Factor of these limits in TF32.
        feed_tf32: f64,
        /// Factor of convolutions with channels last.
        channels_last: f64,
        /// Share of the memory rate.
        memory: f64,
        /// Factor of the bytes moved in mixed precision.
        amp: f64,
        /// Factor of element-wise passes in a compiled step.
        compiled: f64,
        /// Host time of a layer.
        op: Seconds,
        /// Host time of a gradient tensor.
        gradient: Seconds,
        /// Factor of host times in mixed precision.
        host_amp: f64,
        /// Start and tail of a kernel, three for each layer.
        start: Seconds,
        /// Share of the peak of one core that software reaches on a CPU.
        cpu: f64,
        /// Share of the memory rate of one core that its work on weights reaches.
        cpu_memory: f64,
        /// Exponent of the number of cores on CPUs with fused multiply-add.
        cores: f64,
        /// Exponent of the number of cores on older CPUs.
        cores_avx: f64,
        /// Factor of the whole step: residual of this model on this device.
        deviation: f64,
    }
}

constants! {
    /// Transformers, part by part.
    Transformers {
        /// Share of the peak rate that large products reach on Ampere, at the clock that the power limit allows.
        product_ampere: f64,
        /// Share for large products on Hopper.
        product_hopper: f64,
        /// Share for large products on Blackwell.
        product_blackwell: f64,
        /// Share for large products on Volta.
        product_volta: f64,
        /// Share for large products on AMD's CDNA.
        product_cdna: f64,
        /// Share for large products on systolic arrays: TPU and Gaudi.
        product_systolic: f64,
        /// Share for large products on GB20x: RTX PRO 6000, RTX 5090.
        product_gb20x: f64,
        /// Share for large products on Trainium, whose compiler reaches less.
        product_trainium: f64,
        /// Share for large products on other devices.
        product_other: f64,
        /// Rate of products in 8-bit floating point, relative to the 8-bit peak times the share of other products.
        float8: f64,
        /// Rate of 8-bit products on Blackwell.
        float8_blackwell: f64,
        /// Rate of 4-bit products, relative to 8 bits on the same device.
        float4: f64,
        /// Exponent of the power limit.
        power: f64,
        /// Sustained clock relative to the clock after idling.
        sustained: f64,
        /// Depth of products that takes as long as to fill and empty a tile.
        depth: f64,
        /// Slowdown of a tile that loads twice the bytes per operation.
        tile: f64,
        /// Share of the last wave of tiles that counts as if it were full.
        wave: f64,
        /// Share of the peak rate that flash attention reaches forward, with heads of 128.
        flash: f64,
        /// Share of the peak rate that flash attention reaches backward, with heads of 128.
        flash_back: f64,
        /// Share of the peak rate that flash attention reaches forward on Ampere, Ada and GB20x.
        flash_ampere: f64,
        /// Share of the peak rate that flash attention reaches backward on Ampere, Ada and GB20x.
        flash_back_ampere: f64,
        /// Share of the peak rate that flash attention in Triton reaches forward on Ampere, and XLA's on systolic arrays.
        triton: f64,
        /// Share of the peak rate that flash attention in Triton, or by XLA, reaches backward.
        triton_back: f64,
        /// Share of the peak rate that flash attention reaches forward on Blackwell.
        flash_blackwell: f64,
        /// Share of the peak rate that flash attention reaches backward on Blackwell.
        flash_back_blackwell: f64,
        /// Rate of cuDNN's attention on Hopper and Blackwell relative to flash attention.
        cudnn: f64,
        /// Width of a head below which flash attention is slow.
        head: f64,
        /// Width of a head below which cuDNN's attention is slow.
        head_cudnn: f64,
        /// Keys on the diagonal that flash attention computes although they are masked.
        diagonal: f64,
        /// Share of the memory rate of long copies.
        memory: f64,
        /// Share of the memory rate of element-wise passes and norms.
        pass: f64,
        /// Share of the memory rate of element-wise passes and norms on Ampere.
        pass_ampere: f64,
        /// Passes over every visit of a token to an expert that bring it there and back, forward.
        dispatch: f64,
        /// Passes over every visit of a token to an expert, backward.
        dispatch_back: f64,
        /// Share of the memory rate of a fused update.
        update: f64,
        /// Start and tail of a kernel.
        kernel: Seconds,
        /// Host time of a kernel in eager software.
        host: Seconds,
        /// Kernels outside of layers.
        outside: f64,
        /// Host time to recompute a layer, beside its kernels.
        checkpoint: Seconds,
        /// Host time of a pass through a layer of Megatron-LM's modules, beside its kernels.
        modules: Seconds,
        /// Factor of host times in servers up to the A100's generation.
        older_host: f64,
        /// Share of the nominal rate of NVLink that large collectives reach.
        nvlink: f64,
        /// Share of the nominal rate of RDMA ports that large collectives reach.
        rdma: f64,
        /// Factor of that share between rented machines.
        rented: f64,
        /// Start of a collective over NVLink.
        start: Seconds,
        /// Start of a collective over other links.
        start_between: Seconds,
        /// Latency of each step of a ring within a machine.
        hop: Seconds,
        /// Latency of each step of a ring between machines.
        hop_between: Seconds,
        /// Additional time of computing while traffic is under way beside it, as a share.
        interference: f64,
        /// Additional time of computing beside traffic where PyTorch gathers sharded weights, as a share.
        interference_pytorch: f64,
        /// Factor of all computing: residual of the software stack, of this vintage and tuning.
        stack: f64,
        /// Factor of all computing in a training loop of PyTorch on several devices of Hopper or later.
        stack_pytorch: f64,
        /// Factor of all computing in such a loop on CDNA.
        loop_cdna: f64,
        /// Factor of computing of layers with experts.
        stack_experts: f64,
        /// Factor of the scans of delta nets and Mamba relative to measurements on an H200.
        scan: f64,
        /// Share of the rates of large copies and of the host's memory that offloading reaches.
        offload: f64,
        /// Share of computing lost with each doubling of devices beyond eight.
        loss: f64,
        /// Factor of computing in runs of weeks against benchmarks.
        production: f64,
    }
}

constants! {
    /// Parameter servers.
    Servers {
        /// Rate of one thread of gRPC in TensorFlow 1.0 to 1.4, in and out together, at 2.5 GHz.
        grpc_10 as "grpc-1.0": GigabytesPerSec,
        /// Rate of one thread of gRPC in TensorFlow 1.5 to 1.15.
        grpc_15 as "grpc-1.5": GigabytesPerSec,
        /// Rate of one thread of gRPC in TensorFlow 2.
        grpc_2 as "grpc-2": GigabytesPerSec,
        /// Rate of one thread of gRPC with MPI as the transport.
        grpc_mpi: GigabytesPerSec,
        /// Rate of one thread of gRPC with InfiniBand verbs as the transport.
        grpc_verbs: GigabytesPerSec,
        /// Rate of one thread of ps-lite.
        ps_lite: GigabytesPerSec,
        /// Rate of one thread of `torch.distributed.rpc`.
        torch_rpc: GigabytesPerSec,
        /// Factor of the mean of the three generations of gRPC, if the generation is unknown.
        generation: f64,
        /// Factor of the mean of all software, if the software is unknown.
        unnamed: f64,
        /// Time of a server to dispatch each tensor that it receives or sends, one after the other.
        tensor: Seconds,
        /// BytePS over TCP: share of both directions of a port.
        bps_wire: f64,
        /// BytePS over TCP: rate of one remote server, both directions.
        bps_flow: GigabytesPerSec,
        /// BytePS over RDMA: share of both directions of a port.
        bps_rdma: f64,
        /// Share of communication that stays exposed although there is time to hide it.
        exposed as "shows": f64,
        /// Share of the backward pass that can hide communication.
        hideable_backward as "hides": f64,
        /// Share of computing lost with each doubling of workers with GPUs.
        loss_per_doubling as "loss": f64,
        /// Share of computing lost with each doubling of workers on CPU cores.
        loss_per_doubling_cpu as "loss-cpu": f64,
    }
}
