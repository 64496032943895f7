//! Model files: the header, and everything that is made of a header before weights are read.

use std::fs::File;
use std::os::unix::fs::FileExt as _;

use tandem_fuzz::{TIMES, Target, check};
use tandem_model::gguf::Gguf;
use tandem_model::model::ModelConfig;
use tandem_model::template::ChatTemplate;
use tandem_model::testing::{GgufWriter, TinyModel, byte_tokenizer};

use crate::chain;

/// Holes that a file may end in: what a header promises can lie there, and takes no room on the disk.
const HOLES: [u64; 4] = [0, 1 << 16, 1 << 24, 8 << 30];

/// Without holes: what a header takes is bounded by what it brings.
#[test]
fn gguf_headers() {
    try_all("gguf", false, 1 << 20);
}

/// With holes nothing bounds it but the limits of the reader, on one string and on the header.
#[test]
fn gguf_headers_over_holes() {
    try_all("gguf-holes", true, 192 << 20);
}

fn try_all(name: &'static str, holes: bool, fixed_bytes: usize) {
    let directory = crate::scratch();
    let path = directory.path().join("m.gguf");
    let file = File::create(&path).unwrap();
    let target = Target {
        name,
        words: &[
            b"GGUF",
            b"general.architecture",
            b"general.alignment",
            b"tokenizer.ggml.tokens",
            b"tokenizer.chat_template",
            b"llama",
            b"token_embd.weight",
            b"output_norm.weight",
            b"llama.block_count",
            b"llama.attention.head_count",
            b"llama.rope.scaling.type",
        ],
        fixed_bytes,
        times: TIMES,
        seeds: seeds(),
    };
    check(&target, |input| {
        // The first byte says which hole the file ends in.
        let (hole, header) = match input.split_first() {
            Some((first, rest)) if holes => (HOLES[usize::from(*first) % HOLES.len()], rest),
            Some((_, rest)) => (0, rest),
            None => (0, input),
        };
        file.set_len(0).unwrap();
        file.write_all_at(header, 0).unwrap();
        file.set_len(header.len() as u64 + hole).unwrap();
        read(&path, header.len())
    });
}

fn read(path: &std::path::Path, header_bytes: usize) -> String {
    let gguf = match Gguf::open(path) {
        Ok(gguf) => gguf,
        Err(error) => return chain(&error),
    };
    let mut said = format!("{} tensors", gguf.tensors().len().min(3));
    match ModelConfig::from_gguf(&gguf) {
        Ok(config) => said.push_str(&config.architecture),
        Err(error) => said.push_str(&chain(&error)),
    }
    if let Err(error) = ChatTemplate::from_gguf(&gguf, None) {
        said.push_str(&chain(&error));
    }
    // Tensors that lie in what the input brought itself; a hole is as large as it says.
    for tensor in gguf.tensors() {
        if tensor.offset + tensor.bytes <= header_bytes as u64 {
            match gguf.read_tensor(tensor) {
                Ok(bytes) => assert_eq!(bytes.len() as u64, tensor.bytes),
                Err(error) => said.push_str(&chain(&error)),
            }
        }
    }
    said
}

fn seeds() -> Vec<Vec<u8>> {
    let text = byte_tokenizer(&["<|im_start|>", "<|im_end|>"]);
    let all_kinds = GgufWriter::new()
        .str("general.architecture", "llama")
        .u32("general.alignment", 32)
        .f32("a.f", 1.0)
        .bool("a.b", true)
        .strings("a.s", &["x", "", "yz"])
        .f32s("a.fs", &[0.5, 2.0])
        .i32s("a.is", &[1, -2])
        .raw("a.u8", 0, &[7])
        .raw("a.i64", 11, &[1; 8])
        // Arrays in an array.
        .raw(
            "a.nested",
            9,
            &[
                [9u32.to_le_bytes(), 1u32.to_le_bytes(), [0; 4]].concat(),
                [0u32.to_le_bytes(), 2u32.to_le_bytes(), [0; 4]].concat(),
                vec![1, 2],
            ]
            .concat(),
        )
        .raw_tensor("t", &[4, 2], 0, &[0; 32])
        .raw_tensor("q", &[32, 1], 8, &[0; 34]);
    // A string of 6 GiB over a hole, as was reported.
    let huge = GgufWriter::new().raw("general.name", 8, &(6u64 << 30).to_le_bytes());
    let plain = [
        GgufWriter::new().finish(),
        text.finish(),
        all_kinds.finish(),
        TinyModel {
            layers: 1,
            width: 8,
            inner: 16,
            heads: 2,
            kv_heads: 1,
            ..TinyModel::default()
        }
        .gguf(),
    ];
    let mut seeds: Vec<Vec<u8>> = plain
        .iter()
        .map(|file| [vec![0], file.clone()].concat())
        .collect();
    seeds.push([vec![3], huge.finish()].concat());
    seeds
}
