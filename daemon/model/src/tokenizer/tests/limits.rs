//! How much becomes of a text.

use std::cell::Cell;

use proptest::prelude::*;

use super::*;

const TEN: EncodeLimits<'static> = EncodeLimits {
    tokens: 10,
    word_bytes: 1 << 10,
    stopped: &|| false,
};

fn both() -> [Tokenizer; 2] {
    let pieces = [
        ("▁", -1.0),
        ("a", -2.0),
        ("▁a", -1.5),
        ("aa", -1.0),
        ("▁▁", -3.0),
        ("b", -4.0),
        ("ab", -2.5),
    ];
    [byte_tokenizer(&["<|x|>"]), sentencepiece_tokenizer(&pieces)].map(|file| build(&file))
}

#[test]
fn as_many_tokens_as_are_allowed_and_no_more() {
    for tokenizer in both() {
        for special in [SpecialTokens::Parse, SpecialTokens::AsText] {
            for text in ["", "a b a", "<s><|x|><s>", "é漢 a\n"] {
                let free = tokenizer.encode(text, special);
                let limits = |tokens| EncodeLimits { tokens, ..TEN };
                let within = |tokens| tokenizer.encode_within(text, special, limits(tokens));
                assert_eq!(within(free.len()).as_ref(), Ok(&free), "{text}");
                if let Some(limit) = free.len().checked_sub(1) {
                    assert_eq!(within(limit), Err(EncodeError::TooMany { limit }), "{text}");
                }
            }
        }
    }
}

#[test]
fn a_text_that_cannot_fit_is_not_looked_at() {
    for tokenizer in both() {
        let looked = Cell::new(false);
        let stopped = || {
            looked.set(true);
            false
        };
        let limits = EncodeLimits {
            stopped: &stopped,
            ..TEN
        };
        let text = "a ".repeat(1 << 20);
        let refused = tokenizer.encode_within(&text, SpecialTokens::Parse, limits);
        assert_eq!(refused, Err(EncodeError::TooMany { limit: 10 }));
        assert!(!looked.get());
        assert!(
            tokenizer.least_tokens([text.as_str()])
                <= tokenizer.encode(&text, SpecialTokens::Parse).len()
        );
    }
}

#[test]
fn bytes_without_a_token_weigh_nothing() {
    let file = GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.tokens", &["a", "aa"])
        .strings("tokenizer.ggml.merges", &["a a"]);
    let tokenizer = build(&file);
    assert_eq!(tokenizer.least_tokens(["aaaa", "bbbb", "aaaa"]), 2);
    let text = format!("a{}a", "b".repeat(1000));
    let ids = tokenizer.encode_within(&text, SpecialTokens::AsText, TEN);
    assert!(ids.expect("few tokens").len() <= 2);
}

#[test]
fn what_cannot_be_cut_is_refused_where_it_is_too_long() {
    let limits = EncodeLimits {
        tokens: usize::MAX,
        ..TEN
    };
    for tokenizer in both() {
        for letter in ["a", " ", "\n", "("] {
            let ids = |count| {
                tokenizer.encode_within(&letter.repeat(count), SpecialTokens::AsText, limits)
            };
            assert!(ids(1 << 10).is_ok(), "{letter:?}");
            let refused = ids((1 << 10) + 1);
            assert!(
                matches!(refused, Err(EncodeError::LongWord { limit: 1024, .. })),
                "{letter:?}"
            );
        }
    }
}

#[test]
fn whoever_went_away_is_not_computed_for() {
    for tokenizer in both() {
        let asked = Cell::new(0);
        let stopped = || {
            asked.set(asked.get() + 1);
            asked.get() == 3
        };
        let limits = EncodeLimits {
            stopped: &stopped,
            ..EncodeLimits::NONE
        };
        let refused = tokenizer.encode_within(&"a ".repeat(1 << 20), SpecialTokens::AsText, limits);
        assert_eq!((refused, asked.get()), (Err(EncodeError::Stopped), 3));
    }
}

#[test]
fn a_million_of_one_character_take_no_time_to_speak_of() {
    for tokenizer in both() {
        for letter in ["a", " ", "\n", "0", "é", "👨‍👩‍👧"] {
            let text = letter.repeat((1 << 20) / letter.len());
            let ids = tokenizer.encode_within(
                &text,
                SpecialTokens::AsText,
                EncodeLimits {
                    tokens: usize::MAX,
                    word_bytes: MAX_WORD_BYTES,
                    ..TEN
                },
            );
            let ids = ids.unwrap_or_else(|e| panic!("{letter:?}: {e}"));
            assert_eq!(tokenizer.decode(&ids).len(), text.len());
        }
    }
}

proptest! {
    /// Words are cut where no piece reaches over, so that nothing changes; a piece that reaches over keeps a text whole.
    #[test]
    fn cutting_a_text_into_words_changes_no_token(text in "[ab ▁\n]{0,40}") {
        let [_, cut] = both();
        // A piece that is never made, since its parts are none, but that reaches over the beginning of a word.
        let pieces = [("▁", -1.0), ("a", -2.0), ("▁a", -1.5), ("aa", -1.0), ("▁▁", -3.0), ("b", -4.0), ("ab", -2.5), ("q▁z", -9.0)];
        let whole = build(&sentencepiece_tokenizer(&pieces));
        prop_assert_eq!(cut.encode(&text, SpecialTokens::AsText), whole.encode(&text, SpecialTokens::AsText));
    }
}
