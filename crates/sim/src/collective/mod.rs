//! Collectives send by send: every send of every worker is an operation, which waits for what the worker has sent and
//! heard before.
//!
//! Workers have one full-duplex port each and combine what arrives before they pass it on; workers of different nodes
//! reach each other through the ports of their nodes. With equal workers the times are the closed forms of collective
//! costs; with unequal ones they show how a slow port or a slow worker spreads.
//!
//! [`build`] makes programs of operations that everybody has and ways that some take; one module for every algorithm
//! says which.

mod build;
mod double_tree;
mod halving_doubling;
mod hierarchical;
mod ring;
mod tree;

use crate::program::{Program, ProgramError};
use build::Builder;
use stepcast_core::quantity::{Bytes, BytesPerSec, Seconds};

/// Which collective.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collective {
    /// Every worker ends up with its share of the sum, around a ring.
    ReduceScatter,
    /// Every worker gets all shares, around a ring.
    AllGather,
    /// Both, one after the other.
    Ring,
    /// Recursive halving, then recursive doubling.
    HalvingDoubling,
    /// From the first worker to all others along a binomial tree.
    Broadcast,
    /// To the first worker and back along a binomial tree.
    Tree,
    /// To the roots of two binary trees and back, half of the data each.
    DoubleTree {
        /// Parts into which each half is cut; they follow each other through the tree.
        packets: u32,
    },
    /// Within nodes first, then between them.
    Hierarchical,
}

/// The workers of a collective.
#[derive(Debug, Clone, PartialEq)]
pub struct Machines {
    /// Rate of every worker's port, one direction.
    pub ports: Vec<BytesPerSec>,
    /// What every send costs beside its bytes.
    pub step: Seconds,
    /// Combining a byte that arrived with an own one.
    pub combine_byte: Seconds,
    /// What joins nodes, where workers share some: ports and step are then those within a node.
    pub nodes: Option<Nodes>,
}

/// Nodes of several workers each, in order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Nodes {
    /// Workers of one node.
    pub workers: u32,
    /// Rate of a node's port, one direction, which its workers share.
    pub port: BytesPerSec,
    /// What every send to another node costs beside its bytes.
    pub step: Seconds,
}

impl Collective {
    /// A program of one step: this collective of `size` bytes on every worker.
    pub fn program(self, machines: &Machines, size: Bytes) -> Result<Program, ProgramError> {
        let mut builder = Builder::new(machines, size);
        match self {
            Self::ReduceScatter => ring::rounds(&mut builder, &[true]),
            Self::AllGather => ring::rounds(&mut builder, &[false]),
            Self::Ring => ring::rounds(&mut builder, &[true, false]),
            Self::HalvingDoubling => halving_doubling::rounds(&mut builder),
            Self::Broadcast => tree::rounds(&mut builder, false),
            Self::Tree => tree::rounds(&mut builder, true),
            Self::DoubleTree { packets } => double_tree::packets(&mut builder, packets.max(1)),
            Self::Hierarchical => hierarchical::rounds(&mut builder)?,
        }
        builder.program()
    }
}

#[cfg(test)]
mod tests;
