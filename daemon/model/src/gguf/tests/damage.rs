use std::io::Write;

use proptest::prelude::*;
use tempfile::NamedTempFile;

use super::small;
use crate::gguf::{Damage, Gguf, GgufError};
use crate::testing::{GgufWriter, try_open as open};

fn damage(bytes: &[u8]) -> Damage {
    match open(bytes) {
        Err(e @ GgufError::Damaged { .. }) => {
            let text = e.to_string();
            assert!(
                text.contains("damaged or incomplete, pull it again"),
                "{text}"
            );
            let GgufError::Damaged { damage, .. } = e else {
                unreachable!()
            };
            *damage
        }
        other => panic!("expected damage, got {other:?}"),
    }
}

#[test]
fn absurd_counts_are_refused() {
    for (at, what) in [(8, "tensor count"), (16, "metadata count")] {
        for value in [u64::MAX, 1 << 40, 60_000] {
            let mut file = small().finish();
            file[at..at + 8].copy_from_slice(&value.to_le_bytes());
            match damage(&file) {
                Damage::TooMany {
                    what: named,
                    value: n,
                    ..
                } => {
                    assert!(named.contains(what) && n == value);
                }
                Damage::BeyondEnd {
                    available_bytes, ..
                } => assert!(available_bytes < file.len() as u64),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn absurd_values_are_refused() {
    let with = |kind: u32, bytes: &[u8]| damage(&GgufWriter::new().raw("k", kind, bytes).finish());
    let array = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    for value in [
        with(8, &(1_u64 << 50).to_le_bytes()),
        with(8, &u64::MAX.to_le_bytes()),
        with(9, &array(4, 1 << 62)),
        with(9, &array(8, u64::MAX)),
        with(9, &array(12, 1 << 61)),
        with(9, &array(9, 1 << 61)),
    ] {
        let text = value.to_string();
        assert!(
            matches!(value, Damage::BeyondEnd { .. }) && text.contains("`k`"),
            "{text}"
        );
    }
    assert!(matches!(
        with(13, &[0; 8]),
        Damage::UnknownType { number: 13, .. }
    ));
    assert!(matches!(with(7, &[2]), Damage::NotABool { value: 2, .. }));
    let deep: Vec<u8> = std::iter::repeat_n(array(9, 1), 100).flatten().collect();
    assert!(matches!(with(9, &deep), Damage::TooDeep { .. }));
    let shallow = [array(9, 1), array(8, 1), 0_u64.to_le_bytes().to_vec()].concat();
    let gguf = open(
        &GgufWriter::new()
            .raw("k", 9, &shallow)
            .u32("after", 5)
            .finish(),
    )
    .unwrap();
    assert_eq!(gguf.u32("after").unwrap(), 5);
    let twice = GgufWriter::new().u32("k", 1).u32("k", 1).finish();
    assert!(matches!(
        damage(&twice),
        Damage::Duplicate {
            what: "metadata key",
            ..
        }
    ));
    let align = GgufWriter::new().u32("general.alignment", 24).finish();
    assert!(matches!(
        damage(&align),
        Damage::Alignment { value: 24, .. }
    ));
}

/// Opens a file of 8 GiB that is a header of one key and then a hole.
fn over_a_hole(kind: u32, value: &[u8]) -> GgufError {
    let mut file = GgufWriter::new().raw("k", kind, value).finish();
    file.truncate(24 + 8 + 1 + 4 + value.len());
    let mut stored = NamedTempFile::new().unwrap();
    stored.write_all(&file).unwrap();
    stored.as_file().set_len(8 << 30).unwrap();
    let started = std::time::Instant::now();
    let error = Gguf::open(stored.path()).unwrap_err();
    // It takes milliseconds; reading what the header promises would take seconds at the least.
    let took = started.elapsed().as_secs_f64();
    assert!(took < 1.0, "{took} s: {error}");
    error
}

#[test]
fn what_no_model_has_is_refused_over_a_hole() {
    let array = |kind: u32, count: u64| [&kind.to_le_bytes()[..], &count.to_le_bytes()].concat();
    let nested = |inner: Vec<u8>| [array(9, 1), inner].concat();
    for (kind, value) in [
        (8, (6_u64 << 30).to_le_bytes().to_vec()),
        (8, (65_u64 << 20).to_le_bytes().to_vec()),
        (9, array(0, 6 << 30)),
        (9, array(4, 1 << 30)),
        (9, array(12, 900_000_000)),
        (9, array(8, 900_000_000)),
        (9, array(8, 5_000_000)),
        (9, array(9, 600_000_000)),
        (9, array(9, 100_000)),
        (9, nested(array(0, 6 << 30))),
        (9, nested(array(8, 700_000_000))),
        (9, nested(array(9, 100_000))),
        (9, nested(nested(array(4, 1 << 30)))),
    ] {
        let error = over_a_hole(kind, &value).to_string();
        assert!(
            error.contains("more than the") && error.contains("`k`"),
            "{error}"
        );
    }
}

#[test]
fn a_whole_header_is_bounded() {
    let mut file = GgufWriter::new().finish();
    file[16..24].copy_from_slice(&60_000_u64.to_le_bytes());
    let mut stored = NamedTempFile::new().unwrap();
    stored.write_all(&file).unwrap();
    let file = stored.as_file();
    file.set_len(8 << 30).unwrap();
    // Keys of 40 MiB of text each, of which the third is one too many.
    let mut at = 24;
    for index in 0..3_u8 {
        let entry = [
            &1_u64.to_le_bytes()[..],
            &[b'a' + index],
            &8_u32.to_le_bytes(),
            &(40_u64 << 20).to_le_bytes(),
        ]
        .concat();
        std::os::unix::fs::FileExt::write_all_at(file, &entry, at).unwrap();
        at += entry.len() as u64 + (40 << 20);
    }
    let error = Gguf::open(stored.path()).unwrap_err().to_string();
    assert!(
        error.contains("the size of the header") && error.contains("`c`"),
        "{error}"
    );
}

#[test]
fn impossible_tensors_are_refused() {
    let with =
        |shape: &[u64], format| damage(&small().raw_tensor("t", shape, format, &[0; 64]).finish());
    assert!(matches!(with(&[], 0), Damage::Shape { .. }));
    assert!(matches!(with(&[4, 0], 0), Damage::Shape { .. }));
    assert!(matches!(with(&[1 << 40, 1 << 40], 0), Damage::Shape { .. }));
    assert!(matches!(with(&[1 << 62, 2], 0), Damage::Shape { .. }));
    assert!(matches!(
        with(&[1, 1, 1, 1, 1], 0),
        Damage::TooMany { value: 5, .. }
    ));
    assert!(matches!(
        with(&[33], 3),
        Damage::PartialBlock {
            row: 33,
            block: 32,
            ..
        }
    ));
    assert!(matches!(
        with(&[17], 0),
        Damage::TensorBeyondEnd { bytes: 68, .. }
    ));
    let twice = small().raw_tensor("q", &[1], 0, &[0; 4]).finish();
    assert!(matches!(
        damage(&twice),
        Damage::Duplicate { what: "tensor", .. }
    ));
    let exotic = small().raw_tensor("t", &[32], 38, &[0; 64]).finish();
    assert!(matches!(
        open(&exotic),
        Err(GgufError::UnsupportedFormat { number: 38, .. })
    ));
}

/// The last eight bytes of the table are the offset of the last tensor.
fn with_last_offset(offset: u64) -> Vec<u8> {
    let mut file = small().finish();
    let place = 192_u64.to_le_bytes();
    let wanted = 96_u64.to_le_bytes();
    let at = (0..file.len() - 8)
        .rev()
        .find(|&at| at < open(&file).unwrap().data_start() as usize && file[at..at + 8] == wanted)
        .or_else(|| {
            (0..file.len() - 8)
                .rev()
                .find(|&at| file[at..at + 8] == place)
        })
        .expect("the writer placed the second tensor behind the first");
    file[at..at + 8].copy_from_slice(&offset.to_le_bytes());
    file
}

#[test]
fn impossible_offsets_are_refused() {
    assert!(matches!(
        damage(&with_last_offset(8)),
        Damage::Misaligned { offset: 8, .. }
    ));
    assert!(matches!(
        damage(&with_last_offset(64)),
        Damage::Overlap { .. }
    ));
    assert!(matches!(
        damage(&with_last_offset(1 << 40)),
        Damage::TensorBeyondEnd { .. }
    ));
    assert!(matches!(
        damage(&with_last_offset(u64::MAX - 31)),
        Damage::TensorBeyondEnd { .. }
    ));
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = small().finish();
    for len in 0..whole.len() {
        let e = open(&whole[..len]).expect_err("cut short");
        let known = if len < 4 {
            matches!(e, GgufError::NotGguf { .. })
        } else {
            matches!(e, GgufError::Damaged { .. })
        };
        assert!(known, "cut at {len}: {e}");
    }
}

#[test]
fn a_file_cut_after_opening_is_noticed() {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(&small().finish()).unwrap();
    let gguf = Gguf::open(file.path()).unwrap();
    file.as_file().set_len(gguf.file_bytes() - 1).unwrap();
    let e = gguf.read_tensor(gguf.tensor("f").unwrap()).unwrap_err();
    assert!(matches!(
        e,
        GgufError::Damaged { damage, .. } if matches!(*damage, Damage::TensorBeyondEnd { .. })
    ));
    assert!(gguf.read_tensor(gguf.tensor("q").unwrap()).is_ok());
}

proptest! {
    /// Whatever is overwritten, opening returns, and what opens can be read.
    #[test]
    fn mutated_files_never_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), prop::collection::vec(any::<u8>(), 1..9)), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut file = small().finish();
        for (at, bytes) in edits {
            let at = at.index(file.len());
            let end = (at + bytes.len()).min(file.len());
            file[at..end].copy_from_slice(&bytes[..end - at]);
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        if let Ok(gguf) = open(&file) {
            for tensor in gguf.tensors() {
                match gguf.read_tensor(tensor) {
                    Ok(data) => prop_assert_eq!(data.len() as u64, tensor.bytes),
                    Err(error) => prop_assert!(matches!(error, GgufError::NotFinite { .. }), "{}", error),
                }
            }
        }
    }
}
