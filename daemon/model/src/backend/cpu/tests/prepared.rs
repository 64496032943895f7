//! Mapped weights compute what packed ones do.

use std::os::unix::fs::FileExt;
use std::sync::Arc;

use tandem_prepared::{Image, Model, Store, obtain};

use super::super::prepared::{self, PrepareError};
use super::*;

fn image(gguf: &Gguf, store: &Store) -> Arc<Image> {
    let model = Model {
        file: gguf.file(),
        path: gguf.path(),
        name: "small",
        tensors: gguf.tensors().len(),
        bytes: gguf.file_bytes(),
        isa: prepared::isa_name(),
        layout: prepared::LAYOUT_VERSION,
    };
    let put = |index: usize, writer: &_| prepared::put(gguf, &gguf.tensors()[index], writer);
    let threads = NonZeroUsize::new(2).expect("two");
    let obtained = obtain::<PrepareError>(store, &model, threads, put, &mut |_, _, _| {});
    obtained.expect("a sound model").image
}

/// The same header, and zeros for weights.
fn hollow(gguf: &Gguf) -> Gguf {
    let mut bytes = vec![0; usize::try_from(gguf.file_bytes()).expect("small")];
    let header = usize::try_from(gguf.data_start()).expect("small");
    gguf.file()
        .read_exact_at(&mut bytes[..header], 0)
        .expect("it reads");
    let mut stored = tempfile::NamedTempFile::new().expect("a file");
    stored.write_all(&bytes).expect("it writes");
    Gguf::open(stored.path()).expect("a sound header")
}

fn check(architecture: &str, format: GgmlDType) {
    let gguf = model(architecture, format);
    let (mut packed, slot) = decoder(cpu(2), &gguf);
    let expected = feed(&mut packed, slot, &tokens(12));

    let directory = tempfile::tempdir().expect("a directory");
    let image = image(&gguf, &Store::new(directory.path(), 1 << 30));
    prepared::check(&image, &gguf).expect("it has every tensor");
    let hollow = hollow(&gguf);
    let (mut mapped, slot) = decoder(cpu(2).with_prepared(hollow.path(), Some(image)), &hollow);
    let got = feed(&mut mapped, slot, &tokens(12));
    assert_eq!(got, expected, "{architecture} in {format:?}");
}

#[test]
fn mapped_weights_give_the_same_logits_to_the_bit_and_nothing_is_read_of_the_model() {
    for format in [
        GgmlDType::F32,
        GgmlDType::F16,
        GgmlDType::BF16,
        GgmlDType::Q4_0,
        GgmlDType::Q4_1,
        GgmlDType::Q5_0,
        GgmlDType::Q5_1,
        GgmlDType::Q8_0,
        GgmlDType::Q2K,
        GgmlDType::Q3K,
        GgmlDType::Q4K,
        GgmlDType::Q5K,
        GgmlDType::Q6K,
    ] {
        check("llama", format);
    }
    for architecture in ["qwen2", "qwen3", "gemma3"] {
        check(architecture, GgmlDType::Q8_0);
    }
}

#[test]
fn a_file_of_another_model_is_found_out() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = Store::new(directory.path(), 1 << 30);
    let image = image(&model("llama", GgmlDType::Q8_0), &store);
    let other = model("llama", GgmlDType::Q4_0);
    let missing = prepared::check(&image, &other).expect_err("formats differ");
    assert_eq!(missing, "token_embd.weight");
}
