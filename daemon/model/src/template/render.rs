//! One rendering: what templates see, and how much they may do.

use std::io::{self, Write};

use minijinja::{ErrorKind, Value, context};

use super::error::TemplateError;
use super::{ChatMessage, ChatTemplate, NAME};
use crate::TokenId;
use crate::tokenizer::{EncodeError, EncodeLimits, Tokenizer};

/// Work that a template may do whatever the conversation: a unit is an instruction, or 64 bytes of text that it makes.
const BASE_FUEL: u64 = 1_000_000;
/// And for each message, and each byte of it: templates go over all of them several times.
const MESSAGE_FUEL: u64 = 2_000;
/// In all: less than some seconds' worth.
const MOST_FUEL: u64 = 20_000_000;
/// Text may be longer than what is left of it once markers are taken out.
const SLACK_BYTES: usize = 1 << 20;

impl ChatTemplate {
    /// Renders a conversation and opens the assistant's turn.
    ///
    /// # Errors
    /// When the template refuses the conversation or fails.
    pub fn render(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
    ) -> Result<String, TemplateError> {
        self.render_within(tokenizer, messages, EncodeLimits::NONE)
    }

    pub(super) fn render_within(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
        limits: EncodeLimits<'_>,
    ) -> Result<String, TemplateError> {
        if (limits.stopped)() {
            return Err(EncodeError::Stopped.into());
        }
        let bytes: usize = messages.iter().map(|m| m.content.len()).sum();
        let fuel = BASE_FUEL
            .saturating_add(MESSAGE_FUEL.saturating_mul(messages.len() as u64))
            .saturating_add(bytes as u64);
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel.min(MOST_FUEL)));

        let most = tokenizer.most_bytes(limits.tokens);
        let mut out = Capped {
            text: Vec::new(),
            most: most.saturating_mul(2).saturating_add(SLACK_BYTES),
            full: false,
        };
        let template = environment.get_template(NAME);
        let rendered = template.and_then(|template| {
            template
                .render_captured_to(context(tokenizer, messages), &mut out)
                .map(drop)
        });
        if out.full {
            let limit = limits.tokens;
            return Err(EncodeError::TooMany { limit }.into());
        }
        match rendered {
            // Templates and messages are UTF-8, and so is what is made of them.
            Ok(()) => Ok(String::from_utf8(out.text)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())),
            Err(error) if error.kind() == ErrorKind::OutOfFuel => Err(TemplateError::Endless {
                line: error.line().unwrap_or(0),
                messages: messages.len(),
            }),
            Err(error) => Err(TemplateError::from_jinja(&error)),
        }
    }
}

/// What `transformers` gives to templates, and nothing that is not there.
fn context(tokenizer: &Tokenizer, messages: &[ChatMessage]) -> Value {
    let messages: Vec<Value> = messages
        .iter()
        .map(|m| context! { role => m.role.as_str(), content => m.content.as_str() })
        .collect();
    let mut context = vec![
        ("messages", Value::from(messages)),
        ("tools", Value::from(())),
        ("documents", Value::from(())),
        ("add_generation_prompt", Value::from(true)),
    ];
    let text = |id: Option<TokenId>| id.and_then(|id| tokenizer.token_text(id));
    for (name, id) in [
        ("bos_token", tokenizer.bos()),
        ("eos_token", tokenizer.eos()),
        ("unk_token", tokenizer.unknown()),
        ("pad_token", tokenizer.padding()),
    ] {
        match text(id) {
            Some(text) => context.push((name, Value::from(text))),
            // Templates put these before or behind other texts, and files without them are served by others as well.
            None if matches!(name, "bos_token" | "eos_token") => {
                context.push((name, Value::from("")));
            }
            None => {}
        }
    }
    Value::from_pairs(context)
}

/// Takes so much text and no more.
struct Capped {
    text: Vec<u8>,
    most: usize,
    full: bool,
}

impl Write for Capped {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.text.len().saturating_add(more.len()) > self.most {
            self.full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.text.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
