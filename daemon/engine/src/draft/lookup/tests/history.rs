//! Bound, order of eviction and isolation of the history.

use proptest::prelude::*;
use tandem_model::TokenId;

use super::super::{Guess, History, Lookup, Reader};
use crate::ClientKey;

const A: ClientKey = ClientKey(1);
const B: ClientKey = ClientKey(2);

fn text(tokens: impl IntoIterator<Item = TokenId>) -> Lookup {
    let mut lookup = Lookup::new();
    lookup.extend(&tokens.into_iter().collect::<Vec<_>>());
    lookup
}

fn propose(history: &mut History, client: ClientKey, context: &[TokenId], max_len: usize) -> Guess {
    history.propose(client, context, &mut Reader::default(), 0, max_len)
}

/// Bytes of a remembered text.
fn bytes(tokens: impl IntoIterator<Item = TokenId>) -> usize {
    let mut history = History::new(usize::MAX);
    history.remember(A, text(tokens));
    history.bytes()
}

#[test]
fn a_client_profits_from_what_it_had() {
    let mut history = History::new(1 << 20);
    history.remember(A, text(0..100));
    let guess = propose(&mut history, A, &[7, 50, 51, 52], 3);
    assert_eq!((guess.match_length, guess.tokens), (3, vec![53, 54, 55]));
}

#[test]
fn no_client_sees_what_another_had() {
    let mut history = History::new(1 << 20);
    history.remember(A, text(0..100));
    assert_eq!(propose(&mut history, B, &[50, 51, 52], 3), Guess::default());
    history.remember(B, text([51, 52, 7]));
    assert_eq!(propose(&mut history, B, &[50, 51, 52], 3).tokens, [7]);
    history.forget(B);
    assert_eq!(propose(&mut history, B, &[50, 51, 52], 3), Guess::default());
    assert_eq!(propose(&mut history, A, &[50, 51, 52], 1).tokens, [53]);
}

#[test]
fn the_text_of_use_longest_ago_goes_first() {
    let mut history = History::new(2 * bytes(0..100) + 64);
    history.remember(A, text(0..100));
    history.remember(B, text(1000..1100));
    assert_eq!(propose(&mut history, A, &[4], 1).tokens, [5]);
    history.remember(A, text(2000..2100));
    assert_eq!(
        propose(&mut history, B, &[1004], 1),
        Guess::default(),
        "B was of use longest ago"
    );
    assert_eq!(propose(&mut history, A, &[4], 1).tokens, [5]);
    assert_eq!(propose(&mut history, A, &[2004], 1).tokens, [2005]);
}

#[test]
fn a_conversation_that_went_on_counts_once() {
    let mut history = History::new(1 << 20);
    history.remember(A, text(0..100));
    history.remember(A, text(0..200));
    assert_eq!(history.bytes(), bytes(0..200));
    history.remember(B, text(0..300));
    assert_eq!(
        history.bytes(),
        bytes(0..200) + bytes(0..300),
        "not across clients"
    );
}

#[test]
fn of_a_text_that_does_not_fit_the_end_is_kept() {
    let mut history = History::new(bytes(0..1000));
    history.remember(A, text(0..10_000));
    assert!(history.bytes() > 0);
    assert_eq!(propose(&mut history, A, &[9990], 2).tokens, [9991, 9992]);
    assert_eq!(propose(&mut history, A, &[10], 2), Guess::default());
}

#[test]
fn without_room_nothing_is_remembered() {
    let mut history = History::new(0);
    history.remember(A, text(0..100));
    assert_eq!(history.bytes(), 0);
    assert_eq!(propose(&mut history, A, &[4], 1), Guess::default());
}

#[test]
fn only_a_longer_match_than_asked_for_counts_and_is_of_use() {
    let mut history = History::new(2 * bytes(0..100) + 64);
    history.remember(A, text(0..100));
    history.remember(A, text(1000..1100));
    let mut propose = |exceed| {
        history
            .propose(A, &[3, 4], &mut Reader::default(), exceed, 1)
            .tokens
    };
    assert_eq!((propose(2), propose(1)), (vec![], vec![5]));
    history.remember(A, text(2000..2100));
    assert_eq!(self::propose(&mut history, A, &[4], 1).tokens, [5]);
    let ignored = history.propose(A, &[2004], &mut Reader::default(), 1, 1);
    assert_eq!(ignored, Guess::default());
    history.remember(A, text(3000..3100));
    assert_eq!(self::propose(&mut history, A, &[2004], 1), Guess::default());
}

#[test]
fn of_more_texts_than_are_searched_the_newest_are_kept() {
    let mut history = History::new(1 << 20);
    for number in 0..20 {
        history.remember(A, text(100 * number..100 * number + 10));
    }
    for number in 0..20 {
        let guess = propose(&mut history, A, &[100 * number], 1);
        assert_eq!(guess.tokens.is_empty(), number < 4, "text {number}");
    }
}

#[test]
fn the_newer_of_equal_matches_counts() {
    let mut history = History::new(1 << 20);
    history.remember(A, text([1, 2, 3]));
    history.remember(A, text([1, 2, 4]));
    assert_eq!(propose(&mut history, A, &[1, 2], 1).tokens, [4]);
}

proptest! {
    #[test]
    fn reading_on_equals_reading_again(
        finished in prop::collection::vec(prop::collection::vec(0..3u32, 1..40), 1..40),
        context in prop::collection::vec(0..3u32, 1..80),
        steps in prop::collection::vec(1..50usize, 1..40),
    ) {
        let (mut history, mut reader) = (History::new(20_000), Reader::default());
        let (mut finished, mut end) = (finished.into_iter(), 0);
        for step in steps {
            // Texts come and go while the context is read.
            if let Some(tokens) = finished.next() {
                history.remember(A, text(tokens));
            }
            end = (end + step).min(context.len());
            let read_on = history.propose(A, &context[..end], &mut reader, 0, 3);
            let mut again = Reader::default();
            // Texts as short as these have no longer match than what is read again.
            let read_again = history.propose(A, &context[..end], &mut again, 0, 3);
            prop_assert!(read_on.match_length >= read_again.match_length);
            if read_on.match_length < 32 {
                prop_assert_eq!(read_on.match_length, read_again.match_length);
            }
        }
    }

    #[test]
    fn the_bound_holds_and_clients_stay_apart(
        max_bytes in 0..40_000usize,
        finished in prop::collection::vec((0..3u64, 1..300u32), 1..40),
    ) {
        let mut history = History::new(max_bytes);
        for (client, length) in finished {
            // A client's tokens tell whose they are.
            let first = client as u32 * 1000;
            history.remember(ClientKey(client), text((first..first + length).rev()));
            prop_assert!(history.bytes() <= max_bytes);
            for asking in 0..3 {
                for owner in 0..3 {
                    let guess = propose(&mut history, ClientKey(asking), &[owner as u32 * 1000 + 1], 4);
                    prop_assert!(asking == owner || guess == Guess::default());
                }
            }
        }
    }
}
