//! What `transformers` renders, ours renders to the byte; `golden.py` writes what it renders.

use super::*;

#[test]
fn templates_render_as_in_the_library_they_were_written_for() {
    let golden: serde_json::Value =
        serde_json::from_str(include_str!("golden.json")).expect("valid JSON");
    let file = byte_tokenizer(&["<s>", "</s>", "<pad>"])
        .u32("tokenizer.ggml.bos_token_id", 257)
        .u32("tokenizer.ggml.eos_token_id", 258)
        .u32("tokenizer.ggml.padding_token_id", 259);
    let tokenizer = Tokenizer::from_gguf(&open(&file.finish())).expect("a valid tokenizer");
    let clock: Clock = Arc::new(|pattern| {
        pattern
            .replace("%d %b %Y", "26 Jul 2025")
            .replace("%Y-%m-%d", "2025-07-26")
    });
    let cases = golden["cases"].as_array().expect("a list");
    assert!(cases.len() > 300, "{} cases", cases.len());
    let mut wrong = String::new();
    for case in cases {
        let text = |key: &str| case[key].as_str().expect("a text");
        let messages: Vec<ChatMessage> = golden["conversations"][text("conversation")]
            .as_array()
            .expect("a list")
            .iter()
            .map(|m| {
                says(
                    m["role"].as_str().expect("a role"),
                    m["content"].as_str().expect("a text"),
                )
            })
            .collect();
        let ours = ChatTemplate::new(text("template"), Some(Arc::clone(&clock)))
            .and_then(|template| template.render(&tokenizer, &messages));
        let theirs = case["text"].as_str();
        let same = match (&ours, theirs) {
            (Ok(ours), Some(theirs)) => ours == theirs,
            (Err(_), None) => true,
            _ => false,
        };
        if !same {
            wrong += &format!(
                "{}\n  theirs {}\n  ours   {ours:?}\n",
                case["template"], case
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
