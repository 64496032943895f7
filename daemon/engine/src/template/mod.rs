//! Chat messages to tokens, by the template that a model file carries.
//!
//! A template is a Jinja program from the file: it runs without access to anything, with bounded work. What users
//! typed stays text whatever it spells; only the template's own text can give control tokens.

mod error;
mod functions;
mod protect;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Value, context};
use minijinja_contrib::pycompat;

pub use error::TemplateError;

use crate::TokenId;
use crate::gguf::Gguf;
use crate::tokenizer::Tokenizer;
use protect::Marker;

const NAME: &str = "chat";
/// Instructions a template may run, or 64 bytes each that it may make: far more than any conversation needs beside what its
/// own length calls for. It bounds the time, and the memory: a few dozen letters of a hostile template can double a string
/// until none is left.
const FUEL: u64 = 1_000_000;
/// What each message and each byte of it add to that.
const FUEL_PER_MESSAGE: u64 = 2_000;
const FUEL_PER_BYTE: u64 = 4;
const RECURSION_LIMIT: usize = 64;

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who speaks, in the template's words: mostly `system`, `user` or `assistant`.
    pub role: String,
    /// What was said.
    pub content: String,
}

/// Formats the current local time by a strftime pattern, for templates that mention the date.
pub type Clock = Arc<dyn Fn(&str) -> String + Send + Sync>;

/// A model's chat template. Immutable; share it through `Arc`.
#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
    source: String,
}

impl ChatTemplate {
    /// Compiles the template of a model file. Without a clock, templates see no `strftime_now`, and the usual ones then
    /// leave the date out or state a fixed one.
    ///
    /// # Errors
    /// When the file has no template, or one that does not compile.
    pub fn from_gguf(gguf: &Gguf, clock: Option<Clock>) -> Result<Self, TemplateError> {
        match gguf.optional_str("tokenizer.chat_template")? {
            Some(source) => Self::new(source, clock),
            None => Err(TemplateError::Missing),
        }
    }

    /// Compiles a template from its source.
    ///
    /// # Errors
    /// When it does not compile.
    pub fn new(source: &str, clock: Option<Clock>) -> Result<Self, TemplateError> {
        let mut environment = Environment::new();
        // As the library does that the templates were written for.
        let syntax = SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build();
        environment.set_syntax(syntax.map_err(|e| TemplateError::from_jinja(&e))?);
        environment.set_recursion_limit(RECURSION_LIMIT);
        environment.set_unknown_method_callback(pycompat::unknown_method_callback);
        functions::add(&mut environment, clock);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|e| TemplateError::from_jinja(&e))?;
        Ok(Self {
            environment,
            source: source.to_owned(),
        })
    }

    /// Renders a conversation and opens the assistant's turn.
    ///
    /// # Errors
    /// When the template refuses the conversation or fails.
    pub fn render(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
    ) -> Result<String, TemplateError> {
        let typed = messages;
        let messages: Vec<Value> = messages
            .iter()
            .map(|m| context! { role => m.role.as_str(), content => m.content.as_str() })
            .collect();
        let text = |id: Option<TokenId>| {
            id.and_then(|id| tokenizer.token_text(id))
                .unwrap_or_default()
        };
        let context = context! {
            messages,
            add_generation_prompt => true,
            bos_token => text(tokenizer.bos()),
            eos_token => text(tokenizer.eos()),
        };
        // A copy shares the compiled template, and has fuel of its own.
        let mut environment = self.environment.clone();
        environment.set_fuel(Some(fuel(typed)));
        let template = environment.get_template(NAME);
        template
            .and_then(|t| t.render(context))
            .map_err(|e| TemplateError::from_jinja(&e))
    }

    /// Renders a conversation into tokens and opens the assistant's turn. Contents give no control tokens. Where the
    /// model's prompts begin with a beginning-of-sequence token, so does this one, once.
    ///
    /// # Errors
    /// When there is no message, a role is not a plain word, or the template refuses the conversation or fails.
    pub fn encode_chat(
        &self,
        tokenizer: &Tokenizer,
        messages: &[ChatMessage],
    ) -> Result<Vec<TokenId>, TemplateError> {
        if messages.is_empty() {
            return Err(TemplateError::NoMessages);
        }
        if let Some(m) = messages.iter().find(|m| !is_word(&m.role)) {
            return Err(TemplateError::Role {
                role: m.role.clone(),
            });
        }
        let marker =
            Marker::absent_from(messages, &self.source).ok_or(TemplateError::NoMarker {
                count: Marker::CANDIDATES,
            })?;
        let controls: Vec<&str> = tokenizer.control_texts().collect();
        let guarded: Vec<ChatMessage> = messages
            .iter()
            .map(|m| ChatMessage {
                role: m.role.clone(),
                content: marker.guard(&m.content, &controls),
            })
            .collect();
        let rendered = self.render(tokenizer, &guarded)?;
        let mut ids = Vec::new();
        if let Some(bos) = tokenizer.bos().filter(|_| tokenizer.adds_bos()) {
            ids.push(bos);
        }
        let body = tokenizer.encode_guarded(&rendered, |text| marker.remove(text));
        let repeated = !ids.is_empty() && body.first() == ids.first();
        ids.extend(&body[usize::from(repeated)..]);
        Ok(ids)
    }
}

/// What rendering these messages may take.
fn fuel(messages: &[ChatMessage]) -> u64 {
    let bytes: usize = messages
        .iter()
        .map(|m| m.role.len() + m.content.len())
        .sum();
    FUEL + FUEL_PER_MESSAGE * messages.len() as u64 + FUEL_PER_BYTE * bytes as u64
}

/// Whether a role is a plain word. Templates put roles into the names of control tokens, so that nothing else may pass.
fn is_word(role: &str) -> bool {
    !role.is_empty()
        && role
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}
