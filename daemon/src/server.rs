//! The gRPC server over the socket, from the first connection to the last byte of a drain.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _, stream};
use tandem_proto::v1::tandem_service_server::TandemServiceServer;
use tandem_proto::{FILE_DESCRIPTOR_SET, SERVICE_NAME};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tonic::codegen::http;
use tonic::service::InterceptorLayer;
use tonic::transport::Server;
use tonic::{Code, Status};
use tonic_health::ServingStatus;
use tower::util::MapResponseLayer;

use crate::errors;
use crate::health;
use crate::listener::{SameUser, SocketHold};
use crate::phase::{Phase, draining, ended};
use crate::residency::Cause;
use crate::service::{Daemon, Service};
use crate::{RunError, Signal};

/// How long connections may take to send what is buffered, once no stream has anything to add. Streams of other
/// services, such as a health watch, never end by themselves and are cut then.
const FLUSH: Duration = Duration::from_millis(500);
/// The same after a second signal.
const FLUSH_AT_ONCE: Duration = Duration::from_millis(100);
/// Pause after a failed accept, which mostly means that file descriptors have run out.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where connections come from.
pub(crate) struct Door {
    /// Not empty.
    pub(crate) listeners: Vec<UnixListener>,
    /// Sockets that are to be served in place of the first one, which went.
    pub(crate) made: mpsc::Receiver<UnixListener>,
    /// Ends when clients cannot reach the daemon any more.
    pub(crate) lost: JoinHandle<()>,
    pub(crate) hold: Arc<SocketHold>,
}

/// Serves until the first of `signals`, then drains until the second or the drain limit.
pub(crate) async fn serve(
    daemon: &Arc<Daemon>,
    door: Door,
    mut signals: mpsc::Receiver<Signal>,
    engine_ended: &mut oneshot::Receiver<()>,
) -> Result<(), RunError> {
    let (reporter, health_service) = tonic_health::server::health_reporter();
    reporter
        .set_service_status("", ServingStatus::NotServing)
        .await;
    reporter
        .set_service_status(SERVICE_NAME, ServingStatus::NotServing)
        .await;
    tokio::spawn(health::follow(Arc::clone(daemon), reporter));

    let limit = daemon.residency.config().server.max_message_bytes;
    let service = TandemServiceServer::new(Service(Arc::clone(daemon)))
        .max_decoding_message_size(limit)
        .max_encoding_message_size(limit);
    let descriptors = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let router = Server::builder()
        .layer(InterceptorLayer::new(SameUser::new()))
        .layer(MapResponseLayer::new(move |response| {
            explained(response, limit)
        }))
        .add_service(service)
        .add_service(health_service)
        .add_service(descriptors().build_v1().map_err(RunError::Reflection)?)
        .add_service(
            descriptors()
                .build_v1alpha()
                .map_err(RunError::Reflection)?,
        );
    let Door {
        listeners,
        made,
        mut lost,
        hold,
    } = door;
    let mut made = Some(made);
    let incoming = stream::select_all(
        listeners
            .into_iter()
            .map(|one| connections(one, made.take()).boxed()),
    );
    // While it drains, the sockets are closed, but connections that are open stay so: calls on them are told why they are
    // refused, which a connection that says goodbye cannot do.
    let incoming = incoming
        .take_until(draining(daemon.lifecycle.watch()))
        .chain(stream::pending());
    let ended = ended(daemon.lifecycle.watch());
    let mut serving = tokio::spawn(router.serve_with_incoming_shutdown(incoming, ended));

    tokio::select! {
        ended = &mut serving => {
            return match ended {
                Ok(Err(source)) => Err(RunError::Server(source)),
                Ok(Ok(())) | Err(_) => Err(RunError::ServerEnded),
            };
        }
        _ = engine_ended => {
            daemon.lifecycle.enter(Phase::Ended);
            return Err(RunError::EngineThreadEnded);
        }
        () = end_asked(daemon, &mut signals) => {}
        _ = &mut lost => {}
    }
    if !lost.is_finished() {
        lost.abort();
        // What it holds of the socket is to be gone before the daemon is.
        let _cancelled = lost.await;
    }
    let flush = drain(daemon, &hold, &mut signals).await;
    if tokio::time::timeout(flush, &mut serving).await.is_err() {
        tracing::debug!("cutting connections that are still open");
        serving.abort();
    }
    Ok(())
}

/// Gives details to the one refusal that does not come from us: of a message that is too large to be read.
fn explained<B: Default>(response: http::Response<B>, limit: usize) -> http::Response<B> {
    let refused = response.extensions().get::<Status>();
    let size = refused.and_then(|status| {
        let foreign = status.code() == Code::OutOfRange && status.details().is_empty();
        let found = status.message().split_once("found ")?.1;
        let digits = found.split_once(' ')?.0;
        digits.parse().ok().filter(|_| foreign)
    });
    match size {
        Some(size) => errors::message_too_large("request", size, limit).into_http(),
        None => response,
    }
}

/// Waits for a signal to end, and has the configuration read again for others.
async fn end_asked(daemon: &Daemon, signals: &mut mpsc::Receiver<Signal>) {
    while let Some(Signal::Reload) = signals.recv().await {
        let residency = Arc::clone(&daemon.residency);
        // It says itself how it went.
        tokio::spawn(async move { drop(residency.reload(Cause::Signal).await) });
    }
}

/// Waits for another signal to end; a channel that closes brings none.
async fn end_insisted(signals: &mut mpsc::Receiver<Signal>) {
    loop {
        match signals.recv().await {
            Some(Signal::End) => return,
            Some(Signal::Reload) => {}
            None => std::future::pending().await,
        }
    }
}

/// Lets open streams end by themselves, then makes them; returns how long to wait for the last bytes.
async fn drain(
    daemon: &Daemon,
    hold: &SocketHold,
    signals: &mut mpsc::Receiver<Signal>,
) -> Duration {
    let lifecycle = &daemon.lifecycle;
    let limit = daemon.residency.config().server.drain;
    // Before the sockets are closed: who finds them so looks there.
    hold.say_draining(limit);
    lifecycle.enter(Phase::Draining);
    tracing::info!(
        open_streams = lifecycle.open_streams(),
        limit_s = limit.as_secs(),
        "draining"
    );
    let flush = tokio::select! {
        () = lifecycle.all_closed() => FLUSH,
        () = tokio::time::sleep(limit) => FLUSH,
        () = end_insisted(signals) => FLUSH_AT_ONCE,
    };
    let cut = lifecycle.open_streams();
    if cut > 0 {
        tracing::warn!(open_streams = cut, "ending streams that are not done");
    }
    lifecycle.enter(Phase::Ended);
    flush
}

/// Accepts for ever, from sockets that were `made` once they come; a failure to accept is logged and waited out, not spun
/// on.
fn connections(
    listener: UnixListener,
    made: Option<mpsc::Receiver<UnixListener>>,
) -> impl Stream<Item = std::io::Result<UnixStream>> {
    stream::unfold((listener, made), |(mut listener, mut made)| async move {
        loop {
            let accepted = tokio::select! {
                // Who connected before the socket went is served before it is given up.
                biased;
                accepted = listener.accept() => accepted,
                new = next(&mut made) => {
                    listener = new;
                    continue;
                }
            };
            match accepted {
                Ok((connection, _)) => return Some((Ok(connection), (listener, made))),
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    })
}

/// Waits for the next socket; where none can come, for ever.
async fn next(made: &mut Option<mpsc::Receiver<UnixListener>>) -> UnixListener {
    if let Some(receiver) = made {
        if let Some(listener) = receiver.recv().await {
            return listener;
        }
        *made = None;
    }
    std::future::pending().await
}
