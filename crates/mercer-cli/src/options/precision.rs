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

/// A scalar that data are read into and networks run in.
pub(crate) trait Real: mercer::data::Element + mercer::net::Element {}

impl Real for f32 {}
impl Real for f64 {}
