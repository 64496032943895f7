//! A target that drafts for itself says what it would have said, and what it needs for that is its adapter alone.

mod common;

use common::{LIMITS, LOAD, default_exit_adapter, default_target, encode, prompts, run, run_all};
use tandem_engine::Request;
use tandem_engine::engine::Engine;
use tandem_engine::pair::{DraftSource, LoadError, ModelPair, PairFiles};
use tandem_engine::sampling::SamplingParams;
use tandem_model::TokenId;
use tandem_model::gguf::Gguf;
use tandem_model::testing::TinyModel;

const TOKENS: usize = 28;

fn load(draft: DraftSource) -> ModelPair {
    let files = PairFiles {
        target: default_target(),
        draft,
    };
    ModelPair::load(&files, &LOAD, &mut |_| {}).expect("it loads")
}

fn with_adapter() -> ModelPair {
    load(DraftSource::Adapter(default_exit_adapter()))
}

fn request(prompt: &[TokenId], sampling: &SamplingParams, draft_length: usize) -> Request {
    let mut request = Request::new(prompt.to_vec(), TOKENS);
    request.sampling = sampling.clone();
    request.draft_length = Some(draft_length);
    request.stop.ignore_eos = true;
    request
}

#[test]
fn text_is_that_of_plain_decoding_alone_and_beside_others() {
    let plain = load(DraftSource::None);
    let prompts: Vec<Vec<TokenId>> = prompts()
        .iter()
        .take(3)
        .map(|(_, text)| encode(&plain, text))
        .collect();
    let mut plain = Engine::new(plain, LIMITS);
    let seeded = SamplingParams {
        temperature: 0.8,
        seed: Some(11),
        ..SamplingParams::default()
    };
    let samplings = [SamplingParams::greedy(), seeded];
    let expected: Vec<Vec<String>> = samplings
        .iter()
        .map(|sampling| {
            let texts = prompts.iter().map(|prompt| {
                let mut request = request(prompt, sampling, 0);
                request.speculation = false;
                run(&mut plain, request).text
            });
            texts.collect()
        })
        .collect();
    drop(plain);

    let sources = [
        ("adapter", DraftSource::Adapter(default_exit_adapter())),
        ("25 layers", DraftSource::Layer(25)),
    ];
    for (name, source) in sources {
        let mut engine = Engine::new(load(source), LIMITS);
        let (mut drafted, mut accepted) = (0, 0);
        for (sampling, expected) in samplings.iter().zip(&expected) {
            for length in [1, 3, 7] {
                let alone = run(&mut engine, request(&prompts[0], sampling, length));
                assert_eq!(alone.text, expected[0], "{name}, {length} drafted");
                let (_, stats) = alone.end.expect("it ended");
                assert_eq!(stats.drafter, Some("self"));
                drafted += stats.draft_tokens;
                accepted += stats.accepted_tokens;
                let ids: Vec<_> = prompts
                    .iter()
                    .map(|prompt| {
                        let request = request(prompt, sampling, length);
                        engine.submit(request).expect("a sound request")
                    })
                    .collect();
                let mut ran = run_all(&mut engine);
                for (id, expected) in ids.iter().zip(expected) {
                    let text = ran.remove(id).expect("it ran").text;
                    assert_eq!(&text, expected, "{name}, {length} drafted, beside others");
                }
            }
        }
        assert!(
            accepted * 10 > drafted,
            "{name}: {accepted} of {drafted} drafted tokens accepted"
        );
    }
}

#[test]
fn its_memory_is_the_adapters_and_goes_when_it_is_shed() {
    let pair = with_adapter();
    let file = Gguf::open(default_exit_adapter()).expect("a sound file");
    let weights: u64 = file.tensors().iter().map(|tensor| tensor.bytes).sum();
    let report = pair.report();
    assert_eq!(report.exit_layer, Some(6));
    assert_eq!(
        report.draft.as_ref().map(|draft| draft.weight_bytes),
        Some(weights)
    );
    let prompt = encode(&pair, "Once upon a time");
    let mut plain = Engine::new(load(DraftSource::None), LIMITS);
    let expected = run(&mut plain, request(&prompt, &SamplingParams::greedy(), 0)).text;

    let mut engine = Engine::new(pair, LIMITS);
    let id = engine
        .submit(request(&prompt, &SamplingParams::greedy(), 3))
        .expect("a sound request");
    let mut text = String::new();
    for step in 0.. {
        if step == 4 {
            let memory = engine.memory();
            assert_eq!(memory.draft_weights, weights);
            // One layer beside the target's thirty.
            assert_eq!(memory.draft_kv * 30, memory.target_kv);
            assert!(memory.draft_kv > 0);
            engine.shed_draft("memory is short");
            let memory = engine.memory();
            assert_eq!((memory.draft_weights, memory.draft_kv), (0, 0));
        }
        for output in engine.step(&std::time::Instant::now).expect("it steps") {
            if let tandem_engine::Output::Tokens { text: more, .. } = output {
                text.push_str(&more);
            }
        }
        if !engine.has_work() {
            break;
        }
    }
    engine.cancel(id);
    assert_eq!(text, expected);
}

fn tiny(draft: impl FnOnce(&std::path::Path) -> DraftSource) -> Result<ModelPair, LoadError> {
    let model = TinyModel {
        layers: 6,
        ..TinyModel::default()
    };
    let dir = tempfile::tempdir().expect("a folder");
    let target = dir.path().join("target.gguf");
    std::fs::write(&target, model.gguf()).expect("written");
    let draft = draft(dir.path());
    ModelPair::load(&PairFiles { target, draft }, &LOAD, &mut |_| {})
}

#[test]
fn a_measured_layer_is_reported_and_used() {
    let pair = tiny(|_| DraftSource::MeasuredLayer).expect("it loads");
    let layers = pair.report().exit_layer.expect("chosen");
    assert!((1..6).contains(&layers));
    let prompt: Vec<TokenId> = (40..60).collect();
    let greedy = SamplingParams::greedy();
    let mut plain = Engine::new(tiny(|_| DraftSource::None).expect("it loads"), LIMITS);
    let expected = run(&mut plain, request(&prompt, &greedy, 0));
    let ran = run(&mut Engine::new(pair, LIMITS), request(&prompt, &greedy, 3));
    assert_eq!(ran.tokens, expected.tokens);
    assert!(ran.end.expect("it ended").1.draft_tokens > 0);
}

#[test]
fn adapters_and_layers_that_do_not_fit_are_refused_before_a_weight_is_read() {
    let refused = tiny(|dir| {
        let path = dir.join("exit.gguf");
        let other = TinyModel {
            width: 64,
            ..TinyModel::default()
        };
        std::fs::write(&path, other.exit_adapter(2)).expect("written");
        DraftSource::Adapter(path)
    });
    let why = refused.expect_err("another width").to_string();
    assert!(
        why.contains("exit adapter") && why.contains("64") && why.contains("32"),
        "{why}"
    );
    let refused = tiny(|_| DraftSource::Layer(6));
    let why = refused.expect_err("no such layer").to_string();
    assert!(why.contains("6 layers cannot be left after 6"), "{why}");
}
