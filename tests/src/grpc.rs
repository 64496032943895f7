//! The service over its socket, by the generated client alone: what is tested is the daemon, not our client library.

use std::path::Path;

use tandem_proto::v1::generate_response::Response;
use tandem_proto::v1::tandem_service_client::TandemServiceClient;
use tandem_proto::v1::{
    GenerateComplete, GenerateRequest, GenerateResponse, PairStatus, Residency, SamplingParams,
    Speculation, StatusRequest, StatusResponse, TokenLogprobs, generate_request::Input,
};
use tokio_stream::StreamExt as _;
use tonic::transport::{Channel, Endpoint, Error};
use tonic::{Status, Streaming};

use crate::eventually;

/// Client of the service.
pub type Client = TandemServiceClient<Channel>;

/// Returns the endpoint of a socket.
#[must_use]
pub fn endpoint(socket: &Path) -> Endpoint {
    Endpoint::from_shared(format!("unix://{}", socket.display())).expect("test paths are URIs")
}

/// Connects to a socket.
///
/// # Errors
/// When nothing listens there.
pub async fn channel(socket: &Path) -> Result<Channel, Error> {
    endpoint(socket).connect().await
}

/// Connects to a socket on which a daemon listens.
///
/// # Panics
/// When none does.
pub async fn client(socket: &Path) -> Client {
    Client::new(
        channel(socket)
            .await
            .expect("the daemon accepts a connection"),
    )
}

/// Returns a greedy request for exactly `max_tokens` tokens, whatever they are.
#[must_use]
pub fn request(prompt: &str, max_tokens: u32) -> GenerateRequest {
    GenerateRequest {
        input: Some(Input::Text(prompt.to_owned())),
        sampling_params: Some(SamplingParams {
            max_tokens: Some(max_tokens),
            ignore_eos: true,
            ..SamplingParams::default()
        }),
        ..GenerateRequest::default()
    }
}

/// Returns `request` with another say in speculation.
#[must_use]
pub fn speculating(speculation: Speculation, request: GenerateRequest) -> GenerateRequest {
    GenerateRequest {
        speculation: speculation.into(),
        ..request
    }
}

/// Returns a prompt of at least `tokens` tokens: each word is at least one.
#[must_use]
pub fn long_prompt(tokens: usize) -> String {
    ["refrigerator ", "engine ", "river ", "letter "]
        .iter()
        .copied()
        .cycle()
        .take(tokens)
        .collect()
}

/// All of one stream.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The texts of the chunks, together.
    pub text: String,
    /// The tokens of the chunks, in order.
    pub token_ids: Vec<u32>,
    /// Their log-probabilities, where the request asked.
    pub logprobs: Vec<TokenLogprobs>,
    /// How many chunks came.
    pub chunks: usize,
    /// The final message.
    pub complete: GenerateComplete,
}

/// Sends a request and reads its stream to the end.
///
/// # Errors
/// What the daemon answered instead, at once or in mid-stream.
pub async fn generate(client: &mut Client, request: GenerateRequest) -> Result<Answer, Status> {
    collect(client.generate(request).await?.into_inner()).await
}

/// Reads a stream to the end, and checks that it ends with exactly one final message.
///
/// # Errors
/// What the daemon sent in place of the final message.
///
/// # Panics
/// When the stream does not keep the form that the definition promises.
pub async fn collect(mut stream: Streaming<GenerateResponse>) -> Result<Answer, Status> {
    let (mut text, mut token_ids, mut chunks) = (String::new(), Vec::new(), 0);
    let mut logprobs = Vec::new();
    let complete = loop {
        match stream
            .next()
            .await
            .transpose()?
            .and_then(|message| message.response)
        {
            Some(Response::Chunk(chunk)) => {
                text.push_str(&chunk.text);
                token_ids.extend(chunk.token_ids);
                logprobs.extend(chunk.logprobs);
                chunks += 1;
            }
            Some(Response::Complete(complete)) => break complete,
            None => panic!("the stream ended without a final message, after {text:?}"),
        }
    };
    assert!(
        stream.next().await.is_none(),
        "something followed the final message"
    );
    Ok(Answer {
        text,
        token_ids,
        logprobs,
        chunks,
        complete,
    })
}

/// Asks the daemon what it is doing.
///
/// # Panics
/// When it does not answer.
pub async fn status(client: &mut Client) -> StatusResponse {
    client
        .status(StatusRequest {})
        .await
        .expect("the daemon tells its status")
        .into_inner()
}

/// Asks for the status of the only pair.
///
/// # Panics
/// When there is not exactly one.
pub async fn only_pair(client: &mut Client) -> PairStatus {
    let pairs = status(client).await.pairs;
    <[PairStatus; 1]>::try_from(pairs).expect("one pair is configured")[0].clone()
}

/// Waits until the only pair is not in memory.
///
/// # Panics
/// When it takes too long.
pub async fn until_cold(client: &Client) {
    eventually("it is unloaded", async || {
        let info = only_pair(&mut client.clone()).await.info;
        (info.expect("a pair has a name").residency() == Residency::Cold).then_some(())
    })
    .await;
}

/// Waits until the only pair has this many running and waiting requests.
///
/// # Panics
/// When it takes too long.
pub async fn until_queued(client: &mut Client, running: u32, waiting: u32) {
    eventually(
        &format!("{running} running and {waiting} waiting requests"),
        || {
            let mut client = client.clone();
            async move {
                let pair = only_pair(&mut client).await;
                (pair.running == running && pair.waiting == waiting).then_some(())
            }
        },
    )
    .await;
}
