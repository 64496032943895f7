//! `tandem run`: answer one prompt.

use std::cell::Cell;
use std::io;
use std::time::{Duration, Instant};

use tandem_client::{Client, Error, Event, GenerateRequest, Message};
use tokio::time::timeout_at;

use super::input::{self, Source};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{json, startup, summary};

pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let begin = Instant::now();
    let left = Cell::new(false);
    let limit = args.generation.timeout;
    let work = async {
        let (words, file) = (args.prompt.clone(), args.file.clone());
        // Aside, so that a time limit or Ctrl-C does not wait for a pipe.
        let read = move || Source::of(&words, file.as_deref()).read();
        let (prompt, was_left) = tokio::task::spawn_blocking(read)
            .await
            .map_err(|problem| Failure::io("read the prompt", io::Error::other(problem)))??;
        left.set(was_left);
        let request = args.generation.apply(request(&args, prompt)?);
        let client = startup::client(&args.generation.target, args.generation.quiet).await?;
        let request = match limit {
            Some(limit) => request.deadline(limit.saturating_sub(begin.elapsed())),
            None => request,
        };
        startup::attended(&client, answer(&client, request, &args)).await
    };
    let done = tokio::select! {
        done = within(limit, begin, work) => done,
        // Dropping the call cancels it.
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    if done.is_ok() && !args.generation.quiet && left.get() {
        // Only now: what is piped in may come later than this command.
        input::tell_what_was_left();
    }
    done
}

/// Ends `work` after `limit`, counted from `begin`.
async fn within(
    limit: Option<Duration>,
    begin: Instant,
    work: impl Future<Output = Result<(), Failure>>,
) -> Result<(), Failure> {
    let Some((limit, end)) = limit.and_then(|limit| Some((limit, begin.checked_add(limit)?)))
    else {
        return work.await;
    };
    match timeout_at(end.into(), work).await {
        // What was left of it when the request was made is no number that anybody gave.
        Ok(Err(Failure::Client(Error::DeadlineExceeded { .. }))) | Err(_) => {
            let message = format!("no complete answer within {limit:?} of the command's start");
            Err(Error::DeadlineExceeded { message }.into())
        }
        Ok(done) => done,
    }
}

fn request(args: &RunArgs, prompt: String) -> Result<GenerateRequest, Failure> {
    if prompt.trim().is_empty() {
        let message =
            "there is no prompt; give it as arguments, with -f FILE, or on standard input";
        return Err(Failure::Usage(message.to_owned()));
    }
    if args.raw {
        return Ok(GenerateRequest::text(prompt));
    }
    let system = args.generation.system.iter().map(|text| Message {
        role: "system".to_owned(),
        content: text.clone(),
    });
    let user = Message {
        role: "user".to_owned(),
        content: prompt,
    };
    Ok(GenerateRequest::chat(
        system.chain([user]).collect::<Vec<_>>(),
    ))
}

async fn answer(client: &Client, request: GenerateRequest, args: &RunArgs) -> Result<(), Failure> {
    let mut output = Output::new();
    let mut ends_line = true;
    let mut stream = client.generate(request).await?;
    while let Some(event) = stream.next().await {
        match event? {
            Event::Chunk(chunk) if args.json => output.json(&json::chunk(&chunk))?,
            Event::Chunk(chunk) => {
                output.answer(&chunk.text)?;
                ends_line = chunk
                    .text
                    .chars()
                    .next_back()
                    .map_or(ends_line, |last| last == '\n');
            }
            Event::Complete(complete) => {
                if args.json {
                    output.json(&json::complete(&complete))?;
                } else if !ends_line {
                    output.text("\n")?;
                }
                if !args.generation.quiet {
                    say!("{}", summary::line(&complete));
                }
            }
        }
    }
    Ok(())
}
