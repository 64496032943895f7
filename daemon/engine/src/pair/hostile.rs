//! Headers changed at random: whatever they say, a pair is checked or refused, and the process lives.

use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use tandem_model::testing::{Random, TinyModel, open};

use super::{Device, DraftSource, LoadOptions, ModelPair, PairFiles};

/// Headers that are tried of each architecture, unless `TANDEM_HOSTILE_TRIES` asks for more.
fn tries() -> usize {
    let asked = std::env::var("TANDEM_HOSTILE_TRIES").ok();
    asked.and_then(|tries| tries.parse().ok()).unwrap_or(2_000)
}

/// Numbers that counts, lengths and offsets go wrong at.
const ODD: [u64; 14] = [
    0,
    1,
    2,
    7,
    31,
    0xff,
    0xffff,
    1 << 24,
    0x7fff_ffff,
    0xffff_ffff,
    1 << 32,
    1 << 40,
    u64::MAX >> 1,
    u64::MAX,
];

#[test]
fn no_header_ends_the_process_or_keeps_it() {
    for architecture in ["llama", "qwen2", "qwen3", "gemma3"] {
        let model = TinyModel {
            architecture,
            layers: 1,
            width: 8,
            inner: 8,
            heads: 2,
            kv_heads: 1,
            ..TinyModel::default()
        };
        let sound = model.gguf();
        let header = open(&sound).data_start() as usize;
        let stored = tempfile::NamedTempFile::new().unwrap();
        let file = stored.as_file();
        file.write_all_at(&sound, 0).unwrap();
        let files = PairFiles {
            target: stored.path().to_owned(),
            draft: DraftSource::None,
        };
        let options = LoadOptions {
            context_length: Some(64),
            budget: 1 << 24,
            max_step_rows: 8,
            device: Device::Cpu(NonZeroUsize::MIN),
            draft_device: None,
            prepared: None,
        };
        let mut random = Random(11);
        let (mut served, mut slowest) = (0, Duration::ZERO);
        for _ in 0..tries() {
            let mut bytes = sound[..header].to_vec();
            for _ in 0..=random.next() % 3 {
                let at = random.next() as usize % header;
                match random.next() % 4 {
                    0 => bytes[at] = random.next() as u8,
                    1 => bytes[at] ^= 1 << (random.next() % 8),
                    width => {
                        let value = ODD[random.next() as usize % ODD.len()].to_le_bytes();
                        let end = (at + if width == 2 { 4 } else { 8 }).min(header);
                        bytes[at..end].copy_from_slice(&value[..end - at]);
                    }
                }
            }
            file.write_all_at(&bytes, 0).unwrap();
            let started = Instant::now();
            // What passes the check is loaded too: the header promised that it can be.
            if ModelPair::inspect(&files, &options).is_ok() {
                let loaded = ModelPair::load(&files, &options, &mut |_| {});
                served += usize::from(loaded.is_ok());
            }
            slowest = slowest.max(started.elapsed());
        }
        assert!(served > 0, "some changes are harmless");
        // Generous, for a machine that is busy with other tests; it takes milliseconds.
        assert!(
            slowest < Duration::from_secs(5),
            "{architecture}: {slowest:?}"
        );
    }
}
