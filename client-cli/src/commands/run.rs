//! `tandem run`: answer one prompt.

use tandem_client::{Client, Event, GenerateRequest, Message};

use super::input;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{json, startup, summary};

pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let request = args.generation.apply(request(&args)?);
    let client = startup::client(&args.generation.target, args.generation.quiet).await?;
    tokio::select! {
        done = answer(&client, request, &args) => done,
        // Dropping the call cancels it.
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    }
}

fn request(args: &RunArgs) -> Result<GenerateRequest, Failure> {
    let text = match &args.file {
        Some(path) => Some(input::file(path)?),
        None => input::piped()?,
    };
    let prompt = input::join(&args.prompt, text);
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
                output.text(&chunk.text)?;
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
                    eprintln!("{}", summary::line(&complete));
                }
            }
        }
    }
    Ok(())
}
