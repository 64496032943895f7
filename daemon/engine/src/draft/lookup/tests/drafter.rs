//! The drafter as the engine uses it.

use tandem_model::TokenId;

use super::super::LookupDrafter;
use crate::draft::Drafter;
use crate::{ClientKey, SequenceId};

fn guess(drafter: &mut LookupDrafter, id: u64, tokens: &[TokenId], max_len: usize) -> Vec<TokenId> {
    let guesses = drafter.guess(SequenceId(id), None, tokens, max_len);
    guesses.into_iter().next().unwrap_or_default().tokens
}

#[test]
fn each_request_gets_its_own_guesses() {
    let mut drafter = LookupDrafter::new(0);
    assert_eq!(guess(&mut drafter, 1, &[1, 2, 3, 1], 2), [2, 3]);
    assert_eq!(guess(&mut drafter, 2, &[5, 6, 7], 4), [0; 0]);
    assert_eq!(guess(&mut drafter, 3, &[8, 9, 8], 0), [0; 0]);
}

#[test]
fn it_keeps_up_with_what_was_committed_and_starts_again_where_that_differs() {
    let mut drafter = LookupDrafter::new(0);
    guess(&mut drafter, 1, &[1, 2, 3], 0);
    assert_eq!(guess(&mut drafter, 1, &[1, 2, 3, 4, 1], 2), [2, 3]);
    assert_eq!(guess(&mut drafter, 1, &[1, 7, 8, 1], 1), [7]);
}

#[test]
fn a_released_sequence_leaves_nothing_but_history_of_its_client() {
    let mut drafter = LookupDrafter::new(1 << 20);
    let client = Some(ClientKey(1));
    let first: Vec<TokenId> = (0..50).collect();
    drafter.guess(SequenceId(1), client, &first, 0);
    drafter.guess(SequenceId(2), None, &first, 0);
    drafter.release(SequenceId(1));
    drafter.release(SequenceId(2));
    drafter.release(SequenceId(9));
    let history = drafter.history().bytes() as u64;
    assert!(history > 0);
    assert_eq!(
        drafter.guess(SequenceId(3), client, &[7, 8], 2)[0].tokens,
        [9, 10]
    );
    let stranger = drafter.guess(SequenceId(4), Some(ClientKey(2)), &[7, 8], 2);
    assert_eq!(stranger, []);
    assert_eq!(drafter.guess(SequenceId(5), None, &[7, 8], 2), []);
}

#[test]
fn the_longer_match_counts_and_of_equals_the_requests_own() {
    let mut drafter = LookupDrafter::new(1 << 20);
    let client = Some(ClientKey(1));
    drafter.guess(SequenceId(1), client, &[1, 2, 3, 4], 0);
    drafter.release(SequenceId(1));
    let own = drafter.guess(SequenceId(2), client, &[2, 3, 9, 2, 3], 1);
    assert_eq!((own[0].match_length, &own[0].tokens[..]), (2, &[9][..]));
    assert_eq!((own[1].match_length, &own[1].tokens[..]), (2, &[4][..]));
    let other = drafter.guess(SequenceId(3), client, &[3, 9, 1, 2, 3], 1);
    assert_eq!((other[0].match_length, &other[0].tokens[..]), (3, &[4][..]));
    assert_eq!((other[1].match_length, &other[1].tokens[..]), (1, &[9][..]));
}

#[test]
fn a_second_guess_begins_otherwise() {
    let mut drafter = LookupDrafter::new(1 << 20);
    let client = Some(ClientKey(1));
    drafter.guess(SequenceId(1), client, &[1, 2, 3, 4], 0);
    drafter.release(SequenceId(1));
    let same = drafter.guess(SequenceId(2), client, &[2, 3, 4, 7, 2, 3], 3);
    assert_eq!(same.len(), 1, "both say 4: {same:?}");

    // A long copy, broken off by one other token: what comes next is there as well as where the end was last.
    let source: Vec<TokenId> = (100..140).collect();
    let mut text = source.clone();
    text.extend([130, 7, 8]);
    text.extend(&source[..30]);
    text.extend([99, 130]);
    let guesses = drafter.guess(SequenceId(3), None, &text, 2);
    let tokens: Vec<_> = guesses.iter().map(|guess| &guess.tokens[..]).collect();
    assert_eq!(tokens, [&[131, 132][..], &[7, 8][..]]);
    assert!(guesses[0].resumed && !guesses[1].resumed);
}
