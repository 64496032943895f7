//! The one daemon of a user: how it starts, stays reachable, drains and ends.
