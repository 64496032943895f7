//! Log-probabilities are the target's, to the bit, whoever drafted the token.

mod common;

use std::time::Instant;

use common::{LIMITS, default_target, encode, model_on_device, pair, prompts};
use tandem_engine::engine::Engine;
use tandem_engine::policy::Policy;
use tandem_engine::sampling::{SamplingParams, TokenLogprobs};
use tandem_engine::{Output, Request};
use tandem_model::TokenId;
use tandem_model::model::Row;

fn run(engine: &mut Engine, request: Request) -> (Vec<TokenId>, Vec<TokenLogprobs>) {
    engine.submit(request).expect("a sound request");
    let (mut tokens, mut all) = (Vec::new(), Vec::new());
    while engine.has_work() {
        for output in engine.step(&Instant::now).expect("steps do not fail here") {
            if let Output::Tokens {
                token_ids,
                logprobs,
                ..
            } = output
            {
                tokens.extend(token_ids);
                all.extend(logprobs);
            }
        }
    }
    (tokens, all)
}

#[test]
fn they_are_those_of_the_target_with_and_without_drafts() {
    let loaded = pair(true);
    let mut target = model_on_device(&default_target(), 1024);
    let prompts: Vec<Vec<TokenId>> = prompts()
        .iter()
        .take(2)
        .map(|(_, text)| encode(&loaded, text))
        .collect();
    let mut engine = Engine::new(loaded, LIMITS);
    for (prompt, temperature) in prompts.into_iter().zip([0.0, 0.9]) {
        let request = |speculation| Request {
            sampling: SamplingParams {
                temperature,
                top_k: 40,
                repetition_penalty: 1.1,
                seed: Some(5),
                ..SamplingParams::default()
            },
            logprobs: Some(3),
            speculation,
            ..Request::new(prompt.clone(), 48)
        };
        let plain = run(&mut engine, request(false));
        assert_eq!(plain.0.len(), plain.1.len());
        engine.set_policy(Policy::Fixed(4));
        let drafted = run(&mut engine, request(true));
        assert_eq!(plain, drafted);

        // What the model says of the same tokens, read in one go.
        let whole: Vec<TokenId> = prompt.iter().chain(&plain.0).copied().collect();
        let slot = target.open().expect("a cache");
        let rows: Vec<Row> = Row::chain(slot, &whole[..whole.len() - 1]).collect();
        let want: Vec<usize> = (prompt.len() - 1..rows.len()).collect();
        let logits = target.forward(&rows, &want).expect("a forward");
        for (row, (token, told)) in plain.0.iter().zip(&plain.1).enumerate() {
            let logits = logits.row(row);
            assert_eq!(*told, TokenLogprobs::of(logits, *token, 3));
            let total: f64 = logits.iter().map(|x| f64::from(*x).exp()).sum();
            let expected = f64::from(logits[*token as usize]) - total.ln();
            assert!((f64::from(told.logprob) - expected).abs() < 1e-4);
        }
        target.close(slot);
    }
}

#[test]
fn a_stop_ends_them_with_the_text() {
    let loaded = pair(true);
    let prompt = encode(&loaded, &prompts()[0].1);
    let mut engine = Engine::new(loaded, LIMITS);
    engine.set_policy(Policy::Fixed(7));
    for max_tokens in 1..12 {
        let request = Request {
            logprobs: Some(0),
            ..Request::new(prompt.clone(), max_tokens)
        };
        let (tokens, logprobs) = run(&mut engine, request);
        assert_eq!((tokens.len(), logprobs.len()), (max_tokens, max_tokens));
        let silent = run(&mut engine, Request::new(prompt.clone(), max_tokens));
        assert_eq!(silent, (tokens, Vec::new()));
    }
}
