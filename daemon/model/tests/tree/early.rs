//! Rows that left early and go on.

use tandem_model::backend::Logits;
use tandem_model::gguf::Gguf;
use tandem_model::model::{Exit, LanguageModel, ModelError, Row};

use super::common;
use super::world::*;

/// Runs a tree early in pieces, verifies one that shares its leading `shared` rows, and compares every row with a
/// forward that knows of no early rows. Returns the largest distance.
fn resumed(
    model: &mut dyn LanguageModel,
    noise: &mut Noise,
    (context, shared): (usize, usize),
    exits: [Exit; 2],
) -> f32 {
    let slots = [0; 3].map(|_| model.open().expect("a cache"));
    let text = noise.tokens(context);
    let early = noise.nodes(7);
    let mut verified = early[..shared].to_vec();
    for row in shared..8 {
        let parent = noise.below(row + 1).checked_sub(1);
        verified.push((noise.below(250) as u32, parent));
    }
    let want: Vec<usize> = (0..verified.len()).collect();
    let fork = {
        feed(model, slots[0], &text);
        model.fork(slots[0], context).expect("a fork")
    };
    let expected = model
        .forward(&rows(fork, &verified), &want)
        .expect("it runs");
    let expected: Vec<Vec<f32>> = want.iter().map(|row| expected.row(*row).to_vec()).collect();

    // The second leaves elsewhere, the third not at all.
    feed(model, slots[1], &text);
    feed(model, slots[2], &text);
    for (slot, exit) in slots.iter().zip(exits) {
        for piece in [&early[..1], &early[1..3], &early[3..]] {
            let logits = model.early(&rows(*slot, piece), &[piece.len() - 1], exit);
            assert!(logits.expect("it runs").row(0)[0].is_finite());
        }
    }
    let batch: Vec<Row> = slots
        .iter()
        .flat_map(|slot| rows(*slot, &verified))
        .collect();
    let all: Vec<usize> = (0..batch.len()).collect();
    let logits = model.forward(&batch, &all).expect("it runs");
    let mut worst = 0.0f32;
    for row in all {
        worst = worst.max(farthest(logits.row(row), &expected[row % verified.len()]));
        if !worst.is_finite() {
            break;
        }
    }
    // What was verified stays and can be kept.
    let path = path(&verified, 7);
    let mut tokens = text;
    tokens.extend(path.iter().map(|node| verified[*node].0));
    tokens.push(3);
    let last = from_scratch(model, &tokens, None);
    for slot in slots {
        model.keep(slot, context, &path).expect("it keeps");
        worst = worst.max(farthest(&feed(model, slot, &[3]), &last));
        model.close(slot);
    }
    model.close(fork);
    worst
}

const PLACES: [(usize, usize); 6] = [(1, 7), (20, 7), (126, 4), (128, 1), (40, 0), (260, 6)];

#[test]
fn verification_of_early_rows_gives_the_bits_of_one_without() {
    for architecture in ["llama", "qwen2", "qwen3", "gemma3"] {
        let mut model = tiny(architecture);
        let mut noise = Noise(1);
        for place in PLACES {
            for exits in [[1, 1], [3, 3], [1, 2]] {
                let worst = resumed(&mut *model, &mut noise, place, exits.map(Exit::Layer));
                assert_eq!(worst, 0.0, "{architecture}, {place:?}, after {exits:?}");
            }
        }
    }
}

#[test]
fn an_adapter_changes_no_bit_of_verification() {
    let mut model = with_adapter(tiny("llama"));
    let mut noise = Noise(2);
    for place in PLACES {
        for exits in [
            [Exit::Adapter, Exit::Adapter],
            [Exit::Layer(3), Exit::Adapter],
            [Exit::Layer(EXIT), Exit::Adapter],
        ] {
            let worst = resumed(&mut *model, &mut noise, place, exits);
            assert_eq!(worst, 0.0, "{place:?}, {exits:?}");
        }
    }
}

#[test]
fn the_reference_resumes_within_its_tolerance() {
    let mut model = with_adapter(reference("llama"));
    let mut noise = Noise(3);
    for place in PLACES {
        let worst = resumed(
            &mut *model,
            &mut noise,
            place,
            [Exit::Adapter, Exit::Layer(1)],
        );
        assert!(worst < 1e-3, "{place:?}: {worst}");
    }
}

#[test]
fn the_real_target_resumes_to_the_bit() {
    let mut model = common::model_on_device(&common::default_target(), 512);
    let adapter = Gguf::open(common::default_exit_adapter()).expect("a sound file");
    model.attach_exit(&adapter, &mut |_| {}).expect("it fits");
    let mut noise = Noise(4);
    for place in [(10, 7), (130, 3)] {
        let worst = resumed(&mut *model, &mut noise, place, [Exit::Adapter; 2]);
        assert_eq!(worst, 0.0, "{place:?}");
        let worst = resumed(&mut *model, &mut noise, place, [Exit::Layer(10); 2]);
        assert_eq!(worst, 0.0, "{place:?}, without the adapter");
    }
}

#[test]
fn an_adapter_has_been_fed_every_position_however_it_came() {
    let mut model = with_adapter(tiny("llama"));
    let mut noise = Noise(6);
    let tokens = noise.tokens(150);
    let expected = from_scratch(&mut *model, &tokens, Some(Exit::Adapter));
    let slot = model.open().expect("a cache");
    // A prompt in pieces, an accepted draft that was run early, one that was not, and one that grew.
    feed(&mut *model, slot, &tokens[..100]);
    feed(&mut *model, slot, &tokens[100..120]);
    let draft: Nodes = (0..6)
        .map(|i| (tokens[120 + i], i.checked_sub(1)))
        .collect();
    model
        .early(&rows(slot, &draft[..4]), &[3], Exit::Adapter)
        .expect("it runs");
    model.forward(&rows(slot, &draft), &[5]).expect("it runs");
    let tree = [
        (9, None),
        (tokens[126], None),
        (8, Some(1)),
        (tokens[127], Some(1)),
    ];
    model.forward(&rows(slot, &tree), &[3]).expect("it runs");
    model.keep(slot, 126, &[1, 3]).expect("it keeps");
    let tree = [(tokens[128], None), (7, None), (tokens[129], Some(0))];
    model.grow(&rows(slot, &tree), &[]).expect("it runs");
    model.keep(slot, 128, &[0, 2]).expect("it keeps");
    let fork = model.fork(slot, 125).expect("a fork");
    for (slot, cached) in [(slot, 130), (fork, 125)] {
        assert_eq!(model.cached(slot), cached);
        let rest: Vec<Row> = Row::chain(slot, &tokens[cached..]).collect();
        let last = [rest.len() - 1];
        let got = model.early(&rest, &last, Exit::Adapter).expect("it runs");
        assert!(bits(got.row(0)) == bits(&expected), "{cached} positions");
    }
}

#[test]
fn exits_that_are_not_there_are_refused() {
    let mut model = tiny("llama");
    let slot = model.open().expect("a cache");
    let row = rows(slot, &[(1, None)]);
    let refused = |result: Result<&Logits, ModelError>| result.expect_err("refused").to_string();
    let why = refused(model.early(&row, &[0], Exit::Adapter));
    assert!(why.contains("no exit adapter"), "{why}");
    for layers in [0, 4, 9] {
        let why = refused(model.early(&row, &[0], Exit::Layer(layers)));
        assert!(
            why.contains(&format!("after {layers};")) && why.contains("1 to 3"),
            "{why}"
        );
    }
    assert_eq!(model.cached(slot), 0);
}
