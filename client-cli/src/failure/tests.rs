//! Each way to fail has the exit code that the table says.

use std::os::unix::process::ExitStatusExt as _;

use tandem_client::FieldError;

use super::*;

fn launch(code: i32) -> Failure {
    let status = ExitStatus::from_raw(code << 8);
    Failure::Client(Error::Launch(LaunchError::Exited {
        status,
        log_file: "/x".into(),
        log_tail: String::new(),
    }))
}

#[test]
fn whose_fault_it_was_decides() {
    let text = || "x".to_owned();
    let io = || io::Error::other("x");
    let client = |error: Error| Failure::Client(error);
    let cases = [
        (Failure::OutputClosed, 0),
        (
            client(Error::QueueFull {
                message: text(),
                retry_after: None,
            }),
            1,
        ),
        (client(Error::UnexpectedEnd), 1),
        (client(Error::PairUnusable { message: text() }), 1),
        (client(Error::SpeculationUnavailable { message: text() }), 1),
        (Failure::io("write", io()), 1),
        (Failure::Unwell, 1),
        (Failure::NotCached(text()), 1),
        (Failure::Usage(text()), 2),
        (
            client(Error::InvalidRequest {
                message: text(),
                fields: Vec::<FieldError>::new(),
            }),
            2,
        ),
        (
            client(Error::ContextOverflow {
                prompt_tokens: 9,
                max_tokens: 1,
                context_length: 8,
            }),
            2,
        ),
        (
            Failure::Pull(PullError::NoSuchPath { path: "/x".into() }),
            66,
        ),
        (
            Failure::Pull(PullError::Failed {
                model: text(),
                attempts: Vec::new(),
            }),
            66,
        ),
        (Failure::NotPulled, 66),
        (
            client(Error::DaemonUnavailable {
                socket: "/x".into(),
                reason: text(),
            }),
            69,
        ),
        (
            client(Error::NotReady {
                message: text(),
                retry_after: None,
            }),
            69,
        ),
        (launch(1), 69),
        (
            Failure::Service(ServiceError::NoSession { output: text() }),
            69,
        ),
        (launch(78), 78),
        (Failure::Config(text()), 78),
        (client(Error::ReloadFailed { message: text() }), 78),
        (
            client(Error::PairNotLoaded {
                pair: text(),
                message: text(),
            }),
            78,
        ),
        (
            Failure::NotLoaded {
                pair: text(),
                error: text(),
            },
            78,
        ),
        (client(Error::DeadlineExceeded { message: text() }), 124),
        (Failure::StillRunning { pid: 7, limit_s: 1 }, 124),
        (Failure::Interrupted, 130),
    ];
    for (failure, code) in cases {
        assert_eq!(failure.exit().code(), code, "{failure:?}");
    }
}
