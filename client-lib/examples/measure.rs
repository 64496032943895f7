//! What a client sees of a running daemon: time to first token against the daemon's own reading, and tokens per second
//! with and without speculation, interleaved, as medians over the prompts given as files.
//!
//! `cargo run --release -p tandem-client --example measure -- daemon/model/tests/golden/prompts/*.txt`
#![expect(clippy::print_stdout, reason = "a table is its purpose")]

use std::time::{Duration, Instant};

use tandem_client::v1::{Speculation, SpeculationStats};
use tandem_client::{Client, Event, GenerateRequest};

const ROUNDS: usize = 5;
const TOKENS: u32 = 96;

/// One run.
struct Run {
    /// From the call to the first chunk, by the client's clock.
    first_chunk: Duration,
    /// The same by the daemon's, from arrival.
    first_token: Duration,
    tokens_per_second: f64,
    speculation: SpeculationStats,
}

type Failure = Box<dyn std::error::Error>;

async fn run(client: &Client, prompt: &str, speculation: Speculation) -> Result<Run, Failure> {
    let request = GenerateRequest::user(prompt)
        .max_tokens(TOKENS)
        .ignore_eos(true)
        .speculation(speculation);
    let began = Instant::now();
    let mut first_chunk = None;
    let mut stream = client.generate(request).await?;
    loop {
        match stream.next().await {
            Some(event) => match event? {
                Event::Chunk(_) => first_chunk = first_chunk.or(Some(began.elapsed())),
                Event::Complete(complete) => {
                    let timings = complete.timings.unwrap_or_default();
                    let seconds = |time: Option<_>| {
                        time.and_then(|time: prost_types::Duration| time.try_into().ok())
                            .unwrap_or(Duration::ZERO)
                    };
                    let decode = seconds(timings.decode).as_secs_f64();
                    return Ok(Run {
                        first_chunk: first_chunk.unwrap_or_default(),
                        first_token: seconds(timings.time_to_first_token),
                        tokens_per_second: f64::from(TOKENS - 1) / decode,
                        speculation: complete.speculation.unwrap_or_default(),
                    });
                }
            },
            None => return Err("the stream ended early".into()),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let client = Client::from_env()?;
    let (mut overheads, mut ratios) = (Vec::new(), Vec::new());
    println!("prompt      plain tok/s  with draft  ratio  drafted  accepted  mean length");
    for path in std::env::args().skip(1) {
        let prompt = std::fs::read_to_string(&path)?;
        let (mut plain, mut drafted) = (Vec::new(), Vec::new());
        let mut stats = SpeculationStats::default();
        for _ in 0..ROUNDS {
            for (speculation, into) in [
                (Speculation::Off, &mut plain),
                (Speculation::On, &mut drafted),
            ] {
                let run = run(&client, &prompt, speculation).await?;
                let overhead = run.first_chunk.saturating_sub(run.first_token);
                overheads.push(overhead.as_secs_f64() * 1e3);
                into.push(run.tokens_per_second);
                stats = run.speculation;
            }
        }
        let (plain, drafted) = (median(plain), median(drafted));
        ratios.push(drafted / plain);
        let name = std::path::Path::new(&path).file_stem().unwrap_or_default();
        println!(
            "{:<10} {plain:>12.1} {drafted:>11.1} {:>6.2} {:>8} {:>9} {:>12.2}",
            name.to_string_lossy(),
            drafted / plain,
            stats.draft_tokens,
            stats.accepted_tokens,
            stats.mean_acceptance_length,
        );
    }
    println!("median ratio {:.2}", median(ratios));
    println!(
        "gRPC adds {:.2} ms to the time to first token (median)",
        median(overheads)
    );
    Ok(())
}
