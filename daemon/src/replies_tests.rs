use super::*;

fn finished() -> Finished {
    Finished {
        reason: FinishReason::Length,
        stats: RequestStats::default(),
        times: Times::default(),
    }
}

fn chunk(reply: Option<Reply>) -> Chunk {
    match reply {
        Some(Reply::Chunk(chunk)) => chunk,
        other => panic!("not a chunk: {other:?}"),
    }
}

#[tokio::test]
async fn a_slow_reader_gets_everything_in_fewer_chunks() {
    let (sink, mut replies) = channel();
    sink.push("a", &[1], Vec::new());
    assert_eq!(
        chunk(replies.next().await),
        Chunk {
            text: "a".into(),
            token_ids: vec![1],
            logprobs: Vec::new()
        }
    );
    for token in 2..1000 {
        sink.push("é", &[token], Vec::new());
    }
    sink.finish(finished());
    let rest = chunk(replies.next().await);
    assert_eq!(rest.text, "é".repeat(998));
    assert_eq!(rest.token_ids, (2..1000).collect::<Vec<_>>());
    assert!(matches!(replies.next().await, Some(Reply::Finished(_))));
    assert!(replies.next().await.is_none());
}

#[tokio::test]
async fn no_chunk_of_log_probabilities_outgrows_a_message() {
    let (sink, mut replies) = channel();
    let logprobs = TokenLogprobs {
        logprob: -1.0,
        top: vec![(1, -1.0); 20],
    };
    for token in 0..10_000 {
        sink.push("", &[token], vec![logprobs.clone()]);
    }
    sink.finish(finished());
    let mut tokens = 0;
    while let Some(Reply::Chunk(chunk)) = replies.next().await {
        assert_eq!(chunk.token_ids.len(), chunk.logprobs.len());
        tokens += chunk.token_ids.len();
        let message = crate::convert::chunk(chunk);
        let bytes = prost::Message::encoded_len(&message);
        assert!(bytes < 2 << 20, "{bytes}");
    }
    assert_eq!(tokens, 10_000);
}

#[tokio::test]
async fn no_chunk_outgrows_a_message() {
    let (sink, mut replies) = channel();
    let text = "x".repeat(1000);
    for token in 0..200 {
        sink.push(&text, &[token], Vec::new());
    }
    sink.finish(finished());
    let (mut tokens, mut bytes) = (Vec::new(), 0);
    while let Some(Reply::Chunk(chunk)) = replies.next().await {
        assert!(chunk.text.len() <= MAX_CHUNK_TEXT_BYTES);
        bytes += chunk.text.len();
        tokens.extend(chunk.token_ids);
    }
    assert_eq!(bytes, 200_000);
    assert_eq!(tokens, (0..200).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_waiting_reader_wakes() {
    let (sink, mut replies) = channel();
    let reader = tokio::spawn(async move { replies.next().await });
    tokio::task::yield_now().await;
    sink.push("now", &[], Vec::new());
    assert_eq!(chunk(reader.await.unwrap()).text, "now");
}

#[tokio::test]
async fn a_lost_sink_is_an_error_not_a_hang() {
    let (sink, mut replies) = channel();
    sink.push("partial", &[7], Vec::new());
    drop(sink);
    assert_eq!(chunk(replies.next().await).text, "partial");
    match replies.next().await {
        Some(Reply::Failed(status)) => assert_eq!(status.code(), tonic::Code::Internal),
        other => panic!("not an error: {other:?}"),
    }
    assert!(replies.next().await.is_none());
}

#[test]
fn the_first_reason_to_go_counts() {
    let (sink, replies) = channel();
    assert_eq!(sink.gone(), None);
    drop(replies);
    assert_eq!(sink.gone(), Some(Gone::Client));

    let (sink, replies) = channel();
    replies.abandon(Gone::Deadline);
    drop(replies);
    assert_eq!(sink.gone(), Some(Gone::Deadline));
}
