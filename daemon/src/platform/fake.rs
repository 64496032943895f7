//! A platform that says what a test tells it to.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{KeepAwake, OnPressure, Platform, Pressure, PressureWatch};

/// Returns settable readings; clones share them.
#[derive(Clone, Debug, Default)]
pub struct FakePlatform {
    state: Arc<Mutex<State>>,
    awake: Arc<AtomicUsize>,
}

#[derive(Default)]
struct State {
    footprint: u64,
    /// What an allocator would keep of it until it is told to give it back.
    kept: u64,
    physical_memory: u64,
    recommended_working_set: Option<u64>,
    pressure: Pressure,
    watches: Vec<(u64, Arc<OnPressure>)>,
    next_watch: u64,
}

impl FakePlatform {
    /// Reports this footprint and this physical memory, both in bytes, no pressure and no GPU.
    #[must_use]
    pub fn new(footprint: u64, physical_memory: u64) -> Self {
        let fake = Self::default();
        fake.set_footprint(footprint);
        fake.set_physical_memory(physical_memory);
        fake
    }

    /// Sets the footprint in bytes.
    pub fn set_footprint(&self, bytes: u64) {
        self.state().footprint = bytes;
    }

    /// Sets the bytes that the allocator keeps: they are part of the footprint until they are given back.
    pub fn set_kept(&self, bytes: u64) {
        self.state().kept = bytes;
    }

    /// Sets the physical memory in bytes.
    pub fn set_physical_memory(&self, bytes: u64) {
        self.state().physical_memory = bytes;
    }

    /// Sets what the GPU recommends, in bytes.
    pub fn set_recommended_working_set(&self, bytes: Option<u64>) {
        self.state().recommended_working_set = bytes;
    }

    /// Sets the pressure. Where that is a change, every watch has been told on a thread of its own when this returns.
    pub fn set_pressure(&self, pressure: Pressure) {
        let told: Vec<Arc<OnPressure>> = {
            let mut state = self.state();
            if state.pressure == pressure {
                return;
            }
            state.pressure = pressure;
            let watches = state.watches.iter();
            watches.map(|(_, told)| Arc::clone(told)).collect()
        };
        // Not under the lock: who is told may ask for readings. The scope ends when all have been told.
        std::thread::scope(|scope| {
            for on_change in told {
                scope.spawn(move || on_change(pressure));
            }
        });
    }

    /// Returns how many guards keep the system awake.
    #[must_use]
    pub fn awake(&self) -> usize {
        self.awake.load(Ordering::SeqCst)
    }

    /// Returns how many watches of the pressure there are.
    #[must_use]
    pub fn watches(&self) -> usize {
        self.state().watches.len()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is one assignment, so a panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Platform for FakePlatform {
    fn footprint(&self) -> io::Result<u64> {
        let state = self.state();
        Ok(state.footprint + state.kept)
    }

    fn physical_memory(&self) -> io::Result<u64> {
        Ok(self.state().physical_memory)
    }

    fn performance_cores(&self) -> Option<usize> {
        None
    }

    fn recommended_working_set(&self) -> Option<u64> {
        self.state().recommended_working_set
    }

    fn pressure(&self) -> io::Result<Pressure> {
        Ok(self.state().pressure)
    }

    fn watch_pressure(&self, on_change: OnPressure) -> io::Result<PressureWatch> {
        let mut state = self.state();
        let id = state.next_watch;
        state.next_watch += 1;
        state.watches.push((id, Arc::new(on_change)));
        drop(state);
        let fake = self.clone();
        Ok(PressureWatch::new(move || {
            fake.state().watches.retain(|(other, _)| *other != id);
        }))
    }

    fn give_back(&self) {
        self.state().kept = 0;
    }

    fn keep_awake(&self) -> KeepAwake {
        let awake = Arc::clone(&self.awake);
        awake.fetch_add(1, Ordering::SeqCst);
        KeepAwake::new(move || {
            awake.fetch_sub(1, Ordering::SeqCst);
        })
    }
}

impl fmt::Debug for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("State")
            .field("footprint", &self.footprint)
            .field("kept", &self.kept)
            .field("physical_memory", &self.physical_memory)
            .field("pressure", &self.pressure)
            .field("watches", &self.watches.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watches_hear_of_changes_until_they_are_dropped() {
        let fake = FakePlatform::new(1, 2);
        let heard = Arc::new(Mutex::new(Vec::new()));
        let watch = fake
            .watch_pressure(Box::new({
                let (fake, heard) = (fake.clone(), Arc::clone(&heard));
                // Asking from inside the call must not lock up.
                move |level| {
                    heard
                        .lock()
                        .unwrap()
                        .push((level, fake.pressure().unwrap()))
                }
            }))
            .unwrap();
        fake.set_pressure(Pressure::Normal);
        fake.set_pressure(Pressure::Critical);
        fake.set_pressure(Pressure::Critical);
        fake.set_pressure(Pressure::Warn);
        drop(watch);
        fake.set_pressure(Pressure::Normal);
        let both = |level| (level, level);
        assert_eq!(
            *heard.lock().unwrap(),
            [both(Pressure::Critical), both(Pressure::Warn)]
        );
        assert_eq!(fake.watches(), 0);
    }

    #[test]
    fn levels_are_in_order() {
        assert!(Pressure::Normal < Pressure::Warn && Pressure::Warn < Pressure::Critical);
    }

    #[test]
    fn guards_that_keep_awake_add_up() {
        let fake = FakePlatform::default();
        let (one, two) = (fake.keep_awake(), fake.keep_awake());
        assert_eq!(fake.awake(), 2);
        drop(one);
        assert_eq!(fake.awake(), 1);
        drop(two);
        assert_eq!(fake.awake(), 0);
    }
}
