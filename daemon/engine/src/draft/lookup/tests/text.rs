//! Which of several occurrences a guess continues, and what an index takes.

use tandem_model::TokenId;

use super::super::automaton::Place;
use super::super::{Guess, Lookup, MAX_BYTES_PER_TOKEN};

fn lookup(tokens: &[TokenId]) -> Lookup {
    let mut lookup = Lookup::new();
    lookup.extend(tokens);
    lookup
}

#[test]
fn nothing_is_guessed_where_the_last_token_is_new() {
    assert_eq!(Lookup::new().propose(4), Guess::default());
    assert_eq!(lookup(&[1, 2, 3, 4]).propose(4), Guess::default());
}

#[test]
fn the_longest_match_counts_then_the_newest() {
    // 1 2 3 occurred once, 2 3 twice since.
    let guess = lookup(&[1, 2, 3, 4, 9, 2, 3, 5, 8, 2, 3, 6, 7, 1, 2, 3]).propose(2);
    assert_eq!((guess.match_length, guess.tokens), (3, vec![4, 9]));
    let guess = lookup(&[1, 2, 3, 4, 9, 2, 3, 5, 8, 2, 3, 6, 7, 2, 3]).propose(2);
    assert_eq!((guess.match_length, guess.tokens), (2, vec![6, 7]));
}

#[test]
fn a_repetition_is_continued_past_its_own_end() {
    let guess = lookup(&[7, 1, 2, 3, 1, 2, 3, 1]).propose(7);
    assert_eq!(
        (guess.match_length, guess.tokens),
        (4, vec![2, 3, 1, 2, 3, 1, 2])
    );
}

#[test]
fn after_a_renamed_word_the_copy_goes_on_beside_it() {
    // Lines of 20 tokens that all contain 500 followed by something else; the copy replaces the fifth token of each.
    let line =
        |line: u32| (0..20).map(move |column| if column == 5 { 500 } else { 20 * line + column });
    let original: Vec<TokenId> = (0..8).flat_map(line).collect();
    let mut text = lookup(&original);
    text.extend(&[999]);
    text.extend(&original[..64]);
    text.extend(&[900, 901]);
    assert_eq!(text.propose(5), Guess::default(), "the new word is new");
    text.extend(&[500]);
    let guess = text.propose(5);
    assert!(guess.resumed);
    assert_eq!(guess.match_length, 1);
    assert_eq!(
        guess.tokens,
        original[66..71],
        "beside the copy, not where 500 was last"
    );
    // Once the copy is long again it no longer counts as resumed.
    text.extend(&original[66..90]);
    let guess = text.propose(5);
    assert!(!guess.resumed);
    assert_eq!(guess.tokens, original[90..95]);
}

#[test]
fn a_copy_that_broke_off_long_ago_is_forgotten() {
    let original: Vec<TokenId> = (0..40).chain([500]).chain(41..80).collect();
    let mut text = lookup(&original);
    text.extend(&original[..30]);
    text.extend(&(1000..1100).collect::<Vec<_>>());
    text.extend(&[500, 2000, 500]);
    let guess = text.propose(1);
    assert_eq!((guess.resumed, guess.tokens), (false, vec![2000]));
}

#[test]
fn another_text_is_never_continued_past_its_end() {
    let text = lookup(&[1, 2, 3, 4, 5]);
    let propose = |context: &[TokenId], max_len| {
        let mut place = Place::default();
        text.follow(&mut place, context);
        text.propose_at(place, max_len)
    };
    assert_eq!(propose(&[9, 2, 3], 8).tokens, [4, 5]);
    assert_eq!(propose(&[9, 2, 3], 1).tokens, [4]);
    assert_eq!(propose(&[4, 5], 8), Guess::default());
    assert_eq!(propose(&[], 8), Guess::default());
}

/// Texts of `n` tokens that load the index in different ways.
fn texts(n: u32) -> Vec<(&'static str, Vec<TokenId>)> {
    let mut state = 1u64;
    let mut random = move |kinds: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        ((state >> 33) % kinds) as u32
    };
    let zipf = (0..n).map(|_| {
        let range = 1 + random(2000);
        random(u64::from(range))
    });
    let zipf = zipf.collect();
    vec![
        ("one token", vec![0; n as usize]),
        ("all different", (0..n).collect()),
        ("two tokens", (0..n).map(|_| random(2)).collect()),
        ("like words", zipf),
        ("copied once", (0..n / 2).chain(0..n / 2).collect()),
    ]
}

#[test]
fn memory_per_token_is_bounded() {
    for (name, tokens) in texts(1 << 15) {
        let mut text = Lookup::new();
        for (at, piece) in tokens.chunks(1000).enumerate() {
            text.extend(piece);
            let most = (1000 * (at + 1)) * MAX_BYTES_PER_TOKEN;
            assert!(
                text.bytes() <= most,
                "{name}: {} of {most} bytes",
                text.bytes()
            );
        }
    }
}

#[test]
fn endless_repetition_takes_no_more_time_than_text() {
    // Quadratic time would take minutes.
    let mut text = lookup(&vec![3; 1 << 18]);
    assert_eq!(text.propose(3).tokens, [3, 3, 3]);
    text.extend(&[4, 3, 3]);
    assert_eq!(text.propose(1).match_length, 2);
}
