//! Jobs through the library, as every door runs them.

mod compare;
mod decoding;
mod eigen;
mod explain;
mod faults;
mod kernel;
mod machines;
mod probe;
mod spectrum;
mod train;
mod train_norm;
mod train_settings;
mod uncertainty;
