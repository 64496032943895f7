//! Whatever drafts, however much and beside whom, and even where it is taken away half-way: the text of a seed stays.

mod common;

use std::cell::Cell;
use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use common::{LIMITS, LOAD, Ran, default_draft, default_target, encode, prompts, run_all_by};
use tandem_engine::engine::{Engine, EngineOptions};
use tandem_engine::pair::{DraftSource, LoadOptions, ModelPair, PairFiles};
use tandem_engine::policy::{Pipelined, Policy};
use tandem_engine::sampling::SamplingParams;
use tandem_engine::{Request, SequenceId};
use tandem_model::TokenId;
use tandem_model::hardware::Device;
use tandem_models::{Event, ModelRef, Store};

const TOKENS: usize = 40;
const TEMPERATURES: [f32; 3] = [0.0, 0.7, 1.2];

/// A clock by which every forward takes as long, whatever its rows: then trees pay, and wide ones.
fn flat_clock() -> impl Fn() -> Instant {
    let now = Cell::new(Instant::now());
    move || {
        now.set(now.get() + Duration::from_millis(1));
        now.get()
    }
}

fn engine(draft: DraftSource, policy: Policy, lookup: bool) -> Engine {
    engine_with(draft, policy, lookup, Pipelined::Auto)
}

fn engine_with(draft: DraftSource, policy: Policy, lookup: bool, pipelined: Pipelined) -> Engine {
    let files = PairFiles {
        target: default_target(),
        draft,
    };
    let load = LoadOptions {
        // Threads of its own, as where the target has another device.
        draft_device: (pipelined == Pipelined::Always).then_some(Device::Cpu(NonZeroUsize::MIN)),
        ..LOAD
    };
    let pair = ModelPair::load(&files, &load, &mut |_| {}).expect("the pair loads");
    let options = EngineOptions {
        policy,
        pipelined,
        lookup_history: lookup.then_some(1 << 20),
        ..LIMITS
    };
    Engine::new(pair, options)
}

fn adapter() -> DraftSource {
    let store = Store::from_env(std::path::Path::new(env!("CARGO_TARGET_TMPDIR")));
    let reference = ModelRef::default_exit_adapter();
    let path = store
        .expect("a place for models")
        .pull(&reference, &mut |_: Event<'_>| {});
    DraftSource::Adapter(path.expect("the adapter comes with Tandem"))
}

fn request(prompt: &[TokenId], temperature: f32, speculation: bool) -> Request {
    Request {
        sampling: SamplingParams {
            temperature,
            seed: Some(11),
            ..SamplingParams::default()
        },
        speculation,
        ..Request::new(prompt.to_vec(), TOKENS)
    }
}

/// Steps until all is done; sheds the draft before the step of that number.
fn finish(engine: &mut Engine, shed_at: Option<usize>) -> HashMap<SequenceId, Ran> {
    run_all_by(engine, &flat_clock(), |engine, step| {
        if shed_at == Some(step) {
            engine.shed_draft("a test wants its memory");
        }
    })
}

fn alone(engine: &mut Engine, request: Request, shed_at: Option<usize>) -> Ran {
    let id = engine.submit(request).expect("a sound request");
    finish(engine, shed_at).remove(&id).expect("it ran")
}

/// Prompts and what plain decoding makes of them, by temperature.
fn plain_texts() -> Vec<(Vec<TokenId>, [Vec<TokenId>; 3])> {
    let mut plain = engine(DraftSource::None, Policy::Goodput, false);
    let files = PairFiles {
        target: default_target(),
        draft: DraftSource::None,
    };
    let loaded = ModelPair::load(&files, &LOAD, &mut |_| {}).expect("it loads");
    prompts()
        .iter()
        .map(|(_, text)| {
            let prompt = encode(&loaded, text);
            let texts = TEMPERATURES
                .map(|temperature| alone(&mut plain, request(&prompt, temperature, false), None))
                .map(|ran| ran.tokens);
            (prompt, texts)
        })
        .collect()
}

#[test]
fn the_text_of_a_seed_does_not_depend_on_how_it_is_drafted() {
    let texts = plain_texts();
    let sources = [
        ("model", DraftSource::Model(default_draft())),
        ("adapter", adapter()),
        ("layer", DraftSource::Layer(10)),
        ("nothing", DraftSource::None),
    ];
    for (name, source) in sources {
        let mut wide = 0;
        let mut engine = engine(source, Policy::Goodput, true);
        for policy in [Policy::Goodput, Policy::Threshold, Policy::Fixed(3)] {
            engine.set_policy(policy);
            for (at, temperature) in TEMPERATURES.into_iter().enumerate() {
                // Four at a time.
                for several in texts.chunks(4) {
                    let ids: Vec<_> = several
                        .iter()
                        .map(|(prompt, _)| {
                            let request = request(prompt, temperature, true);
                            engine.submit(request).expect("a sound request")
                        })
                        .collect();
                    let mut ran = finish(&mut engine, None);
                    for (id, (_, expected)) in ids.iter().zip(several) {
                        let ran = ran.remove(id).expect("it ran");
                        assert_eq!(
                            ran.tokens, expected[at],
                            "{name}, {policy:?}, {temperature}"
                        );
                    }
                }
                let (prompt, expected) = &texts[at];
                let ran = alone(&mut engine, request(prompt, temperature, true), None);
                assert_eq!(
                    ran.tokens, expected[at],
                    "{name}, {policy:?}, {temperature}"
                );
                let stats = ran.end.expect("it ended").1;
                // A step of a chain accepts all it drafted or wastes the rest; more waste than depth is width.
                wide += stats.draft_tokens.saturating_sub(stats.steps * 8);
            }
        }
        if name == "model" {
            assert!(
                wide > 0,
                "rows are free by this clock, so trees must have been drafted"
            );
        }
    }
}

#[test]
fn the_text_of_a_seed_does_not_depend_on_what_is_drafted_ahead() {
    let texts = plain_texts();
    let draft = DraftSource::Model(default_draft());
    let mut engine = engine_with(draft, Policy::Goodput, true, Pipelined::Always);
    let policies = (1..=8).map(Policy::Fixed);
    for (turn, policy) in policies.chain([Policy::Goodput]).enumerate() {
        engine.set_policy(policy);
        for (at, temperature) in TEMPERATURES.into_iter().enumerate() {
            // One alone, and beside it others by turns.
            let several = &texts[(turn + at) % texts.len()..];
            let several = &several[..several.len().min(if turn % 4 == 0 { 4 } else { 1 })];
            let submit = |(prompt, _): &(Vec<TokenId>, _)| {
                let request = request(prompt, temperature, true);
                engine.submit(request).expect("a sound request")
            };
            let ids: Vec<_> = several.iter().map(submit).collect();
            let mut ran = finish(&mut engine, None);
            for (id, (_, expected)) in ids.iter().zip(several) {
                let ran = ran.remove(id).expect("it ran");
                assert_eq!(ran.tokens, expected[at], "{policy:?}, {temperature}");
            }
        }
    }
    let stats = engine.speculation();
    assert!(stats.pipelined_steps > 0, "{stats:?}");
    assert!(
        stats.foreseen_rounds > 0,
        "what was computed ahead is used: {stats:?}"
    );
}

#[test]
fn the_text_of_a_seed_survives_the_loss_of_the_draft() {
    let texts = plain_texts();
    for shed_at in [1, 3, 6] {
        for source in [DraftSource::Model(default_draft()), adapter()] {
            let mut engine = engine(source, Policy::Goodput, true);
            let (prompt, expected) = &texts[shed_at % texts.len()];
            let ran = alone(&mut engine, request(prompt, 0.7, true), Some(shed_at));
            assert_eq!(ran.tokens, expected[1], "shed at step {shed_at}");
            assert_eq!(engine.memory().draft_weights, 0);
        }
    }
}
