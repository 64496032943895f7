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
        Self {
            uid: rustix::process::geteuid().as_raw(),
        }
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
