//! A device that exists in numbers only: its steps are short, rows are nearly free, and the first steps of a kind are dear.

use std::collections::HashMap;

use super::sim::Dice;
use crate::policy::Controller;

/// Seconds of steps and rounds.
#[derive(Clone)]
pub(super) struct Device {
    /// A step of so many rows, once its like was seen twice.
    pub(super) step: fn(usize) -> f64,
    /// A forward of the draft with so many rows.
    pub(super) round: fn(usize) -> f64,
    /// Added to the first step of a shape, and to the second, a fifth of it in a forward of the draft. The rows are a shape,
    /// and by how often the context doubled.
    pub(super) cold: [f64; 2],
    /// Relative, uniform.
    pub(super) noise: f64,
    pub(super) seen: HashMap<(bool, usize, usize), usize>,
}

impl Device {
    pub(super) fn new(step: fn(usize) -> f64, round: fn(usize) -> f64) -> Self {
        Self {
            step,
            round,
            cold: [0.0; 2],
            noise: 0.0,
            seen: HashMap::new(),
        }
    }

    /// Runs a forward; returns its seconds and whether it was cold.
    pub(super) fn forward(
        &mut self,
        target: bool,
        depths: &[usize],
        position: usize,
        dice: &mut Dice,
    ) -> (f64, bool) {
        let rows = depths.len();
        let last = position + depths.iter().max().copied().unwrap_or(0);
        let chunks = (last / 128 + 1).next_power_of_two();
        let seen = self.seen.entry((target, rows, chunks)).or_default();
        let cold = self.cold.get(*seen).copied().unwrap_or(0.0);
        *seen += 1;
        let seconds = if target { self.step } else { self.round };
        let noise = 1.0 + self.noise * (dice.roll() - 0.5);
        let scale = if target { 1.0 } else { 0.2 };
        (seconds(rows) * noise + scale * cold, cold > 0.0)
    }

    /// Runs steps of 1 to 17 rows at contexts of several lengths, as `model/rehearsal.rs` does.
    pub(super) fn rehearse(&mut self, controller: &mut Controller, dice: &mut Dice) {
        for context in [64, 192, 384] {
            for rows in 1..=17 {
                let depths: Vec<usize> = (0..rows).collect();
                loop {
                    let (seconds, cold) = self.forward(true, &depths, context, dice);
                    if !cold {
                        controller.rehearsed(rows, context, seconds);
                        break;
                    }
                }
                for _ in 0..3 {
                    let _ = self.forward(false, &depths[..rows.min(6)], context, dice);
                }
            }
        }
    }
}
