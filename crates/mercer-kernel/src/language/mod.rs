//! The kernel language: every kernel has a text, on the command line, in programs and in saved folders.
//!
//! ```
//! use mercer_kernel::Recipe;
//!
//! let recipe: Recipe = "0.5*normalised(trace) + 0.1*rbf(lengthscale=2)".parse()?;
//! assert_eq!(recipe.to_string(), "0.5*normalised(trace) + 0.1*rbf(lengthscale=2)");
//!
//! let error = "0.5*normalised(trcae)".parse::<Recipe>().unwrap_err();
//! assert_eq!((error.column, &error.reason[..]), (16, "unknown kernel `trcae`; did you mean `trace`?"));
//! # Ok::<(), mercer_kernel::language::SyntaxError>(())
//! ```
//!
//! [`Recipe::parse`] reads a text, and `Display` prints it; printed text reads back as the same recipe. The grammar is
//! in `syntax.rs`, the names and settings of network kernels are in `catalogue.rs`, and those of functions of the data
//! in [`classic`](crate::classic). [`help`] lists all of them.

mod arguments;
mod catalogue;
mod error;
mod lower;
mod print;
mod syntax;

pub(crate) use arguments::unknown_setting;
pub use catalogue::help;
pub(crate) use catalogue::needs_network;
pub use error::SyntaxError;
use mercer_net::arch::Initialisation;
pub(crate) use syntax::{Call, Content, Node, Parsed, Text, Value};

use crate::recipe::Recipe;

/// Defaults for settings that a text leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defaults {
    /// The seed of sketches, directions and random networks.
    pub seed: u64,
    /// How weights of limits and random networks are drawn.
    pub initialisation: Initialisation,
}

impl Recipe {
    /// The kernel that a text describes; see [`language`](self).
    ///
    /// # Errors
    /// The position of the error, and a suggestion.
    pub fn parse(text: &str, defaults: &Defaults) -> Result<Self, SyntaxError> {
        lower::parse(text, defaults)
    }
}

impl std::str::FromStr for Recipe {
    type Err = SyntaxError;

    fn from_str(text: &str) -> Result<Self, SyntaxError> {
        Self::parse(text, &Defaults::default())
    }
}
