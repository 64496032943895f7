mod damage;

use candle_core::quantized::GgmlDType;
use candle_core::{Device, Tensor};
use tandem_kernels::Format;

use super::{Gguf, GgufError};
use crate::testing::{GgufWriter, try_open as open};

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
        (&[32, 4][..], Format::F32, 512)
    );
    let expected: Vec<u8> = (0..128_u16)
        .flat_map(|n| f32::from(n).to_le_bytes())
        .collect();
    assert_eq!(gguf.read_tensor(f).unwrap(), expected);
    let q = gguf.tensor("q").unwrap();
    assert_eq!((q.format, q.bytes), (Format::Q4_1, 4 * 20));
    assert_eq!(gguf.read_tensor(q).unwrap().len(), 80);
}

#[test]
fn dominant_format_counts_weights() {
    let wide = Tensor::zeros((8, 32), candle_core::DType::F32, &Device::Cpu).unwrap();
    let file = small().tensor("wide", &wide, GgmlDType::Q8_0).unwrap();
    assert_eq!(
        open(&file.finish()).unwrap().dominant_format(),
        Some(Format::Q8_0)
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
