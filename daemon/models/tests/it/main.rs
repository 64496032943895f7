//! What the crate promises its callers, against a hub on this machine and a real package index.

mod bundled;
mod cache;
mod choice;
mod faults;
mod hub;
mod kept;
mod options;
mod pip;
mod proxied;
mod pull;
mod reference;
mod world;
