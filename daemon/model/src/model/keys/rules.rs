//! The list itself.

/// Why a key may be in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// It is read and honoured, here, by the tokenizer, the chat template or the container; whoever reads it checks its value.
    Read,
    /// It has no bearing on what is computed, for this reason.
    Idle(&'static str),
    /// It is 0, false or empty, which is what the decoder does.
    Off,
    /// It is one of these, which mean what the decoder does.
    One(&'static [f64]),
    /// The same of a string.
    Text(&'static [&'static str]),
}

use Rule::{Idle, Off, One, Read, Text};

impl Rule {
    /// Whether it is that of keys which belong to no part of the format.
    pub(super) fn is_foreign(self) -> bool {
        self == Idle(FOREIGN)
    }
}

const FOREIGN: &str = "meant for another program; the pair has a warning that names it";
const DESCRIBES: &str = "describes the file to people";
const SUGGESTS: &str = "suggests how to sample, and a request says that itself";
const TRAINED: &str = "says how the model was trained, not how it computes";

const ROLE: &str = "names the role of a token that is never fed nor waited for";
const COPY: &str = "the same tokenizer once more, for other programs";
const PICTURES: &str = "of an encoder of pictures, whose tensors lie in a file of their own";

/// Keys of an architecture, behind its name and a dot.
const MODEL: &[(&str, Rule)] = &[
    ("block_count", Read),
    ("context_length", Read),
    ("embedding_length", Read),
    ("feed_forward_length", Read),
    ("vocab_size", Read),
    ("embedding_scale", Read),
    ("attention.head_count", Read),
    ("attention.head_count_kv", Read),
    ("attention.key_length", Read),
    ("attention.value_length", Read),
    ("attention.layer_norm_rms_epsilon", Read),
    ("attention.scale", Read),
    ("attention.sliding_window", Read),
    ("rope.dimension_count", Read),
    ("rope.freq_base", Read),
    ("rope.scale_linear", Read),
    ("rope.scaling.type", Read),
    ("rope.scaling.factor", Read),
    ("rope.scaling.attn_factor", Read),
    ("rope.scaling.original_context_length", Read),
    ("rope.scaling.yarn_ext_factor", Read),
    ("rope.scaling.yarn_attn_factor", Read),
    ("rope.scaling.yarn_beta_fast", Read),
    ("rope.scaling.yarn_beta_slow", Read),
    ("rope.scaling.yarn_log_multiplier", Off),
    ("rope.scaling.finetuned", Idle(TRAINED)),
    ("rope.dimension_sections", Off),
    ("attention.causal", One(&[1.0])),
    ("attention.max_alibi_bias", Off),
    ("attention.clamp_kqv", Off),
    ("attention.shared_kv_layers", Off),
    ("attention.q_lora_rank", Off),
    ("attention.kv_lora_rank", Off),
    ("attention.temperature_scale", Off),
    ("attn_logit_softcapping", Off),
    ("router_logit_softcapping", Off),
    ("final_logit_softcapping", Off),
    ("logit_scale", One(&[1.0, 0.0])),
    ("residual_scale", One(&[1.0, 0.0])),
    ("expert_count", Off),
    ("expert_used_count", Off),
    ("expert_shared_count", Off),
    ("expert_group_count", Off),
    ("expert_group_used_count", Off),
    ("expert_feed_forward_length", Off),
    ("expert_shared_feed_forward_length", Off),
    ("leading_dense_block_count", Off),
    ("nextn_predict_layers", Off),
    ("n_deepstack_layers", Off),
    ("pooling_type", Off),
    ("use_parallel_residual", Off),
];

/// Of llama only: queries and keys lie as Meta's own files have them, which is how the decoder turns them.
const LLAMA: &[(&str, Rule)] = &[("tensor_data_layout", Text(&["Meta AI original pth"]))];

/// Of gemma3 only.
const GEMMA3: &[(&str, Rule)] = &[
    ("attention.sliding_window_pattern", Read),
    ("rope.freq_base_swa", Read),
    ("tensor_data_layout", Text(&["reference"])),
];

/// Of qwen2 and qwen3.
const QWEN: &[(&str, Rule)] = &[("tensor_data_layout", Text(&["reference"]))];

/// Of an exit adapter, which is one block and whose other properties are its target's.
const EXIT: &[(&str, Rule)] = &[
    ("exit_layer", Read),
    ("target", Idle(DESCRIBES)),
    ("context_length", Idle(DESCRIBES)),
    ("vocab_size", Idle(DESCRIBES)),
    ("block_count", Read),
    ("embedding_length", Read),
    ("feed_forward_length", Read),
    ("attention.head_count", Read),
    ("attention.head_count_kv", Read),
    ("attention.layer_norm_rms_epsilon", Read),
    ("rope.dimension_count", Read),
    ("rope.freq_base", Read),
];

/// Whole keys; those that end in a dot stand for all that begin so. The first that fits counts.
const COMMON: &[(&str, Rule)] = &[
    ("general.architecture", Read),
    ("general.type", Read),
    ("general.alignment", Read),
    ("general.file_type", Read),
    ("general.name", Read),
    // The formats of today's blocks; those before had other bytes.
    ("general.quantization_version", One(&[2.0])),
    ("general.sampling.", Idle(SUGGESTS)),
    ("general.", Idle(DESCRIBES)),
    ("split.count", Read),
    (
        "split.",
        Idle("numbers the part of a file that has one part"),
    ),
    ("quantize.", Idle("says how the file was made")),
    ("imatrix.", Idle("says how the file was made")),
    // The tokenizer's. Those that would change which tokens a text has, or which it begins and ends with, are read or off.
    ("tokenizer.ggml.model", Read),
    ("tokenizer.ggml.pre", Read),
    ("tokenizer.ggml.tokens", Read),
    ("tokenizer.ggml.token_type", Read),
    ("tokenizer.ggml.scores", Read),
    ("tokenizer.ggml.merges", Read),
    ("tokenizer.ggml.bos_token_id", Read),
    ("tokenizer.ggml.eos_token_id", Read),
    ("tokenizer.ggml.eos_token_ids", Read),
    ("tokenizer.ggml.eot_token_id", Read),
    ("tokenizer.ggml.eom_token_id", Read),
    ("tokenizer.ggml.unknown_token_id", Read),
    ("tokenizer.ggml.padding_token_id", Read),
    ("tokenizer.ggml.fim_pad_token_id", Read),
    ("tokenizer.ggml.fim_rep_token_id", Read),
    ("tokenizer.ggml.fim_sep_token_id", Read),
    ("tokenizer.ggml.add_bos_token", Read),
    // The tokenizer warns of it: a prompt is to be continued.
    ("tokenizer.ggml.add_eos_token", Read),
    ("tokenizer.ggml.add_space_prefix", Read),
    ("tokenizer.chat_template", Read),
    ("tokenizer.chat_templates", Read),
    ("tokenizer.chat_template.", Read),
    ("tokenizer.ggml.add_sep_token", Off),
    ("tokenizer.ggml.add_padding_token", Off),
    ("tokenizer.ggml.add_unknown_token", Off),
    ("tokenizer.ggml.add_mask_token", Off),
    ("tokenizer.ggml.remove_extra_whitespaces", Off),
    ("tokenizer.ggml.precompiled_charsmap", Off),
    ("tokenizer.ggml.suppress_tokens", Off),
    ("tokenizer.ggml.normalizer.", Off),
    ("tokenizer.ggml.escape_whitespaces", One(&[1.0])),
    ("tokenizer.ggml.token_type_count", Idle(ROLE)),
    ("tokenizer.ggml.seperator_token_id", Idle(ROLE)),
    ("tokenizer.ggml.separator_token_id", Idle(ROLE)),
    ("tokenizer.ggml.cls_token_id", Idle(ROLE)),
    ("tokenizer.ggml.mask_token_id", Idle(ROLE)),
    ("tokenizer.ggml.prefix_token_id", Idle(ROLE)),
    ("tokenizer.ggml.suffix_token_id", Idle(ROLE)),
    ("tokenizer.ggml.middle_token_id", Idle(ROLE)),
    ("tokenizer.ggml.fim_pre_token_id", Idle(ROLE)),
    ("tokenizer.ggml.fim_suf_token_id", Idle(ROLE)),
    ("tokenizer.ggml.fim_mid_token_id", Idle(ROLE)),
    ("tokenizer.ggml.added_tokens", Idle(COPY)),
    ("tokenizer.huggingface.", Idle(COPY)),
    ("tokenizer.rwkv.", Idle(COPY)),
];

/// Parts of the format that only other kinds of files have.
const OTHER_PARTS: &[&str] = &[
    "adapter",
    "clip",
    "tokenizer",
    "lora",
    "control_vector",
    "diffusion",
];

/// The rule of a key; `None`: nothing is known of it, and it may bear on what is computed.
pub(super) fn find(key: &str, architecture: &str) -> Option<Rule> {
    let fits = |(pattern, _): &&(&str, Rule)| match pattern.ends_with('.') {
        true => key.starts_with(pattern),
        false => key == *pattern,
    };
    if let Some((_, rule)) = COMMON.iter().find(fits) {
        return Some(*rule);
    }
    let (part, rest) = key.split_once('.').unwrap_or(("", key));
    let known = |list: &[(&str, Rule)]| {
        list.iter()
            .find(|(name, _)| *name == rest)
            .map(|(_, rule)| *rule)
    };
    if part == architecture {
        let own = match architecture {
            "llama" => LLAMA,
            "gemma3" => GEMMA3,
            "llama-exit" => return known(EXIT),
            _ => QWEN,
        };
        // Where such an encoder were in the file all the same, its tensors would be refused.
        if architecture == "gemma3" && (rest.starts_with("vision.") || rest.starts_with("mm.")) {
            return Some(Idle(PICTURES));
        }
        return known(own).or_else(|| known(MODEL));
    }
    // A key that means something in an architecture's part is not one of another program's, whatever stands before it.
    let is_model = known(MODEL).or_else(|| known(GEMMA3)).is_some();
    let beginning = rest.split(['.', '_']).next().unwrap_or(rest);
    let computes = [
        "attention",
        "attn",
        "rope",
        "expert",
        "ssm",
        "logit",
        "embedding",
        "block",
    ];
    let bears = is_model
        || computes.contains(&beginning)
        || computes.contains(&part)
        || OTHER_PARTS.contains(&part);
    (!bears).then_some(Idle(FOREIGN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_an_architecture_is_not_allowed() {
        for key in [
            "llama.rope.scaling.alpha",
            "llama.foo",
            "llama.ssm.state_size",
            "llama.",
            "llama.attention.scale.x",
        ] {
            assert_eq!(find(key, "llama"), None, "{key}");
        }
        assert_eq!(
            find("llama.attention.sliding_window_pattern", "llama"),
            None
        );
        assert_eq!(
            find("gemma3.attention.sliding_window_pattern", "gemma3"),
            Some(Read)
        );
        assert_eq!(find("adapter.lora.alpha", "llama"), None);
        assert_eq!(find("tokenizer.ggml.new_thing", "llama"), None);
    }

    #[test]
    fn a_key_of_another_program_is_told_from_one_of_another_architecture() {
        for key in ["mradermacher.quantized_on", "someone.note", "note"] {
            assert!(find(key, "llama").is_some_and(Rule::is_foreign), "{key}");
        }
        for key in [
            "mistral.rope.scaling.type",
            "qwen2.block_count",
            "rope.scaling.type",
            "x.attention.foo",
            "expert_count",
        ] {
            assert_eq!(find(key, "llama"), None, "{key}");
        }
    }

    /// As the files that Google published have them.
    #[test]
    fn what_is_said_of_pictures_does_not_matter_to_text() {
        for key in [
            "gemma3.mm.tokens_per_image",
            "gemma3.vision.attention.head_count",
            "gemma3.vision.attention.layer_norm_epsilon",
            "gemma3.vision.block_count",
            "gemma3.vision.embedding_length",
            "gemma3.vision.feed_forward_length",
            "gemma3.vision.image_size",
            "gemma3.vision.num_channels",
            "gemma3.vision.patch_size",
        ] {
            assert_eq!(find(key, "gemma3"), Some(Idle(PICTURES)), "{key}");
            assert_eq!(
                find(&key.replace("gemma3", "llama"), "llama"),
                None,
                "{key}"
            );
        }
        for key in ["add_padding_token", "add_unknown_token"] {
            assert_eq!(find(&format!("tokenizer.ggml.{key}"), "gemma3"), Some(Off));
        }
    }

    #[test]
    fn no_key_is_in_the_list_twice() {
        for list in [MODEL, LLAMA, GEMMA3, QWEN, EXIT, COMMON] {
            for (index, (key, _)) in list.iter().enumerate() {
                assert!(list[..index].iter().all(|(other, _)| other != key), "{key}");
            }
        }
    }
}
