use std::num::NonZeroUsize;
use std::sync::Arc;

use half::f16;

use super::*;
use crate::backend::cpu::arena::Arena;
use crate::backend::cpu::pool::Pool;
use crate::backend::cpu::rope::CpuRope;
use crate::backend::cpu::simd::Isa;
use crate::backend::{CacheShape, RopeStyle};

const HEADS: usize = 6;
const SHAPE: CacheShape = CacheShape {
    layers: 2,
    kv_heads: 2,
    head_dim: 24,
};

fn compute(threads: usize, isa: Isa) -> Compute {
    Compute {
        pool: Arc::new(Pool::new(NonZeroUsize::new(threads).expect("at least one"))),
        arena: Arena::default(),
        isa,
    }
}

/// Numbers between −2 and 2 that depend on the two coordinates alone.
fn noise(row: usize, column: usize) -> f32 {
    let mixed = (row as u32 * 0x9e37_79b9 + 12345) ^ (column as u32).wrapping_mul(0x85eb_ca6b);
    (mixed.wrapping_mul(0xc2b2_ae35) >> 9) as f32 / (1 << 21) as f32 - 2.0
}

/// A row named by a number: its query, key and value depend on it alone.
fn projections(names: &[usize]) -> [Vec<f32>; 3] {
    [HEADS, SHAPE.kv_heads, SHAPE.kv_heads].map(|heads| {
        let width = heads * SHAPE.head_dim;
        names
            .iter()
            .flat_map(|name| (0..width).map(move |column| noise(*name, column + heads * 1000)))
            .collect()
    })
}

struct Bench {
    compute: Compute,
    window: Option<usize>,
    rope: CpuRope,
}

impl Bench {
    fn new(threads: usize, isa: Isa, window: Option<usize>) -> Self {
        // No turning, so that the naive sums below need none.
        let rope = CpuRope::new(&[0.0; SHAPE.head_dim / 2], 4096);
        Self {
            compute: compute(threads, isa),
            window,
            rope,
        }
    }

    fn attend(&self, plan: &RowPlan, names: &[usize], caches: &mut [CpuCache]) -> Vec<f32> {
        let qkv = projections(names).map(|values| {
            let mut hidden = self
                .compute
                .hidden(names.len(), values.len() / names.len())
                .expect("memory");
            hidden.values.copy_from_slice(&values);
            hidden
        });
        for (cache, group) in caches.iter_mut().zip(&plan.groups) {
            cache.reserve(group.base + group.len()).expect("memory");
        }
        let params = AttentionParams {
            layer: 1,
            heads: HEADS,
            scale: 0.25,
            window: self.window,
            head_norms: None,
            rope: &self.rope,
            rope_style: RopeStyle::Halves,
        };
        let out = attend(&self.compute, &params, qkv, plan, caches).expect("memory");
        out.values.to_vec()
    }

    /// A chain of the rows `names`, fed in parts of the sizes given; returns the results of all.
    fn chain(&self, names: &[usize], parts: &[usize]) -> Vec<f32> {
        let mut cache = CpuCache::new(SHAPE);
        let (mut out, mut base) = (Vec::new(), 0);
        let mut parts = parts.iter().cycle();
        while base < names.len() {
            let len = (*parts.next().expect("cycled")).min(names.len() - base);
            let mut plan = RowPlan::default();
            plan.push_group(base, line(len));
            out.extend(self.attend(
                &plan,
                &names[base..base + len],
                std::slice::from_mut(&mut cache),
            ));
            base += len;
        }
        out
    }
}

fn line(len: usize) -> impl Iterator<Item = Option<usize>> + Clone {
    (0..len).map(|row: usize| row.checked_sub(1))
}

/// One row's attention in f64, over the rows that it sees.
fn naive(row: usize, seen: &[usize]) -> Vec<f64> {
    let [queries, _, _] = projections(&[row]);
    let [_, keys, values] = projections(seen);
    let halved = |x: f32| f64::from(f16::from_f32(x).to_f32());
    let (width, head_dim) = (SHAPE.kv_heads * SHAPE.head_dim, SHAPE.head_dim);
    let mut out = Vec::new();
    for head in 0..HEADS {
        let shared = head / (HEADS / SHAPE.kv_heads) * head_dim;
        let query = &queries[head * head_dim..][..head_dim];
        let weights: Vec<f64> = (0..seen.len())
            .map(|at| {
                let key = &keys[at * width + shared..][..head_dim];
                let products = query.iter().zip(key);
                let score: f64 = products.map(|(q, k)| f64::from(*q) * halved(*k)).sum();
                (score * 0.25).exp()
            })
            .collect();
        let sum: f64 = weights.iter().sum();
        for d in 0..head_dim {
            let value = |at: usize| halved(values[at * width + shared + d]);
            let weighted = weights.iter().enumerate().map(|(at, w)| w * value(at));
            out.push(weighted.sum::<f64>() / sum);
        }
    }
    out
}

#[test]
fn attention_agrees_with_its_formula() {
    let names: Vec<usize> = (0..300).collect();
    for isa in [Isa::Portable, Isa::detect()] {
        for window in [None, Some(1), Some(100)] {
            let out = Bench::new(2, isa, window).chain(&names, &[300]);
            for row in [0, 1, 17, 127, 128, 299] {
                let oldest = (row + 1usize).saturating_sub(window.unwrap_or(usize::MAX));
                let expected = naive(row, &names[oldest..=row]);
                let got = &out[row * expected.len()..][..expected.len()];
                for (got, expected) in got.iter().zip(expected) {
                    assert!(
                        (f64::from(*got) - expected).abs() < 1e-5,
                        "{row}: {got} {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn neither_chunking_nor_threads_change_a_bit() {
    let names: Vec<usize> = (0..700).collect();
    for isa in [Isa::Portable, Isa::detect()] {
        for window in [None, Some(5), Some(300)] {
            let expected = Bench::new(1, isa, window).chain(&names, &[1]);
            for threads in 1..=4 {
                let bench = Bench::new(threads, isa, window);
                for parts in [&[700][..], &[1], &[64], &[3, 1, 129, 16]] {
                    assert_eq!(bench.chain(&names, parts), expected, "{threads} {parts:?}");
                }
            }
        }
    }
}

#[test]
fn neighbours_of_other_lengths_change_nothing() {
    let bench = Bench::new(3, Isa::detect(), None);
    let lengths = [1000, 3, 130, 1, 257];
    let mut caches: Vec<CpuCache> = Vec::new();
    let (mut plan, mut names, mut expected) = (RowPlan::default(), Vec::new(), Vec::new());
    for (sequence, len) in lengths.into_iter().enumerate() {
        let own: Vec<usize> = (0..len).map(|row| sequence * 10_000 + row).collect();
        let mut cache = CpuCache::new(SHAPE);
        let last = len.min(sequence + 1);
        if len > last {
            let mut past = RowPlan::default();
            past.push_group(0, line(len - last));
            bench.attend(&past, &own[..len - last], std::slice::from_mut(&mut cache));
        }
        caches.push(cache);
        plan.push_group(len - last, line(last));
        names.extend_from_slice(&own[len - last..]);
        let alone = bench.chain(&own, &[1]);
        expected.extend_from_slice(&alone[alone.len() / len * (len - last)..]);
    }
    assert_eq!(bench.attend(&plan, &names, &mut caches), expected);
}

#[test]
fn a_path_of_a_tree_equals_the_chain() {
    // The path 1, 2, 4, 7 among siblings that must not count.
    let parents = [
        None,
        None,
        Some(1),
        Some(0),
        Some(2),
        Some(1),
        Some(0),
        Some(4),
        Some(7),
    ];
    let path = [1, 2, 4, 7];
    for (base, window) in [
        (0, None),
        (5, None),
        (125, None),
        (254, None),
        (900, Some(3)),
        (620, Some(200)),
    ] {
        let past: Vec<usize> = (0..base).collect();
        for threads in [1, 2] {
            let bench = Bench::new(threads, Isa::detect(), window);
            let straight: Vec<usize> = past.iter().copied().chain(path.map(|n| 5000 + n)).collect();
            let chain = bench.chain(&straight, &[1]);
            let width = chain.len() / straight.len();

            let mut cache = CpuCache::new(SHAPE);
            let mut plan = RowPlan::default();
            if base > 0 {
                plan.push_group(0, line(base));
                bench.attend(&plan, &past, std::slice::from_mut(&mut cache));
            }
            let mut plan = RowPlan::default();
            plan.push_group(base, parents);
            let names: Vec<usize> = (0..parents.len()).map(|row| 5000 + row).collect();
            let tree = bench.attend(&plan, &names, std::slice::from_mut(&mut cache));
            for (depth, row) in path.into_iter().enumerate() {
                let got = &tree[row * width..(row + 1) * width];
                assert_eq!(
                    got,
                    &chain[(base + depth) * width..][..width],
                    "{base} {row}"
                );
            }
            // What is kept of the tree goes on as the chain.
            cache.keep(base, &path);
            let mut plan = RowPlan::default();
            plan.push_group(base + path.len(), line(2));
            let after = bench.attend(&plan, &[77, 78], std::slice::from_mut(&mut cache));
            let longer: Vec<usize> = straight.iter().copied().chain([77, 78]).collect();
            let chain = bench.chain(&longer, &[64]);
            assert_eq!(after, chain[chain.len() - 2 * width..]);
        }
    }
}
