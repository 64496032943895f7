//! Prepared files that somebody cuts, writes to, or removes, under a daemon that has them mapped.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use tandem_proto::v1::{PairInfo, Residency};
use tandem_tests::grpc::{self, Client, generate, request, status};
use tandem_tests::{Daemon, Home, eventually, models};
use tonic_types::StatusExt;

use crate::home;

/// Two pairs: the default models, and the draft alone as a target.
fn two_pairs() -> Home {
    let files = models::default_pair();
    home()
        .own_cache()
        .config("default_pair = \"main\"")
        .pair("main", &files.target, &files.draft)
        .pair("small", &files.draft, "none")
}

/// The prepared files, the largest first.
fn prepared(daemon: &Daemon) -> Vec<PathBuf> {
    let directory = daemon.home().paths().prepared_dir();
    let entries = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let is_file = |path: &PathBuf| path.extension().is_some_and(|end| end == "prepared");
    let mut files: Vec<_> = entries.filter(is_file).collect();
    files.sort_by_key(|path| std::cmp::Reverse(fs::metadata(path).unwrap().len()));
    files
}

fn open(path: &PathBuf) -> File {
    File::options().read(true).write(true).open(path).unwrap()
}

async fn info(client: &mut Client, name: &str) -> PairInfo {
    let infos = status(client)
        .await
        .pairs
        .into_iter()
        .filter_map(|pair| pair.info);
    infos.into_iter().find(|info| info.name == name).unwrap()
}

async fn text(client: &mut Client, pair: &str) -> Result<String, tonic::Status> {
    let mut request = request("Once upon a time", 24);
    request.pair = pair.to_owned();
    generate(client, request).await.map(|answer| answer.text)
}

#[tokio::test]
async fn a_prepared_file_that_is_cut_costs_its_pair_one_answer_and_nobody_else_any() {
    let daemon = two_pairs().start().await;
    let mut client = daemon.client().await;
    let (main, small) = (
        text(&mut client, "main").await.unwrap(),
        text(&mut client, "small").await.unwrap(),
    );
    for bytes in [0, 50_000_000] {
        let [target, ..] = &prepared(&daemon)[..] else {
            panic!("there are prepared files");
        };
        open(target).set_len(bytes).unwrap();
        let error = text(&mut client, "main").await.unwrap_err();
        let reason = error.get_details_error_info().unwrap().reason;
        assert_eq!(reason, "WEIGHTS_LOST", "{error}");
        assert_eq!(text(&mut client, "small").await.unwrap(), small);
        // The next request has it made anew.
        assert_eq!(text(&mut client, "main").await.unwrap(), main);
        assert!(fs::metadata(&prepared(&daemon)[0]).unwrap().len() > 90_000_000);
    }
    assert_eq!(status(&mut client).await.pid, daemon.pid());
}

#[tokio::test]
async fn a_stream_over_a_file_that_is_written_to_ends_with_an_error_and_no_wrong_word() {
    let daemon = two_pairs().start().await;
    let mut client = daemon.client().await;
    let expected = text(&mut client, "main").await.unwrap();
    let target = prepared(&daemon)[0].clone();
    let running = {
        let mut client = client.clone();
        let mut long = request("Once upon a time", 2000);
        long.pair = "main".to_owned();
        tokio::spawn(async move { generate(&mut client, long).await })
    };
    eventually("the stream runs", async || {
        let pairs = status(&mut client.clone()).await.pairs;
        let running = pairs.iter().any(|pair| pair.running == 1);
        running.then_some(())
    })
    .await;
    let (file, mut byte) = (open(&target), [0]);
    file.read_exact_at(&mut byte, 30_000_000).unwrap();
    file.write_all_at(&[byte[0] ^ 0xff], 30_000_000).unwrap();
    let error = running.await.unwrap().unwrap_err();
    assert_eq!(
        error.get_details_error_info().unwrap().reason,
        "WEIGHTS_LOST"
    );
    assert_eq!(text(&mut client, "main").await.unwrap(), expected);
    let warnings = info(&mut client, "main").await.warnings;
    assert!(
        warnings.iter().any(|warning| warning.contains("made anew")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn a_draft_whose_file_is_cut_comes_back_by_itself_and_no_stream_ends() {
    let daemon = home().own_cache().start().await;
    let mut client = daemon.client().await;
    let expected = text(&mut client, "").await.unwrap();
    let files = prepared(&daemon);
    let draft = files.last().unwrap();
    open(draft).set_len(0).unwrap();
    assert_eq!(text(&mut client, "").await.unwrap(), expected);
    eventually("the draft is back", async || {
        let mut client = client.clone();
        // Requests are what it comes back for.
        let text = text(&mut client, "").await.unwrap();
        assert_eq!(text, expected);
        let pair = grpc::only_pair(&mut client).await;
        let info = pair.info.unwrap();
        let back = info.speculation_off_reason.is_empty() && pair.memory.unwrap().draft_weights > 0;
        (back && info.residency() == Residency::Warm && fs::metadata(draft).unwrap().len() > 0)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_cache_that_is_removed_while_the_daemon_runs_is_made_anew() {
    let daemon = home().own_cache().start().await;
    let mut client = daemon.client().await;
    let expected = text(&mut client, "").await.unwrap();
    fs::remove_dir_all(daemon.home().paths().prepared_dir()).unwrap();
    assert_eq!(text(&mut client, "").await.unwrap(), expected);
    let mut last = request("Once upon a time", 24);
    last.keep_alive = Some(prost_types::Duration::default());
    generate(&mut client, last).await.unwrap();
    grpc::until_cold(&client).await;
    assert_eq!(text(&mut client, "").await.unwrap(), expected);
    assert_eq!(prepared(&daemon).len(), 2);
    let warnings = grpc::only_pair(&mut client).await.info.unwrap().warnings;
    let in_memory = |warning: &String| warning.contains("packed into memory");
    assert!(!warnings.iter().any(in_memory), "{warnings:?}");
}
