//! What speculation gives on this machine, with this pair, on these texts: measured through the service, as any client
//! would, and told in tables and charts.
//!
//! Owns prompts, methods, measurement, statistics, tables and charts. Must not know the command line, standard output, or
//! how text is generated: all figures are the daemon's own or the clock's.
//!
//! Map: [`Setup`] says what to measure, [`measure`] returns a [`Report`] of raw samples, and everything else is a function
//! of reports: [`tables`] and [`charts`] show one, [`compare`] shows what changed between two.

pub mod charts;
pub mod claims;
pub mod compare;
mod daemon;
pub mod energy;
mod error;
mod measure;
mod method;
mod pair;
pub mod prompts;
pub mod quiet;
pub mod report;
mod setup;
pub mod stats;
pub mod tables;

pub use daemon::Program;
pub use error::BenchError;
pub use measure::{Progress, measure};
pub use method::{Drafts, Method, Serving};
pub use pair::{Exit, PairChoice};
pub use report::Report;
pub use setup::{Extent, Service, Setup, Topic};
