//! Whether a GPU computes what the CPU does, and whether a row's logits depend on the rows computed with it.
//!
//! `cargo run --release -p tandem-model --features cuda --example device_check -- MODEL.gguf cuda PROMPT.txt…` compares the
//! logits of every token of the prompts with those of the cpu backend: the relative error of each row, how many rows agree
//! about the likeliest token, and of those that do not, how near the CPU's two likeliest are. Then it compares to the bit:
//! steps of many rows with steps of one, rows of trees with chains, and early rows that resume with rows that do not.
#![expect(clippy::print_stdout, reason = "the answers")]

use std::error::Error;
use std::num::NonZeroUsize;

use tandem_model::TokenId;
use tandem_model::backend::candle::CandleBackend;
use tandem_model::backend::cpu::CpuBackend;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Decoder, LanguageModel};
use tandem_model::testing::{chain, invariance};
use tandem_model::tokenizer::{SpecialTokens, Tokenizer};

const POSITIONS: usize = 4096;

type Model = Box<dyn LanguageModel>;
type Fallible<T> = Result<T, Box<dyn Error>>;

fn open(device: &str, gguf: &Gguf) -> Fallible<Model> {
    let none = &mut |_| {};
    Ok(match device {
        #[cfg(feature = "cuda")]
        "cuda" | "cuda-apart" => {
            let backend = tandem_model::backend::cuda::CudaBackend::with(
                tandem_model::backend::cuda::Options {
                    graphs: true,
                    overlap: device != "cuda-apart",
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
    let expected = chain(&mut **reference, a, tokens, tokens.len())?;
    let found = chain(&mut **model, b, tokens, tokens.len())?;
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
    let differing = invariance(&mut *model, &all)?;
    differing.iter().for_each(|what| println!("{what}"));
    let invariant = differing.is_empty();
    println!("a row's logits are independent of its neighbours: {invariant}");
    if model.batch_invariant() && !invariant {
        return Err("the backend promises that they are".into());
    }
    Ok(())
}
