//! Building a generation request.

use std::time::Duration;

use crate::v1;
use crate::v1::generate_request::Input;

/// One message of a conversation.
pub type Message = v1::ChatMessage;

/// A generation to ask for. What is not set takes the default that the service definition names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GenerateRequest {
    pub(crate) message: v1::GenerateRequest,
    pub(crate) deadline: Option<Duration>,
}

impl From<v1::GenerateRequest> for GenerateRequest {
    fn from(message: v1::GenerateRequest) -> Self {
        Self {
            message,
            deadline: None,
        }
    }
}

impl GenerateRequest {
    fn with_input(input: Input) -> Self {
        v1::GenerateRequest {
            input: Some(input),
            ..Default::default()
        }
        .into()
    }

    /// Continues raw text; the chat template is not applied.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::with_input(Input::Text(text.into()))
    }

    /// Continues token ids of the target's vocabulary.
    #[must_use]
    pub fn token_ids(ids: impl Into<Vec<u32>>) -> Self {
        Self::with_input(Input::TokenIds(v1::TokenIds { ids: ids.into() }))
    }

    /// Answers a conversation, oldest message first.
    #[must_use]
    pub fn chat(messages: impl Into<Vec<Message>>) -> Self {
        Self::with_input(Input::Chat(v1::ChatInput {
            messages: messages.into(),
        }))
    }

    /// Answers one message of a user.
    #[must_use]
    pub fn user(content: impl Into<String>) -> Self {
        Self::chat([message("user", content)])
    }

    /// Chooses the pair by name; the default pair otherwise.
    #[must_use]
    pub fn pair(mut self, name: impl Into<String>) -> Self {
        self.message.pair = name.into();
        self
    }

    /// Names the request in the daemon's logs.
    #[must_use]
    pub fn request_id(mut self, id: impl Into<String>) -> Self {
        self.message.request_id = id.into();
        self
    }

    /// Sets all sampling parameters at once, replacing earlier ones.
    #[must_use]
    pub fn sampling(mut self, params: v1::SamplingParams) -> Self {
        self.message.sampling_params = Some(params);
        self
    }

    fn adjust(mut self, change: impl FnOnce(&mut v1::SamplingParams)) -> Self {
        change(self.message.sampling_params.get_or_insert_default());
        self
    }

    /// Sets the temperature, at least 0; 0 is greedy.
    #[must_use]
    pub fn temperature(self, temperature: f32) -> Self {
        self.adjust(|params| params.temperature = Some(temperature))
    }

    /// Keeps this many most likely tokens; 0 keeps all.
    #[must_use]
    pub fn top_k(self, top_k: u32) -> Self {
        self.adjust(|params| params.top_k = Some(top_k))
    }

    /// Keeps the smallest set of most likely tokens with at least this mass, in (0, 1].
    #[must_use]
    pub fn top_p(self, top_p: f32) -> Self {
        self.adjust(|params| params.top_p = Some(top_p))
    }

    /// Makes the text a function of the request and this number alone.
    #[must_use]
    pub fn seed(self, seed: u64) -> Self {
        self.adjust(|params| params.seed = Some(seed))
    }

    /// Ends after this many generated tokens, at least 1.
    #[must_use]
    pub fn max_tokens(self, max_tokens: u32) -> Self {
        self.adjust(|params| params.max_tokens = Some(max_tokens))
    }

    /// Ends before this text; can be given several times.
    #[must_use]
    pub fn stop(self, text: impl Into<String>) -> Self {
        self.adjust(|params| params.stop.push(text.into()))
    }

    /// Adds to the logit of one token, in -100 to 100; can be given several times.
    #[must_use]
    pub fn logit_bias(self, token_id: u32, bias: f32) -> Self {
        self.adjust(|params| {
            params.logit_bias.insert(token_id, bias);
        })
    }

    /// Goes on past the model's own end tokens.
    #[must_use]
    pub fn ignore_eos(self, ignore: bool) -> Self {
        self.adjust(|params| params.ignore_eos = ignore)
    }

    /// Reports each token's log-probability, and those of so many likeliest tokens, at most 20.
    #[must_use]
    pub fn logprobs(self, top: u32) -> Self {
        self.adjust(|params| params.logprobs = Some(top))
    }

    /// Allows, forbids or requires speculation.
    #[must_use]
    pub fn speculation(mut self, speculation: v1::Speculation) -> Self {
        self.message.set_speculation(speculation);
        self
    }

    /// Lets only these drafters serve the request; can be given several times. All that the pair has otherwise.
    #[must_use]
    pub fn draft_method(mut self, method: v1::DraftMethod) -> Self {
        self.message.draft_methods.push(method.into());
        self
    }

    /// Guesses from finished texts of this history, whichever process they were for, and adds to it; the empty name stands
    /// for no history. That of the calling process otherwise.
    #[must_use]
    pub fn history(mut self, name: impl Into<String>) -> Self {
        self.message.history = Some(name.into());
        self
    }

    /// Drafts exactly this many tokens a step, 0 to 63.
    #[must_use]
    pub fn draft_length(mut self, tokens: u32) -> Self {
        self.message.draft_length = Some(tokens);
        self
    }

    /// Lets drafters propose at most so many continuations at one place, at least 1, which allows chains only.
    #[must_use]
    pub fn draft_width(mut self, continuations: u32) -> Self {
        self.message.draft_width = Some(continuations);
        self
    }

    /// Keeps the pair loaded for this long after the request and without another one; [`Duration::MAX`]: for ever. As
    /// configured otherwise.
    #[must_use]
    pub fn keep_alive(mut self, limit: Duration) -> Self {
        // The wire has no longer times, and negative ones stand for ever.
        let forever = prost_types::Duration {
            seconds: -1,
            nanos: 0,
        };
        self.message.keep_alive = Some(limit.try_into().unwrap_or(forever));
        self
    }

    /// Ends generation after this long with what there is; the answer is complete and no error.
    #[must_use]
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.message.time_limit = limit.try_into().ok();
        self
    }

    /// Fails the request when it is not complete after this long, waiting and retries included.
    #[must_use]
    pub fn deadline(mut self, limit: Duration) -> Self {
        self.deadline = Some(limit);
        self
    }
}

fn message(role: &str, content: impl Into<String>) -> Message {
    Message {
        role: role.to_owned(),
        content: content.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setters_add_up() {
        let request = GenerateRequest::user("hi")
            .temperature(0.5)
            .stop("a")
            .stop("b")
            .logit_bias(7, -1.0)
            .max_tokens(9)
            .draft_method(v1::DraftMethod::Model)
            .draft_method(v1::DraftMethod::Lookup)
            .history("editor")
            .keep_alive(Duration::MAX);
        assert_eq!(
            request.message.keep_alive.map(|limit| limit.seconds),
            Some(-1)
        );
        assert_eq!(request.message.draft_methods, [1, 3]);
        assert_eq!(request.message.history.as_deref(), Some("editor"));
        let params = request
            .message
            .sampling_params
            .expect("setters create the parameters");
        assert_eq!(params.temperature, Some(0.5));
        assert_eq!(params.stop, ["a", "b"]);
        assert_eq!(params.logit_bias.get(&7), Some(&-1.0));
        assert_eq!(params.max_tokens, Some(9));
        assert_eq!(params.top_p, None);
        let Some(Input::Chat(chat)) = request.message.input else {
            panic!("not a conversation")
        };
        assert_eq!(
            (
                chat.messages[0].role.as_str(),
                chat.messages[0].content.as_str()
            ),
            ("user", "hi")
        );
    }
}
