//! What speculation gains where several requests run at once: tokens per second of all of them, with and without.
//!
//! `cargo run --release -p tandem-engine --example together -- TARGET.gguf DRAFT.gguf|EXIT.gguf|- PROMPT.txt…`
//! Requests take the prompts by turns. `TOGETHER` in the environment chooses other numbers than `1,2,4,8`, `ROUNDS` other than 3
//! and `TOKENS` other than 128; `TEMPERATURE` other than 0 draws each text by a seed of its own. `THREADS`, `DEVICE` and
//! `DRAFT_DEVICE` are as in `speculation`. Both ways run in turn, figures are medians over the rounds, and every text is
//! compared with that of its request alone without speculation.
//!
//! Time counts from the step at which the last request has its first token to the end of the last one, so prompts are left out;
//! towards the end fewer requests may be left.
#![expect(clippy::print_stdout, reason = "the answer")]

mod common;

use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

use common::{device, draft, number, threads};
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{LoadOptions, ModelPair, PairFiles};
use tandem_engine::policy::{Pipelined, Policy};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::tokenizer::SpecialTokens;
use tandem_engine::{Output, Request, StopConditions, TokenId};

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Requests at once by one way, over the rounds.
#[derive(Default)]
struct Timed {
    /// Tokens per second of all requests.
    speeds: Vec<f64>,
    steps: u64,
    drafted: u64,
    accepted: u64,
}

/// What came of requests that ran at once.
struct Ran {
    texts: Vec<Vec<TokenId>>,
    tokens_per_second: f64,
    steps: u64,
    drafted: u64,
    accepted: u64,
}

fn request(prompt: &[TokenId], number: usize, speculation: bool) -> Fallible<Request> {
    Ok(Request {
        prompt: prompt.to_vec(),
        sampling: SamplingParams {
            temperature: common::number("TEMPERATURE", 0.0)?,
            seed: Some(number as u64 + 1),
            ..SamplingParams::default()
        },
        stop: StopConditions {
            max_tokens: Some(common::number("TOKENS", 128)?),
            ..StopConditions::default()
        },
        speculation,
        client: None,
        drafters: None,
        draft_length: None,
        logprobs: None,
        draft_width: None,
        deadline: None,
        entropy: 1,
    })
}

/// Runs requests at once to their end.
fn run(engine: &mut Engine, requests: Vec<Request>) -> Fallible<Ran> {
    let ids = requests
        .into_iter()
        .map(|request| engine.submit(request))
        .collect::<Result<Vec<_>, _>>()?;
    let mut texts: HashMap<_, Vec<TokenId>> = ids.iter().map(|id| (*id, Vec::new())).collect();
    let (mut began, mut steps, mut drafted, mut accepted) = (None, 0, 0, 0);
    while engine.has_work() {
        let outputs = engine.step(&Instant::now)?;
        let now = Instant::now();
        steps += u64::from(began.is_some());
        for output in outputs {
            match output {
                Output::Admitted { .. } => {}
                Output::Tokens { id, token_ids, .. } => {
                    texts.entry(id).or_default().extend(token_ids);
                }
                Output::Finished { stats, .. } => {
                    drafted += stats.draft_tokens;
                    accepted += stats.accepted_tokens;
                }
            }
        }
        if began.is_none() && texts.values().all(|text| !text.is_empty()) {
            began = Some((now, texts.values().map(Vec::len).sum::<usize>()));
        }
    }
    let (began, before) = began.ok_or("a request without tokens")?;
    let seconds = began.elapsed().as_secs_f64();
    let all: usize = texts.values().map(Vec::len).sum();
    Ok(Ran {
        tokens_per_second: (all - before) as f64 / seconds,
        texts: ids.iter().filter_map(|id| texts.remove(id)).collect(),
        steps,
        drafted,
        accepted,
    })
}

fn load(target: String, by: &str, most: usize) -> Fallible<Engine> {
    let files = PairFiles {
        target: target.into(),
        draft: draft(by)?,
    };
    let threads = threads()?;
    let options = LoadOptions {
        context_length: Some(4096),
        budget: 64 << 30,
        max_step_rows: 64,
        device: device("DEVICE", threads)?,
        draft_device: match std::env::var_os("DRAFT_DEVICE") {
            Some(_) => Some(device("DRAFT_DEVICE", threads)?),
            None => None,
        },
        prepared: None,
    };
    let limits = EngineOptions {
        max_sequences: most,
        max_step_rows: 64,
        cache_budget: 32 << 30,
        policy: Policy::Goodput,
        pipelined: Pipelined::Auto,
        lookup_history: Some(8 << 20),
    };
    let pair = ModelPair::load(&files, &options, &mut |_| {})?;
    Ok(Engine::new(pair, limits))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Fallible<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(target), Some(by)) = (arguments.next(), arguments.next()) else {
        return Err("name a target, a draft and prompts".into());
    };
    let numbers = std::env::var("TOGETHER").unwrap_or_else(|_| "1,2,4,8".to_owned());
    let numbers: Vec<usize> = numbers
        .split(',')
        .map(|number| number.trim().parse())
        .collect::<Result<_, _>>()?;
    let most = numbers.iter().copied().max().filter(|most| *most > 0);
    let most = most.ok_or("TOGETHER names no numbers of requests")?;
    let mut engine = load(target, &by, most)?;
    let mut prompts = Vec::new();
    for path in arguments {
        let text = std::fs::read_to_string(path)?;
        prompts.push(engine.tokenizer().encode(&text, SpecialTokens::Parse));
    }
    if prompts.is_empty() {
        return Err("name prompts too".into());
    }
    let prompt = |number: usize| &prompts[number % prompts.len()];
    let alone = (0..most)
        .map(|number| {
            let plain = request(prompt(number), number, false)?;
            Ok(run(&mut engine, vec![plain])?.texts.remove(0))
        })
        .collect::<Fallible<Vec<_>>>()?;

    let rounds = number("ROUNDS", 3_usize)?.max(1);
    println!(
        "{:>9}{:>12}{:>15}{:>8}{:>18}{:>10}",
        "at once", "plain tok/s", "drafted tok/s", "gain", "step ratio", "accepted"
    );
    for at_once in numbers.into_iter().filter(|number| *number > 0) {
        let mut timed = [Timed::default(), Timed::default()];
        for _ in 0..rounds {
            for (speculation, timed) in [false, true].into_iter().zip(&mut timed) {
                let requests = (0..at_once)
                    .map(|number| request(prompt(number), number, speculation))
                    .collect::<Fallible<Vec<_>>>()?;
                let ran = run(&mut engine, requests)?;
                if ran.texts != alone[..at_once] {
                    let which = if speculation {
                        "speculation"
                    } else {
                        "company"
                    };
                    return Err(format!("{which} changed a text of {at_once} at once").into());
                }
                timed.speeds.push(ran.tokens_per_second);
                timed.steps += ran.steps;
                timed.drafted += ran.drafted;
                timed.accepted += ran.accepted;
            }
        }
        let [mut plain, mut drafted] = timed;
        let (slow, fast) = (median(&mut plain.speeds), median(&mut drafted.speeds));
        println!(
            "{at_once:>9}{slow:>12.1}{fast:>15.1}{:>7.2}x{:>18.2}{:>9.0} %",
            fast / slow,
            plain.steps as f64 / drafted.steps.max(1) as f64,
            1e2 * drafted.accepted as f64 / drafted.drafted.max(1) as f64,
        );
    }
    Ok(())
}
