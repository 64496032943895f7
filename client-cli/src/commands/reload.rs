//! `tandem reload`: have the daemon read its configuration again.

use tandem_client::{Client, Retry};

use crate::args::ReloadArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{json, summary};

pub(crate) async fn run(args: ReloadArgs) -> Result<(), Failure> {
    let client = Client::from_env()?.with_retry(Retry::never());
    let changes = client.reload().await?;
    let mut output = Output::new();
    if args.json {
        output.json(&json::reload(&changes))?;
    } else {
        output.line(&summary::reload(&changes))?;
    }
    // Everything else has taken effect, and yet it is not as the configuration says.
    match changes.failed.is_empty() {
        true => Ok(()),
        false => Err(Failure::StillFailed(changes.failed)),
    }
}
