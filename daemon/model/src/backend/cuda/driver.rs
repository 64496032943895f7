//! NVIDIA's driver: one device, one stream, memory and launches. What is unsafe about them is here.
#![expect(unsafe_code, reason = "the driver is a C library")]

use std::ffi::c_void;
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{DriverError, result, sys};

use super::module::Function;
use crate::backend::BackendError;

/// The oldest compute capability that kernels are compiled for.
const OLDEST: i32 = 8;

/// A recorded sequence of launches that the device starts at once.
#[derive(Debug)]
pub(super) struct Graph(sys::CUgraphExec);

// SAFETY: a handle that any thread may use, one at a time, and it is not shared.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: the handle is valid and nobody else has it.
        let _ = unsafe { result::graph::exec_destroy(self.0) };
    }
}

/// How a kernel is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Launch {
    pub(super) function: Function,
    pub(super) grid: [u32; 3],
    pub(super) block: u32,
    /// Bytes of shared memory that a block has.
    pub(super) room: u32,
    /// Where its arguments begin, in words of 8 bytes.
    pub(super) arguments: usize,
    /// Whether it may start while the kernel before it ends, for which it waits itself.
    pub(super) overlapping: bool,
}

/// The first device, and a stream on it.
#[derive(Debug)]
pub(super) struct Gpu {
    device: sys::CUdevice,
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// Of the device.
    pub(super) multiprocessors: usize,
    /// Bytes that a block may have at most.
    pub(super) shared_memory: usize,
    /// Whether a kernel can start while the one before it ends.
    pub(super) overlaps: bool,
    allocations: AtomicU64,
}

// SAFETY: the handles may be used by any thread; every call makes the context current on its own.
unsafe impl Send for Gpu {}
// SAFETY: the driver locks what its calls share.
unsafe impl Sync for Gpu {}

/// Says what the driver said.
pub(super) fn failed(error: DriverError) -> BackendError {
    BackendError::Device {
        device: "cuda",
        reason: format!("the driver says {error:?}"),
    }
}

/// Says that memory is short where that is why, and what the driver said otherwise.
pub(super) fn short(error: DriverError, what: &'static str, bytes: usize) -> BackendError {
    match error.0 {
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => BackendError::Memory { what, bytes },
        _ => failed(error),
    }
}

impl Gpu {
    /// Opens the first device.
    pub(super) fn open() -> Result<Arc<Self>, BackendError> {
        // Beside candle's kernels the driver is linked, and the program would not have started without it.
        #[cfg(not(feature = "candle-cuda"))]
        // SAFETY: it only looks for the library.
        if !unsafe { sys::is_culib_present() } {
            return Err(BackendError::Device {
                device: "cuda",
                reason: "NVIDIA's driver (libcuda.so.1) is not installed".to_owned(),
            });
        }
        result::init().map_err(failed)?;
        let device = result::device::get(0).map_err(failed)?;
        use sys::CUdevice_attribute as Attribute;
        let attribute = |name| {
            // SAFETY: the device is valid.
            unsafe { result::device::get_attribute(device, name) }.map_err(failed)
        };
        let major = attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?;
        if major < OLDEST {
            return Err(BackendError::Device {
                device: "cuda",
                reason: format!(
                    "the GPU has compute capability {major}.x, and the kernels need {OLDEST}.0; set device = \"cpu\""
                ),
            });
        }
        // SAFETY: the device is valid, and the context is retained before it is used.
        let gpu = unsafe {
            let context = result::primary_ctx::retain(device).map_err(failed)?;
            result::ctx::set_current(context).map_err(failed)?;
            Self {
                device,
                context,
                stream: result::stream::create(result::stream::StreamKind::NonBlocking)
                    .map_err(failed)?,
                multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?
                    as usize,
                shared_memory: attribute(
                    Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                )? as usize,
                overlaps: major >= 9,
                allocations: AtomicU64::new(0),
            }
        };
        Ok(Arc::new(gpu))
    }

    /// Makes the device the calling thread's.
    pub(super) fn enter(&self) -> Result<(), BackendError> {
        // SAFETY: the context is retained while `self` lives.
        unsafe { result::ctx::set_current(self.context) }.map_err(failed)
    }

    /// Allocates device memory.
    pub(super) fn allocate(&self, bytes: usize) -> Result<u64, BackendError> {
        self.enter()?;
        self.count_allocation();
        // SAFETY: what it holds is written before it is read.
        unsafe { result::malloc_sync(bytes.max(1)) }
            .map_err(|error| short(error, "weights, activations or caches on the GPU", bytes))
    }

    /// Notes that memory was allocated, on the device or for it.
    pub(super) fn count_allocation(&self) {
        self.allocations.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the pieces of memory that were ever allocated.
    pub(super) fn allocations(&self) -> u64 {
        self.allocations.load(Ordering::Relaxed)
    }

    /// Frees it again, once the device no longer works on it.
    pub(super) fn free(&self, pointer: u64) {
        if self.synchronize().is_ok() {
            // SAFETY: it was allocated, and its owner is gone.
            let _ = unsafe { result::free_sync(pointer) };
        }
    }

    /// Sets bytes to zero, in the stream's order.
    pub(super) fn clear(&self, pointer: u64, bytes: usize) -> Result<(), BackendError> {
        self.enter()?;
        // SAFETY: the caller owns so many bytes.
        unsafe { result::memset_d8_async(pointer, 0, bytes, self.stream) }.map_err(failed)
    }

    /// Copies bytes to the device, in the stream's order; they may go at once.
    pub(super) fn upload(&self, pointer: u64, bytes: &[u8]) -> Result<(), BackendError> {
        self.enter()?;
        // SAFETY: the caller owns so many bytes there, and the driver copies from pageable memory before it returns.
        unsafe { result::memcpy_htod_async(pointer, bytes, self.stream) }.map_err(failed)
    }

    /// Copies floats from the device and waits for them.
    pub(super) fn download(&self, pointer: u64, to: &mut [f32]) -> Result<(), BackendError> {
        self.enter()?;
        // SAFETY: the caller owns so many bytes there, and `to` is waited for.
        unsafe { result::memcpy_dtoh_async(to, pointer, self.stream) }.map_err(failed)?;
        self.synchronize()
    }

    /// Waits until the stream has nothing left to do.
    pub(super) fn synchronize(&self) -> Result<(), BackendError> {
        self.enter()?;
        // SAFETY: the stream is valid.
        unsafe { result::stream::synchronize(self.stream) }.map_err(failed)
    }

    /// Starts kernels one after another; each takes one struct, out of `arguments`.
    pub(super) fn launch(
        &self,
        launches: &[Launch],
        arguments: &[u64],
    ) -> Result<(), BackendError> {
        self.enter()?;
        for launch in launches {
            let argument: *const u64 = &raw const arguments[launch.arguments];
            let [x, y, z] = launch.grid;
            let mut parameters = [argument.cast_mut().cast::<c_void>()];
            let mut attribute = sys::CUlaunchAttribute {
                id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                pad: [0; 4],
                value: sys::CUlaunchAttributeValue {
                    programmaticStreamSerializationAllowed: 1,
                },
            };
            let config = sys::CUlaunchConfig {
                gridDimX: x,
                gridDimY: y,
                gridDimZ: z,
                blockDimX: launch.block,
                blockDimY: 1,
                blockDimZ: 1,
                sharedMemBytes: launch.room,
                hStream: self.stream,
                attrs: &raw mut attribute,
                numAttrs: launch.overlapping.into(),
            };
            // SAFETY: who recorded the launch took the struct that the kernel takes, with pointers that are valid in the
            // stream's order.
            unsafe {
                sys::cuLaunchKernelEx(
                    &raw const config,
                    launch.function.handle(),
                    parameters.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            }
            .result()
            .map_err(failed)?;
        }
        Ok(())
    }

    /// Records kernels instead of starting them.
    pub(super) fn capture(
        &self,
        launches: &[Launch],
        arguments: &[u64],
    ) -> Result<Graph, BackendError> {
        self.enter()?;
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is valid, and the capture ends before anything else uses it.
        unsafe {
            result::stream::begin_capture(self.stream, mode).map_err(failed)?;
            let launched = self.launch(launches, arguments);
            let graph = result::stream::end_capture(self.stream).map_err(failed)?;
            let exec = launched.and_then(|()| {
                result::graph::instantiate(graph, sys::CUgraphInstantiate_flags(0)).map_err(failed)
            });
            let _ = result::graph::destroy(graph);
            let exec = exec.map(Graph)?;
            // Or the first replay would do it, and take half as long again.
            result::graph::upload(exec.0, self.stream).map_err(failed)?;
            Ok(exec)
        }
    }

    /// Starts recorded kernels.
    pub(super) fn replay(&self, graph: &Graph) -> Result<(), BackendError> {
        self.enter()?;
        // SAFETY: both handles are valid; the pointers recorded are those of the same step recorded anew.
        unsafe { result::graph::launch(graph.0, self.stream) }.map_err(failed)
    }
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let _ = self.synchronize();
        // SAFETY: nothing uses the stream or the context after this.
        unsafe {
            let _ = result::stream::destroy(self.stream);
            let _ = result::primary_ctx::release(self.device);
        }
    }
}

/// A struct that a kernel takes, as words.
pub(super) fn words<T: Copy>(arguments: &T) -> Vec<u64> {
    let mut words = vec![0_u64; size_of::<T>().div_ceil(8)];
    // SAFETY: `words` has room for the struct, which is plain data. Its padding is never compared across builds; it is
    // zero because the structs handed here have none.
    unsafe {
        std::ptr::copy_nonoverlapping(
            std::ptr::from_ref(arguments).cast::<u8>(),
            words.as_mut_ptr().cast::<u8>(),
            size_of::<T>(),
        );
    }
    words
}

/// Plain data as bytes.
pub(super) fn bytes<T: Copy>(values: &[T]) -> &[u8] {
    // SAFETY: only plain data without padding is handed here.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
