//! What a file says of its computation, and weights that are no numbers.

use std::path::Path;

use tandem_tests::grpc::generate;
use tonic::Code;
use tonic_types::StatusExt as _;

use super::{ask, daemon, info, small};

const NONE: &str = "none";

#[tokio::test]
async fn what_a_file_says_of_its_computation_is_done_or_named() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let scaling = |kind: &str| {
        small()
            .text("llama.rope.scaling.type", kind)
            .float("llama.rope.scaling.factor", 8.0)
    };
    let plain = small().write(at("plain.gguf"));
    let linear = scaling("linear").write(at("linear.gguf"));
    let yarn = scaling("yarn")
        .number("llama.rope.scaling.original_context_length", 16)
        .write(at("yarn.gguf"));
    let refused = [
        (
            "longrope",
            scaling("longrope"),
            "`llama.rope.scaling.type` is \"longrope\"",
        ),
        (
            "softcap",
            small().float("llama.final_logit_softcapping", 30.0),
            "`llama.final_logit_softcapping` is 30",
        ),
        (
            "experts",
            small().number("llama.expert_count", 8),
            "`llama.expert_count` is 8",
        ),
        (
            "adapter",
            small().text("general.type", "adapter"),
            "`general.type` is \"adapter\"",
        ),
        (
            "split",
            small().number("split.count", 2),
            "`split.count` is 2",
        ),
        (
            "unknown",
            small().number("llama.some.new_thing", 1),
            "`llama.some.new_thing` is 1",
        ),
        (
            "bias",
            small().floats("blk.0.ffn_down.bias", &[5.0; 320]),
            "`blk.0.ffn_down.bias`",
        ),
        ("layers", small().number("llama.block_count", 3), "`blk.3."),
    ];
    let files: Vec<_> = refused
        .iter()
        .map(|(name, model, _)| (*name, model.write(at(&format!("{name}.gguf")))))
        .collect();
    let none = Path::new(NONE);
    let mut pairs = vec![
        ("plain", plain.as_path(), none),
        ("linear", linear.as_path(), none),
        ("yarn", yarn.as_path(), none),
    ];
    pairs.extend(
        files
            .iter()
            .map(|(name, path)| (*name, path.as_path(), none)),
    );
    let daemon = daemon(&pairs).await;
    let mut client = daemon.client().await;
    let mut texts = Vec::new();
    for pair in ["plain", "linear", "yarn"] {
        // Sampled, so that it tells a little difference too.
        let mut request = ask(pair);
        let sampling = request.sampling_params.get_or_insert_default();
        (sampling.temperature, sampling.seed) = (Some(1.0), Some(7));
        let answer = generate(&mut client, request).await.expect("it is served");
        assert!(
            !texts.contains(&answer.token_ids),
            "{pair} is computed as another is"
        );
        texts.push(answer.token_ids);
    }
    for (pair, _, part) in &refused {
        let status = generate(&mut client, ask(pair))
            .await
            .expect_err("it is refused");
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        let error = status.message();
        assert!(error.contains(part), "{part:?} is missing in {error}");
        assert!(info(&mut client, pair).await.error.contains(part));
    }
}

#[tokio::test]
async fn weights_that_are_no_numbers_never_answer() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let norms = |value: f32| {
        small().change("output_norm.weight", |tensor| {
            for float in tensor.data.as_chunks_mut::<4>().0 {
                *float = value.to_le_bytes();
            }
        })
    };
    let nan = norms(f32::NAN).write(at("nan.gguf"));
    // The scale of the second block of a quantized tensor.
    let scale = small()
        .change("blk.1.ffn_up.weight", |tensor| {
            tensor.data[34..36].copy_from_slice(&0x7c00u16.to_le_bytes());
        })
        .write(at("scale.gguf"));
    // Finite, and too large for what is computed with it.
    let large = norms(3e38).write(at("large.gguf"));
    let plain = small().write(at("plain.gguf"));
    let none = Path::new(NONE);
    let pairs = [
        ("plain", plain.as_path(), none),
        ("nan", nan.as_path(), none),
        ("scale", scale.as_path(), none),
        ("large", large.as_path(), none),
    ];
    let daemon = daemon(&pairs).await;
    let mut client = daemon.client().await;
    for (pair, parts) in [
        ("nan", ["output_norm.weight", "row 0, column 0", "NaN"]),
        (
            "scale",
            ["blk.1.ffn_up.weight", "row 0, column 32", "the scale"],
        ),
    ] {
        let status = generate(&mut client, ask(pair))
            .await
            .expect_err("it is refused");
        assert_eq!(status.code(), Code::FailedPrecondition, "{status:?}");
        for part in parts {
            assert!(
                status.message().contains(part),
                "{part:?}: {}",
                status.message()
            );
        }
    }
    for _ in 0..2 {
        let status = generate(&mut client, ask("large"))
            .await
            .expect_err("no number is no answer");
        assert_eq!(status.code(), Code::Internal, "{status:?}");
        let reason = status.get_details_error_info().unwrap().reason;
        assert_eq!(reason, "LOGITS_NOT_FINITE");
        generate(&mut client, ask("plain"))
            .await
            .expect("others are served");
    }
    let output = daemon
        .home()
        .command()
        .args(["run", "--pair", "large", "hi"])
        .output()
        .unwrap();
    assert!(!output.status.success(), "{output:?}");
}
