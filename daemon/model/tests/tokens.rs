//! Our tokenizer against llama.cpp's ids (golden/make_tokens.py) and against the `tokenizers` crate's own
//! pipeline. No model runs.

mod common;

use std::path::Path;

use serde_json::Value;
use tandem_model::TokenId;
use tandem_model::gguf::Gguf;
use tandem_model::tokenizer::{SpecialTokens, Tokenizer};

struct Case {
    bytes: Vec<u8>,
    parsed: Vec<TokenId>,
    as_text: Vec<TokenId>,
}

fn cases(golden: &str) -> Vec<Case> {
    let cases: Vec<Value> = serde_json::from_str(golden).expect("the golden file is JSON");
    let ids = |ids: &Value| -> Vec<TokenId> {
        serde_json::from_value(ids.clone()).expect("ids are numbers")
    };
    let case = |case: &Value| {
        let bytes = match case["text"].as_str() {
            Some(text) => text.as_bytes().to_vec(),
            None => base64(case["base64"].as_str().expect("a case has text or base64")),
        };
        let as_text = case.get("as_text").unwrap_or(&case["parsed"]);
        Case {
            bytes,
            parsed: ids(&case["parsed"]),
            as_text: ids(as_text),
        }
    };
    cases.iter().map(case).collect()
}

fn base64(text: &str) -> Vec<u8> {
    let digits = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut count) = (0_u32, 0);
    for letter in text.bytes().filter(|&letter| letter != b'=') {
        let value = digits
            .iter()
            .position(|&digit| digit == letter)
            .expect("a base64 digit");
        bits = bits << 6 | u32::try_from(value).expect("below 64");
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}

/// Describes every case that differs.
fn differences(tokenizer: &Tokenizer, cases: &[Case]) -> Vec<String> {
    let mut differences = Vec::new();
    for case in cases {
        for (special, expected) in [
            (SpecialTokens::Parse, &case.parsed),
            (SpecialTokens::AsText, &case.as_text),
        ] {
            let ours = tokenizer.encode_bytes(&case.bytes, special);
            if &ours != expected {
                let text = String::from_utf8_lossy(&case.bytes).into_owned();
                differences.push(format!(
                    "{text:?} {special:?}: {ours:?}, expected {expected:?}"
                ));
            }
        }
    }
    differences
}

fn open(model: &Path) -> (Gguf, Tokenizer) {
    let gguf = Gguf::open(model).expect("the model is readable");
    let tokenizer = Tokenizer::from_gguf(&gguf).expect("its tokenizer is known");
    (gguf, tokenizer)
}

#[test]
fn agrees_with_llama_cpp() {
    let cases = cases(include_str!("golden/tokens-smollm2.json"));
    assert!(cases.len() >= 200);
    let (_, tokenizer) = open(&common::default_target());
    let differences = differences(&tokenizer, &cases);
    assert!(
        differences.is_empty(),
        "{} differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}

#[test]
fn prompts_agree_with_llama_cpp() {
    let golden: Value =
        serde_json::from_str(include_str!("golden/greedy-smollm2.json")).expect("JSON");
    let (_, tokenizer) = open(&common::default_target());
    let prompts = golden.as_object().expect("an object by prompt name");
    assert_eq!(prompts.len(), 6);
    for (name, prompt) in prompts {
        let ids: Vec<TokenId> = serde_json::from_value(prompt["prompt_ids"].clone()).expect("ids");
        assert_eq!(
            tokenizer.encode(
                prompt["prompt"].as_str().expect("text"),
                SpecialTokens::Parse
            ),
            ids,
            "{name}"
        );
    }
}

/// The same vocabulary and merges in the crate that the model was published for, with its own splitting.
#[test]
fn agrees_with_the_tokenizers_crate() {
    use tokenizers::models::bpe::{BPE, Vocab};
    use tokenizers::pre_tokenizers::{byte_level::ByteLevel, digits::Digits, sequence::Sequence};
    use tokenizers::{AddedToken, PreTokenizerWrapper, Tokenizer as Pipeline};

    let (gguf, tokenizer) = open(&common::default_target());
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("UTF-8");
    let tokens = gguf.strings("tokenizer.ggml.tokens").expect("tokens");
    let vocab: Vocab = tokens.iter().map(text).zip(0..).collect();
    let merges = gguf.strings("tokenizer.ggml.merges").expect("merges");
    let merges = merges.iter().map(|line| {
        let (left, right) = std::str::from_utf8(line)
            .ok()
            .and_then(|l| l.split_once(' '))
            .expect("two tokens");
        (left.to_owned(), right.to_owned())
    });
    let bpe = BPE::builder()
        .vocab_and_merges(vocab, merges.collect())
        .build()
        .expect("a model");
    let mut as_text = Pipeline::new(bpe);
    let byte_level = ByteLevel::new(false, true, true);
    as_text.with_pre_tokenizer(Some(Sequence::new(vec![
        PreTokenizerWrapper::Digits(Digits::new(true)),
        PreTokenizerWrapper::ByteLevel(byte_level),
    ])));
    let mut parsing = as_text.clone();
    let special: Vec<AddedToken> = (0..17)
        .map(|id| text(tokens.get(id).expect("a token")))
        .map(|t| AddedToken::from(t, true))
        .collect();
    parsing
        .add_special_tokens(special)
        .expect("they are tokens already");

    let mut compared = 0;
    for case in cases(include_str!("golden/tokens-smollm2.json")) {
        let Ok(text) = String::from_utf8(case.bytes) else {
            continue;
        };
        for (pipeline, special) in [
            (&as_text, SpecialTokens::AsText),
            (&parsing, SpecialTokens::Parse),
        ] {
            let theirs = pipeline
                .encode_fast(text.as_str(), false)
                .expect("it cannot fail");
            assert_eq!(
                tokenizer.encode(&text, special),
                theirs.get_ids(),
                "{text:?} {special:?}"
            );
            compared += 1;
        }
    }
    assert!(compared >= 400);
}

/// Further vocabularies, where someone has them: `TANDEM_TEST_VOCABULARIES` names a directory with pairs of NAME.gguf and
/// the NAME.json that golden/make_tokens.py wrote for it. Left out is what we do otherwise on purpose: in SentencePiece
/// vocabularies llama.cpp takes the characters behind an invalid byte apart, and it makes every `</s>` a control token,
/// which is an ordinary HTML tag where a file says so.
#[test]
#[ignore = "needs vocabularies that are too large to commit"]
fn other_vocabularies_agree_with_llama_cpp() {
    let directory =
        std::env::var_os("TANDEM_TEST_VOCABULARIES").expect("set TANDEM_TEST_VOCABULARIES");
    let mut failed = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let golden = entry.expect("readable").path();
        if golden
            .extension()
            .is_none_or(|extension| extension != "json")
        {
            continue;
        }
        let mut cases = cases(&std::fs::read_to_string(&golden).expect("readable"));
        let gguf = Gguf::open(golden.with_extension("gguf")).expect("the model is readable");
        let pieces = gguf
            .str("tokenizer.ggml.model")
            .is_ok_and(|model| model == "llama");
        cases.retain(|case| match std::str::from_utf8(&case.bytes) {
            Ok(text) => pieces || !text.contains("</s>"),
            Err(_) => !pieces,
        });
        let found = match Tokenizer::from_gguf(&gguf) {
            Ok(tokenizer) => differences(&tokenizer, &cases),
            Err(e) => vec![e.to_string()],
        };
        let name = golden.display();
        failed.extend(
            found
                .into_iter()
                .map(|difference| format!("{name}: {difference}")),
        );
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
