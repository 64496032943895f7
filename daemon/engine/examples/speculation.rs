//! What speculation gains on texts of one's own: tokens per second by prompt and method, interleaved, as medians.
//!
//! `cargo run --release -p tandem-engine --example speculation -- TARGET.gguf DRAFT.gguf|EXIT.gguf|- PROMPT.txt…`
//! An exit adapter makes the target draft for itself; `-` leaves only the search in the text. `ROUNDS`, `TOKENS` and
//! `THREADS` in the environment choose other than 3, 128 and all; `METHODS` names those to run, such as `plain,goodput`, and
//! `TEMPERATURE` other than 0 draws the text by a seed, `PIPELINED` may be `always` or `never`, and `DEVICE` and
//! `DRAFT_DEVICE` may be `cuda` or `metal`. A text ends where the model ends it; one of a few tokens says little.
//!
//! Without prompts, paths are read from standard input, a line each, and each is answered by a line: tokens, and tokens per
//! second of every method. `benches/peer_text.py` measures llama.cpp in between.
#![expect(clippy::print_stdout, reason = "the answer")]

use std::error::Error;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::gguf::Gguf;
use tandem_engine::pair::{Device, DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_engine::policy::{Pipelined, Policy};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::tokenizer::SpecialTokens;
use tandem_engine::{Output, Request, RequestStats, StopConditions, TokenId};

/// Name, whether it speculates, and how.
type Method = (&'static str, bool, Policy);

/// Plain decoding, the default policy, thresholds, and fixed lengths.
const METHODS: [Method; 7] = [
    ("plain", false, Policy::Goodput),
    ("goodput", true, Policy::Goodput),
    ("threshold", true, Policy::Threshold),
    ("fixed 1", true, Policy::Fixed(1)),
    ("fixed 2", true, Policy::Fixed(2)),
    ("fixed 4", true, Policy::Fixed(4)),
    ("fixed 7", true, Policy::Fixed(7)),
];

fn number<T: FromStr>(name: &str, otherwise: T) -> T {
    let named = std::env::var(name).ok();
    named.map_or(otherwise, |n| n.parse().ok().expect("a number"))
}

/// The device that a variable names, the CPU where it is not set.
fn device(name: &str, threads: NonZeroUsize) -> Result<Device, Box<dyn Error>> {
    match std::env::var(name).as_deref() {
        Err(_) | Ok("cpu") => Ok(Device::Cpu(threads)),
        Ok("cuda") => Ok(Device::Cuda),
        Ok("metal") => Ok(Device::Metal),
        Ok(other) => Err(format!("{name} is `{other}` and should be cpu, cuda or metal").into()),
    }
}

fn draft(path: &str) -> Result<DraftSource, Box<dyn Error>> {
    let path = match path {
        "-" => return Ok(DraftSource::None),
        path => PathBuf::from(path),
    };
    let gguf = Gguf::open(&path)?;
    let is_exit = gguf.optional_str("general.architecture")? == Some("llama-exit");
    Ok(match is_exit {
        true => DraftSource::Adapter(path),
        false => DraftSource::Model(path),
    })
}

/// Seconds per token, and what it cost.
fn run(
    engine: &mut Engine,
    prompt: &[TokenId],
    speculation: bool,
) -> Result<(f64, RequestStats, Vec<TokenId>), Box<dyn Error>> {
    let request = Request {
        prompt: prompt.to_vec(),
        sampling: SamplingParams {
            temperature: number("TEMPERATURE", 0.0),
            seed: Some(1),
            ..SamplingParams::default()
        },
        stop: StopConditions {
            max_tokens: Some(number("TOKENS", 128)),
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
    };
    engine.submit(request)?;
    let (mut tokens, mut first) = (Vec::new(), None);
    loop {
        for output in engine.step(&Instant::now)? {
            match output {
                Output::Admitted { .. } => {}
                Output::Tokens { token_ids, .. } => {
                    tokens.extend(token_ids);
                    first.get_or_insert_with(|| (Instant::now(), tokens.len()));
                }
                Output::Finished { stats, .. } => {
                    let (start, before) = first.ok_or("a request without tokens")?;
                    let seconds = start.elapsed().as_secs_f64();
                    return Ok((seconds / (tokens.len() - before) as f64, stats, tokens));
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
    let threads = std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
    let threads = NonZeroUsize::new(number("THREADS", threads.get())).ok_or("no threads")?;
    let files = PairFiles {
        target: target.into(),
        draft: draft(&by)?,
    };
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
    let mut engine = Engine::new(
        ModelPair::load(&files, &options, &mut |_| {})?,
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
    );
    let named = std::env::var("METHODS").ok();
    let runs = |name: &str| {
        named
            .as_ref()
            .is_none_or(|named| named.split(',').any(|n| n == name))
    };
    let methods: Vec<Method> = METHODS
        .into_iter()
        .filter(|method| runs(method.0))
        .collect();
    if methods.first().is_none_or(|method| method.0 != "plain") {
        return Err("METHODS must name plain: the others are compared with it".into());
    }
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
    methods.iter().for_each(|(name, ..)| print!("{name:>11}"));
    println!("   goodput: drafted, tokens per drafted step");
    let (mut logarithms, mut prompts) = (vec![0.0; methods.len()], 0);
    for path in paths {
        let path = Path::new(&path);
        let Measured {
            tokens,
            seconds,
            stats,
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
    let (mut plain, mut stats) = (Vec::new(), RequestStats::default());
    for _ in 0..number("ROUNDS", 3) {
        for ((name, speculation, policy), seconds) in methods.iter().zip(&mut seconds) {
            engine.set_policy(*policy);
            let (took, spent, tokens) = run(engine, &prompt, *speculation)?;
            seconds.push(took);
            match *name {
                "plain" => plain = tokens,
                _ if tokens != plain => return Err(format!("{name} changed the text").into()),
                "goodput" => stats = spent,
                _ => {}
            }
        }
    }
    let medians = seconds.iter_mut().map(|times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    Ok(Measured {
        tokens: plain.len(),
        seconds: medians.collect(),
        stats,
    })
}
