//! Jobs through the library, as every door runs them.

mod kernel;
mod machines;
mod uncertainty;
