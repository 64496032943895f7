//! One file per subcommand.

pub(crate) mod bench;
pub(crate) mod cache;
pub(crate) mod chat;
pub(crate) mod completions;
pub(crate) mod daemon;
pub(crate) mod doctor;
mod input;
pub(crate) mod logs;
pub(crate) mod pull;
pub(crate) mod reload;
pub(crate) mod run;
pub(crate) mod service;
pub(crate) mod status;
pub(crate) mod tokenize;
