//! For the fuzzer: what a request goes through before it waits for a pair, without a daemon.

use tandem_engine::sampling::SamplingParams;
use tandem_proto::v1;
use tonic::Status;

use crate::convert::{Input, Plan};

/// Checks a request; returns how it chooses tokens, and those that it brings.
///
/// # Errors
/// As for any client.
pub fn checked(request: v1::GenerateRequest) -> Result<(SamplingParams, Vec<u32>), Status> {
    let plan = Plan::new(request)?;
    let tokens = match plan.input {
        Input::TokenIds(tokens) => tokens,
        Input::Text(_) | Input::Chat(_) => Vec::new(),
    };
    Ok((plan.sampling, tokens))
}
