//! Keys of the file: honoured or warned of. Those that the model refuses are tested there.

use super::*;

fn warnings(file: &GgufWriter) -> String {
    build(file).warnings().join("\n")
}

#[test]
fn no_way_of_splitting_is_a_guess_that_is_told() {
    let unsaid = GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .strings("tokenizer.ggml.tokens", &["a"])
        .strings("tokenizer.ggml.merges", &[""; 0]);
    let told = warnings(&unsaid);
    assert!(
        told.contains("`tokenizer.ggml.pre`") && told.contains("`default`"),
        "{told}"
    );
    assert_eq!(warnings(&byte_tokenizer(&[])), "");
    assert_eq!(warnings(&sentencepiece_tokenizer(&[("a", 0.0)])), "");
}

#[test]
fn a_space_in_front_is_put_where_the_file_asks() {
    let plain = || byte_tokenizer(&["<|x|>"]);
    let spaced = build(&plain().bool("tokenizer.ggml.add_space_prefix", true));
    let ids = |text| spaced.encode(text, SpecialTokens::Parse);
    assert_eq!(ids("he"), [32, 256]);
    assert_eq!(ids(" he"), [32, 256]);
    assert_eq!(ids("a<|x|>he"), [32, 97, 257, 32, 256]);
    let bare = build(&plain().bool("tokenizer.ggml.add_space_prefix", false));
    assert_eq!(bare.encode("he", SpecialTokens::Parse), [256]);
}

#[test]
fn an_end_behind_every_prompt_is_not_put_there_and_warned_of() {
    let key = "tokenizer.ggml.add_eos_token";
    let told = warnings(&byte_tokenizer(&[]).bool(key, true));
    assert!(told.contains(key), "{told}");
    assert_eq!(warnings(&byte_tokenizer(&[]).bool(key, false)), "");
}

#[test]
fn types_are_those_of_the_format() {
    let typed = |number| {
        GgufWriter::new()
            .str("tokenizer.ggml.model", "gpt2")
            .str("tokenizer.ggml.pre", "gpt-2")
            .strings("tokenizer.ggml.tokens", &["a", "b"])
            .i32s("tokenizer.ggml.token_type", &[1, number])
            .strings("tokenizer.ggml.merges", &[""; 0])
    };
    assert_eq!(build(&typed(0)).kind(1), Some(TokenKind::Normal));
    for number in [7, -1] {
        let text = error(&typed(number));
        assert!(
            text.contains(&format!("token 1 has the type {number}")),
            "{text}"
        );
    }
}

#[test]
fn merges_may_be_of_tokens_with_spaces() {
    let file = GgufWriter::new()
        .str("tokenizer.ggml.model", "gpt2")
        .str("tokenizer.ggml.pre", "gpt-2")
        .strings("tokenizer.ggml.tokens", &["a b", "c", "a bc"])
        .strings("tokenizer.ggml.merges", &["a b c"]);
    assert_eq!(build(&file).len(), 3);
}
