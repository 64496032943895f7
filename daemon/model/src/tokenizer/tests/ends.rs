//! Where generation ends.

use super::*;

/// A file with tokens of these texts and types behind the letter `a`, with the id 0.
fn file(tokens: &[(&str, i32)]) -> GgufWriter {
    let texts: Vec<&str> = std::iter::once("a")
        .chain(tokens.iter().map(|t| t.0))
        .collect();
    let types: Vec<i32> = std::iter::once(1)
        .chain(tokens.iter().map(|t| t.1))
        .collect();
    GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.tokens", &texts)
        .i32s("tokenizer.ggml.token_type", &types)
        .strings("tokenizer.ggml.merges", &[""; 0])
}

fn ends(tokens: &[(&str, i32)]) -> Vec<TokenId> {
    build(&file(tokens)).end_tokens().to_vec()
}

#[test]
fn every_name_that_ends_a_text_a_turn_or_a_file_counts_whatever_its_type() {
    for name in [
        "<|eot_id|>",
        "<|im_end|>",
        "<|end|>",
        "<|return|>",
        "<|call|>",
        "<end_of_turn>",
        "<|endoftext|>",
        "<|eom_id|>",
        "<EOT>",
        "_<EOT>",
        "< EOT >",
        "<|end_of_text|>",
        "<｜end▁of▁sentence｜>",
        "<end_of_utterance>",
        "<eos>",
        "<|fim_pad|>",
        "<|repo_name|>",
        "<reponame>",
        "<|file_sep|>",
    ] {
        for kind in [1, 3, 4, 5] {
            let counted = ends(&[(name, kind)]);
            // A type that says "unused" is believed of what no name speaks for; of an end it does no harm.
            assert_eq!(counted, [1], "{name} as {kind}");
        }
        let tokenizer = build(&file(&[(name, 1)]));
        assert!(tokenizer.is_special(1), "{name} would be printed");
        assert_eq!(
            tokenizer.encode(name, SpecialTokens::AsText).len(),
            usize::from(name.contains('a'))
        );
    }
}

#[test]
fn what_is_text_elsewhere_counts_where_the_file_keeps_it_whole() {
    for name in ["</s>", "[EOS]", "<PAD>"] {
        assert!(ends(&[(name, 1)]).is_empty(), "{name}");
        assert_eq!(ends(&[(name, 4)]), [1], "{name}");
        assert_eq!(ends(&[(name, 3)]), [1], "{name}");
    }
}

#[test]
fn keys_count_whatever_the_name() {
    let tokens = [
        ("<x>", 3),
        ("<y>", 3),
        ("<z>", 3),
        ("<u>", 3),
        ("<v>", 3),
        ("<w>", 3),
        ("<n>", 3),
    ];
    let keys = [
        "eos", "eot", "eom", "fim_pad", "fim_rep", "fim_sep", "fim_pre",
    ];
    let stated = (1..).zip(keys).fold(file(&tokens), |file, (id, key)| {
        file.u32(&format!("tokenizer.ggml.{key}_token_id"), id)
    });
    assert_eq!(build(&stated).end_tokens(), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn a_message_ends_and_the_answer_goes_on_in_formats_with_channels() {
    let harmony = [("<|end|>", 3), ("<|return|>", 3), ("<|call|>", 3)];
    assert_eq!(ends(&harmony), [2, 3]);
    assert_eq!(
        ends(&[("<|end|>", 3), ("<|calls|>", 3), ("<|flush|>", 3)]),
        [2, 3]
    );
    assert_eq!(ends(&harmony[..2]), [1, 2]);
    assert_eq!(ends(&[("</s>", 3), ("<|tool_response>", 3)]), [2]);
}
