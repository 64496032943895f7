mod ends;
mod keys;
mod limits;

use std::sync::Arc;

use super::*;
use crate::testing::{GgufWriter, byte_tokenizer, open, sentencepiece_tokenizer};

fn build(file: &GgufWriter) -> Tokenizer {
    Tokenizer::from_gguf(&open(&file.finish())).expect("a valid tokenizer")
}

fn error(file: &GgufWriter) -> String {
    let e = Tokenizer::from_gguf(&open(&file.finish())).expect_err("not a valid tokenizer");
    std::iter::successors(Some(&e as &dyn std::error::Error), |e| e.source())
        .map(|e| format!("{e}; "))
        .collect()
}

#[test]
fn byte_level_tokens_keep_every_byte() {
    let t = build(&byte_tokenizer(&["<|x|>"]));
    assert_eq!(t.encode("he", SpecialTokens::Parse), [256]);
    assert_eq!(t.encode("hé", SpecialTokens::Parse), [0x68, 0xc3, 0xa9]);
    assert_eq!(t.piece(0xa9), Some(&[0xa9][..]));
    assert_eq!(t.piece(256), Some(&b"he"[..]));
    assert_eq!(
        (t.piece(258), t.kind(258), t.is_special(258)),
        (None, None, true)
    );
    let all: String = (0..0x2000).filter_map(char::from_u32).collect();
    assert_eq!(t.decode(&t.encode(&all, SpecialTokens::AsText)), all);
}

#[test]
fn control_tokens_count_only_where_asked() {
    let t = build(&byte_tokenizer(&["<|x|>"]));
    assert_eq!(t.encode("a<|x|>b", SpecialTokens::Parse), [97, 257, 98]);
    let typed: Vec<TokenId> = "a<|x|>b".bytes().map(TokenId::from).collect();
    assert_eq!(t.encode("a<|x|>b", SpecialTokens::AsText), typed);
    assert_eq!(t.decode(&[97, 257, 98]), "ab");
    assert_eq!(t.piece(257), Some(&b"<|x|>"[..]));
}

#[test]
fn invalid_bytes_become_one_replacement_each() {
    let t = build(&byte_tokenizer(&[]));
    let replacement = [0xef, 0xbf, 0xbd];
    assert_eq!(
        t.encode_bytes(b"a\xf0\x9fb", SpecialTokens::Parse),
        [&[97][..], &replacement, &replacement, &[98]].concat()
    );
    assert_eq!(
        t.encode_bytes("é".as_bytes(), SpecialTokens::Parse),
        [0xc3, 0xa9]
    );
}

#[test]
fn end_tokens_come_from_keys_and_names() {
    let file = byte_tokenizer(&["<|a|>", "<|im_end|>", "<|eot_id|>"])
        .u32("tokenizer.ggml.eos_token_id", 257);
    let t = build(&file.u32("tokenizer.ggml.bos_token_id", u32::MAX));
    assert_eq!(
        (t.bos(), t.eos(), t.end_tokens()),
        (None, Some(257), &[257, 258, 259][..])
    );
    assert!(!t.adds_bos());
}

#[test]
fn markers_are_control_tokens_whatever_the_file_says() {
    let file = GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "gpt-2")
        .strings(
            "tokenizer.ggml.tokens",
            &["a", "<|im_end|>", "<b>", "<start_of_turn>", "</s>"],
        )
        .i32s("tokenizer.ggml.token_type", &[1, 1, 4, 4, 4])
        .strings("tokenizer.ggml.merges", &[""; 0]);
    let t = build(&file);
    assert_eq!(
        [0, 1, 2, 3, 4].map(|id| t.is_special(id)),
        [false, true, false, true, true]
    );
    // User-defined tokens are text that is always whole.
    assert_eq!(
        t.encode("a<b><|im_end|><start_of_turn>", SpecialTokens::AsText),
        [0, 2, 0]
    );
    assert_eq!(t.encode("a<b><|im_end|>", SpecialTokens::Parse), [0, 2, 1]);
}

#[test]
fn sentencepiece_joins_the_best_scores_first() {
    let pieces = [
        ("▁", -1.0),
        ("a", -2.0),
        ("b", -3.0),
        ("ab", -1.5),
        ("▁a", -1.2),
        ("bb", -1.0),
        ("▁ab", -9.0),
    ];
    let t = build(&sentencepiece_tokenizer(&pieces));
    let id = |text| t.id(text).expect("a piece");
    let encode = |text| t.encode(text, SpecialTokens::Parse);
    assert_eq!(encode("ab"), [id("▁ab")]);
    assert_eq!(encode("abb"), [id("▁a"), id("bb")]);
    assert_eq!(encode("abbb"), [id("▁a"), id("bb"), id("b")]);
    assert_eq!(encode("é"), [id("▁"), id("<0xC3>"), id("<0xA9>")]);
    assert_eq!(encode("a<s>a"), [id("▁a"), 1, id("▁a")]);
    assert!(t.adds_bos() && t.has_space_prefix());
    for text in ["a b", " a", "", "é漢", "  "] {
        assert_eq!(t.decode(&encode(text)), text);
    }
    let plain =
        build(&sentencepiece_tokenizer(&pieces).bool("tokenizer.ggml.add_space_prefix", false));
    assert_eq!(
        plain.encode("a a", SpecialTokens::Parse),
        [id("a"), id("▁a")]
    );
}

#[test]
fn files_that_cannot_be_used_say_why() {
    let tokens = |model: &str| {
        GgufWriter::new()
            .str("tokenizer.ggml.model", model)
            .strings("tokenizer.ggml.tokens", &["a", "b", "ab"])
    };
    let contains = |file: &GgufWriter, part: &str| {
        let text = error(file);
        assert!(text.contains(part), "{text}");
    };
    contains(&GgufWriter::new(), "`tokenizer.ggml.tokens`");
    contains(&tokens("bert"), "`bert` is not supported");
    contains(
        &tokens("gpt2").str("tokenizer.ggml.pre", "nonesuch"),
        "`nonesuch` is not supported",
    );
    contains(&tokens("gpt2"), "`tokenizer.ggml.merges`");
    contains(&tokens("llama"), "`tokenizer.ggml.scores`");
    contains(
        &tokens("llama").f32s("tokenizer.ggml.scores", &[0.0]),
        "1 entries for 3 tokens",
    );
    contains(
        &tokens("llama").f32s("tokenizer.ggml.scores", &[0.0, f32::NAN, 0.0]),
        "score of token 1",
    );
    contains(
        &tokens("gpt2").i32s("tokenizer.ggml.token_type", &[1]),
        "1 entries for 3 tokens",
    );
    contains(
        &tokens("gpt2").u32("tokenizer.ggml.eos_token_id", 3),
        "is 3, but the vocabulary has 3",
    );
    for merge in ["a b c", "ab", "a x", "b a", "ab ab"] {
        contains(
            &tokens("gpt2").strings("tokenizer.ggml.merges", &["a b", merge]),
            "merge 1",
        );
    }
}

#[test]
fn vocabularies_are_compared_token_by_token() {
    let same = byte_tokenizer(&["<|x|>", "<|y|>"]);
    let target = build(&same);
    let against = |file: &GgufWriter| target.first_difference(&build(file)).map(|d| d.to_string());
    assert_eq!(against(&same), None);
    let other = against(&byte_tokenizer(&["<|x|>", "<|z|>"])).expect("different");
    assert!(
        other.starts_with("token 258 is the control token \"<|y|>\" in the target and"),
        "{other}"
    );
    // Padding and further control tokens do not matter; the tables may end at different places.
    assert_eq!(
        against(&byte_tokenizer(&["<|x|>", "<|y|>", "[PAD259]"])),
        None
    );
    assert_eq!(against(&byte_tokenizer(&["<|x|>"])), None);
    let special =
        against(&same.clone().u32("tokenizer.ggml.eos_token_id", 257)).expect("different");
    assert_eq!(
        special,
        "the end-of-sequence token is none in the target and 257 in the draft"
    );
    let longer = build(&sentencepiece_tokenizer(&[("a", 0.0), ("b", 0.0)]));
    let shorter = build(&sentencepiece_tokenizer(&[("a", 0.0)]));
    let length = longer
        .first_difference(&shorter)
        .expect("different")
        .to_string();
    assert_eq!(
        length,
        "the target has 261 tokens and the draft 260, and token 260, \"b\", is in use in one only"
    );
}

#[test]
fn what_is_described_alike_is_built_once_and_for_as_long_as_it_is_used() {
    let shared =
        |file: &GgufWriter| Tokenizer::shared(&open(&file.finish())).expect("a valid tokenizer");
    let usual = || byte_tokenizer(&["<|once|>"]);
    let first = shared(&usual());
    let template = usual().str("tokenizer.chat_template", "{{ messages }}");
    assert!(Arc::ptr_eq(&first, &shared(&template)));
    let other = shared(&usual().u32("tokenizer.ggml.eos_token_id", 257));
    assert_eq!((first.eos(), other.eos()), (None, Some(257)));
    let gone = Arc::downgrade(&first);
    drop(first);
    assert!(gone.upgrade().is_none());
    assert!(shared(&usual()).eos().is_none());
}
