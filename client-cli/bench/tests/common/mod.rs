//! A report as a measurement could have made it, without measuring.

use tandem_bench::energy::Source;
use tandem_bench::quiet::Quiet;
use tandem_bench::report::{
    Absent, Chain, Long, Machine, Memory, Model, Pair, Report, Run, SCHEMA, Settings, Speculation,
    Step, Texts,
};
use tandem_bench::{Drafts, Method, Serving};

pub(crate) const CATEGORIES: [&str; 3] = ["code", "story", "a <b> & \"c\""];
const METHODS: [Method; 4] = [Method::None, Method::Draft, Method::Own, Method::Default];

/// How many times as fast as plain decoding a method is in the made-up report.
pub(crate) fn speedup(method: Method) -> f64 {
    match method {
        Method::None => 1.0,
        Method::Draft => 1.5,
        _ => 2.0,
    }
}

/// Rounds to what a clock tells; shorter numbers survive a file as they are.
fn nanoseconds(seconds: f64) -> f64 {
    (seconds * 1e9).round() / 1e9
}

fn speculation(method: Method) -> Speculation {
    let drafts = u64::from(method != Method::None);
    Speculation {
        steps: 50,
        drafted_steps: 40 * drafts,
        drafted: 120 * drafts,
        accepted: 60 * drafts,
        mean_length: 2.5 * drafts as f64,
        draft: 0.02 * drafts as f64,
        verify: 0.30,
        accept: 0.004,
        cache_update: 0.006,
    }
}

fn runs() -> Vec<Run> {
    let mut runs = Vec::new();
    for (prompt, category) in CATEGORIES.iter().enumerate() {
        for round in 0..3 {
            for method in METHODS {
                // Later rounds are slower, for all methods.
                let slower = 1.0 + 0.1 * round as f64;
                runs.push(Run {
                    method,
                    category: (*category).to_owned(),
                    prompt,
                    round,
                    tokens: 101,
                    first_token: 0.04,
                    decode: nanoseconds(slower / speedup(method)),
                    joules: None,
                    repeated: 0.05,
                    speculation: speculation(method),
                });
            }
        }
    }
    runs
}

fn long(method: Method) -> Long {
    Long {
        method,
        cold: true,
        start: Some(0.3),
        prompt_tokens: 512,
        tokens: 250,
        first_token: 0.5,
        decode: nanoseconds(2.49 / speedup(method)),
        joules: Some(50.0),
        speculation: speculation(method),
    }
}

fn memory(method: Method, usual: Serving) -> Memory {
    let serving = method.alone(usual);
    let drafts = u64::from(serving.drafts != Drafts::Nothing);
    Memory {
        serving: Some(serving),
        context: 750,
        peak_footprint: 300 << 20,
        mapped_weights: 100 << 20,
        budget: 1 << 30,
        weights: 100 << 20,
        kv: 20 << 20,
        draft_weights: (25 << 20) * drafts,
        draft_kv: (3 << 20) * drafts,
    }
}

fn chain(method: Method, category: &str, length: u32) -> Chain {
    Chain {
        method,
        category: category.to_owned(),
        length,
        drafted_steps: 20,
        drafted: 20 * u64::from(length),
        accepted: (0..length).map(|position| 16 >> position).collect(),
        seconds: 20.0 * f64::from(length) * 0.001,
    }
}

fn model(name: &str, parameters: u64) -> Model {
    Model {
        name: name.to_owned(),
        quantization: "Q4_1".to_owned(),
        parameters,
        weight_bytes: parameters / 2,
    }
}

/// A whole report.
pub(crate) fn report() -> Report {
    let usual = Serving {
        drafts: Drafts::Model,
        lookup: true,
    };
    let steps = (0..3).flat_map(|round| {
        (1..=9).map(move |rows| Step {
            round,
            rows,
            seconds: nanoseconds(0.010 * (1.0 + 0.1 * f64::from(rows - 1))),
            samples: 12,
        })
    });
    Report {
        schema: SCHEMA,
        tandem: "0.1.0".to_owned(),
        taken_at: 1_700_000_000,
        machine: Machine {
            system: "linux x86_64".to_owned(),
            processor: "A processor".to_owned(),
            cores: 2,
            memory_bytes: 16 << 30,
        },
        pair: Pair {
            backend: "cpu".to_owned(),
            batch_invariant: true,
            target: model("target & more", 400_000_000),
            draft: Some(model("draft", 20_000_000)),
            exit_adapter: None,
            exit_layer: 6,
            budget_bytes: 1 << 30,
            usual: Some(usual),
        },
        settings: Settings {
            quick: false,
            private: true,
            shipped_prompts: true,
            prompts: 3,
            tokens: 101,
            seconds: 100.0,
        },
        absent: vec![Absent {
            method: Method::Tree,
            reason: "a test leaves it out".to_owned(),
        }],
        quiet: Quiet::default(),
        energy: Source::Rapl,
        texts: Texts {
            compared: 33,
            different: Vec::new(),
        },
        runs: runs(),
        long: METHODS.map(long).to_vec(),
        memory: METHODS.map(|method| memory(method, usual)).to_vec(),
        steps: steps.collect(),
        chains: CATEGORIES
            .iter()
            .flat_map(|category| {
                [
                    chain(Method::Draft, category, 4),
                    chain(Method::Draft, category, 8),
                    chain(Method::Own, category, 8),
                ]
            })
            .collect(),
    }
}
