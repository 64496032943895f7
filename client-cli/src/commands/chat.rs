//! `tandem chat`: a conversation that keeps its history.

use std::io::{self, BufRead, IsTerminal};
use std::ops::ControlFlow;

use tandem_client::{Client, Event, GenerateRequest, Message};
use tokio::sync::mpsc;

use crate::args::{ChatArgs, GenerationArgs};
use crate::failure::Failure;
use crate::output::{Output, ask};
use crate::{startup, summary};

pub(crate) async fn run(args: ChatArgs) -> Result<(), Failure> {
    let client = startup::client(&args.generation.target, args.generation.quiet).await?;
    let interactive = io::stdin().is_terminal();
    let mut conversation = Conversation::new(&client, &args.generation);
    let mut lines = read_lines();
    loop {
        if interactive {
            // A terminal that takes no prompt takes no answer either; the next write to it says so.
            ask("> ");
        }
        let line = tokio::select! {
            line = lines.recv() => line,
            _ = tokio::signal::ctrl_c() => {
                if !interactive {
                    return Err(Failure::Interrupted);
                }
                say!("\n(Ctrl-D or /exit ends)");
                continue;
            }
        };
        let Some(line) = line else {
            if interactive {
                say!();
            }
            return Ok(());
        };
        let line = line.map_err(|source| Failure::io("read standard input", source))?;
        match conversation.take(line.trim()).await {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => return Ok(()),
            Err(Failure::Client(error)) if interactive => say!("tandem: {error}"),
            Err(Failure::Interrupted) if interactive => say!("(stopped)"),
            Err(failure) => return Err(failure),
        }
    }
}

struct Conversation<'a> {
    client: &'a Client,
    args: &'a GenerationArgs,
    messages: Vec<Message>,
    output: Output,
}

impl<'a> Conversation<'a> {
    fn new(client: &'a Client, args: &'a GenerationArgs) -> Self {
        let mut conversation = Self {
            client,
            args,
            messages: Vec::new(),
            output: Output::new(),
        };
        conversation.reset();
        conversation
    }

    fn reset(&mut self) {
        self.messages = self
            .args
            .system
            .iter()
            .map(|text| message("system", text))
            .collect();
    }

    /// Follows a command, or answers a message.
    async fn take(&mut self, line: &str) -> Result<ControlFlow<()>, Failure> {
        match line {
            "" => {}
            "/exit" | "/quit" => return Ok(ControlFlow::Break(())),
            "/reset" => self.reset(),
            content => self.turn(content).await?,
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Answers one message. What was said of an interrupted answer stays in the history; a turn that failed leaves it.
    async fn turn(&mut self, content: &str) -> Result<(), Failure> {
        self.messages.push(message("user", content));
        let mut answer = String::new();
        let result = tokio::select! {
            result = startup::attended(
                self.client,
                answer_to(self.client, self.args, &self.messages, &mut self.output, &mut answer),
            ) => result,
            _ = tokio::signal::ctrl_c() => Err(Failure::Interrupted),
        };
        if !answer.is_empty() && !answer.ends_with('\n') {
            self.output.text("\n")?;
        }
        match (&result, answer.is_empty()) {
            (Ok(_), _) | (Err(Failure::Interrupted), false) => {
                self.messages.push(message("assistant", &answer))
            }
            _ => {
                self.messages.pop();
            }
        }
        if let Some(statistics) = result?.filter(|_| !self.args.quiet) {
            say!("{statistics}");
        }
        Ok(())
    }
}

/// Prints an answer as it comes, adds it to `answer`, and returns the line of statistics.
async fn answer_to(
    client: &Client,
    args: &GenerationArgs,
    messages: &[Message],
    output: &mut Output,
    answer: &mut String,
) -> Result<Option<String>, Failure> {
    let mut stream = client
        .generate(args.apply(GenerateRequest::chat(messages)))
        .await?;
    let mut statistics = None;
    while let Some(event) = stream.next().await {
        match event? {
            Event::Chunk(chunk) => {
                answer.push_str(&chunk.text);
                output.answer(&chunk.text)?;
            }
            Event::Complete(complete) => statistics = Some(summary::line(&complete)),
        }
    }
    Ok(statistics)
}

fn message(role: &str, content: &str) -> Message {
    Message {
        role: role.to_owned(),
        content: content.to_owned(),
    }
}

/// Reads lines on a thread of its own, which the end of the process ends: a read from a terminal cannot be cancelled.
fn read_lines() -> mpsc::Receiver<io::Result<String>> {
    let (sender, receiver) = mpsc::channel(1);
    std::thread::spawn(move || {
        for line in io::stdin().lock().lines() {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}
