//! `Status`, health and `ListPairs` tell the truth.

use std::fs;

use tandem_proto::v1::{ListPairsRequest, Residency};
use tandem_proto::{API_VERSION, SERVICE_NAME};
use tandem_tests::grpc::{generate, only_pair, request, status, until_queued};
use tandem_tests::models;
use tokio_stream::StreamExt as _;
use tonic_health::pb::health_check_response::ServingStatus;

use crate::default_daemon;

#[tokio::test]
async fn memory_is_what_the_system_and_the_files_say() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    generate(&mut client, request("Hello", 4)).await.unwrap();
    let memory = status(&mut client).await.memory.unwrap();

    let files = models::default_pair();
    for (weights, file) in [
        (memory.target_weights, &files.target),
        (memory.draft_weights, &files.draft),
    ] {
        let size = fs::metadata(file).unwrap().len();
        assert!(
            weights > size * 8 / 10 && weights < size * 3,
            "{weights} bytes of weights from a file of {size}"
        );
    }
    assert!(
        memory.footprint > 0 && memory.footprint < memory.budget && memory.budget < memory.physical,
        "{memory:?}"
    );
    #[cfg(target_os = "linux")]
    {
        let dirty = tandem_tests::proc::private_dirty_bytes(daemon.pid());
        let difference = dirty.abs_diff(memory.footprint);
        assert!(
            difference < 16 << 20,
            "footprint {} against {dirty} that the system charges",
            memory.footprint
        );
    }
}

#[tokio::test]
async fn the_cache_grows_with_a_request_and_goes_with_it() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let mut stream = client
        .generate(request("Once upon a time", 400))
        .await
        .unwrap()
        .into_inner();
    stream.next().await.unwrap().unwrap();
    let pair = only_pair(&mut client).await;
    assert_eq!((pair.running, pair.waiting), (1, 0));
    assert!(pair.memory.unwrap().target_kv > 0);
    drop(stream);
    until_queued(&mut client, 0, 0).await;
    assert_eq!(only_pair(&mut client).await.memory.unwrap().target_kv, 0);
}

#[tokio::test]
async fn the_daemon_names_itself_and_its_pair() {
    let daemon = default_daemon().await;
    let mut client = daemon.client().await;
    let state = status(&mut client).await;
    assert_eq!((state.pid, state.api_version), (daemon.pid(), API_VERSION));
    assert_eq!(state.socket_path, daemon.home().socket().to_str().unwrap());
    assert!(!state.backend.is_empty() && !state.server_version.is_empty());

    let pairs = client
        .list_pairs(ListPairsRequest {})
        .await
        .unwrap()
        .into_inner()
        .pairs;
    let [pair] = pairs.as_slice() else {
        panic!("one pair without a config: {pairs:?}")
    };
    assert!(
        pair.is_default && pair.residency() == Residency::Warm && pair.error.is_empty(),
        "{pair:?}"
    );
    let [target, draft] = [pair.target.as_ref().unwrap(), pair.draft.as_ref().unwrap()];
    assert_eq!(
        (target.architecture.as_str(), target.quantization.as_str()),
        ("llama", "Q4_1")
    );
    assert!(
        (130_000_000..140_000_000).contains(&target.parameters),
        "{}",
        target.parameters
    );
    assert!(
        (15_000_000..25_000_000).contains(&draft.parameters),
        "{}",
        draft.parameters
    );
    assert_eq!(target.vocabulary_size, draft.vocabulary_size);
    assert_eq!(pair.speculation_off_reason, "");
}

#[tokio::test]
async fn health_knows_the_service_and_nothing_else() {
    let daemon = default_daemon().await;
    assert_eq!(
        daemon.health(SERVICE_NAME).await.unwrap(),
        ServingStatus::Serving
    );
    let unknown = daemon
        .health("tandem.v1.Nonesuch")
        .await
        .expect_err("there is no such service");
    assert_eq!(unknown.code(), tonic::Code::NotFound);
}
