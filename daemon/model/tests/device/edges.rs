//! Caches, and steps that are no ordinary ones.

use tandem_model::model::{LanguageModel, Row};
use tandem_model::testing::{Format, Weights, chain, in_formats, leading, open};

use super::case::{LLAMA, on_the_device, tokens};

fn llama() -> Box<dyn LanguageModel> {
    let weights = in_formats(&LLAMA, 257, |_| Format::Q8_0, Weights::Blocks);
    on_the_device(&open(&weights))
}

#[test]
fn caches_take_what_their_positions_take() {
    let mut device = llama();
    let slot = device.open().expect("a cache");
    for step in tokens(1200, 257).chunks(60) {
        chain(&mut *device, slot, step, 1).expect("it runs");
        // Rounded up by less than one piece.
        let positions = device.cache_bytes() / device.cache_bytes_per_position();
        let cached = device.cached(slot) as u64;
        assert!(
            (cached..cached + 256).contains(&positions),
            "room for {positions} positions, of which {cached} are held"
        );
    }
    let fork = device.fork(slot, 300).expect("a fork");
    let both = device.cache_bytes();
    device.close(slot);
    assert!(device.cache_bytes() < both / 2);
    device.close(fork);
    assert_eq!(device.cache_bytes(), 0);
}

/// A device may refuse a tree whose rows take too much to describe; whether or not, the next step is as if it had not been.
#[test]
fn a_step_that_fails_leaves_nothing_behind() {
    let mut device = llama();
    let tokens = tokens(40, 257);
    let slot = device.open().expect("a cache");
    let expected = chain(&mut *device, slot, &tokens, 1).expect("it runs");
    device.truncate(slot, 30);
    // Two branches of rows that see all above them.
    const LONG: usize = 1900;
    let rows: Vec<Row> = (0..2 * LONG)
        .map(|at| Row {
            slot,
            token: 3,
            parent: at.checked_sub(1).filter(|_| at != LONG),
        })
        .collect();
    for _ in 0..2 {
        match device.grow(&rows, &[2 * LONG - 1]) {
            Ok(logits) => assert!(logits.row(0).iter().all(|x| x.is_finite())),
            Err(error) => assert!(error.to_string().contains("bytes"), "{error}"),
        }
        device.truncate(slot, 30);
        let again = chain(&mut *device, slot, &tokens[30..], 1).expect("it runs");
        assert_eq!(again, expected);
        device.truncate(slot, 30);
    }
}

#[test]
fn a_step_of_no_rows_says_nothing() {
    let mut device = llama();
    let slot = device.open().expect("a cache");
    let tokens = tokens(20, 257);
    let expected = chain(&mut *device, slot, &tokens, 1).expect("it runs");
    device.truncate(slot, 10);
    device.forward(&[], &[]).expect("it does nothing");
    let rest: Vec<Row> = Row::chain(slot, &tokens[10..19]).collect();
    device.forward(&rest, &[]).expect("nobody asks");
    let last = chain(&mut *device, slot, &tokens[19..], 1).expect("it runs");
    assert_eq!(last, expected);
}

/// A device tells what leads in a row before the row is read: it must be what the row says.
#[test]
fn what_is_told_of_a_row_is_what_it_says() {
    let mut device = llama();
    let slot = device.open().expect("a cache");
    let rows: Vec<Row> = Row::chain(slot, &tokens(33, 257)).collect();
    let want: Vec<usize> = (0..33).collect();
    let logits = device.forward(&rows, &want).expect("it runs");
    let told: Vec<_> = want.iter().map(|row| leading(logits.at(*row))).collect();
    for (row, (tokens, probs)) in want.into_iter().zip(told) {
        let (found, exact) = leading(logits.row(row));
        assert_eq!(tokens, found, "row {row}");
        for (told, exact) in probs.into_iter().zip(exact) {
            assert!(
                (told / exact - 1.0).abs() < 1e-4,
                "row {row}: {told}, {exact}"
            );
        }
    }
    logits.arrived().expect("all was read");
}
