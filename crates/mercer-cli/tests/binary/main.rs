//! Runs the `mercer` binary in a fresh folder and looks at what it prints, writes and returns.

mod classic;
mod codes;
mod command_line;
mod compare;
mod corpus;
mod eigen;
mod explain;
mod folder;
mod hostile;
mod info;
mod kept;
mod kernel;
mod kill;
mod limits;
mod machines;
mod memory;
mod parameters;
mod plans;
mod predict;
mod probe;
mod readme;
mod refusals;
mod report;
mod report_data;
mod shift;
mod spectrum;
mod standardise;
mod store;
mod tables;
mod train;
mod uncertainty;

/// The writer of small models that the importer's own tests have.
#[path = "../../../mercer-net/tests/writer/mod.rs"]
mod writer;
