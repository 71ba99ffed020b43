//! Plans of which none is better in time, cost and memory at once.

use super::setup::Setup;
use serde::{Deserialize, Serialize};
use stepcast_analytic::transformer::plans::Choice;

/// A plan with what it is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Point {
    pub(super) time: f64,
    pub(super) cost: f64,
    pub(super) memory: f64,
    /// Time of a step.
    pub(super) step: f64,
    pub(super) setup: Setup,
    pub(super) choice: Choice,
}

/// The points that no other dominates.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Front {
    points: Vec<Point>,
}

impl Front {
    /// Whether a known plan is at least as good in everything.
    pub(super) fn dominates(&self, time: f64, cost: f64, memory: f64) -> bool {
        self.points.iter().any(|known| known.time <= time && known.cost <= cost && known.memory <= memory)
    }

    /// Adds a plan, and removes those that it dominates.
    pub(super) fn offer(&mut self, point: Point) {
        if self.dominates(point.time, point.cost, point.memory) {
            return;
        }
        let beaten = |known: &Point| {
            point.time <= known.time && point.cost <= known.cost && point.memory <= known.memory
        };
        self.points.retain(|known| !beaten(known));
        self.points.push(point);
    }

    /// Adds all plans of another front.
    pub(super) fn merge(&mut self, other: Self) {
        other.points.into_iter().for_each(|point| self.offer(point));
    }

    /// The fastest first.
    pub(super) fn sorted(mut self) -> Vec<Point> {
        self.points.sort_by(|a, b| {
            a.time.total_cmp(&b.time).then(a.cost.total_cmp(&b.cost)).then(a.memory.total_cmp(&b.memory))
        });
        self.points
    }
}
