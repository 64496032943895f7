//! Keeps the socket where clients look for it. People clean up runtime directories, and systems remove them when a user
//! logs out, under daemons that live on: unreachable, and with the lock that keeps the next one from starting.
//!
//! What happens in the directories only says when to look. It sleeps while nothing happens.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixListener;
use tokio::sync::mpsc;

use super::hold::Reach;
use super::places::Places;
use super::{ListenError, SocketHold};

/// What removes a socket often goes on to remove its directory.
const SETTLE: Duration = Duration::from_millis(20);
const PAUSE: Duration = Duration::from_millis(100);
/// How often to look where nothing tells when.
const LOOK: Duration = Duration::from_secs(10);
/// Whoever replaces a directory may be slow about it.
const TRIES: u32 = 20;

/// Watches until clients cannot be given the socket back, and then returns: the daemon has to end, so that another one can
/// take its place. `made` takes sockets that are to be served in place of the one before.
pub(crate) async fn keep(hold: Arc<SocketHold>, made: mpsc::Sender<UnixListener>) {
    let (mut failures, mut warned) = (0, false);
    loop {
        // First, so that whatever happens after the look is seen.
        let places = watch(&hold);
        match look(&hold).await {
            Ok(None) => {}
            Ok(Some(listener)) => {
                tracing::warn!(
                    socket = %hold.path().display(),
                    "the socket or its lock was removed or replaced; it is there again"
                );
                if let Some(listener) = listener
                    && made.send(listener).await.is_err()
                {
                    return;
                }
                failures = 0;
                // The directory that is watched may not be the one that it lies in now. Whoever removes it again and again
                // does not keep a core busy.
                tokio::time::sleep(PAUSE).await;
                continue;
            }
            Err(error) => {
                failures += 1;
                let is_final = matches!(
                    error,
                    Gone::TakenAway | Gone::Error(ListenError::AlreadyRunning { .. })
                );
                if is_final || failures >= TRIES {
                    tracing::error!(socket = %hold.path().display(), %error, "clients cannot reach this daemon any more; it ends");
                    return;
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        }
        failures = 0;
        match places {
            Ok(mut places) => places.changed().await,
            // The system may have no watch to give just now, or a directory went between two calls.
            Err(error) => {
                if !std::mem::replace(&mut warned, true) {
                    tracing::warn!(%error, "the socket cannot be watched; it is looked at every {} s", LOOK.as_secs());
                }
                tokio::time::sleep(LOOK).await;
            }
        }
        tokio::time::sleep(SETTLE).await;
    }
}

/// Why clients cannot reach the daemon.
#[derive(Debug, thiserror::Error)]
enum Gone {
    #[error("the service manager's socket was removed")]
    TakenAway,
    #[error(transparent)]
    Error(#[from] ListenError),
}

fn watch(hold: &SocketHold) -> std::io::Result<Places> {
    let files = hold.files();
    let files: Vec<&Path> = files.iter().map(AsRef::as_ref).collect();
    Places::watch(&files)
}

/// Puts back what went: none where nothing did, else the socket, where it had to be made again.
async fn look(hold: &Arc<SocketHold>) -> Result<Option<Option<UnixListener>>, Gone> {
    let hold = Arc::clone(hold);
    let looked = tokio::task::spawn_blocking(move || match hold.reach() {
        Reach::InPlace => Ok(None),
        Reach::TakenAway => Err(Gone::TakenAway),
        Reach::Lost => Ok(Some(hold.restore()?)),
    });
    let restored = looked.await.unwrap_or(Ok(None))?;
    let Some(listener) = restored else {
        return Ok(None);
    };
    let listener = listener.map(UnixListener::from_std).transpose();
    Ok(Some(listener.map_err(|source| {
        ListenError::io("use the socket", Path::new(""), source)
    })?))
}
