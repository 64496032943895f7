//! The automaton's matches against a search through everything.

use proptest::prelude::*;
use tandem_model::TokenId;

use super::super::Lookup;
use super::super::automaton::{Automaton, Match, Place};

/// The longest end of `context` that occurs in `text` with its end at or before `last`, where it ends last.
fn search(text: &[TokenId], last: usize, context: &[TokenId]) -> Match {
    let shared = |source: usize| {
        let pairs = text[..source].iter().rev().zip(context.iter().rev());
        pairs.take_while(|(a, b)| a == b).count()
    };
    let matches = (1..=last).map(|source| Match {
        length: shared(source),
        source,
    });
    matches
        .filter(|found| found.length > 0)
        .max_by_key(|found| (found.length, found.source))
        .unwrap_or_default()
}

/// Texts over few tokens, so that much repeats.
fn texts(longest: usize) -> impl Strategy<Value = Vec<TokenId>> {
    (1..6u32).prop_flat_map(move |kinds| prop::collection::vec(0..kinds, 0..longest))
}

proptest! {
    #[test]
    fn every_append_finds_the_longest_and_newest_match(text in texts(33)) {
        let mut automaton = Automaton::new();
        for end in 1..=text.len() {
            let found = automaton.append(text[end - 1]);
            prop_assert_eq!(found, search(&text, end - 1, &text[..end]));
        }
    }

    #[test]
    fn long_texts_too_have_their_longest_match_at_a_place_where_it_is(text in texts(300)) {
        let mut automaton = Automaton::new();
        for end in 1..=text.len() {
            let Match { length, source } = automaton.append(text[end - 1]);
            prop_assert_eq!(length, search(&text, end - 1, &text[..end]).length);
            prop_assert!(length == 0 || source < end);
            prop_assert_eq!(&text[source - length..source], &text[end - length..end]);
        }
    }

    #[test]
    fn another_text_is_found_where_its_end_occurred_last(text in texts(33), context in texts(20)) {
        let mut automaton = Automaton::new();
        text.iter().for_each(|&token| { automaton.append(token); });
        let mut place = Place::default();
        for end in 1..=context.len() {
            automaton.follow(&mut place, &context[end - 1..end]);
            prop_assert_eq!(automaton.found(place), search(&text, text.len(), &context[..end]));
        }
    }

    #[test]
    fn growing_piece_by_piece_equals_building_at_once(
        text in texts(200),
        cuts in prop::collection::vec(1..20usize, 1..10),
    ) {
        let (mut grown, mut start) = (Lookup::new(), 0);
        for cut in cuts.into_iter().cycle() {
            let end = (start + cut).min(text.len());
            grown.extend(&text[start..end]);
            start = end;
            let mut built = Lookup::new();
            built.extend(&text[..end]);
            prop_assert_eq!(grown.propose(9), built.propose(9));
            if end == text.len() {
                break;
            }
        }
    }

    #[test]
    fn a_guess_continues_an_occurrence_of_the_end(text in texts(300), max_len in 0..20usize) {
        let mut lookup = Lookup::new();
        lookup.extend(&text);
        let guess = lookup.propose(max_len);
        let longest = search(&text, text.len().saturating_sub(1), &text).length;
        if max_len == 0 || longest == 0 {
            prop_assert_eq!(guess, super::super::Guess::default());
            return Ok(());
        }
        prop_assert_eq!((guess.match_length, guess.tokens.len()), (longest, max_len));
        // Periodic text goes on past its own end, so the guess is looked for in the text with the guess appended.
        let end = &text[text.len() - longest..];
        let grown = [&text[..], &guess.tokens].concat();
        let starts = 0..text.len() - longest;
        prop_assert!(starts.clone().any(|start| grown[start..].starts_with(&[end, &guess.tokens].concat())));
    }

    #[test]
    fn ids_of_no_vocabulary_do_no_harm(
        text in prop::collection::vec(prop::sample::select(vec![0, 1, u32::MAX - 1, u32::MAX]), 0..200),
    ) {
        let mut lookup = Lookup::new();
        lookup.extend(&text);
        let guess = lookup.propose(8);
        prop_assert!(guess.tokens.iter().all(|token| text.contains(token)));
        let mut place = Place::default();
        lookup.follow(&mut place, &text[text.len() / 2..]);
        prop_assert!(lookup.propose_at(place, 8).tokens.iter().all(|token| text.contains(token)));
    }
}
