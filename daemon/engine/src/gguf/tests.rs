use std::io::Write;

use candle_core::quantized::GgmlDType;
use candle_core::{Device, Tensor};
use proptest::prelude::*;
use tempfile::NamedTempFile;

use super::{Damage, Gguf, GgufError};
use crate::testing::GgufWriter;

fn small() -> GgufWriter {
    let weights = Tensor::arange(0_f32, 128.0, &Device::Cpu)
        .expect("fits")
        .reshape((4, 32))
        .expect("4 × 32");
    GgufWriter::new()
        .str("general.architecture", "llama")
        .u32("llama.block_count", 2)
        .f32("llama.eps", 1e-5)
        .bool("flag", true)
        .raw("big", 10, &7_u64.to_le_bytes())
        .raw("negative", 1, &[0xfe])
        .strings("tokens", &[&b"a"[..], b"", b"\xff\xfe"])
        .f32s("scores", &[0.5, -1.0])
        .i32s("types", &[1, -3])
        .tensor("q", &weights, GgmlDType::Q4_1)
        .and_then(|file| file.tensor("f", &weights, GgmlDType::F32))
        .expect("32 is a multiple of the block")
}

fn open(bytes: &[u8]) -> Result<Gguf, GgufError> {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(bytes).expect("written");
    Gguf::open(file.path())
}

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
            damage
        }
        other => panic!("expected damage, got {other:?}"),
    }
}

#[test]
fn reads_what_was_written() {
    let gguf = open(&small().finish()).unwrap();
    assert_eq!(gguf.architecture().unwrap(), "llama");
    assert_eq!(gguf.u32("llama.block_count").unwrap(), 2);
    assert_eq!(gguf.u32("big").unwrap(), 7);
    assert_eq!(gguf.f32("llama.eps").unwrap(), 1e-5);
    assert!(gguf.bool("flag").unwrap());
    let tokens: Vec<&[u8]> = gguf.strings("tokens").unwrap().iter().collect();
    assert_eq!(tokens, [&b"a"[..], b"", b"\xff\xfe"]);
    assert_eq!(gguf.f32s("scores").unwrap(), [0.5, -1.0]);
    assert_eq!(gguf.i32s("types").unwrap(), [1, -3]);
    assert_eq!(gguf.optional_u32("absent").unwrap(), None);
    assert_eq!(gguf.parameters(), 256);
    assert_eq!(gguf.file_bytes(), small().finish().len() as u64);

    let f = gguf.tensor("f").unwrap();
    assert_eq!(
        (f.shape.as_slice(), f.format, f.bytes),
        (&[32, 4][..], GgmlDType::F32, 512)
    );
    let expected: Vec<u8> = (0..128_u16)
        .flat_map(|n| f32::from(n).to_le_bytes())
        .collect();
    assert_eq!(gguf.read_tensor(f).unwrap(), expected);
    let q = gguf.tensor("q").unwrap();
    assert_eq!((q.format, q.bytes), (GgmlDType::Q4_1, 4 * 20));
    assert_eq!(gguf.read_tensor(q).unwrap().len(), 80);
}

#[test]
fn dominant_format_counts_weights() {
    let wide = Tensor::zeros((8, 32), candle_core::DType::F32, &Device::Cpu).unwrap();
    let file = small().tensor("wide", &wide, GgmlDType::Q8_0).unwrap();
    assert_eq!(
        open(&file.finish()).unwrap().dominant_format(),
        Some(GgmlDType::Q8_0)
    );
    assert_eq!(
        open(&GgufWriter::new().finish()).unwrap().dominant_format(),
        None
    );
}

#[test]
fn wrong_types_and_missing_entries_are_named() {
    let gguf = open(&small().finish()).unwrap();
    let text = |e: GgufError| e.to_string();
    let missing = text(gguf.u32("absent").unwrap_err());
    assert!(missing.contains("no metadata key `absent`"), "{missing}");
    let wrong = text(gguf.u32("general.architecture").unwrap_err());
    assert!(
        wrong.contains("`general.architecture`") && wrong.contains("a string of 5 bytes"),
        "{wrong}"
    );
    let negative = text(gguf.u32("negative").unwrap_err());
    assert!(negative.contains("the number -2"), "{negative}");
    assert!(gguf.i32s("scores").is_err());
    let tensor = text(gguf.tensor("absent").unwrap_err());
    assert!(tensor.contains("no tensor `absent`"), "{tensor}");
}

#[test]
fn other_files_are_told_apart() {
    assert!(matches!(open(b"GG"), Err(GgufError::NotGguf { start, .. }) if start == b"GG"));
    assert!(matches!(
        open(b"PK\x03\x04rest"),
        Err(GgufError::NotGguf { .. })
    ));
    let mut file = small().finish();
    file[4] = 1;
    assert!(matches!(
        open(&file),
        Err(GgufError::Version { version: 1, .. })
    ));
    file[4..8].copy_from_slice(&[0, 0, 0, 3]);
    assert!(matches!(open(&file), Err(GgufError::BigEndian { .. })));
    file[4..8].copy_from_slice(&[2, 0, 0, 0]);
    assert!(open(&file).is_ok());
    assert!(matches!(
        Gguf::open(std::env::temp_dir()),
        Err(GgufError::NotAFile { .. })
    ));
    assert!(matches!(
        Gguf::open("no-such.gguf"),
        Err(GgufError::Open { .. })
    ));
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
    let exotic = small().raw_tensor("t", &[32], 39, &[0; 64]).finish();
    assert!(matches!(
        open(&exotic),
        Err(GgufError::UnsupportedFormat { number: 39, .. })
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
        GgufError::Damaged {
            damage: Damage::TensorBeyondEnd { .. },
            ..
        }
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
                prop_assert_eq!(gguf.read_tensor(tensor).unwrap().len() as u64, tensor.bytes);
            }
        }
    }
}
