//! The scalar that a network runs in.

use serde::Serialize;

/// Single or double precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Precision {
    /// Single precision
    F32,
    /// Double precision
    F64,
}

pub(crate) use mercer::kernel::Real;
