//! The scalar that a job computes in.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Single or double precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Precision {
    /// All of them, with what they are.
    pub const ALL: [(Self, &'static str); 2] = [(Self::F32, "Single precision"), (Self::F64, "Double precision")];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(precision, _)| precision.name() == text);
        found.map(|(precision, _)| *precision).ok_or_else(|| format!("`{text}` is no precision: f32 or f64"))
    }
}
