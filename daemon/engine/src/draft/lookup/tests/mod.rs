//! The lookup against a search through everything, and what its memory and its history promise.

mod drafter;
mod history;
mod search;
mod text;
