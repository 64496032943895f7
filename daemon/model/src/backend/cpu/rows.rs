//! What happens to rows element by element: sums, and the gate of the MLP.

use super::simd::{Kernel, LANES, Simd, exp};
use crate::backend::Activation;

/// Calls `f` with each full vector of lanes of `x`, and with the rest padded by zeros; `f`'s result replaces them.
#[inline(always)]
pub(super) fn map_lanes<S: Simd>(
    simd: S,
    x: &mut [f32],
    y: &[f32],
    f: impl Fn(S::V, S::V) -> S::V,
) {
    let (x_lanes, x_rest) = x.as_chunks_mut::<LANES>();
    let (y_lanes, y_rest) = y.as_chunks::<LANES>();
    for (x, y) in x_lanes.iter_mut().zip(y_lanes) {
        simd.store(f(simd.load(x), simd.load(y)), x);
    }
    if !x_rest.is_empty() {
        let (mut x, mut y) = ([0.0; LANES], [0.0; LANES]);
        x[..x_rest.len()].copy_from_slice(x_rest);
        y[..y_rest.len()].copy_from_slice(y_rest);
        let result = f(simd.load(&x), simd.load(&y));
        simd.store(result, &mut x);
        x_rest.copy_from_slice(&x[..x_rest.len()]);
    }
}

/// `x += y`.
pub(super) struct AddTo<'a> {
    pub(super) x: &'a mut [f32],
    pub(super) y: &'a [f32],
}

impl Kernel for AddTo<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        map_lanes(
            simd,
            self.x,
            self.y,
            #[inline(always)]
            |x, y| simd.add(x, y),
        );
    }
}

/// `gate = activation(gate) · up`.
pub(super) struct Gate<'a> {
    pub(super) gate: &'a mut [f32],
    pub(super) up: &'a [f32],
    pub(super) activation: Activation,
}

impl Kernel for Gate<'_> {
    type Output = ();
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) {
        let Self {
            gate,
            up,
            activation,
        } = self;
        match activation {
            Activation::Silu => map_lanes(
                simd,
                gate,
                up,
                #[inline(always)]
                |x, y| gated(simd, x, x, y),
            ),
            Activation::Gelu => map_lanes(
                simd,
                gate,
                up,
                #[inline(always)]
                |x, y| {
                    // x/2 · (1 + tanh(u)) is x · sigmoid(2u).
                    const TWICE_ROOT: f32 = 2.0 * 0.797_884_6;
                    let cubic = simd.fma(simd.mul(x, x), simd.splat(0.044_715), simd.splat(1.0));
                    let u = simd.mul(simd.mul(x, simd.splat(TWICE_ROOT)), cubic);
                    gated(simd, x, u, y)
                },
            ),
        }
    }
}

/// x · sigmoid(u) · y.
#[inline(always)]
fn gated<S: Simd>(simd: S, x: S::V, u: S::V, y: S::V) -> S::V {
    let e = exp(simd, simd.sub(simd.splat(0.0), u));
    simd.mul(simd.div(x, simd.add(simd.splat(1.0), e)), y)
}

#[cfg(test)]
mod tests {
    use super::super::simd::Isa;
    use super::*;

    fn values(len: usize, seed: u32) -> Vec<f32> {
        (0..len as u32)
            .map(|i| ((i * 2_654_435_761 + seed * 97) >> 8) as f32 / (1 << 21) as f32 - 4.0)
            .collect()
    }

    fn close(got: &[f32], expected: impl Iterator<Item = f64>) {
        for (at, (got, expected)) in got.iter().zip(expected).enumerate() {
            let error = (f64::from(*got) - expected).abs();
            assert!(
                error <= 2e-6 * expected.abs().max(1e-3),
                "{at}: {got} and {expected}"
            );
        }
    }

    #[test]
    fn gates_agree_with_their_formulas() {
        for isa in [Isa::Portable, Isa::detect()] {
            for len in [1, 15, 16, 50] {
                let (x, up) = (values(len, 1), values(len, 2));
                for activation in [Activation::Silu, Activation::Gelu] {
                    let mut gate = x.clone();
                    isa.run(Gate {
                        gate: &mut gate,
                        up: &up,
                        activation,
                    });
                    close(
                        &gate,
                        x.iter().zip(&up).map(|(x, up)| {
                            let (x, up) = (f64::from(*x), f64::from(*up));
                            match activation {
                                Activation::Silu => x / (1.0 + (-x).exp()) * up,
                                Activation::Gelu => {
                                    let root = (2.0 / std::f64::consts::PI).sqrt();
                                    0.5 * x
                                        * (1.0 + (root * (x + 0.044_715 * x * x * x)).tanh())
                                        * up
                                }
                            }
                        }),
                    );
                }
            }
        }
    }

    #[test]
    fn splitting_a_row_does_not_change_its_gate() {
        let isa = Isa::detect();
        let up = values(64, 4);
        let mut whole = values(64, 3);
        let mut split = whole.clone();
        let activation = Activation::Silu;
        isa.run(Gate {
            gate: &mut whole,
            up: &up,
            activation,
        });
        for at in [0..8, 8..40, 40..64] {
            isa.run(Gate {
                gate: &mut split[at.clone()],
                up: &up[at],
                activation,
            });
        }
        assert_eq!(whole, split);
    }
}
