//! Text that grows token by token equals text decoded at once. No model runs.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;
use tandem_model::TokenId;
use tandem_model::detokenizer::{Detokenizer, Step};
use tandem_model::testing::{byte_tokenizer, open, sentencepiece_tokenizer};
use tandem_model::tokenizer::{SpecialTokens, Tokenizer};

static BYTES: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
    Arc::new(
        Tokenizer::from_gguf(&open(&byte_tokenizer(&["<|x|>"]).finish()))
            .expect("a valid tokenizer"),
    )
});
static PIECES: LazyLock<Arc<Tokenizer>> = LazyLock::new(|| {
    let file = sentencepiece_tokenizer(&[
        ("▁", -1.0),
        ("▁a", -1.0),
        ("ab", -1.0),
        ("漢", -1.0),
        ("a", -2.0),
        ("b", -2.0),
    ]);
    Arc::new(Tokenizer::from_gguf(&open(&file.finish())).expect("a valid tokenizer"))
});

fn stops(strings: &[&str]) -> Vec<String> {
    strings.iter().map(|&stop| stop.to_owned()).collect()
}

/// Pushes everything and returns the text and which stop string ended it.
fn stream(mut detokenizer: Detokenizer, tokens: &[TokenId]) -> (String, Option<usize>) {
    let mut text = String::new();
    let mut stopped = None;
    for &token in tokens {
        let step = detokenizer.push(token);
        assert!(
            stopped.is_none()
                || step
                    == Step {
                        text: String::new(),
                        stopped
                    }
        );
        text.push_str(&step.text);
        stopped = step.stopped;
    }
    text.push_str(&detokenizer.finish());
    (text, stopped)
}

/// The text before the stop string that is complete first, and of those that end together before the longest.
fn cut<'a>(whole: &'a str, stops: &[String]) -> &'a str {
    for end in 0..=whole.len() {
        let ended = stops.iter().filter(|stop| {
            !stop.is_empty() && whole.is_char_boundary(end) && whole[..end].ends_with(stop.as_str())
        });
        if let Some(longest) = ended.map(String::len).max() {
            return &whole[..end - longest];
        }
    }
    whole
}

#[test]
fn characters_come_whole() {
    let mut d = Detokenizer::new(BYTES.clone(), Vec::new());
    let texts: Vec<String> = "é漢".bytes().map(|byte| d.push(byte.into()).text).collect();
    assert_eq!(texts, ["", "é", "", "", "漢"]);
    assert_eq!(d.push(0xe6).text, "");
    assert_eq!(d.push(0x41).text, "\u{fffd}A");
    assert_eq!(d.push(0xf0).text, "");
    assert_eq!(d.push(0x9f).text, "");
    assert_eq!(d.push(257).text, "");
    assert_eq!(d.finish(), "\u{fffd}");
    assert_eq!(d.finish(), "");
}

#[test]
fn stop_strings_are_never_seen() {
    let push = |d: &mut Detokenizer, text: &str| -> Vec<Step> {
        text.bytes().map(|byte| d.push(byte.into())).collect()
    };
    let step = |text: &str, stopped| Step {
        text: text.to_owned(),
        stopped,
    };
    let mut d = Detokenizer::new(BYTES.clone(), stops(&["", "END", "EN!"]));
    assert_eq!(
        push(&mut d, "aEEX"),
        [
            step("a", None),
            step("", None),
            step("E", None),
            step("EX", None)
        ]
    );
    assert_eq!(
        push(&mut d, "EN!x"),
        [
            step("", None),
            step("", None),
            step("", Some(2)),
            step("", Some(2))
        ]
    );
    assert_eq!(d.finish(), "");
    // What ends together: the longest. What ends first wins, even inside a longer one.
    let first = |stop: &[&str], text: &str| {
        let tokens: Vec<TokenId> = text.bytes().map(TokenId::from).collect();
        stream(Detokenizer::new(BYTES.clone(), stops(stop)), &tokens)
    };
    assert_eq!(first(&["b", "ab"], "xab"), ("x".to_owned(), Some(1)));
    assert_eq!(first(&["abcd", "bc"], "xabcd"), ("xa".to_owned(), Some(1)));
    assert_eq!(first(&["same", "same"], "same"), (String::new(), Some(0)));
    assert_eq!(first(&["abc"], "xab"), ("xab".to_owned(), None));
    assert_eq!(first(&["é"], "aéb"), ("a".to_owned(), Some(0)));
    assert_eq!(first(&["aab"], "aaab"), ("a".to_owned(), Some(0)));
}

#[test]
fn the_space_before_the_first_word_is_no_text() {
    let ids = PIECES.encode("a a", SpecialTokens::Parse);
    assert_eq!(
        stream(Detokenizer::new(PIECES.clone(), Vec::new()), &ids).0,
        "a a"
    );
    // A prompt that ends with a word is continued with the space; one that ends with a control token is not.
    assert_eq!(
        stream(
            Detokenizer::new(PIECES.clone(), Vec::new()).after(ids[0]),
            &ids
        )
        .0,
        " a a"
    );
    assert_eq!(
        stream(Detokenizer::new(PIECES.clone(), Vec::new()).after(1), &ids).0,
        "a a"
    );
}

proptest! {
    #[test]
    fn any_tokens_give_the_text_of_the_whole(tokens in prop::collection::vec(0_u32..260, 0..60)) {
        let streamed = stream(Detokenizer::new(BYTES.clone(), Vec::new()), &tokens).0;
        prop_assert_eq!(streamed, BYTES.decode(&tokens));
    }

    #[test]
    fn any_pieces_give_the_text_of_the_whole(tokens in prop::collection::vec(0_u32..266, 0..60)) {
        let streamed = stream(Detokenizer::new(PIECES.clone(), Vec::new()), &tokens).0;
        prop_assert_eq!(streamed, PIECES.decode(&tokens));
    }

    /// Few letters, so that stop strings occur, overlap and begin without ending.
    #[test]
    fn stop_strings_cut_the_whole(
        text in "[abé\u{fffd}]{0,30}",
        damage in prop::option::of((0_usize..60, 0x80_u8..)),
        stops in prop::collection::vec("[abé\u{fffd}]{0,4}", 0..4),
    ) {
        let mut bytes = text.into_bytes();
        if let Some((at, byte)) = damage
            && let Some(slot) = bytes.get_mut(at)
        {
            *slot = byte;
        }
        let tokens: Vec<TokenId> = bytes.into_iter().map(TokenId::from).collect();
        let whole = BYTES.decode(&tokens);
        let (streamed, stopped) = stream(Detokenizer::new(BYTES.clone(), stops.clone()), &tokens);
        prop_assert_eq!(&streamed, cut(&whole, &stops));
        if let [stop] = &stops[..] && !stop.is_empty() && stopped.is_some() {
            prop_assert_eq!(&streamed, whole.split_once(stop.as_str()).expect("it occurs").0);
        }
    }
}
