//! `tandem run`: answer one prompt.

use tandem_client::{Client, Event, GenerateRequest, Message};

use super::input::Source;
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::output::Output;
use crate::{json, startup, summary};

pub(crate) async fn run(args: RunArgs) -> Result<(), Failure> {
    let source = Source::of(&args.prompt, args.file.as_deref());
    let request = args.generation.apply(request(&args, source.read()?)?);
    let client = startup::client(&args.generation.target, args.generation.quiet).await?;
    let done = tokio::select! {
        done = answer(&client, request, &args) => done,
        // Dropping the call cancels it.
        _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
    };
    if done.is_ok() && !args.generation.quiet {
        // Only now: what is piped in may come later than this command.
        source.tell_what_was_left();
    }
    done
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
