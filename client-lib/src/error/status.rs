//! The one table from gRPC statuses to [`Error`].

use std::error::Error as StdError;
use std::io;
use std::path::Path;

use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::{Error, FieldError};
use crate::UntrustedSocket;

impl Error {
    /// Reads a status and its `google.rpc` details; `socket` is named where nothing answered.
    pub(crate) fn from_status(status: &Status, socket: &Path) -> Self {
        if let Some(error) = from_transport(status, socket) {
            return error;
        }
        let details = status.get_error_details();
        let reason = details.error_info().map_or("", |info| info.reason.as_str());
        let message = status.message().to_owned();
        let retry_after = details.retry_info().and_then(|info| info.retry_delay);
        match (status.code(), reason) {
            (Code::Unavailable, _) => Self::NotReady {
                message,
                retry_after,
            },
            (Code::ResourceExhausted, _) => Self::QueueFull {
                message,
                retry_after,
            },
            (Code::InvalidArgument, "CONTEXT_OVERFLOW") => {
                context_overflow(&details).unwrap_or_else(|| invalid_request(message, &details))
            }
            (Code::InvalidArgument, _) => invalid_request(message, &details),
            (Code::NotFound, _) => {
                let pair = details
                    .resource_info()
                    .map(|info| info.resource_name.clone())
                    .unwrap_or_default();
                Self::UnknownPair { pair, message }
            }
            (Code::FailedPrecondition, "SPECULATION_UNAVAILABLE") => {
                Self::SpeculationUnavailable { message }
            }
            (Code::FailedPrecondition, "RELOAD_FAILED") => Self::ReloadFailed { message },
            (Code::FailedPrecondition, "PAIR_NOT_LOADED") => {
                let pair = details
                    .error_info()
                    .and_then(|info| info.metadata.get("pair"));
                Self::PairNotLoaded {
                    pair: pair.cloned().unwrap_or_default(),
                    message,
                }
            }
            (Code::FailedPrecondition, _) => Self::PairUnusable { message },
            (Code::PermissionDenied, _) => Self::PermissionDenied { message },
            (Code::DeadlineExceeded, _) => Self::DeadlineExceeded { message },
            (code, _) => Self::Failed { code, message },
        }
    }
}

/// Recognizes statuses that this side made up because the transport failed: only those have a source.
fn from_transport(status: &Status, socket: &Path) -> Option<Error> {
    let mut causes: Vec<&(dyn StdError + 'static)> = Vec::new();
    let mut next = status.source();
    while let Some(cause) = next {
        causes.push(cause);
        next = cause.source();
    }
    let root = causes.last()?;
    if let Some(untrusted) = root.downcast_ref::<UntrustedSocket>() {
        return Some(untrusted.clone().into());
    }
    if causes
        .iter()
        .any(|cause| cause.is::<tonic::TimeoutExpired>())
    {
        return Some(Error::DeadlineExceeded {
            message: "no answer in time".to_owned(),
        });
    }
    let reason = match root.downcast_ref::<io::Error>().map(io::Error::kind) {
        Some(io::ErrorKind::NotFound) => "the socket does not exist".to_owned(),
        Some(io::ErrorKind::ConnectionRefused) => "nothing listens on it".to_owned(),
        _ => root.to_string(),
    };
    if causes.iter().any(|cause| cause.is::<tonic::ConnectError>()) {
        return Some(Error::DaemonUnavailable {
            socket: socket.to_path_buf(),
            reason,
        });
    }
    Some(Error::ConnectionLost { reason })
}

fn context_overflow(details: &ErrorDetails) -> Option<Error> {
    let metadata = &details.error_info()?.metadata;
    let number = |key: &str| metadata.get(key)?.parse().ok();
    Some(Error::ContextOverflow {
        prompt_tokens: number("prompt_tokens")?,
        max_tokens: number("max_tokens")?,
        context_length: number("context_length")?,
    })
}

fn invalid_request(message: String, details: &ErrorDetails) -> Error {
    let fields = details.bad_request().map_or_else(Vec::new, |bad| {
        bad.field_violations
            .iter()
            .map(|violation| FieldError {
                field: violation.field.clone(),
                description: violation.description.clone(),
            })
            .collect()
    });
    Error::InvalidRequest { message, fields }
}
