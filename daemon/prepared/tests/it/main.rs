//! The whole way of a prepared file, on small made-up models: making, finding, damage, races, limits, full disks.
#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod child;
mod damage;
mod disk;
mod limit;
mod lost;
mod race;
mod restart;
mod world;
