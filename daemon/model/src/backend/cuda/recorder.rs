//! The launches of a step, collected and started together. A step whose launches come often, to the byte, is
//! replayed as a graph: all that differs from step to step is data, uploaded in one piece.

use std::sync::Arc;

use super::driver::{Gpu, Graph, Launch, words};
use super::memory::Buffer;
use super::module::Function;
use crate::backend::BackendError;

/// Bytes of the data that a step uploads.
const UPLOAD: usize = 16 << 20;
/// Times that a step is started launch by launch before it is made a graph: that takes as long as the graph saves in three
/// to eight steps, the more the shorter steps are.
const PATIENCE: u32 = 4;
/// The same while steps are rehearsed that every request will have.
const EAGER: u32 = 2;
/// Steps that are remembered: those of up to some 20 rows, at contexts of several lengths.
const REMEMBERED: usize = 192;

/// Launches with their arguments.
#[derive(Debug, Default)]
struct Launches {
    launches: Vec<Launch>,
    arguments: Vec<u64>,
}

#[derive(Debug)]
struct Known {
    launches: Launches,
    /// `None`: not started often enough.
    graph: Option<Graph>,
    starts: u32,
    used: u64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Recorder {
    gpu: Arc<Gpu>,
    now: Launches,
    data: Vec<u8>,
    room: Buffer,
    known: Vec<Known>,
    flushes: u64,
    /// Whether the launch recorded last keeps the device busy.
    filled: bool,
    /// See [`Self::preparations`].
    preparations: u64,
    eager: bool,
    options: Options,
}

/// A kernel and its extent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    pub(super) function: Function,
    /// Blocks.
    pub(super) grid: [usize; 3],
    /// Of a block.
    pub(super) threads: usize,
    /// Bytes of shared memory of a block, beside what the kernel declares.
    pub(super) room: usize,
    /// Whether it keeps the whole device busy.
    pub(super) fills: bool,
}

/// How kernels are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Steps that come often are started as one graph.
    pub graphs: bool,
    /// Kernels may start while the one before them ends, where the device can.
    pub overlap: bool,
}

impl Recorder {
    pub(super) fn new(gpu: &Arc<Gpu>, options: Options) -> Result<Self, BackendError> {
        Ok(Self {
            gpu: Arc::clone(gpu),
            now: Launches::default(),
            data: Vec::new(),
            room: Buffer::new(gpu, UPLOAD)?,
            known: Vec::new(),
            flushes: 0,
            filled: false,
            preparations: 0,
            eager: false,
            options: Options {
                overlap: options.overlap && gpu.overlaps,
                ..options
            },
        })
    }

    /// Counts the flushes: what was uploaded before the last one is gone.
    pub(super) fn flushes(&self) -> u64 {
        self.flushes
    }

    /// Makes graphs of steps as soon as they come again, or only where that pays.
    pub(super) fn rehearsing(&mut self, on: bool) {
        self.eager = on;
    }

    /// Counts the steps that took longer than they will when their launches come again: those that became graphs, and while
    /// steps are rehearsed all that are none yet. Otherwise a step that is no graph takes what such steps take for now.
    pub(super) fn preparations(&self) -> u64 {
        self.preparations
    }

    /// Data for launches up to the next flush; returns where they find it.
    pub(super) fn upload(&mut self, bytes: &[u8]) -> Result<u64, BackendError> {
        let size = bytes.len().next_multiple_of(64);
        if size > UPLOAD {
            return Err(BackendError::Unsupported(format!(
                "steps whose rows and trees take {size} bytes to describe"
            )));
        }
        if self.data.len() + size > UPLOAD {
            self.flush()?;
        }
        let at = self.data.len();
        self.data.extend_from_slice(bytes);
        self.data.resize(at + size, 0);
        Ok(self.room.pointer + at as u64)
    }

    /// Records a launch of a small kernel.
    pub(super) fn launch<T: Copy>(
        &mut self,
        function: Function,
        grid: [usize; 3],
        threads: usize,
        arguments: &T,
    ) {
        let start = Start {
            function,
            grid,
            threads,
            room: 0,
            fills: false,
        };
        self.record(start, arguments);
    }

    /// Records a launch, unless there is nothing to do in it.
    pub(super) fn record<T: Copy>(&mut self, start: Start, arguments: &T) {
        // The driver refuses a launch of no rows.
        if start.grid.contains(&0) {
            return;
        }
        // Of two that keep the device busy the second waits: it would crowd where the first ends early.
        let crowds = start.fills && self.filled;
        self.filled = start.fills;
        self.now.launches.push(Launch {
            function: start.function,
            grid: start.grid.map(|extent| extent as u32),
            block: start.threads as u32,
            room: start.room as u32,
            arguments: self.now.arguments.len(),
            overlapping: self.options.overlap && !crowds,
        });
        self.now.arguments.extend(words(arguments));
    }

    /// Starts what was recorded.
    pub(super) fn flush(&mut self) -> Result<(), BackendError> {
        let result = self.start();
        self.forget();
        result
    }

    /// Forgets what was recorded: it was started, or never will be.
    pub(super) fn forget(&mut self) {
        self.flushes += 1;
        self.filled = false;
        self.now.launches.clear();
        self.now.arguments.clear();
        self.data.clear();
    }

    fn start(&mut self) -> Result<(), BackendError> {
        if !self.data.is_empty() {
            self.gpu.upload(self.room.pointer, &self.data)?;
        }
        let Launches {
            launches,
            arguments,
        } = &self.now;
        // A few launches are as quick as a graph.
        if !self.options.graphs || launches.len() < 8 {
            return self.gpu.launch(launches, arguments);
        }
        let same = |known: &&mut Known| {
            known.launches.launches == *launches && known.launches.arguments == *arguments
        };
        if let Some(known) = self.known.iter_mut().find(same) {
            known.used = self.flushes;
            if let Some(graph) = &known.graph {
                return self.gpu.replay(graph);
            }
            known.starts += 1;
            self.gpu.launch(launches, arguments)?;
            let patience = if self.eager { EAGER } else { PATIENCE };
            // Where it could not be made, not every time again.
            let ripe = known.starts.is_multiple_of(patience);
            self.preparations += u64::from(ripe || self.eager);
            if ripe {
                // While the device computes. Without a graph it goes on as before.
                known.graph = self.gpu.capture(launches, arguments).ok();
            }
            return Ok(());
        }
        if self.known.len() >= REMEMBERED {
            let oldest = self
                .known
                .iter()
                .enumerate()
                .min_by_key(|(_, known)| known.used);
            if let Some((oldest, _)) = oldest {
                self.gpu.synchronize()?;
                self.known.swap_remove(oldest);
            }
        }
        self.preparations += u64::from(self.eager);
        self.gpu.launch(launches, arguments)?;
        self.known.push(Known {
            launches: std::mem::take(&mut self.now),
            graph: None,
            starts: 1,
            used: self.flushes,
        });
        Ok(())
    }
}
