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
        output.json(&json::reload(&changes))
    } else {
        output.line(&summary::reload(&changes))
    }
}
