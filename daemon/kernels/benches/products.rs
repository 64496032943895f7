//! What a product of m rows costs against one of one row, with weights streamed from memory.
//!
//! `cargo bench --bench kernels -- [--isa NAME] [--gb N] [--rounds N] [FORMAT …]`. More than a gigabyte of distinct
//! weights goes by in each pass, so that caches do not keep them (check `--gb` against the size of the last level).
//! Passes of different m alternate, and each matrix counts with its fastest time of all rounds: about a millisecond,
//! short enough to slip between the time slices of other programs. What cannot slip through is their use of the memory.
#![expect(clippy::print_stdout, reason = "a bench prints its figures")]

#[path = "../tests/common/blocks.rs"]
mod blocks;

use blocks::{Random, random_blocks};
use std::{sync::Arc, time::Instant};
use tandem_kernels::{Format, Isa, OutView, PackedMatrix, QuantizedRows, SharedBytes, isa};

/// Outputs and inputs of a 1.8 B model's products.
const SHAPES: [(usize, usize); 3] = [(2304, 2304), (6144, 2304), (2304, 6144)];
const COUNTS: [usize; 17] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 256];

struct Options {
    isa: Isa,
    gigabytes: f64,
    rounds: usize,
    formats: Vec<Format>,
}

fn main() {
    let options = options();
    println!(
        "{}, {} GB of weights per pass, the fastest of {} rounds each",
        options.isa, options.gigabytes, options.rounds
    );
    for &format in &options.formats {
        let matrices = matrices(&options, format);
        for threads in [1, 2] {
            report(&options, format, &matrices, threads);
        }
    }
}

fn options() -> Options {
    let formats = vec![Format::Q4_1, Format::Q4K, Format::Q4_0, Format::Q8_0];
    let mut options = Options {
        isa: isa(),
        gigabytes: 1.2,
        rounds: 3,
        formats,
    };
    let mut named = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().unwrap_or_default();
        match word.as_str() {
            "--isa" => {
                let name = value();
                let known = Isa::available().into_iter().find(|isa| isa.name() == name);
                options.isa = known.unwrap_or_else(|| panic!("this CPU has no `{name}`"));
            }
            "--gb" => options.gigabytes = value().parse().expect("a number of gigabytes"),
            "--rounds" => options.rounds = value().parse().expect("a number of rounds"),
            "--bench" => {}
            word => {
                let format = Format::ALL
                    .into_iter()
                    .find(|format| format!("{format:?}") == word);
                named.push(format.unwrap_or_else(|| panic!("no format is named `{word}`")));
            }
        }
    }
    if !named.is_empty() {
        options.formats = named;
    }
    options
}

/// Copies of one random matrix per shape, until they are many gigabytes.
fn matrices(options: &Options, format: Format) -> Vec<PackedMatrix> {
    let mut random = Random(1);
    let originals: Vec<PackedMatrix> = SHAPES
        .iter()
        .map(|&(outputs, inputs)| {
            let weights = random_blocks(format, outputs * inputs, &mut random);
            PackedMatrix::pack_for(options.isa, format, outputs, inputs, &weights)
                .expect("the shape is right")
        })
        .collect();
    let mut all = Vec::new();
    let mut bytes = 0;
    while (bytes as f64) < options.gigabytes * 1e9 {
        for matrix in &originals {
            let mut copy = vec![0u8; matrix.bytes() + 64];
            let start = copy.as_ptr().align_offset(64);
            copy[start..][..matrix.bytes()].copy_from_slice(matrix.as_bytes());
            let copy =
                SharedBytes::new(Arc::new(copy), start..start + matrix.bytes()).expect("in range");
            let copy = PackedMatrix::from_packed(
                options.isa,
                format,
                matrix.outputs(),
                matrix.inputs(),
                copy,
            );
            bytes += matrix.bytes();
            all.push(copy.expect("the shape is right"));
        }
    }
    all
}

fn report(options: &Options, format: Format, matrices: &[PackedMatrix], threads: usize) {
    let bytes: usize = matrices.iter().map(PackedMatrix::bytes).sum();
    let weights: usize = matrices
        .iter()
        .map(|matrix| matrix.outputs() * matrix.inputs())
        .sum();
    let inputs: Vec<Vec<QuantizedRows>> = COUNTS
        .iter()
        .map(|&rows| activations(options, rows))
        .collect();
    let mut fastest = vec![vec![f64::MAX; matrices.len()]; COUNTS.len()];
    for _ in 0..options.rounds {
        for (fastest, (x, &rows)) in fastest.iter_mut().zip(inputs.iter().zip(&COUNTS)) {
            // Compute-bound: a part of the weights is enough.
            let part = if rows > 16 {
                &matrices[..SHAPES.len()]
            } else {
                matrices
            };
            for (fastest, seconds) in fastest.iter_mut().zip(pass(part, x, threads)) {
                *fastest = fastest.min(seconds);
            }
        }
    }
    let copies = (matrices.len() / SHAPES.len()) as f64;
    let fastest: Vec<f64> = fastest
        .iter()
        .map(|times| match times.last() {
            Some(&f64::MAX) => copies * times[..SHAPES.len()].iter().sum::<f64>(),
            _ => times.iter().sum(),
        })
        .collect();
    println!(
        "\n{format:?}, {threads} threads: {:.1} GB/s at one row",
        bytes as f64 / fastest[0] / 1e9
    );
    println!("{:>6} {:>7} {:>9} {:>7}", "m", "C(m)", "GOP/s", "GB/s");
    for (&rows, seconds) in COUNTS.iter().zip(&fastest) {
        let operations = 2.0 * (weights * rows) as f64 / seconds / 1e9;
        println!(
            "{rows:>6} {:>7.2} {operations:>9.0} {:>7.1}",
            seconds / fastest[0],
            bytes as f64 / seconds / 1e9
        );
    }
}

/// Rows for either number of inputs.
fn activations(options: &Options, rows: usize) -> Vec<QuantizedRows> {
    let mut random = Random(2);
    let mut quantized = |inputs: usize| {
        let mut x = QuantizedRows::for_isa(options.isa);
        x.reset(rows, inputs, true);
        for row in 0..rows {
            x.quantize_row(
                row,
                &(0..inputs).map(|_| random.normal()).collect::<Vec<_>>(),
            );
        }
        x
    };
    vec![quantized(2304), quantized(6144)]
}

/// Seconds for the product of each matrix, tiles shared out evenly: those of the slower thread.
fn pass(matrices: &[PackedMatrix], inputs: &[QuantizedRows], threads: usize) -> Vec<f64> {
    let time = |thread: usize| {
        let mut out = vec![0f32; inputs[0].rows() * 6144];
        let timed = matrices.iter().map(|matrix| {
            let x = inputs.iter().find(|x| x.inputs() == matrix.inputs());
            let tiles = |thread: usize| matrix.tiles() * thread / threads;
            let mut view = OutView::new(&mut out, matrix.outputs());
            let start = Instant::now();
            matrix.multiply(
                x.expect("both sizes are there"),
                tiles(thread)..tiles(thread + 1),
                &mut view,
            );
            start.elapsed().as_secs_f64()
        });
        timed.collect::<Vec<f64>>()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || time(thread)))
            .collect();
        let times = workers
            .into_iter()
            .map(|worker| worker.join().expect("products do not panic"));
        times
            .reduce(|a, b| a.iter().zip(&b).map(|(a, b)| a.max(*b)).collect())
            .unwrap_or_default()
    })
}
