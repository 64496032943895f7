//! `tandem reload` does what is to be done, says what it could not do, and forgets what is no longer wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use tandem_proto::v1::Residency;
use tandem_tests::grpc::{generate, only_pair, request, status};
use tandem_tests::{Daemon, Home, eventually, models};

use crate::home;

fn reload(daemon: &Daemon) -> (Option<i32>, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = daemon.tandem(&["reload"]).output().unwrap();
    let said = String::from_utf8_lossy(&stdout).into_owned() + &String::from_utf8_lossy(&stderr);
    (status.code(), said)
}

/// A home whose only pair is of files of its own.
fn own_files(draft: bool) -> (Home, PathBuf, PathBuf) {
    let (home, files) = (home(), models::default_pair());
    let (target, small) = (home.path().join("m.gguf"), home.path().join("d.gguf"));
    fs::copy(&files.target, &target).unwrap();
    fs::copy(&files.draft, &small).unwrap();
    let home = match draft {
        true => home.pair("only", &target, &small),
        false => home.pair("only", &target, "none"),
    };
    (home, target, small)
}

/// Has the name `to` mean what `from` holds, as `mv` does it.
fn replace(from: &Path, to: &Path) {
    let new = to.with_extension("new");
    fs::copy(from, &new).unwrap();
    fs::rename(new, to).unwrap();
}

async fn parameters(daemon: &Daemon) -> u64 {
    let info = only_pair(&mut daemon.client().await).await.info.unwrap();
    info.target.unwrap().parameters
}

#[tokio::test]
async fn a_file_that_was_replaced_behind_its_name_is_loaded() {
    let (home, target, _) = own_files(false);
    let daemon = home.start().await;
    let files = models::default_pair();
    let large = parameters(&daemon).await;
    assert_eq!(reload(&daemon), (Some(0), "no pair changed\n".to_owned()));
    replace(&files.draft, &target);
    let (code, said) = reload(&daemon);
    assert_eq!((code, said.as_str()), (Some(0), "changed only\n"));
    assert!(
        parameters(&daemon).await < large / 2,
        "another model serves"
    );
    // Written over in place.
    fs::copy(&files.target, &target).unwrap();
    assert_eq!(reload(&daemon), (Some(0), "changed only\n".to_owned()));
    assert_eq!(parameters(&daemon).await, large);
    // The same once more is no change, whichever file it is.
    replace(&files.target, &target);
    assert_eq!(reload(&daemon), (Some(0), "no pair changed\n".to_owned()));
    // What vanished is missed when it is needed, and not before.
    fs::remove_file(&target).unwrap();
    assert_eq!(reload(&daemon), (Some(0), "no pair changed\n".to_owned()));
    generate(&mut daemon.client().await, request("Hello", 4))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_draft_that_was_replaced_is_loaded_and_one_that_was_missing_is_tried_again() {
    let (home, _, draft) = own_files(true);
    let files = models::default_pair();
    fs::remove_file(&draft).unwrap();
    let daemon = home.start().await;
    let mut client = daemon.client().await;
    let off = only_pair(&mut client)
        .await
        .info
        .unwrap()
        .speculation_off_reason;
    assert!(off.contains("the draft is not used"), "{off}");
    let (code, said) = reload(&daemon);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("d.gguf does not exist"), "{said}");
    generate(&mut client, request("Hello", 4)).await.unwrap();

    fs::copy(&files.draft, &draft).unwrap();
    assert_eq!(reload(&daemon), (Some(0), "loaded again only\n".to_owned()));
    let info = only_pair(&mut client).await.info.unwrap();
    assert_eq!(info.speculation_off_reason, "");
    // The target as its own draft: of the same vocabulary, and another file.
    replace(&files.target, &draft);
    assert_eq!(reload(&daemon), (Some(0), "changed only\n".to_owned()));
    let info = only_pair(&mut client).await.info.unwrap();
    assert!(info.draft.unwrap().parameters > 100_000_000);
}

#[tokio::test]
async fn a_pair_that_could_not_be_loaded_is_loaded_by_a_reload_or_the_reload_says_why_not() {
    let (home, target, _) = own_files(false);
    fs::write(&target, "no model").unwrap();
    let mut daemon = home.spawn();
    eventually("the failure", async || {
        daemon.health("").await.ok()?;
        let info = only_pair(&mut daemon.client().await).await.info?;
        (!info.error.is_empty()).then_some(())
    })
    .await;
    let (code, said) = reload(&daemon);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("m.gguf"), "{said}");
    fs::remove_file(&target).unwrap();
    let (code, said) = reload(&daemon);
    assert_eq!(code, Some(78), "{said}");
    assert!(said.contains("does not exist"), "{said}");
    let info = only_pair(&mut daemon.client().await).await.info.unwrap();
    assert!(
        info.error.contains("does not exist"),
        "the reason now: {info:?}"
    );
    fs::copy(&models::default_pair().target, &target).unwrap();
    assert_eq!(reload(&daemon), (Some(0), "loaded again only\n".to_owned()));
    let info = only_pair(&mut daemon.client().await).await.info.unwrap();
    assert_eq!(
        (info.residency(), info.error.as_str()),
        (Residency::Warm, "")
    );
    daemon.wait_until_serving().await;
}

#[tokio::test]
async fn a_reload_error_goes_when_the_file_is_right_again_however_it_is_put_back() {
    let daemon = home()
        .config("[residency]\nkeep_alive = \"forever\"")
        .start()
        .await;
    let (mut client, path) = (daemon.client().await, daemon.home().paths().config_file);
    let right = fs::read(&path).unwrap();
    let broken = |text: &str| fs::write(&path, text).unwrap();
    let aside = path.with_extension("swp");
    let puts: [(&str, &dyn Fn()); 3] = [
        ("written in place", &|| fs::write(&path, &right).unwrap()),
        ("renamed over", &|| {
            fs::write(&aside, &right).unwrap();
            fs::rename(&aside, &path).unwrap();
        }),
        ("deleted and made again", &|| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, &right).unwrap();
        }),
    ];
    let error = async |client: &mut tandem_tests::grpc::Client| {
        status(client)
            .await
            .reload
            .map_or_else(String::new, |reload| reload.error)
    };
    for (how, put) in puts {
        broken("no_such_key = 1");
        eventually("the error", async || {
            let seen = error(&mut client.clone()).await;
            seen.contains("no_such_key").then_some(())
        })
        .await;
        put();
        eventually(&format!("no error, {how}"), async || {
            error(&mut client.clone()).await.is_empty().then_some(())
        })
        .await;
    }
    broken("no_such_key = 1");
    assert_ne!(reload(&daemon).0, Some(0));
    broken(&String::from_utf8(right).unwrap());
    assert_eq!(reload(&daemon).0, Some(0));
    assert_eq!(error(&mut client).await, "");
}
