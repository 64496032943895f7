//! `tandem reload`: have the daemon read its configuration again.

use std::time::{Duration, Instant};

use tandem_client::{Client, Paths, Retry, launch};

use crate::args::ReloadArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::Waiting;
use crate::{json, startup, summary};

/// How long the daemon may take to say that it is there.
const ANSWER: Duration = Duration::from_secs(10);
/// A reload that loads nothing is done by then, and nobody needs to hear that it is waited for.
const MENTION: Duration = Duration::from_secs(5);

pub(crate) async fn run(args: ReloadArgs) -> Result<(), Failure> {
    let client = Client::from_env()?.with_retry(Retry::never());
    launch::ask(&Paths::from_env()?, ANSWER, client.health()).await?;
    // Loading takes as long as it takes, as long as the daemon lives.
    let changes = startup::attended(&client, async {
        tokio::select! {
            changes = client.reload() => Ok(changes?),
            never = mention() => never,
        }
    })
    .await?;
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

/// Says what is being waited for, for as long as it is.
async fn mention<T>() -> T {
    let begin = Instant::now();
    tokio::time::sleep(MENTION).await;
    let mut waiting = Waiting::new(false);
    loop {
        let what = "waiting for the daemon to load what the configuration asks for";
        waiting.show(what, None, begin.elapsed());
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}
