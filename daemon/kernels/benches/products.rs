//! What a product of m rows costs against one of one row, with weights streamed from memory.
//!
//! `cargo bench -p tandem-kernels [-- FORMAT/]`, such as `-- Q4_1/`. Each pass goes over more than a gigabyte of distinct
//! weights in the shapes of a 1.8 B model, so that no cache keeps them (`TANDEM_BENCH_GB`, should the last level be
//! larger than 300 MB). `TANDEM_BENCH_THREADS` and `TANDEM_BENCH_ISA` (such as `avx2`) choose other than all threads
//! and the best instructions. C(m), GB/s beside the machine's read bandwidth, and operations per second come last.
#![expect(clippy::print_stdout, reason = "a bench reports to its reader")]

mod common;

use common::Times;
use criterion::{BenchmarkId, Criterion, SamplingMode};
use std::{sync::Arc, time::Duration, time::Instant};
use tandem_kernels::check::blocks::{Random, random_blocks};
use tandem_kernels::{Format, Isa, OutView, PackedMatrix, QuantizedRows, SharedBytes, isa};

/// Outputs and inputs of a 1.8 B model's products.
const SHAPES: [(usize, usize); 3] = [(2304, 2304), (6144, 2304), (2304, 6144)];
/// Rows of a decoding step, of verification, of several requests together.
const COUNTS: [usize; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 64];

fn main() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_millis(300))
        .measurement_time(Duration::from_secs(1))
        .sample_size(10)
        .configure_from_args();
    let (isa, threads) = (chosen_isa(), common::threads());
    let bandwidth = common::read_bandwidth(threads);
    println!(
        "{isa}, {threads} threads, which read {:.1} GB/s from memory",
        bandwidth / 1e9
    );
    for format in Format::ALL {
        let mut matrices = Vec::new();
        let cases: Vec<(usize, Times)> = COUNTS.map(|rows| (rows, Times::default())).into();
        let mut group = criterion.benchmark_group(format!("{format:?}"));
        group.sampling_mode(SamplingMode::Flat);
        for (rows, times) in &cases {
            let id = BenchmarkId::from_parameter(rows);
            let mut inputs = None;
            group.bench_function(id, |bencher| {
                // Only now, since criterion may have filtered the case out.
                if matrices.is_empty() {
                    matrices = copies(isa, format);
                }
                let x = inputs.get_or_insert_with(|| activations(isa, *rows));
                bencher.iter_custom(|n| times.take(n, || pass(&matrices, x, threads)));
            });
        }
        group.finish();
        let bytes = matrices.iter().map(PackedMatrix::bytes).sum();
        let weights = matrices.iter().map(|m| m.outputs() * m.inputs()).sum();
        common::report(&format!("{format:?}"), bytes, weights, bandwidth, &cases);
    }
    criterion.final_summary();
}

fn chosen_isa() -> Isa {
    let Ok(name) = std::env::var("TANDEM_BENCH_ISA") else {
        return isa();
    };
    let known = Isa::available().into_iter().find(|isa| isa.name() == name);
    known.unwrap_or_else(|| panic!("this CPU has no `{name}`, but {:?}", Isa::available()))
}

/// Copies of one random matrix per shape, until they are more than caches hold.
fn copies(isa: Isa, format: Format) -> Vec<PackedMatrix> {
    let gigabytes: f64 = match std::env::var("TANDEM_BENCH_GB") {
        Ok(number) => number.parse().expect("TANDEM_BENCH_GB is a number"),
        Err(_) => 1.2,
    };
    let mut random = Random(1);
    let originals: Vec<PackedMatrix> = SHAPES
        .iter()
        .map(|&(outputs, inputs)| {
            let weights = random_blocks(format, outputs * inputs, &mut random);
            PackedMatrix::pack_for(isa, format, outputs, inputs, &weights).expect("a sound shape")
        })
        .collect();
    let mut all = Vec::new();
    let mut bytes = 0;
    while (bytes as f64) < gigabytes * 1e9 {
        for matrix in &originals {
            bytes += matrix.bytes();
            all.push(copy(matrix));
        }
    }
    all
}

fn copy(matrix: &PackedMatrix) -> PackedMatrix {
    let mut copy = vec![0u8; matrix.bytes() + 64];
    let start = copy.as_ptr().align_offset(64);
    copy[start..][..matrix.bytes()].copy_from_slice(matrix.as_bytes());
    let copy = SharedBytes::new(Arc::new(copy), start..start + matrix.bytes()).expect("in range");
    let (outputs, inputs) = (matrix.outputs(), matrix.inputs());
    PackedMatrix::from_packed(matrix.isa(), matrix.format(), outputs, inputs, copy)
        .expect("the same shape")
}

/// Rows for either number of inputs.
fn activations(isa: Isa, rows: usize) -> [QuantizedRows; 2] {
    let mut random = Random(2);
    [2304, 6144].map(|inputs| {
        let mut x = QuantizedRows::for_isa(isa);
        x.reset(rows, inputs, true);
        for row in 0..rows {
            let values: Vec<f32> = (0..inputs).map(|_| random.normal()).collect();
            x.quantize_row(row, &values);
        }
        x
    })
}

/// Multiplies all matrices, tiles shared out evenly among the threads; how long it took.
fn pass(matrices: &[PackedMatrix], inputs: &[QuantizedRows], threads: usize) -> Duration {
    let work = |thread: usize| {
        let mut out = vec![0f32; inputs[0].rows() * 6144];
        for matrix in matrices {
            let x = inputs.iter().find(|x| x.inputs() == matrix.inputs());
            let tiles = |thread: usize| matrix.tiles() * thread / threads;
            let mut view = OutView::new(&mut out, matrix.outputs());
            matrix.multiply(
                x.expect("both sizes are there"),
                tiles(thread)..tiles(thread + 1),
                &mut view,
            );
        }
    };
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 1..threads {
            scope.spawn(move || work(thread));
        }
        work(0);
    });
    start.elapsed()
}
