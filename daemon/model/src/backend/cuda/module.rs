//! Compiled kernels on the device.
#![expect(unsafe_code, reason = "the driver loads them")]

use std::ffi::CString;
use std::sync::Arc;

use cudarc::driver::{result, sys};

use super::driver::{Gpu, failed};
use crate::backend::BackendError;

/// A compiled kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Function(sys::CUfunction);

// SAFETY: a handle that any thread may use while its module is loaded; who has kernels has their modules.
unsafe impl Send for Function {}
// SAFETY: as above.
unsafe impl Sync for Function {}

impl Function {
    /// As the driver knows it.
    pub(super) fn handle(self) -> sys::CUfunction {
        self.0
    }
}

/// Compiled kernels on the device, until it is dropped.
#[derive(Debug)]
pub(super) struct Module {
    module: sys::CUmodule,
    gpu: Arc<Gpu>,
}

// SAFETY: a handle that any thread may use; every call makes the context current on its own.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads what the compiler made.
    pub(super) fn load(gpu: &Arc<Gpu>, image: &'static [u8]) -> Result<Self, BackendError> {
        if image.is_empty() {
            // The driver reads an image without being told its length.
            return Err(BackendError::Unsupported(
                "GPUs here, because it was built without kernels (an empty NVCC); build it with NVIDIA's compiler".to_owned(),
            ));
        }
        gpu.enter()?;
        // SAFETY: the image is what the compiler made.
        let module = unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(failed)?;
        let gpu = Arc::clone(gpu);
        Ok(Self { module, gpu })
    }

    /// Finds a kernel by its name.
    pub(super) fn function(&self, name: &str) -> Result<Function, BackendError> {
        self.gpu.enter()?;
        let name = CString::new(name).expect("names have no zeros");
        // SAFETY: the module is loaded.
        unsafe { result::module::get_function(self.module, name) }
            .map(Function)
            .map_err(failed)
    }

    /// The same for a kernel whose blocks take so many bytes of shared memory, which the device must have.
    pub(super) fn function_with(&self, name: &str, room: usize) -> Result<Function, BackendError> {
        let function = self.function(name)?;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: the function is valid.
        unsafe { result::function::set_function_attribute(function.0, attribute, room as i32) }
            .map_err(failed)?;
        Ok(function)
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Backends that used it have waited for their streams when they gave back their memory.
        if self.gpu.enter().is_ok() {
            // SAFETY: nobody has kernels of it any more.
            let _ = unsafe { result::module::unload(self.module) };
        }
    }
}
