//! Networks in, out and in training, in one binary. `allocations` and `robustness` count what is allocated and are processes of their
//! own.

mod budget;
mod endings;
mod export;
mod importer;
mod parameters;
mod passes;
mod python;
mod train;
mod trained;
#[path = "../writer/mod.rs"]
mod writer;
