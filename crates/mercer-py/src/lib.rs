//! The extension module `mercer._mercer`: kernels, networks and every command for Python.
//!
//! It is thin. Arrays come in and go out by pointer (`arrays`), errors keep their code and hints (`failure`), and all
//! work runs on threads of its own while Python's lock is free (`work`). The package `python/mercer` has the
//! functions that users call; [`mercer_cli::describe`] says which there are.

mod arrays;
mod commands;
mod failure;
mod kernel;
mod network;
mod pool;
mod work;

use pyo3::prelude::*;

/// The compiled part of the package `mercer`. It is private: use the package.
#[pymodule]
mod _mercer {
    #[pymodule_export]
    use crate::arrays::Numbers;
    #[pymodule_export]
    use crate::commands::{call, describe, instructions, main, pack, size};
    #[pymodule_export]
    use crate::kernel::Kernel;
    #[pymodule_export]
    use crate::network::Network;

    /// The version of the library.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
