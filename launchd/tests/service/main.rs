//! The service's files and verbs, with commands in place of the managers' own that record what they are told.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod common;
mod golden;
mod launchctl;
mod systemctl;
