//! Runs one target: its corpus first, then inputs made of it.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::corpus::{self, Running};
use crate::coverage::Coverage;
use crate::random::Random;
use crate::watch::{Watch, computed};
use crate::{counting, mutate, outcome};

/// What an ordinary test tries beyond the corpus: so many inputs, or for so long, whichever ends first.
const BOUND: (u64, Duration) = (20_000, Duration::from_secs(2));
/// The seed of ordinary tests: they try the same inputs each time.
const SEED: u64 = 21;
/// What one input may compute.
const SLOW: Duration = Duration::from_secs(1);
/// What one input may take of memory, in its own size.
pub const TIMES: usize = 10;

/// Inputs that are kept to make others of.
const MOST_KEPT: usize = 4096;
/// Bytes of an input that is added to the corpus.
const MOST_COMMITTED: usize = 2048;
/// Outcomes that are told apart.
const MOST_OUTCOMES: usize = 2000;

/// One kind of input and what reads it.
#[derive(Debug)]
pub struct Target {
    /// Name of the corpus.
    pub name: &'static str,
    /// Words of the input's language.
    pub words: &'static [&'static [u8]],
    /// Bytes that reading takes whatever the input: tables, compiled expressions, buffers.
    pub fixed_bytes: usize,
    /// How many times its own size an input may take beside that; [`TIMES`], where nothing speaks against it.
    pub times: usize,
    /// Inputs to begin with, beside the corpus.
    pub seeds: Vec<Vec<u8>>,
}

/// What an input was the first to do.
struct News {
    says: bool,
    reaches: bool,
}

/// What one input did.
struct Ran {
    shape: u64,
    took: Duration,
    bytes: usize,
}

/// Runs a target; `read` reads an input and says what became of it, in a few words.
///
/// # Panics
/// When an input panics, computes for over a second, or takes memory beyond ten times its size and what is fixed. The message
/// says where the input is, made small.
pub fn check(target: &Target, mut read: impl FnMut(&[u8]) -> String) {
    let name = target.name;
    let seconds: Option<u64> = variable("TANDEM_FUZZ_SECONDS");
    let clock = SystemTime::now().duration_since(UNIX_EPOCH);
    let seed = match (seconds, variable("TANDEM_FUZZ_SEED")) {
        (_, Some(seed)) => seed,
        (Some(_), None) => clock.map_or(SEED, |it| it.as_micros() as u64),
        (None, None) => SEED,
    };
    let keeps = std::env::var_os("TANDEM_FUZZ_KEEP").is_some();
    let mut random = Random::new(seed);
    let (mut coverage, mut outcomes) = (Coverage::default(), HashSet::new());
    let mut running = Running::new(name);
    let watch = Watch::start(name, running.path().to_owned());
    let (mut slowest, mut widest) = (Duration::ZERO, 0);
    let (mut reading, mut looking) = (Duration::ZERO, Duration::ZERO);

    let mut try_one = |input: &[u8], what: &str| -> News {
        running.set(input);
        watch.beat();
        // Counters are many, so that looking at them takes longer than reading most inputs: it gets half of the time.
        let looks = looking <= reading;
        if looks {
            looking += timed(Coverage::begin).1;
        }
        let ran = match run(input, target, &mut read) {
            Ok(ran) => ran,
            Err(problem) => {
                let small = mutate::smaller(input, |part| {
                    watch.beat();
                    run(part, target, &mut read).is_err_and(|other| other == problem)
                });
                let path = corpus::leave(name, &small);
                panic!(
                    "fuzz {name}, seed {seed}: {what} {problem}; it is in {} ({} bytes)",
                    path.display(),
                    small.len()
                );
            }
        };
        reading += ran.took;
        slowest = slowest.max(ran.took);
        widest = widest.max(ran.bytes);
        // Some outcomes quote their input in ways that no one foresaw, and then each is new.
        let says_new = outcomes.len() < MOST_OUTCOMES && outcomes.insert(ran.shape);
        let reaches_new = looks && {
            let (is_new, took) = timed(|| coverage.add());
            looking += took;
            is_new
        };
        News {
            says: says_new,
            reaches: reaches_new,
        }
    };

    let committed = corpus::read(name);
    let mut pool: Vec<Vec<u8>> = Vec::new();
    for (file, input) in &committed {
        try_one(input, &format!("the committed input {file}"));
        pool.push(input.clone());
    }
    for input in &target.seeds {
        try_one(input, "a seed");
        pool.push(input.clone());
    }
    pool.push(Vec::new());
    let (mut inputs, mut kept) = (pool.len() as u64, 0);
    let begin = Instant::now();
    let goes_on = |inputs: u64| match seconds {
        Some(seconds) => begin.elapsed() < Duration::from_secs(seconds),
        None => inputs < BOUND.0 && begin.elapsed() < BOUND.1,
    };
    while goes_on(inputs) {
        // Every other time one of the last ones found, which lead on.
        let from = if random.below(2) == 0 {
            pool.len().saturating_sub(64)
        } else {
            0
        };
        let base = &pool[from + random.below(pool.len() - from)];
        let other = random.pick(&pool);
        let input = mutate::mutate(base, other, target.words, &mut random);
        inputs += 1;
        let news = try_one(&input, "an input");
        if news.says || news.reaches {
            kept += 1;
            // What is committed stays small: outcomes are found again soon, and long inputs say little more.
            if keeps && news.reaches && input.len() <= MOST_COMMITTED {
                corpus::keep(name, &input);
            }
            if pool.len() < MOST_KEPT {
                pool.push(input);
            } else {
                let at = random.below(MOST_KEPT);
                pool[at] = input;
            }
        }
    }
    eprintln!(
        "fuzz {name}: {inputs} inputs in {:.1} s, seed {seed}; {} committed, {kept} kept, {} outcomes, {} places reached; \
         slowest {:.1} ms, most memory {widest} bytes",
        begin.elapsed().as_secs_f64(),
        committed.len(),
        outcomes.len(),
        coverage.reached,
        slowest.as_secs_f64() * 1e3,
    );
}

fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let begin = Instant::now();
    let result = work();
    (result, begin.elapsed())
}

fn variable(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().expect("the variable is a number"))
}

/// Runs one input; what is wrong with it, in words that are the same for smaller ones.
fn run(
    input: &[u8],
    target: &Target,
    read: &mut impl FnMut(&[u8]) -> String,
) -> Result<Ran, String> {
    let begin = Instant::now();
    counting::begin();
    let caught = catch_unwind(AssertUnwindSafe(|| read(input)));
    let bytes = counting::most();
    let took = begin.elapsed();
    let Ok(said) = caught else {
        return Err("panics".to_owned());
    };
    if bytes > target.fixed_bytes + target.times * input.len() {
        return Err(format!(
            "takes more memory than {} bytes and {} times its size",
            target.fixed_bytes, target.times
        ));
    }
    if took > SLOW && computes_long(input, read) {
        return Err(format!("computes for over {} s", SLOW.as_secs()));
    }
    Ok(Ran {
        shape: outcome::shape(&said),
        took,
        bytes,
    })
}

/// Runs an input that took long once more. A machine that is busy with other things takes long for anything: what counts is
/// what this thread computes, where the system tells.
fn computes_long(input: &[u8], read: &mut impl FnMut(&[u8]) -> String) -> bool {
    let before = computed();
    let begin = Instant::now();
    read(input);
    let took = match (before, computed()) {
        (Some(before), Some(after)) => after.saturating_sub(before),
        _ => begin.elapsed(),
    };
    took > SLOW
}
