use half::f16;

use super::*;

struct Exp([f32; LANES]);

impl Kernel for Exp {
    type Output = [f32; LANES];
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let mut out = [0.0; LANES];
        simd.store(exp(simd, simd.load(&self.0)), &mut out);
        out
    }
}

#[test]
fn exp_is_exact_to_a_few_units_in_the_last_place() {
    for isa in Isa::all() {
        for step in 0..20_000 {
            let x: [f32; LANES] = std::array::from_fn(|lane| {
                -87.0 + 175.0 * (step * LANES + lane) as f32 / 320_000.0
            });
            for (x, got) in x.iter().zip(isa.run(Exp(x))) {
                let exact = f64::from(*x).exp();
                let error = (f64::from(got) - exact).abs() / exact;
                assert!(error < 3e-7, "{isa:?}: exp({x}) is {got}, off by {error:e}");
            }
        }
        assert_eq!(isa.run(Exp([0.0; LANES])), [1.0; LANES]);
        assert!(isa.run(Exp([-1e30; LANES]))[3] < 2e-38);
        assert!(isa.run(Exp([1e30; LANES]))[3].is_finite());
    }
}

struct Widen([u16; LANES]);

impl Kernel for Widen {
    type Output = [f32; LANES];
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let mut out = [0.0; LANES];
        simd.store(simd.load_f16(&self.0), &mut out);
        out
    }
}

#[test]
fn every_half_widens_exactly() {
    for isa in Isa::all() {
        for start in (0..=u16::MAX).step_by(LANES) {
            let bits: [u16; LANES] = std::array::from_fn(|lane| start + lane as u16);
            for (bits, got) in bits.iter().zip(isa.run(Widen(bits))) {
                let expected = f16::from_bits(*bits).to_f32();
                assert!(
                    got == expected || got.is_nan() && expected.is_nan(),
                    "{bits:x}"
                );
            }
        }
    }
}

struct Sum([f32; LANES]);

impl Kernel for Sum {
    type Output = f32;
    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> f32 {
        simd.sum(simd.load(&self.0))
    }
}

#[test]
fn sums_take_the_same_order_everywhere() {
    let values: [f32; LANES] = std::array::from_fn(|lane| 1.1f32.powi(lane as i32) - 2.0);
    let expected = Isa::Portable.run(Sum(values));
    for isa in Isa::all() {
        assert_eq!(isa.run(Sum(values)).to_bits(), expected.to_bits());
    }
}
