//! How long a restarted daemon takes to its first token: from the start of the process to the first chunk of a prompt,
//! less the time that the same prompt takes once the daemon is warm. Medians of some rounds.
//!
//! `TANDEM_HOME=DIR cargo run --release -p tandem-client --example restart -- PATH-OF-TANDEM < PROMPT`, with the pair in
//! `DIR/config.toml`. The first round prepares the weights and is printed apart.
#![expect(clippy::print_stdout, reason = "figures are its purpose")]

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tandem_client::{Client, Error, Event, GenerateRequest, Retry};

const ROUNDS: usize = 7;
const POLL: Duration = Duration::from_millis(2);

type Failure = Box<dyn std::error::Error>;

/// Ends the daemon when the round is over, whichever way.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        // It has nothing to lose: no stream is open, and prepared files come to be by a rename.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for the first chunk.
async fn first_chunk(client: &Client, prompt: &str) -> Result<(), Error> {
    let request = GenerateRequest::text(prompt).max_tokens(1).ignore_eos(true);
    let mut stream = client.generate(request).await?;
    while let Some(event) = stream.next().await {
        if let Event::Chunk(_) = event? {
            break;
        }
    }
    Ok(())
}

/// One restart: milliseconds to the first token, and milliseconds of the same prompt to the warm daemon.
async fn round(program: &str, prompt: &str) -> Result<(f64, f64), Failure> {
    let client = Client::from_env()?.with_retry(Retry::never());
    if client.health().await.is_ok() {
        return Err("a daemon runs here already; stop it first".into());
    }
    let began = Instant::now();
    let _daemon = Daemon(
        Command::new(program)
            .args(["daemon", "run"])
            .stderr(Stdio::null())
            .spawn()?,
    );
    loop {
        match first_chunk(&client, prompt).await {
            Ok(()) => break,
            Err(error) if error.is_unavailable() => tokio::time::sleep(POLL).await,
            Err(error) => return Err(error.into()),
        }
    }
    let restart = began.elapsed();
    let mut warm = Vec::new();
    for _ in 0..3 {
        let began = Instant::now();
        first_chunk(&client, prompt).await?;
        warm.push(1e3 * began.elapsed().as_secs_f64());
    }
    Ok((1e3 * restart.as_secs_f64(), median(warm)))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let program = std::env::args().nth(1).ok_or("name the tandem binary")?;
    let prompt = std::io::read_to_string(std::io::stdin())?;
    let prompt = prompt.trim();
    let (restart, warm) = round(&program, prompt).await?;
    println!("first start    {restart:7.0} ms to the first token, prefill {warm:.0} ms");
    let mut beyond = Vec::new();
    for _ in 0..ROUNDS {
        let (restart, warm) = round(&program, prompt).await?;
        println!("restart        {restart:7.0} ms to the first token, prefill {warm:.0} ms");
        beyond.push(restart - warm);
    }
    println!(
        "beyond prefill {:7.0} ms, median of {ROUNDS}",
        median(beyond)
    );
    Ok(())
}
