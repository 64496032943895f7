//! Greedy text and logits against llama.cpp's, recorded by `golden/make_greedy.py`.
//!
//! Both round activations to 8 bits before each product, by different arithmetic, so logits differ by noise: about 0.2
//! (root mean square) on this model, where logits spread over 40. Greedy tokens must agree up to a step at which
//! llama.cpp's own two best tokens lie closer than that noise can part. A device that keeps activations as halves adds less than a
//! tenth of the CPU's noise; what llama.cpp adds stays, so the bound holds there with more to spare.

mod common;

use common::{LIMITS, pair, run};
use serde_json::Value;
use tandem_engine::Request;
use tandem_engine::engine::Engine;
use tandem_model::TokenId;
use tandem_model::tokenizer::SpecialTokens;

/// Largest gap between the two best logits at which another choice counts as a tie.
const TIE: f64 = 0.5;

fn ids(value: &Value) -> Vec<TokenId> {
    let ids = value.as_array().expect("a list").iter();
    ids.map(|id| TokenId::try_from(id.as_u64().expect("an id")).expect("an id"))
        .collect()
}

#[test]
fn greedy_tokens_agree_with_llama_cpp_up_to_a_tie() {
    let golden: Value =
        serde_json::from_str(include_str!("../../model/tests/golden/greedy-smollm2.json"))
            .expect("JSON");
    let loaded = pair(false);
    let tokenizer = loaded.tokenizer().clone();
    let mut engine = Engine::new(loaded, LIMITS);
    let mut agreed = 0;
    for (name, case) in golden.as_object().expect("an object") {
        let Some(prompt) = case.get("prompt").and_then(Value::as_str) else {
            continue;
        };
        let prompt_ids = ids(&case["prompt_ids"]);
        assert_eq!(
            tokenizer.encode(prompt, SpecialTokens::Parse),
            prompt_ids,
            "{name}"
        );
        let expected = ids(&case["greedy"]);
        let margins = case["margins"].as_array().expect("a list");
        let got = run(&mut engine, Request::new(prompt_ids, expected.len())).tokens;
        match got.iter().zip(&expected).position(|(a, b)| a != b) {
            None => agreed += expected.len(),
            Some(step) => {
                let margin = margins[step].as_f64().expect("a number");
                assert!(
                    margin < TIE,
                    "{name}: step {step} differs where llama.cpp decides by {margin}"
                );
                agreed += step;
            }
        }
    }
    assert!(
        agreed > 100,
        "only {agreed} tokens agree before the first ties"
    );
}
