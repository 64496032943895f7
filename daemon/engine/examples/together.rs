//! What speculation gains where several requests run at once: how much sooner each of them ends.
//!
//! `cargo run --release -p tandem-engine --example together -- TARGET.gguf DRAFT.gguf|EXIT.gguf|- PROMPT.txt…`
//! Requests take the prompts by turns. `TOGETHER` in the environment chooses other numbers than `1,2,4,8`, `ROUNDS` other than 3
//! and `TOKENS` other than 128; `TEMPERATURE` other than 0 draws each text by a seed of its own. `THREADS`, `DEVICE`,
//! `DRAFT_DEVICE` and `REHEARSE` are as in `speculation`; `EXPLAIN=N` adds what became of every step of the N-th round with
//! speculation.
//!
//! Both ways run in turn, and every text is compared with that of its request alone without speculation. A request's time is
//! that from its first token to its end; its gain is the median over the rounds without speculation over that with. Tokens per
//! second of all count to the end of the last one: who gains ends sooner, and leaves the rest in smaller company.
#![expect(clippy::print_stdout, reason = "the answer")]

mod common;

use std::collections::HashMap;
use std::error::Error;
use std::time::Instant;

use common::{load, median, number};
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::policy::{Pipelined, Policy};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{Output, Request};
use tandem_model::TokenId;
use tandem_model::tokenizer::SpecialTokens;

type Fallible<T> = Result<T, Box<dyn Error>>;

/// Requests at once by one way, over the rounds.
#[derive(Default)]
struct Timed {
    /// Tokens per second of all requests.
    speeds: Vec<f64>,
    /// Seconds of each request, by its number.
    requests: Vec<Vec<f64>>,
    steps: u64,
    drafted: u64,
    accepted: u64,
}

/// What came of requests that ran at once.
struct Ran {
    texts: Vec<Vec<TokenId>>,
    tokens_per_second: f64,
    /// Seconds of each request from its first token on.
    seconds: Vec<f64>,
    steps: u64,
    drafted: u64,
    accepted: u64,
}

fn request(prompt: &[TokenId], index: usize, speculation: bool) -> Fallible<Request> {
    Ok(Request {
        sampling: SamplingParams {
            temperature: number("TEMPERATURE", 0.0)?,
            seed: Some(index as u64 + 1),
            ..SamplingParams::default()
        },
        speculation,
        ..Request::new(prompt.to_vec(), number("TOKENS", 128)?)
    })
}

/// Runs requests at once to their end.
fn run(engine: &mut Engine, requests: Vec<Request>, explained: bool) -> Fallible<Ran> {
    let ids = requests
        .into_iter()
        .map(|request| engine.submit(request))
        .collect::<Result<Vec<_>, _>>()?;
    let mut texts: HashMap<_, Vec<TokenId>> = ids.iter().map(|id| (*id, Vec::new())).collect();
    let mut times: HashMap<_, (Option<Instant>, f64)> = HashMap::new();
    let (mut began, mut steps, mut drafted, mut accepted) = (None, 0, 0, 0);
    while engine.has_work() {
        let outputs = engine.step(&Instant::now)?;
        let now = Instant::now();
        if let Some(step) = engine.last_step().filter(|_| explained) {
            let ms = [step.plain, step.draft, step.verify].map(|seconds| 1e3 * seconds);
            println!(
                "  {} requests, {} rows, {} rounds, {} tokens (expected {:.1}); plain {:.2} ms, draft {:.2}, target {:.2}",
                step.requests,
                step.rows,
                step.rounds,
                step.committed,
                step.expected_tokens,
                ms[0],
                ms[1],
                ms[2]
            );
        }
        steps += u64::from(began.is_some());
        for output in outputs {
            match output {
                Output::Admitted { .. } => {}
                Output::Tokens { id, token_ids, .. } => {
                    times.entry(id).or_default().0.get_or_insert(now);
                    texts.entry(id).or_default().extend(token_ids);
                }
                Output::Failed { error, .. } => return Err(error.into()),
                Output::Finished { id, stats, .. } => {
                    let (first, seconds) = times.entry(id).or_default();
                    *seconds = first.map_or(0.0, |first| (now - first).as_secs_f64());
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
        seconds: ids.iter().map(|id| times[id].1).collect(),
        texts: ids.iter().filter_map(|id| texts.remove(id)).collect(),
        steps,
        drafted,
        accepted,
    })
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
    let limits = EngineOptions {
        max_sequences: most,
        max_step_rows: 64,
        cache_budget: 32 << 30,
        policy: Policy::Goodput,
        pipelined: Pipelined::Auto,
        lookup_history: Some(8 << 20),
    };
    let mut engine = load(target, &by, limits)?;
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
            Ok(run(&mut engine, vec![plain], false)?.texts.remove(0))
        })
        .collect::<Fallible<Vec<_>>>()?;

    let rounds = number("ROUNDS", 3_usize)?.max(1);
    let explained: usize = number("EXPLAIN", 0)?;
    println!(
        "{:>9}{:>12}{:>8}{:>8}{:>8}{:>15}{:>12}{:>10}",
        "at once",
        "plain tok/s",
        "mean",
        "least",
        "most",
        "drafted tok/s",
        "step ratio",
        "accepted"
    );
    for at_once in numbers.into_iter().filter(|number| *number > 0) {
        let mut timed = [Timed::default(), Timed::default()];
        for round in 0..rounds {
            for (speculation, timed) in [false, true].into_iter().zip(&mut timed) {
                let requests = (0..at_once)
                    .map(|number| request(prompt(number), number, speculation))
                    .collect::<Fallible<Vec<_>>>()?;
                let ran = run(&mut engine, requests, speculation && round + 1 == explained)?;
                if ran.texts != alone[..at_once] {
                    let which = if speculation {
                        "speculation"
                    } else {
                        "company"
                    };
                    return Err(format!("{which} changed a text of {at_once} at once").into());
                }
                timed.speeds.push(ran.tokens_per_second);
                timed.requests.resize(at_once, Vec::new());
                for (request, seconds) in timed.requests.iter_mut().zip(ran.seconds) {
                    request.push(seconds);
                }
                timed.steps += ran.steps;
                timed.drafted += ran.drafted;
                timed.accepted += ran.accepted;
            }
        }
        let [mut plain, mut drafted] = timed;
        let pairs = plain.requests.iter_mut().zip(&mut drafted.requests);
        let gains: Vec<f64> = pairs.map(|(a, b)| median(a) / median(b)).collect();
        let mean = gains.iter().map(|gain| gain.ln()).sum::<f64>() / at_once as f64;
        let least = gains.iter().copied().fold(f64::INFINITY, f64::min);
        let most = gains.iter().copied().fold(0.0, f64::max);
        println!(
            "{at_once:>9}{:>12.1}{:>7.2}x{least:>7.2}x{most:>7.2}x{:>15.1}{:>12.2}{:>8.0} %",
            median(&mut plain.speeds),
            mean.exp(),
            median(&mut drafted.speeds),
            plain.steps as f64 / drafted.steps.max(1) as f64,
            1e2 * drafted.accepted as f64 / drafted.drafted.max(1) as f64,
        );
    }
    Ok(())
}
