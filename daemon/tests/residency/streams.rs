//! Requests and their streams.

use tandem_proto::v1;
use tandem_proto::v1::generate_request::Input;
use tandem_proto::v1::generate_response::Response;
use tonic::{Status, Streaming};
use tonic_types::StatusExt;

use crate::world::Client;

/// A request whose text depends on the target and this number alone.
pub(crate) fn seeded(pair: &str, seed: u64, max_tokens: u32) -> v1::GenerateRequest {
    v1::GenerateRequest {
        pair: pair.to_owned(),
        input: Some(Input::Text("The quick brown fox".into())),
        sampling_params: Some(v1::SamplingParams {
            temperature: Some(0.8),
            seed: Some(seed),
            max_tokens: Some(max_tokens),
            ignore_eos: true,
            ..Default::default()
        }),
        draft_length: Some(2),
        ..Default::default()
    }
}

/// A whole stream.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) token_ids: Vec<u32>,
    pub(crate) complete: v1::GenerateComplete,
}

/// Reads a stream to its end.
pub(crate) async fn collect(mut stream: Streaming<v1::GenerateResponse>) -> Result<Answer, Status> {
    let mut token_ids = Vec::new();
    loop {
        let message = stream.message().await?.expect("a final message");
        match message.response.expect("something") {
            Response::Chunk(chunk) => token_ids.extend(chunk.token_ids),
            Response::Complete(complete) => {
                return Ok(Answer {
                    token_ids,
                    complete,
                });
            }
        }
    }
}

pub(crate) async fn generate(
    client: &mut Client,
    request: v1::GenerateRequest,
) -> Result<Answer, Status> {
    collect(client.generate(request).await?.into_inner()).await
}

/// Begins a stream, and returns it after its first chunk.
pub(crate) async fn begin(
    client: &mut Client,
    request: v1::GenerateRequest,
) -> (Vec<u32>, Streaming<v1::GenerateResponse>) {
    let mut stream = client.generate(request).await.unwrap().into_inner();
    let first = stream.message().await.unwrap().expect("a chunk");
    match first.response.expect("something") {
        Response::Chunk(chunk) => (chunk.token_ids, stream),
        Response::Complete(complete) => panic!("it is over: {complete:?}"),
    }
}

/// Reads the rest of a stream that was begun.
pub(crate) async fn finish(
    (mut token_ids, stream): (Vec<u32>, Streaming<v1::GenerateResponse>),
) -> Result<Answer, Status> {
    let rest = collect(stream).await?;
    token_ids.extend(rest.token_ids);
    Ok(Answer { token_ids, ..rest })
}

pub(crate) fn reason(status: &Status) -> String {
    let info = status.get_details_error_info();
    info.expect("every error has one").reason
}
