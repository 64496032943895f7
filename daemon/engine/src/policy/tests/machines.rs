//! Machines that exist in numbers only.

/// What steps of so many rows and rounds cost, and by what factor all costs change with time.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub(super) step: fn(usize) -> f64,
    pub(super) round: f64,
    pub(super) drift: fn(f64) -> f64,
    /// Relative noise of each step.
    pub(super) noise: f64,
}

pub(super) fn machine(step: fn(usize) -> f64, round: f64) -> Machine {
    Machine {
        step,
        round,
        drift: |_| 1.0,
        noise: 0.0,
    }
}

/// Rows are nearly free up to 8: our kernels, which take rows in chunks of 8.
pub(super) fn chunked(rows: usize) -> f64 {
    const FIRST: [f64; 8] = [1.0, 1.08, 1.13, 1.17, 1.22, 1.29, 1.35, 1.41];
    match rows {
        0 => 0.0,
        1..=8 => FIRST[rows - 1],
        9..=12 => 1.85 + 0.1 * (rows - 9) as f64,
        13..=16 => 2.15 + 0.0825 * (rows - 12) as f64,
        _ => 1.5 * chunked(16) * rows as f64 / 24.0,
    }
}

pub(super) fn flat(_: usize) -> f64 {
    1.0
}

pub(super) fn linear(rows: usize) -> f64 {
    rows as f64
}

pub(super) fn shallow(rows: usize) -> f64 {
    0.9 + 0.1 * rows as f64
}

pub(super) fn steep(rows: usize) -> f64 {
    [0.0, 1.0, 1.83, 2.5, 3.26][rows.min(4)] + 0.72 * rows.saturating_sub(4) as f64
}

/// The speed-up of the best fixed length against plain decoding, and that length, where every draft is accepted with
/// the same probability.
pub(super) fn best_fixed(machine: &Machine, acceptance: f64) -> (f64, usize) {
    let speedup = |length: usize| {
        let tokens: f64 = (0..=length)
            .map(|depth| acceptance.powi(depth as i32))
            .sum();
        let seconds = (machine.step)(length + 1) + length as f64 * machine.round;
        tokens * (machine.step)(1) / seconds
    };
    let lengths = (0..=15).map(|length| (speedup(length), length));
    lengths
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .expect("not empty")
}
