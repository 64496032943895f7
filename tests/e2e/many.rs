//! Many clients at once.

use std::collections::HashMap;

use tandem_tests::Daemon;
use tandem_tests::grpc::{
    Answer, Client, collect, endpoint, generate, request, status, until_queued,
};
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;

use crate::default_daemon;

const TOKENS: u32 = 24;

fn prompts() -> [String; 32] {
    std::array::from_fn(|index| {
        format!(
            "Question {index}: what is {index} times {}? Answer:",
            index + 3
        )
    })
}

async fn all_at_once(daemon: &Daemon) -> HashMap<String, Answer> {
    let mut tasks = JoinSet::new();
    for prompt in prompts() {
        let mut client = daemon.client().await;
        tasks.spawn(async move {
            let answer = generate(&mut client, request(&prompt, TOKENS)).await;
            (prompt, answer.expect("every client is served"))
        });
    }
    let mut answers = HashMap::new();
    while let Some(done) = tasks.join_next().await {
        let (prompt, answer) = done.expect("no client panics");
        answers.insert(prompt, answer);
    }
    answers
}

#[tokio::test]
async fn thirty_two_clients_all_get_what_they_would_get_alone() {
    let daemon = default_daemon().await;
    let answers = all_at_once(&daemon).await;
    assert_eq!(answers.len(), 32);
    for answer in answers.values() {
        assert_eq!(answer.token_ids.len(), TOKENS as usize);
    }

    let mut client = daemon.client().await;
    let state = status(&mut client).await;
    let totals = state.totals.unwrap();
    assert_eq!(
        (totals.completed, totals.failed, totals.rejected),
        (32, 0, 0)
    );
    if state.batch_invariant {
        for prompt in prompts().iter().step_by(5) {
            let alone = generate(&mut client, request(prompt, TOKENS))
                .await
                .unwrap();
            assert_eq!(
                alone.token_ids, answers[prompt].token_ids,
                "neighbours changed {prompt:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_stalled_reader_holds_up_nobody() {
    let daemon = default_daemon().await;
    // A window this small is full after a few chunks, and then the daemon cannot send.
    let narrow = endpoint(&daemon.home().socket()).initial_stream_window_size(64);
    let mut stalled = Client::new(narrow.connect().await.unwrap());
    let mut stream = stalled
        .generate(request("Once upon a time", 400))
        .await
        .unwrap()
        .into_inner();
    stream.next().await.unwrap().unwrap();

    let mut client = daemon.client().await;
    let answer = generate(&mut client, request("Hello", 100)).await.unwrap();
    assert_eq!(answer.token_ids.len(), 100);

    // Reading again gets the rest: nothing was lost while the reader slept.
    let rest = collect(stream).await.unwrap();
    assert_eq!(rest.complete.usage.unwrap().completion_tokens, 400);
}

#[tokio::test]
async fn streams_run_side_by_side() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut long = client
        .generate(request("Once upon a time", 600))
        .await
        .unwrap()
        .into_inner();
    long.next().await.unwrap().unwrap();
    let short = generate(&mut client, request("Hello", 8)).await.unwrap();
    assert_eq!(short.token_ids.len(), 8);
    until_queued(&mut client, 1, 0).await;
    assert_eq!(
        collect(long)
            .await
            .unwrap()
            .complete
            .usage
            .unwrap()
            .completion_tokens,
        600
    );
}
