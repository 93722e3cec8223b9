//! The precision of a job.

use serde::{Deserialize, Serialize};

/// Single or double precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

mercer_run::named! {
    Precision, "precision":
    F32 = "f32", "Single precision";
    F64 = "f64", "Double precision";
}
