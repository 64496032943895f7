//! A model file is served as it asks to be, or refused by name.

mod drafts;
mod served;

use std::path::Path;

use tandem_proto::v1::{GenerateRequest, ListPairsRequest, PairInfo};
use tandem_tests::grpc::{Client, request};
use tandem_tests::rewrite::Model;
use tandem_tests::{Daemon, Home, models};

/// The bundled draft, to be changed: a small target that loads quickly.
fn small() -> Model {
    Model::read(&models::default_pair().draft)
}

/// Starts a daemon with pairs of these targets and drafts, "none" for none.
async fn daemon(pairs: &[(&str, &Path, &Path)]) -> Daemon {
    let first = pairs.first().expect("a pair").0;
    let home = super::home().config(&format!("default_pair = \"{first}\""));
    let pair =
        |home: Home, (name, target, draft): &(&str, &Path, &Path)| home.pair(name, target, draft);
    pairs.iter().fold(home, pair).start().await
}

fn to(pair: &str, request: GenerateRequest) -> GenerateRequest {
    GenerateRequest {
        pair: pair.into(),
        ..request
    }
}

/// What the daemon says of a pair.
async fn info(client: &mut Client, pair: &str) -> PairInfo {
    let pairs = client.list_pairs(ListPairsRequest {}).await.unwrap();
    let mut pairs = pairs.into_inner().pairs.into_iter();
    pairs
        .find(|info| info.name == pair)
        .expect("it is configured")
}

const TEXT: &str = "The old lighthouse stood at the edge of the cliff, and";

fn ask(pair: &str) -> GenerateRequest {
    to(pair, request(TEXT, 24))
}
