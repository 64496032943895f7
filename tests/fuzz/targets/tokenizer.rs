//! Tokenizers made of hostile vocabularies, and hostile texts for them.

use std::sync::Arc;

use tandem_fuzz::{Source, TIMES, Target, check};
use tandem_model::detokenizer::Detokenizer;
use tandem_model::testing::{GgufWriter, open};
use tandem_model::tokenizer::{SpecialTokens, Tokenizer};

use crate::chain;

/// Ways of splitting text: the usual ones, and some that are none.
const PRE: [&str; 12] = [
    "gpt-2",
    "smollm",
    "llama-bpe",
    "qwen2",
    "tekken",
    "gpt-4o",
    "deepseek-v3",
    "deepseek-coder",
    "falcon",
    "default",
    "nonesuch",
    "",
];

const WORDS: &[&[u8]] = &[
    b"<|im_end|>",
    b"<|",
    b"|>",
    b"</s>",
    b"<0x0A>",
    b"<0xFF>",
    "\u{2581}".as_bytes(),
    "\u{2581}\u{2581}\u{2581}\u{2581}".as_bytes(),
    "\u{120}".as_bytes(),
    "\u{10a}".as_bytes(),
    b"a b",
    b" ",
    b"\xff\xfe",
    b"                ",
    b"aaaaaaaaaaaaaaaa",
    b"\x00",
    "e\u{301}\u{200d}\u{1f600}".as_bytes(),
];

#[test]
fn tokenizers_of_hostile_vocabularies() {
    let target = Target {
        name: "tokenizer",
        words: WORDS,
        // The expressions of a family, compiled with their Unicode classes, and a search for special tokens.
        fixed_bytes: 48 << 20,
        times: TIMES,
        seeds: seeds(),
    };
    check(&target, read);
}

/// One byte for each choice, then the vocabulary as short strings, then the text.
fn read(input: &[u8]) -> String {
    let mut source = Source::new(input);
    let file = vocabulary(&mut source);
    let gguf = open(&file);
    let tokenizer = match Tokenizer::from_gguf(&gguf) {
        Ok(tokenizer) => Arc::new(tokenizer),
        Err(error) => return chain(&error),
    };
    let text = String::from_utf8_lossy(source.rest());
    let mut said = String::new();
    for special in [SpecialTokens::Parse, SpecialTokens::AsText] {
        let ids = tokenizer.encode(&text, special);
        let mut detokenizer = Detokenizer::new(Arc::clone(&tokenizer), vec!["ab".to_owned()]);
        for id in &ids {
            assert!((*id as usize) < tokenizer.len(), "token {id} of none");
            detokenizer.push(*id);
        }
        detokenizer.finish();
        said.push_str(if ids.is_empty() {
            "nothing "
        } else {
            "tokens "
        });
    }
    for id in 0..=tokenizer.len() as u32 {
        let _ = tokenizer.piece(id);
        let _ = tokenizer.is_special(id);
    }
    assert!(tokenizer.first_difference(&tokenizer).is_none());
    said
}

fn vocabulary(source: &mut Source<'_>) -> Vec<u8> {
    let model = source.pick(&["gpt2", "llama", "gpt2", "llama", "bert", ""]);
    let pre = source.pick(&PRE);
    let switches = source.byte();
    let is_on = |bit: u8| switches >> bit & 1 == 1;
    let (mut tokens, mut kinds, mut scores) = (Vec::new(), Vec::new(), Vec::new());
    if is_on(0) {
        // A whole alphabet, so that texts become more than nothing.
        tokens.extend((0..=255u8).map(|byte| match model {
            "llama" => format!("<0x{byte:02X}>").into_bytes(),
            _ => char::from(byte).to_string().into_bytes(),
        }));
        kinds.extend([if model == "llama" { 6 } else { 1 }; 256]);
        scores.extend([0.0; 256]);
    }
    for _ in 0..source.below(48) {
        kinds.push(i32::from(source.byte() % 8));
        scores.push(f32::from_bits(source.number()));
        tokens.push(source.short().to_vec());
    }
    let merges: Vec<Vec<u8>> = (0..source.below(32))
        .map(|_| source.short().to_vec())
        .collect();
    let mut writer = GgufWriter::new()
        .str("tokenizer.ggml.model", model)
        .str("tokenizer.ggml.pre", pre)
        .strings("tokenizer.ggml.tokens", &tokens)
        .strings("tokenizer.ggml.merges", &merges);
    if is_on(1) {
        kinds.truncate(source.below(256));
    }
    if is_on(2) {
        writer = writer.i32s("tokenizer.ggml.token_type", &kinds);
    }
    if is_on(3) {
        writer = writer.f32s("tokenizer.ggml.scores", &scores);
    }
    for (bit, key) in [(4, "bos"), (5, "eos"), (6, "unknown")] {
        if is_on(bit) {
            writer = writer.u32(&format!("tokenizer.ggml.{key}_token_id"), source.number());
        }
    }
    if is_on(7) {
        writer = writer
            .bool("tokenizer.ggml.add_bos_token", source.byte() & 1 == 1)
            .bool("tokenizer.ggml.add_space_prefix", source.byte() & 1 == 1);
    }
    writer.finish()
}

fn seeds() -> Vec<Vec<u8>> {
    let token = |kind: u8, score: f32, text: &[u8]| {
        let mut bytes = vec![kind];
        bytes.extend(score.to_le_bytes());
        bytes.push(text.len() as u8);
        bytes.extend(text);
        bytes
    };
    let texts: [&[u8]; 4] = [
        b"hello there, he said 12345",
        b"<|im_end|> he  \n\n\t<|im_start|>",
        "caf\u{e9} \u{1f600} \u{4f60}\u{597d} e\u{301}".as_bytes(),
        &[b' '; 300],
    ];
    let mut seeds = Vec::new();
    for (model, pre) in [(0, 0), (1, 0), (0, 2), (0, 6)] {
        for text in texts {
            let mut seed = vec![model, pre, 0b0000_1101, 3];
            seed.extend(token(1, -1.0, b"he"));
            seed.extend(token(3, 0.0, b"<|im_end|>"));
            seed.extend(token(4, -2.0, b"  "));
            seed.extend([1, 3]);
            seed.extend(b"h e");
            seed.extend(text);
            seeds.push(seed);
        }
    }
    seeds
}
