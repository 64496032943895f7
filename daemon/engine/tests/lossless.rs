//! Greedy output is token for token that of plain decoding, whatever is drafted and whoever runs beside.

mod common;

use common::{LIMITS, encode, pair, prompts, run, run_all};
use tandem_engine::Request;
use tandem_engine::engine::Engine;

const TOKENS: usize = 48;

#[test]
fn greedy_with_a_draft_equals_greedy_without() {
    let loaded = pair(true);
    let prompts: Vec<_> = prompts()
        .iter()
        .map(|(name, text)| (name.clone(), encode(&loaded, text)))
        .collect();
    let mut plain = Engine::new(pair(false), LIMITS);
    let mut engine = Engine::new(loaded, LIMITS);
    let mut accepted = 0;

    for (at, (name, prompt)) in prompts.iter().enumerate() {
        let expected = run(&mut plain, Request::new(prompt.clone(), TOKENS));
        assert_eq!(
            expected.end.as_ref().map(|(_, stats)| stats.draft_tokens),
            Some(0)
        );
        for draft_length in [1, 3, 7] {
            let request = || {
                let mut request = Request::new(prompt.clone(), TOKENS);
                request.draft_length = Some(draft_length);
                request
            };
            let alone = run(&mut engine, request());
            assert_eq!(
                alone.tokens, expected.tokens,
                "{name}, {draft_length} drafted"
            );
            assert_eq!(alone.text, expected.text, "{name}, {draft_length} drafted");
            let (_, stats) = alone.end.expect("it ended");
            assert!(stats.draft_tokens > 0);
            accepted += stats.accepted_tokens;

            // The same beside three others, of which one does not draft.
            for other in 1..4 {
                let mut neighbour =
                    Request::new(prompts[(at + other) % prompts.len()].1.clone(), TOKENS);
                neighbour.draft_length = Some(draft_length);
                neighbour.speculation = other != 2;
                engine.submit(neighbour).expect("a sound request");
            }
            let id = engine.submit(request()).expect("a sound request");
            let beside = run_all(&mut engine).remove(&id).expect("it ran");
            assert_eq!(
                beside.tokens, expected.tokens,
                "{name}, {draft_length} drafted, beside others"
            );
        }
    }
    assert!(accepted > 100, "the draft is of use: {accepted} accepted");
}

#[test]
fn the_chunking_of_a_prompt_changes_nothing() {
    let loaded = pair(false);
    let prompt = encode(
        &loaded,
        &prompts()
            .iter()
            .map(|(_, text)| text.as_str())
            .collect::<String>(),
    );
    assert!(prompt.len() > 200);
    let mut texts = Vec::new();
    for (rows, loaded) in [(64, loaded), (7, pair(false))] {
        let mut engine = Engine::new(
            loaded,
            tandem_engine::engine::EngineOptions {
                max_step_rows: rows,
                ..LIMITS
            },
        );
        texts.push(run(&mut engine, Request::new(prompt.clone(), 16)).tokens);
    }
    assert_eq!(texts[0], texts[1]);
}
