//! The constants by name, as plain numbers for formulas.

use super::file::Section;

/// Declares a struct of constants that a section of the file defines under the same names.
macro_rules! constants {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $field:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq)]
        pub struct $name {
            $($(#[$doc])* pub $field: f64,)*
        }

        impl $name {
            pub(super) fn read(section: &Section) -> Result<Self, String> {
                let value = |field: &str| {
                    let name = crate::keys::kebab(field);
                    let constant = section.constants.get(&name);
                    constant.map(|constant| constant.value).ok_or_else(|| format!("`{name}` is missing"))
                };
                Ok(Self { $($field: value(stringify!($field))?,)* })
            }

            pub(super) fn get(mut self, name: &str) -> Option<f64> {
                self.get_mut(name).copied()
            }

            pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut f64> {
                $(if crate::keys::kebab(stringify!($field)) == name {
                    return Some(&mut self.$field);
                })*
                None
            }
        }
    };
}

constants! {
    /// Several workers that all-reduce: rates in GB/s or as shares of nominal rates, times in seconds.
    AllReduce {
        /// What a host of one's own reaches over TCP, GB/s.
        tcp_flow,
        /// What a rented machine reaches over TCP, GB/s.
        tcp_vm,
        /// Factor of the geometric mean of both, where it is not known which machines they are.
        either,
        /// Share of the nominal rate over RDMA.
        rdma,
        /// Share of the nominal rate of PCIe between GPUs with peer-to-peer access.
        p2p,
        /// Rate between two GPUs that copy through host memory, GB/s.
        bounce,
        /// Rate of the path through host memory that all GPUs of a machine share, GB/s.
        shared,
        /// Share of the nominal rate of NVLink.
        nv,
        /// Rate of MPI that sums on the host, GB/s.
        mpi,
        /// Rate of a worker's exchange through gloo, which sums on the host, GB/s.
        gloo,
        /// Share of communication inside a machine that shows although there is time to hide it.
        shows_in,
        /// The same between machines.
        shows_x,
        /// Share of the backward pass that can hide communication.
        hides,
        /// Share of computing lost with each doubling of the GPUs in a machine.
        loss_in,
        /// Share of computing lost with each doubling of machines.
        loss_x,
        /// Share of computing lost to reading real data with each doubling of the GPUs in a machine.
        loss_real,
        /// Start-up of a collective for each doubling of the GPUs in a machine, one way.
        hop_in,
        /// Start-up of a collective for each doubling of machines, one way.
        hop_x,
        /// Start-up of a collective through gloo for each doubling of workers, one way.
        gloo_hop,
        /// Host work for each gradient tensor.
        tensor,
        /// Waiting for Horovod's cycle and agreement, for each doubling of GPUs.
        cycle,
    }
}

constants! {
    /// One GPU: shares of data-sheet rates, factors, and times in seconds.
    OneGpu {
        /// Share of the FP32 peak that 3x3 convolutions of stride 1 reach on ordinary units; fast algorithms exceed 1.
        square,
        /// The same for other convolutions.
        conv,
        /// The same for matrix products.
        linear,
        /// The same for convolutions of at most four input channels.
        stem,
        /// The same for depth-wise convolutions.
        depthwise,
        /// The same for grouped convolutions.
        grouped,
        /// Factor for devices whose FP32 units double as integer units.
        dual,
        /// Factor for devices of the Kepler generation.
        kepler,
        /// Factor for devices of AMD.
        amd,
        /// Exponent of the power limit.
        power,
        /// Share of the peak of tensor units.
        tensor,
        /// Limit by which 3x3 convolutions can feed tensor units, multiples of the lane rate.
        feed_square,
        /// The same for other convolutions.
        feed_conv,
        /// The same for matrix products.
        feed_linear,
        /// Factor of these limits in TF32.
        feed_tf32,
        /// Factor of convolutions with channels last.
        channels_last,
        /// Share of the memory rate.
        memory,
        /// Factor of the bytes moved in mixed precision.
        amp,
        /// Factor of element-wise passes in a compiled step.
        compiled,
        /// Host time of a layer.
        op,
        /// Host time of a gradient tensor.
        gradient,
        /// Factor of host times in mixed precision.
        host_amp,
        /// Start and tail of a kernel, three for each layer.
        start,
        /// Factor of the whole step: what this model on this device is off.
        deviation,
    }
}

constants! {
    /// Transformers, part by part: shares of data-sheet rates, and times in seconds.
    Transformers {
        /// Share of the peak rate that large products reach on Ampere, at the clock that the power limit allows.
        product_ampere,
        /// The same on Hopper.
        product_hopper,
        /// The same on Blackwell.
        product_blackwell,
        /// The same on other devices.
        product_other,
        /// Rate of products in 8-bit floating point, as a share of what that peak would give at the share of other products.
        float8,
        /// Exponent of the power limit.
        power,
        /// Rate of a device that does not rest against one that has rested before.
        sustained,
        /// Depth of products whose time it takes to fill and empty a tile.
        depth,
        /// Slowness of a tile with twice the loaded bytes for each operation.
        tile,
        /// Share of the last wave of tiles that counts as if it were full.
        wave,
        /// Share of the peak rate that flash attention reaches forward, with heads of 128.
        flash,
        /// The same backward.
        flash_back,
        /// Share of the peak rate that flash attention reaches forward on Ampere.
        flash_ampere,
        /// The same backward.
        flash_back_ampere,
        /// Width of a head below which flash attention is slow.
        head,
        /// Keys on the diagonal that flash attention computes although they are masked.
        diagonal,
        /// Share of the memory rate of long copies.
        memory,
        /// Share of the memory rate of element-wise passes and norms.
        pass,
        /// The same on Ampere.
        pass_ampere,
        /// Passes over every visit of a token to an expert that bring it there and back, forward.
        dispatch,
        /// The same backward.
        dispatch_back,
        /// Share of the memory rate of a fused update.
        update,
        /// Start and tail of a kernel.
        kernel,
        /// Host time of a kernel in eager software.
        host,
        /// Kernels outside of layers.
        outside,
        /// Host time to compute a layer again, beside its kernels.
        checkpoint,
        /// Share of the nominal rate of NVLink that large collectives reach.
        nvlink,
        /// Share of the nominal rate of RDMA ports that large collectives reach.
        rdma,
        /// Start of a collective.
        start,
        /// Latency of each step of a ring.
        hop,
    }
}

constants! {
    /// Parameter servers: rates in GB/s, times in seconds.
    Servers {
        /// Rate of one gRPC server, in and out together, GB/s.
        grpc,
        /// The same with MPI as the transport, GB/s.
        grpc_mpi,
        /// Time of a server for each tensor of an update.
        tensor,
        /// Factor by which asynchronous workers use both directions.
        duplex,
        /// BytePS over TCP: share of both directions of a port.
        bps_wire,
        /// BytePS over TCP: rate of one remote server, both directions, GB/s.
        bps_flow,
        /// Share of communication that shows although there is time to hide it.
        shows,
        /// Share of the backward pass that can hide communication.
        hides,
        /// Share of computing lost with each doubling of workers with GPUs.
        loss,
        /// The same for workers on CPU cores.
        loss_cpu,
    }
}
