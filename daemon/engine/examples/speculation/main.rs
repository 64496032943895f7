//! What speculation gains on texts of one's own: tokens per second by prompt and method, interleaved, as medians.
//!
//! `cargo run --release -p tandem-engine --example speculation -- TARGET.gguf DRAFT.gguf|EXIT.gguf|- PROMPT.txt…`
//! An exit adapter makes the target draft for itself; `-` leaves only the search in the text. A text ends where the model
//! ends it; one of a few tokens says little. In the environment:
//!
//! - `ROUNDS`, `TOKENS`, `THREADS`: other than 3, 128 and all. `TEMPERATURE` other than 0 draws the text by a seed.
//! - `METHODS`, such as `plain,goodput,chains,fixed 5`: `chains` is the default policy without siblings, `no lookup` without
//!   the search in the text.
//! - `PIPELINED`: `always` or `never`. `DEVICE`, `DRAFT_DEVICE`: `cuda` or `metal`.
//! - `EXPLAIN=1` adds where time went in each method's first and last round, and what the policy knows of costs beside what
//!   they were; `EXPLAIN=2` also every step of the default policy's first.
//! - `REHEARSE=0` leaves out what a device prepares at load.
//!
//! Without prompts, paths are read from standard input, a line each, and each is answered by a line: tokens, and tokens per
//! second of every method. `benches/peer_text.py` measures llama.cpp in between.
#![expect(clippy::print_stdout, reason = "the answer")]

#[path = "../common/mod.rs"]
mod common;
mod explain;
mod method;

use std::error::Error;
use std::path::Path;
use std::time::Instant;

use common::{load, median, number};
use explain::Answer;
use method::{METHODS, Method, method};
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::policy::{Pipelined, Policy};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{Output, Request, RequestStats};
use tandem_model::TokenId;
use tandem_model::tokenizer::SpecialTokens;

/// One run.
struct Run {
    /// Per token.
    seconds: f64,
    answer: Answer,
    stats: RequestStats,
    tokens: Vec<TokenId>,
}

/// Decodes a prompt.
fn run(engine: &mut Engine, prompt: &[TokenId], method: &Method) -> Result<Run, Box<dyn Error>> {
    let request = Request {
        sampling: SamplingParams {
            temperature: number("TEMPERATURE", 0.0)?,
            seed: Some(1),
            ..SamplingParams::default()
        },
        speculation: method.speculation,
        drafters: Some([true, true, method.lookup]),
        draft_width: method.width,
        ..Request::new(prompt.to_vec(), number("TOKENS", 128)?)
    };
    engine.submit(request)?;
    let (mut tokens, mut first) = (Vec::new(), None);
    let mut answer = Answer::default();
    loop {
        let outputs = engine.step(&Instant::now)?;
        if first.is_some() {
            answer.steps.extend(engine.last_step());
        }
        for output in outputs {
            match output {
                Output::Admitted { .. } => {}
                Output::Tokens { token_ids, .. } => {
                    tokens.extend(token_ids);
                    first.get_or_insert_with(|| (Instant::now(), tokens.len()));
                }
                Output::Failed { error, .. } => return Err(error.into()),
                Output::Finished { stats, .. } => {
                    let (start, before) = first.ok_or("a request without tokens")?;
                    answer.seconds = start.elapsed().as_secs_f64();
                    return Ok(Run {
                        seconds: answer.seconds / (tokens.len() - before) as f64,
                        answer,
                        stats,
                        tokens,
                    });
                }
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(target), Some(by)) = (arguments.next(), arguments.next()) else {
        return Err("name a target, a draft and prompts".into());
    };
    let mut engine = load(
        target,
        &by,
        EngineOptions {
            max_sequences: 1,
            max_step_rows: 64,
            cache_budget: 8 << 30,
            policy: Policy::Goodput,
            pipelined: match std::env::var("PIPELINED").as_deref() {
                Ok("always") => Pipelined::Always,
                Ok("never") => Pipelined::Never,
                _ => Pipelined::Auto,
            },
            lookup_history: Some(8 << 20),
        },
    )?;
    let named = std::env::var("METHODS");
    let named = named.as_deref().unwrap_or(METHODS).split(',');
    let methods = named.map(method).collect::<Result<Vec<Method>, _>>()?;
    if methods.first().is_none_or(|method| method.name != "plain") {
        return Err("METHODS must name plain first: the others are compared with it".into());
    }
    let explained: u8 = number("EXPLAIN", 0)?;
    let paths: Vec<String> = arguments.collect();
    if paths.is_empty() {
        for path in std::io::stdin().lines() {
            let measured = measure(&mut engine, &methods, Path::new(&path?))?;
            print!("{}", measured.tokens);
            measured
                .seconds
                .iter()
                .for_each(|seconds| print!(" {}", 1.0 / seconds));
            println!();
        }
        return Ok(());
    }
    print!("{:<12}{:>7}", "tok/s", "tokens");
    methods
        .iter()
        .for_each(|method| print!("{:>11}", method.name));
    println!("   goodput: drafted, tokens per drafted step");
    let (mut logarithms, mut prompts) = (vec![0.0; methods.len()], 0);
    let mut seen = Vec::new();
    for path in paths {
        let path = Path::new(&path);
        let Measured {
            tokens,
            seconds,
            stats,
            answers,
        } = measure(&mut engine, &methods, path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        print!("{name:<12}{tokens:>7}{:>11.1}", 1.0 / seconds[0]);
        for (sum, took) in logarithms.iter_mut().zip(&seconds).skip(1) {
            print!("{:>10.2}x", seconds[0] / took);
            *sum += (seconds[0] / took).ln();
        }
        println!(
            "   {:.0} %, {:.2}; ahead in {} steps, of use {} times",
            1e2 * stats.drafted_steps as f64 / stats.steps.max(1) as f64,
            stats.mean_acceptance_length(),
            stats.speculation.pipelined_steps,
            stats.speculation.foreseen_rounds,
        );
        prompts += 1;
        for (method, answers) in methods.iter().zip(&answers).filter(|_| explained > 0) {
            if let [first, .., last] = &answers[..] {
                explain::answer(&format!("{}, first", method.name), first);
                if explained > 1 && method.name == "goodput" {
                    explain::steps(&first.steps);
                }
                explain::answer(&format!("{}, last", method.name), last);
            }
        }
        let answers = answers.into_iter().flatten();
        seen.extend(answers.flat_map(|answer| answer.steps));
    }
    if explained > 0 {
        explain::costs(&engine, &seen);
    }
    print!("{:<30}", "mean (geometric)");
    for sum in &logarithms[1..] {
        print!("{:>10.3}x", (sum / f64::from(prompts)).exp());
    }
    println!();
    Ok(())
}

/// What a prompt gave.
struct Measured {
    /// Generated.
    tokens: usize,
    /// Per token, by method.
    seconds: Vec<f64>,
    /// Of the default policy.
    stats: RequestStats,
    /// By method, then by round.
    answers: Vec<Vec<Answer>>,
}

/// Runs every method in turn and takes medians.
fn measure(
    engine: &mut Engine,
    methods: &[Method],
    path: &Path,
) -> Result<Measured, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let prompt = engine.tokenizer().encode(&text, SpecialTokens::Parse);
    let mut seconds = vec![Vec::new(); methods.len()];
    let mut answers: Vec<Vec<Answer>> = methods.iter().map(|_| Vec::new()).collect();
    let (mut plain, mut stats) = (Vec::new(), RequestStats::default());
    for _ in 0..number("ROUNDS", 3)? {
        for (index, method) in methods.iter().enumerate() {
            engine.set_policy(method.policy);
            let run = run(engine, &prompt, method)?;
            let tokens = run.tokens;
            seconds[index].push(run.seconds);
            answers[index].push(run.answer);
            match &*method.name {
                "plain" => plain = tokens,
                name if tokens != plain => return Err(format!("{name} changed the text").into()),
                "goodput" => stats = run.stats,
                _ => {}
            }
        }
    }
    let medians = seconds.iter_mut().map(|times| median(times));
    Ok(Measured {
        tokens: plain.len(),
        seconds: medians.collect(),
        stats,
        answers,
    })
}
