//! Keys that files have beside those of the tiny models: honoured, neutral or refused.

use super::{ARCHITECTURES, differ, logits, tiny};
use crate::testing::GgufWriter;

/// A key of the architecture added to its tiny model.
fn with(architecture: &'static str, add: impl Fn(GgufWriter, &str) -> GgufWriter) -> GgufWriter {
    add(tiny(architecture).writer(), &format!("{architecture}."))
}

fn refused(file: &GgufWriter, key: &str) {
    let error = logits(file).unwrap_err();
    assert!(error.contains(&format!("`{key}`")), "{key}: {error}");
}

fn same(file: &GgufWriter, architecture: &'static str) {
    let base = logits(&tiny(architecture).writer()).unwrap();
    assert_eq!(logits(file).unwrap(), base);
}

fn other(file: &GgufWriter, architecture: &'static str) {
    let base = logits(&tiny(architecture).writer()).unwrap();
    assert!(differ(&base, &logits(file).unwrap()));
}

#[test]
fn angles_are_scaled_as_the_file_says() {
    for architecture in ARCHITECTURES {
        let scaled = |kind: &str, factor: f32| {
            with(architecture, |file, own| {
                let file = file.str(&format!("{own}rope.scaling.type"), kind);
                file.f32(&format!("{own}rope.scaling.factor"), factor)
            })
        };
        same(&scaled("none", 1.0), architecture);
        same(&scaled("linear", 1.0), architecture);
        same(&scaled("linear", 0.0), architecture);
        other(&scaled("linear", 8.0), architecture);
        other(&scaled("yarn", 8.0), architecture);
        assert!(differ(
            &logits(&scaled("linear", 8.0)).unwrap(),
            &logits(&scaled("yarn", 8.0)).unwrap()
        ));
        let key = format!("{architecture}.rope.scaling.type");
        for kind in ["longrope", "su", "dynamic", "llama3", "mrope", ""] {
            refused(&scaled(kind, 8.0), &key);
        }
        refused(&scaled("none", 8.0), &key);
        for factor in [f32::NAN, -1.0, f32::INFINITY] {
            refused(
                &scaled("linear", factor),
                &format!("{architecture}.rope.scaling.factor"),
            );
        }
        // Without a type the factor is one of positions, under its older name too.
        for name in ["rope.scaling.factor", "rope.scale_linear"] {
            let file = with(architecture, |file, own| {
                file.f32(&format!("{own}{name}"), 8.0)
            });
            assert_eq!(
                logits(&file).unwrap(),
                logits(&scaled("linear", 8.0)).unwrap()
            );
        }
        let base = with(architecture, |file, own| {
            let key = format!("{own}rope.freq_base");
            file.without(&key).f32(&key, 500.0)
        });
        other(&base, architecture);
    }
}

#[test]
fn scales_of_yarn_reach_the_logits() {
    let yarn = |more: &dyn Fn(GgufWriter) -> GgufWriter| {
        more(with("llama", |file, own| {
            file.str(&format!("{own}rope.scaling.type"), "yarn")
                .f32(&format!("{own}rope.scaling.factor"), 4.0)
        }))
    };
    let plain = logits(&yarn(&|file| file)).unwrap();
    let more = |key: &'static str, value: f32| {
        yarn(&move |file| file.f32(&format!("llama.rope.scaling.{key}"), value))
    };
    for (key, value) in [
        ("attn_factor", 1.5),
        ("yarn_beta_fast", 0.5),
        ("yarn_beta_slow", 4.0),
    ] {
        assert!(differ(&plain, &logits(&more(key, value)).unwrap()), "{key}");
    }
    let original = yarn(&|file| file.u32("llama.rope.scaling.original_context_length", 16));
    assert!(differ(&plain, &logits(&original).unwrap()));
    for (key, value) in [
        ("yarn_ext_factor", 0.5),
        ("yarn_attn_factor", 2.0),
        ("yarn_log_multiplier", 0.1),
    ] {
        refused(&more(key, value), &format!("llama.rope.scaling.{key}"));
    }
    assert_eq!(logits(&more("yarn_ext_factor", 1.0)).unwrap(), plain);
}

#[test]
fn factors_that_a_file_names_are_used() {
    for architecture in ["llama", "qwen2", "qwen3"] {
        for key in ["attention.scale", "embedding_scale"] {
            let file = |value: f32| {
                with(architecture, |file, own| {
                    file.f32(&format!("{own}{key}"), value)
                })
            };
            other(&file(0.8), architecture);
            same(&file(0.0), architecture);
            refused(&file(f32::NAN), &format!("{architecture}.{key}"));
        }
    }
}

#[test]
fn windows_are_those_of_the_file() {
    let window = |architecture, size: u32| {
        with(architecture, |file, own| {
            let key = format!("{own}attention.sliding_window");
            file.without(&key).u32(&key, size)
        })
    };
    other(&window("llama", 4), "llama");
    same(&window("llama", 64), "llama");
    for architecture in ["llama", "qwen2", "qwen3"] {
        same(&window(architecture, 0), architecture);
    }
    other(&window("gemma3", 4), "gemma3");
    for architecture in ["qwen2", "qwen3"] {
        same(&window(architecture, 64), architecture);
        refused(
            &window(architecture, 4),
            &format!("{architecture}.attention.sliding_window"),
        );
    }
    let pattern = |layers: u32| {
        with("gemma3", |file, own| {
            file.u32(&format!("{own}attention.sliding_window_pattern"), layers)
        })
    };
    same(&pattern(6), "gemma3");
    other(&pattern(2), "gemma3");
    let flags = |flags: &[u8]| {
        let bytes = [
            &7u32.to_le_bytes()[..],
            &(flags.len() as u64).to_le_bytes(),
            flags,
        ]
        .concat();
        with("gemma3", |file, own| {
            file.raw(&format!("{own}attention.sliding_window_pattern"), 9, &bytes)
        })
    };
    same(&flags(&[1, 1, 1, 1, 1, 0]), "gemma3");
    assert_eq!(
        logits(&flags(&[1, 0, 1, 0, 1, 0])).unwrap(),
        logits(&pattern(2)).unwrap()
    );
    for wrong in [&[1, 1, 0, 1, 1, 1][..], &[1, 0], &[0, 1, 0, 1, 0, 1]] {
        refused(&flags(wrong), "gemma3.attention.sliding_window_pattern");
    }
    let base = with("gemma3", |file, own| {
        file.f32(&format!("{own}rope.freq_base_swa"), 300.0)
    });
    other(&base, "gemma3");
    refused(
        &with("llama", |file, own| {
            file.f32(&format!("{own}rope.freq_base_swa"), 300.0)
        }),
        "llama.rope.freq_base_swa",
    );
}

/// What other models of these architectures, and other architectures, have.
#[test]
fn what_is_not_computed_is_refused_and_what_is_off_is_not() {
    for architecture in ARCHITECTURES {
        for key in [
            "attn_logit_softcapping",
            "final_logit_softcapping",
            "router_logit_softcapping",
            "attention.clamp_kqv",
            "attention.max_alibi_bias",
            "attention.temperature_scale",
        ] {
            let file = |value: f32| {
                with(architecture, |file, own| {
                    file.f32(&format!("{own}{key}"), value)
                })
            };
            refused(&file(30.0), &format!("{architecture}.{key}"));
            same(&file(0.0), architecture);
        }
        for key in [
            "expert_count",
            "expert_used_count",
            "leading_dense_block_count",
            "nextn_predict_layers",
            "pooling_type",
        ] {
            let file = |value: u32| {
                with(architecture, |file, own| {
                    file.u32(&format!("{own}{key}"), value)
                })
            };
            refused(&file(1), &format!("{architecture}.{key}"));
            same(&file(0), architecture);
        }
        for key in ["logit_scale", "residual_scale"] {
            let file = |value: f32| {
                with(architecture, |file, own| {
                    file.f32(&format!("{own}{key}"), value)
                })
            };
            refused(&file(0.25), &format!("{architecture}.{key}"));
            same(&file(1.0), architecture);
        }
        let flag = |key: &str, value| {
            with(architecture, |file, own| {
                file.bool(&format!("{own}{key}"), value)
            })
        };
        refused(
            &flag("attention.causal", false),
            &format!("{architecture}.attention.causal"),
        );
        same(&flag("attention.causal", true), architecture);
        refused(
            &flag("use_parallel_residual", true),
            &format!("{architecture}.use_parallel_residual"),
        );
        same(&flag("use_parallel_residual", false), architecture);
        same(&flag("rope.scaling.finetuned", true), architecture);
        for key in [
            "attention.layer_norm_epsilon",
            "attention.output_scale",
            "attention.indexer.top_k",
            "altup.num_inputs",
            "ssm.state_size",
            "full_attention_interval",
            "decoder_start_token_id",
            "swiglu_clamp_exp",
            "something.new",
        ] {
            let file = with(architecture, |file, own| {
                file.u32(&format!("{own}{key}"), 1)
            });
            refused(&file, &format!("{architecture}.{key}"));
        }
        refused(
            &with(architecture, |file, own| {
                file.i32s(&format!("{own}rope.dimension_sections"), &[2, 1, 1, 0])
            }),
            &format!("{architecture}.rope.dimension_sections"),
        );
        let layout = |text: &str| {
            with(architecture, |file, own| {
                file.str(&format!("{own}tensor_data_layout"), text)
            })
        };
        refused(
            &layout("transposed"),
            &format!("{architecture}.tensor_data_layout"),
        );
    }
}

#[test]
fn sizes_that_differ_between_layers_are_refused_and_equal_ones_are_not() {
    let each = |key: &str, values: &[i32]| {
        with("llama", |file, own| {
            let key = format!("{own}{key}");
            file.without(&key).i32s(&key, values)
        })
    };
    same(&each("attention.head_count_kv", &[2, 2]), "llama");
    refused(
        &each("attention.head_count_kv", &[2, 1]),
        "llama.attention.head_count_kv",
    );
    same(&each("feed_forward_length", &[64, 64]), "llama");
    let error = logits(&each("feed_forward_length", &[64, 32])).unwrap_err();
    assert!(error.contains("blk.1.ffn_gate.weight"), "{error}");
    let value = with("llama", |file, own| {
        let key = format!("{own}attention.value_length");
        file.without(&key).u32(&key, 16)
    });
    refused(&value, "llama.attention.value_length");
    let half = with("llama", |file, own| {
        let key = format!("{own}rope.dimension_count");
        file.without(&key).u32(&key, 4)
    });
    refused(&half, "llama.rope.dimension_count");
}

#[test]
fn only_a_whole_model_is_one() {
    for kind in ["adapter", "mmproj", "vocab", "imatrix", "MODEL"] {
        refused(
            &tiny("llama").writer().str("general.type", kind),
            "general.type",
        );
    }
    same(
        &tiny("llama").writer().str("general.type", "model"),
        "llama",
    );
    refused(&tiny("llama").writer().u32("split.count", 3), "split.count");
    same(
        &tiny("llama")
            .writer()
            .u32("split.count", 1)
            .u32("split.no", 0),
        "llama",
    );
    refused(
        &tiny("llama").writer().f32("adapter.lora.alpha", 8.0),
        "adapter.lora.alpha",
    );
    refused(
        &tiny("llama")
            .writer()
            .u32("general.quantization_version", 1),
        "general.quantization_version",
    );
    same(
        &tiny("llama")
            .writer()
            .u32("general.quantization_version", 2),
        "llama",
    );
    refused(
        &tiny("llama")
            .writer()
            .bool("tokenizer.ggml.add_sep_token", true),
        "tokenizer.ggml.add_sep_token",
    );
    refused(
        &tiny("llama").writer().u32("tokenizer.ggml.new", 1),
        "tokenizer.ggml.new",
    );
    same(&tiny("llama").writer().str("someone.note", "x"), "llama");
    refused(
        &tiny("llama")
            .writer()
            .str("qwen2.rope.scaling.type", "yarn"),
        "qwen2.rope.scaling.type",
    );
    let rows = |tokens: u32| logits(&tiny("llama").writer().u32("llama.vocab_size", tokens));
    assert!(rows(200).is_ok() && rows(257).is_ok());
    assert!(rows(258).unwrap_err().contains("258"));
}

/// A message names a key and shows its value; both come from the file, and neither may be long or reach a terminal raw.
#[test]
fn what_a_message_shows_of_a_file_is_short_and_harmless() {
    let long = "\\x1b]0;x\\x07"
        .repeat(10_000)
        .replace("\\x1b", "\u{1b}")
        .replace("\\x07", "\u{7}");
    let key = format!("llama.{}", "\u{1b}[31m".repeat(150));
    for file in [
        tiny("llama").writer().str("llama.rope.scaling.type", &long),
        tiny("llama").writer().u32(&key, 1),
        tiny("llama")
            .writer()
            .without("general.architecture")
            .str("general.architecture", &long),
        tiny("llama").writer().str("general.type", &long),
    ] {
        let error = logits(&file).unwrap_err();
        assert!(
            error.len() < 2000 && !error.contains('\u{1b}'),
            "{} bytes: {error:?}",
            error.len()
        );
    }
}
