//! What the daemon and the command say of themselves.

mod reload;
mod unloaded;
