//! The drafter as the engine uses it.

use super::super::{ClientKey, Guess, LookupDrafter};
use crate::draft::Drafter;
use crate::{SequenceId, TokenId};

fn guess(drafter: &mut LookupDrafter, id: u64, tokens: &[TokenId], max_len: usize) -> Vec<TokenId> {
    drafter.guess(SequenceId(id), None, tokens, max_len).tokens
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
        drafter.guess(SequenceId(3), client, &[7, 8], 2).tokens,
        [9, 10]
    );
    let stranger = drafter.guess(SequenceId(4), Some(ClientKey(2)), &[7, 8], 2);
    assert_eq!(stranger, Guess::default());
    assert_eq!(
        drafter.guess(SequenceId(5), None, &[7, 8], 2),
        Guess::default()
    );
}

#[test]
fn the_longer_match_counts_and_of_equals_the_requests_own() {
    let mut drafter = LookupDrafter::new(1 << 20);
    let client = Some(ClientKey(1));
    drafter.guess(SequenceId(1), client, &[1, 2, 3, 4], 0);
    drafter.release(SequenceId(1));
    let own = drafter.guess(SequenceId(2), client, &[2, 3, 9, 2, 3], 1);
    assert_eq!((own.match_length, own.tokens), (2, vec![9]));
    let other = drafter.guess(SequenceId(3), client, &[3, 9, 1, 2, 3], 1);
    assert_eq!((other.match_length, other.tokens), (3, vec![4]));
}
