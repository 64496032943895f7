//! Only processes of our own user are served, whatever the permissions of the socket and its directory.

use tonic::service::Interceptor;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Extensions, Request, Status};

use crate::errors;

/// Refuses calls over connections of another user with PERMISSION_DENIED.
///
/// It answers calls rather than dropping connections, so that a client sees why.
#[derive(Clone, Copy, Debug)]
pub struct SameUser {
    uid: u32,
}

impl SameUser {
    /// Serves the user that this process runs as.
    #[must_use]
    pub fn new() -> Self {
        Self::serving(rustix::process::geteuid().as_raw())
    }

    /// Serves this user.
    pub(crate) fn serving(uid: u32) -> Self {
        Self { uid }
    }
}

/// Returns the process on the other side, where the system names it. A program keeps its number as long as it lives,
/// whatever connections it opens.
pub(crate) fn process(call: &Extensions) -> Option<i32> {
    call.get::<UdsConnectInfo>()?.peer_cred?.pid()
}

impl Default for SameUser {
    fn default() -> Self {
        Self::new()
    }
}

impl Interceptor for SameUser {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        let peer = request
            .extensions()
            .get::<UdsConnectInfo>()
            .and_then(|info| info.peer_cred)
            .map(|cred| cred.uid());
        if peer == Some(self.uid) {
            Ok(request)
        } else {
            Err(errors::foreign_user(peer, self.uid))
        }
    }
}

#[cfg(test)]
mod tests {
    use hyper_util::rt::TokioIo;
    use tokio::net::UnixStream;
    use tonic::Code;
    use tonic::service::InterceptorLayer;
    use tonic::transport::{Endpoint, Server};
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_client::HealthClient;
    use tonic_types::StatusExt as _;

    use super::*;

    /// What a daemon that serves `uid` answers to a call over a socket pair, whose both ends are of whoever runs this test.
    async fn answer(uid: u32) -> Result<(), Status> {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (_reporter, health) = tonic_health::server::health_reporter();
        let serving = Server::builder()
            .layer(InterceptorLayer::new(SameUser::serving(uid)))
            .add_service(health)
            .serve_with_incoming(tokio_stream::once(Ok::<_, std::io::Error>(theirs)));
        let serving = tokio::spawn(serving);
        let mut stream = Some(TokioIo::new(ours));
        let connector = tower::service_fn(move |_| {
            let stream = stream.take();
            async move { stream.ok_or_else(|| std::io::Error::other("there is one connection")) }
        });
        let channel = Endpoint::from_static("http://localhost")
            .connect_with_connector(connector)
            .await
            .unwrap();
        let check = HealthCheckRequest::default();
        let answer = HealthClient::new(channel).check(check).await;
        serving.abort();
        answer.map(drop)
    }

    #[tokio::test]
    async fn a_process_of_another_user_is_refused_whoever_we_are() {
        let own = rustix::process::geteuid().as_raw();
        answer(own).await.expect("our own user is served");
        for other in [own + 1, own.wrapping_sub(1)] {
            let refused = answer(other).await.expect_err("another user is not");
            assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
            let info = refused.get_details_error_info().unwrap();
            assert_eq!(info.reason, "FOREIGN_USER");
            assert_eq!(info.metadata["served_uid"], other.to_string());
        }
    }

    #[test]
    fn a_peer_that_nobody_names_is_refused() {
        let own = rustix::process::geteuid().as_raw();
        let refused = SameUser::serving(own).call(Request::new(())).unwrap_err();
        assert_eq!(refused.code(), Code::PermissionDenied, "{refused}");
    }
}
