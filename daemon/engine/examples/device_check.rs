//! Whether a GPU computes what the CPU does, and whether a row's logits depend on the rows computed with it.
//!
//! `cargo run --release -p tandem-engine --features cuda --example device_check -- MODEL.gguf cuda PROMPT.txt…` compares the
//! logits of every token of the prompts with those of the cpu backend: the relative error of each row, how many rows agree
//! about the likeliest token, and of those that do not, how near the CPU's two likeliest are. Then it compares to the bit:
//! steps of many rows with steps of one, rows of trees with chains, and early rows that resume with rows that do not.
#![expect(clippy::print_stdout, reason = "the answers")]

use std::error::Error;
use std::num::NonZeroUsize;

use tandem_engine::TokenId;
use tandem_engine::backend::candle::CandleBackend;
use tandem_engine::backend::cpu::CpuBackend;
use tandem_engine::gguf::Gguf;
use tandem_engine::model::{Decoder, Exit, LanguageModel, Row, Slot};
use tandem_engine::tokenizer::{SpecialTokens, Tokenizer};

const POSITIONS: usize = 4096;

type Model = Box<dyn LanguageModel>;
type Fallible<T> = Result<T, Box<dyn Error>>;

fn open(device: &str, gguf: &Gguf) -> Fallible<Model> {
    let none = &mut |_| {};
    Ok(match device {
        #[cfg(feature = "cuda")]
        "cuda" | "cuda-overlap" => {
            let backend = tandem_engine::backend::cuda::CudaBackend::with(
                tandem_engine::backend::cuda::Options {
                    graphs: true,
                    overlap: device == "cuda-overlap",
                },
            )?;
            Box::new(Decoder::load(backend, gguf, POSITIONS, none)?)
        }
        "metal" => Box::new(Decoder::load(
            CandleBackend::metal()?,
            gguf,
            POSITIONS,
            none,
        )?),
        "cpu" => {
            let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
            Box::new(Decoder::load(
                CpuBackend::new(threads),
                gguf,
                POSITIONS,
                none,
            )?)
        }
        other => return Err(format!("this build has no device `{other}`").into()),
    })
}

/// Logits of the last `want` of the rows.
fn forward(model: &mut Model, rows: &[Row], want: usize) -> Fallible<Vec<Vec<f32>>> {
    let wanted: Vec<usize> = (rows.len() - want..rows.len()).collect();
    let logits = model.forward(rows, &wanted)?;
    Ok((0..want).map(|row| logits.row(row).to_vec()).collect())
}

fn chain(
    model: &mut Model,
    slot: Slot,
    tokens: &[TokenId],
    want: usize,
) -> Fallible<Vec<Vec<f32>>> {
    let rows: Vec<Row> = Row::chain(slot, tokens).collect();
    forward(model, &rows, want)
}

/// The two likeliest tokens, likeliest first.
fn likeliest(logits: &[f32]) -> [usize; 2] {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|a, b| logits[*b].total_cmp(&logits[*a]));
    [order[0], order[1]]
}

/// Compares with the reference over all tokens of one prompt.
fn compare(
    reference: &mut Model,
    model: &mut Model,
    name: &str,
    tokens: &[TokenId],
) -> Fallible<()> {
    let (a, b) = (reference.open()?, model.open()?);
    let expected = chain(reference, a, tokens, tokens.len())?;
    let found = chain(model, b, tokens, tokens.len())?;
    let (mut worst, mut sum, mut agree, mut margins) = (0.0_f64, 0.0, 0, Vec::new());
    for (expected, found) in expected.iter().zip(&found) {
        let norm =
            |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
        let difference = norm(&mut expected.iter().zip(found).map(|(e, f)| f64::from(e - f)));
        let error = difference / norm(&mut expected.iter().map(|e| f64::from(*e)));
        (worst, sum) = (
            if error.is_nan() {
                f64::NAN
            } else {
                worst.max(error)
            },
            sum + error,
        );
        let [first, second] = likeliest(expected);
        match likeliest(found)[0] == first {
            true => agree += 1,
            false => margins.push(expected[first] - expected[second]),
        }
    }
    println!(
        "{name}: {} rows, relative error mean {:.2e}, worst {worst:.2e}; {agree} agree about the likeliest token, \
         margins where not: {margins:.3?}",
        tokens.len(),
        sum / tokens.len() as f64
    );
    reference.close(a);
    model.close(b);
    Ok(())
}

fn same(what: &str, a: &[Vec<f32>], b: &[Vec<f32>]) -> bool {
    let bits = |rows: &[Vec<f32>]| -> Vec<Vec<u32>> {
        rows.iter()
            .map(|row| row.iter().map(|v| v.to_bits()).collect())
            .collect()
    };
    let (a, b) = (bits(a), bits(b));
    let differing = a.iter().zip(&b).filter(|(a, b)| a != b).count();
    let equal = differing == 0 && a.len() == b.len();
    if !equal {
        println!("{what}: {differing} of {} rows differ", a.len());
    }
    equal
}

/// Steps of several widths against steps of one row; trees against chains; early rows against whole ones.
fn invariance(model: &mut Model, tokens: &[TokenId]) -> Fallible<bool> {
    let (prompt, rest) = tokens.split_at(tokens.len() / 3);
    let base = model.open()?;
    chain(model, base, prompt, 1)?;
    let tokens: Vec<TokenId> = rest.iter().copied().cycle().take(200).collect();
    let single = model.fork(base, prompt.len())?;
    let expected: Vec<Vec<f32>> = tokens
        .iter()
        .map(|token| Ok(chain(model, single, &[*token], 1)?.remove(0)))
        .collect::<Fallible<_>>()?;
    let mut well = true;
    for width in [2, 3, 7, 8, 9, 15, 16, 17, 24, 32, 33, 48, 64, 65, 100, 200] {
        let slot = model.fork(base, prompt.len())?;
        let mut found = Vec::new();
        for piece in tokens.chunks(width) {
            found.extend(chain(model, slot, piece, piece.len())?);
        }
        well &= same(&format!("steps of {width} rows"), &found, &expected);
        model.close(slot);
    }

    // A tree of which the even rows are the chain, each with a sibling that goes elsewhere, beside another sequence.
    let (tree, other) = (
        model.fork(base, prompt.len())?,
        model.fork(base, prompt.len())?,
    );
    let mut rows = Vec::new();
    for (depth, token) in tokens[..20].iter().enumerate() {
        let parent = (2 * depth).checked_sub(2);
        let row = |token| Row {
            slot: tree,
            token,
            parent,
        };
        rows.extend([row(*token), row(token + 1)]);
    }
    rows.extend(Row::chain(other, &tokens[..5]));
    let found = forward(model, &rows, rows.len())?;
    let path: Vec<Vec<f32>> = found.iter().take(40).step_by(2).cloned().collect();
    well &= same("a tree's path", &path, &expected[..20]);
    well &= same("a neighbour", &found[40..], &expected[..5]);
    let offsets: Vec<usize> = (0..20).map(|depth| 2 * depth).collect();
    model.keep(tree, prompt.len(), &offsets)?;
    let next = chain(model, tree, &tokens[20..28], 8)?;
    well &= same("after a kept path", &next, &expected[20..28]);
    model.truncate(tree, prompt.len() + 4);
    let next = chain(model, tree, &tokens[4..9], 5)?;
    well &= same("after a truncation", &next, &expected[4..9]);

    let layers = model.config().layers / 2;
    if layers > 0 {
        let early = model.fork(base, prompt.len())?;
        let rows: Vec<Row> = Row::chain(early, &tokens[..6]).collect();
        model.early(&rows[..4], &[3], Exit::Layer(layers))?;
        let found = forward(model, &rows, 6)?;
        well &= same("resumed rows", &found, &expected[..6]);
        model.close(early);
    }
    for slot in [base, single, tree, other] {
        model.close(slot);
    }
    Ok(well)
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, device, prompts @ ..] = &arguments[..] else {
        return Err("name a GGUF file, a device and prompts".into());
    };
    let gguf = Gguf::open(path)?;
    let tokenizer = Tokenizer::from_gguf(&gguf)?;
    let mut model = open(device, &gguf)?;
    let mut reference = open("cpu", &gguf)?;
    println!("{} against {}", model.backend(), reference.backend());
    let mut all = Vec::new();
    for prompt in prompts {
        let tokens = tokenizer.encode(&std::fs::read_to_string(prompt)?, SpecialTokens::Parse);
        compare(&mut reference, &mut model, prompt, &tokens)?;
        all.extend(tokens);
    }
    compare(&mut reference, &mut model, "all of them", &all)?;
    let invariant = invariance(&mut model, &all)?;
    println!("a row's logits are independent of its neighbours: {invariant}");
    if model.batch_invariant() && !invariant {
        return Err("the backend promises that they are".into());
    }
    Ok(())
}
