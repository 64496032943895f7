//! What streams notice of a reload and of a shed, in milliseconds of this machine. Asserts no times: it prints them.
#![expect(clippy::print_stdout, reason = "figures are what it is for")]

use std::fs;
use std::time::{Duration, Instant};

use tandem_proto::v1::watch_response::Event;
use tandem_proto::v1::{GenerateRequest, Speculation, WatchRequest};
use tandem_tests::grpc::{Client, request, speculating, status};
use tandem_tests::{Daemon, eventually};
use tokio::sync::watch;
use tokio_stream::StreamExt as _;

use crate::home;
use crate::residency::impatient;

const RELOADS: usize = 20;
const SHEDS: usize = 5;
/// Steps that have nothing to do with what came before.
const SETTLED: usize = 20;

/// Gaps between the chunks of one plain stream, which are its steps, as long as it runs.
async fn steps(client: &mut Client, tokens: u32, told: watch::Sender<usize>) -> Vec<Duration> {
    let request: GenerateRequest =
        speculating(Speculation::Off, request("Once upon a time", tokens));
    let mut stream = client.generate(request).await.unwrap().into_inner();
    let (mut gaps, mut last) = (Vec::new(), None);
    while let Some(message) = stream.next().await {
        message.expect("the stream lives");
        let now = Instant::now();
        if let Some(last) = last.replace(now) {
            gaps.push(now - last);
            told.send_replace(gaps.len());
        }
    }
    gaps
}

/// Runs streams, does `disturb` in the middle of each, and returns how long steps took before and from then on.
async fn disturbed(
    daemon: &Daemon,
    (times, tokens): (usize, u32),
    mut disturb: impl AsyncFnMut(usize),
) -> (Vec<Duration>, Vec<Duration>) {
    let (mut calm, mut during) = (Vec::new(), Vec::new());
    for time in 0..times {
        let (tell, mut seen) = watch::channel(0);
        let mut client = daemon.client().await;
        let stream = tokio::spawn(async move { steps(&mut client, tokens, tell).await });
        let at = *seen.wait_for(|steps| *steps >= 60).await.unwrap();
        disturb(time).await;
        let end = *seen.borrow();
        let gaps = stream.await.unwrap();
        calm.extend_from_slice(&gaps[SETTLED..at]);
        during.extend_from_slice(&gaps[at..(end + 2).min(gaps.len())]);
    }
    (calm, during)
}

fn say(what: &str, mut gaps: Vec<Duration>) {
    gaps.sort_unstable();
    let at = |percent: usize| gaps[(gaps.len() - 1) * percent / 100].as_secs_f64() * 1000.0;
    println!(
        "{what:<28} {:>5} steps  median {:>6.2} ms  99 % {:>6.2} ms  longest {:>6.2} ms",
        gaps.len(),
        at(50),
        at(99),
        at(100)
    );
}

async fn say_footprint(when: &str, daemon: &Daemon) {
    let memory = status(&mut daemon.client().await).await.memory.unwrap();
    println!("footprint {when}: {} kB", memory.footprint / 1000);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "prints figures of this machine; run it alone"]
async fn of_reloads_and_sheds() {
    let daemon = home().config(&impatient("small")).start().await;
    let file = daemon.home().paths().config_file;
    say_footprint("at first", &daemon).await;

    let (calm, during) = disturbed(&daemon, (RELOADS, 300), async |time| {
        let draft = if time % 2 == 0 { "none" } else { "small" };
        fs::write(&file, impatient(draft)).unwrap();
        let mut command = daemon.tandem(&["reload"]);
        let output = tokio::task::spawn_blocking(move || command.output()).await;
        assert!(output.unwrap().unwrap().status.success());
    })
    .await;
    say("undisturbed", calm);
    say("while the pair is reloaded", during);
    say_footprint(&format!("after {RELOADS} reloads"), &daemon).await;

    let mut client = daemon.client().await;
    let mut events = client.watch(WatchRequest {}).await.unwrap().into_inner();
    let mut took = Vec::new();
    let (_, during) = disturbed(&daemon, (SHEDS, 900), async |_| {
        daemon.home().stall(40, 20);
        let shed = loop {
            let told = events.next().await.unwrap().unwrap();
            if let Some(Event::Shed(shed)) = told.event {
                break shed;
            }
        };
        took.push(Duration::try_from(shed.took.unwrap()).unwrap());
        daemon.home().stall(0, 0);
        eventually("the draft", async || {
            let memory = status(&mut client.clone()).await.memory.unwrap();
            (memory.draft_weights > 0).then_some(())
        })
        .await;
    })
    .await;
    say("while the draft is shed", during);
    say("until a draft is shed", took);
}
