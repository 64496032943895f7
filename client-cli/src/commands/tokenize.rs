//! `tandem tokenize`: text as token ids, and conversations as prompts.

use std::path::Path;

use serde_json::{Value, json};
use tandem_client::v1::{ChatInput, ChatMessage, TokenizeRequest, TokenizeResponse};

use super::input;
use crate::args::TokenizeArgs;
use crate::failure::Failure;
use crate::output::{Output, json_text};
use crate::{json, startup};

pub(crate) async fn run(args: TokenizeArgs) -> Result<(), Failure> {
    let request = request(&args)?;
    let chat = request.chat.is_some();
    let client = startup::client(&args.target, false).await?;
    let answer = startup::attended(&client, async { Ok(client.tokenize(request).await?) }).await?;
    let mut output = Output::new();
    if args.json {
        return output.json(&json::tokens(&answer));
    }
    if chat {
        output.answer(&answer.rendered)?;
        let ends_line = answer.rendered.ends_with('\n');
        output.answer(if ends_line { "\n" } else { "\n\n" })?;
    }
    if args.pieces {
        return output.text(&pieces(&answer));
    }
    let ids: Vec<String> = answer.token_ids.iter().map(u32::to_string).collect();
    output.line(&ids.join(" "))
}

fn request(args: &TokenizeArgs) -> Result<TokenizeRequest, Failure> {
    let request = TokenizeRequest {
        pair: args.target.pair.clone(),
        ..TokenizeRequest::default()
    };
    let chat = |messages| Some(ChatInput { messages });
    if let Some(path) = &args.messages {
        return Ok(TokenizeRequest {
            chat: chat(conversation(path)?),
            ..request
        });
    }
    let text = match args.text.is_empty() {
        false => args.text.join(" "),
        true => input::piped()?.ok_or_else(|| {
            Failure::Usage("there is no text; give it as arguments or on standard input".to_owned())
        })?,
    };
    if !args.chat {
        return Ok(TokenizeRequest {
            text,
            parse_special: args.parse_special,
            add_bos: args.add_bos,
            ..request
        });
    }
    let message = |role: &str, content: String| ChatMessage {
        role: role.to_owned(),
        content,
    };
    let system = args
        .system
        .iter()
        .map(|text| message("system", text.clone()));
    Ok(TokenizeRequest {
        chat: chat(system.chain([message("user", text)]).collect()),
        ..request
    })
}

/// Reads a JSON array of messages.
fn conversation(path: &Path) -> Result<Vec<ChatMessage>, Failure> {
    parse(&input::file(path)?).map_err(|problem| {
        Failure::Usage(format!(
            "`{}` is no conversation, such as [{{\"role\": \"user\", \"content\": \"hi\"}}]: {problem}",
            path.display()
        ))
    })
}

fn parse(text: &str) -> Result<Vec<ChatMessage>, String> {
    let read: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let messages = read.as_array().ok_or("it is no array")?;
    let message = |(at, message): (usize, &Value)| {
        let text = |key: &str| {
            let text = message.get(key).and_then(Value::as_str);
            text.map(str::to_owned)
                .ok_or_else(|| format!("message {} has no text as {key}", at + 1))
        };
        Ok(ChatMessage {
            role: text("role")?,
            content: text("content")?,
        })
    };
    messages.iter().enumerate().map(message).collect()
}

fn pieces(answer: &TokenizeResponse) -> String {
    let tokens = answer.token_ids.iter().zip(&answer.pieces);
    tokens
        .map(|(id, piece)| {
            format!(
                "{id}\t{}\n",
                json_text(&json!(String::from_utf8_lossy(piece)))
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_read_or_refused_with_its_place() {
        let read = parse(r#"[{"role": "user", "content": "hi\n"}, {"role": "x", "content": ""}]"#);
        let read = read.expect("a conversation");
        assert_eq!(
            (read[0].content.as_str(), read[1].role.as_str()),
            ("hi\n", "x")
        );
        for (text, part) in [
            ("{}", "no array"),
            ("[1", "EOF"),
            (
                r#"[{"role": "user", "content": "a"}, {"role": 1}]"#,
                "message 2 has no text as role",
            ),
            (
                r#"[{"role": "user", "content": null}]"#,
                "message 1 has no text as content",
            ),
        ] {
            let problem = parse(text).expect_err("no conversation");
            assert!(problem.contains(part), "{problem}");
        }
    }
}
