//! Which roles a template treats.
//!
//! Many templates write whatever role they are given, and models answer roles that they never saw in training, badly and
//! without a word about it. So a role has to be one that every chat model knows, or one that the template names.

use super::ChatMessage;
use super::error::TemplateError;

/// Those that every chat model was trained with, or says itself that it was not.
const USUAL: [&str; 3] = ["system", "user", "assistant"];
/// Those that templates name, for messages.
const OTHERS: [&str; 10] = [
    "developer",
    "tool",
    "function",
    "ipython",
    "tool_response",
    "tool_call",
    "observation",
    "context",
    "critic",
    "model",
];

/// Refuses roles that are no plain words, and those that the template does not know.
pub(super) fn check(source: &str, messages: &[ChatMessage]) -> Result<(), TemplateError> {
    for ChatMessage { role, .. } in messages {
        if !is_word(role) {
            return Err(TemplateError::Role { role: role.clone() });
        }
        if !USUAL.contains(&role.as_str()) && !names(source, role) {
            let others = OTHERS.iter().filter(|role| names(source, role));
            let known: Vec<&str> = USUAL.iter().chain(others).copied().collect();
            return Err(TemplateError::UnknownRole {
                role: role.clone(),
                known: known.join(", "),
            });
        }
    }
    Ok(())
}

/// Refuses a conversation in which nothing of what a role says is heard. `rendered` is what the template made of it;
/// `try_with` renders it again with other contents.
pub(super) fn heard(
    rendered: &str,
    messages: &[ChatMessage],
    try_with: impl Fn(&[ChatMessage]) -> Option<String>,
) -> Result<(), TemplateError> {
    let mut roles: Vec<&str> = messages.iter().map(|m| m.role.as_str()).collect();
    roles.sort_unstable();
    roles.dedup();
    for role in roles {
        let said = || messages.iter().filter(|m| m.role == role);
        let heard = |m: &ChatMessage| rendered.contains(m.content.trim());
        // Each look takes as long as the prompt is; where a few say nothing, the trial below decides.
        if said().take(8).any(heard) {
            continue;
        }
        // Templates also shorten what was said, such as by thoughts. A text that has none of that tells.
        let text = "Tandem asks whether this is heard.";
        let tried: Vec<ChatMessage> = messages
            .iter()
            .map(|m| ChatMessage {
                role: m.role.clone(),
                content: if m.role == role { text } else { "Yes." }.to_owned(),
            })
            .collect();
        if try_with(&tried).is_some_and(|rendered| !rendered.contains(text)) {
            return Err(TemplateError::Unheard {
                role: role.to_owned(),
            });
        }
    }
    Ok(())
}

/// Whether a role is a plain word. Templates put roles into the names of control tokens, so that nothing else may pass.
fn is_word(role: &str) -> bool {
    (1..=64).contains(&role.len())
        && role
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

/// Whether a template has the role as a text of its own, and not as a part of something, as `message['content']` is.
fn names(source: &str, role: &str) -> bool {
    ['\'', '"'].into_iter().any(|quote| {
        let text = format!("{quote}{role}{quote}");
        source.match_indices(&text).any(|(at, _)| {
            let value = |c: char| c.is_alphanumeric() || matches!(c, '_' | ']' | ')');
            let before = source[..at].strip_suffix('[');
            !before.is_some_and(|before| before.ends_with(value))
        })
    })
}
