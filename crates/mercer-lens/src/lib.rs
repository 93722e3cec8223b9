//! Lenses: findings about kernels, spectra and predictions, as pure functions of arrays.
//!
//! A lens is one file: a function of arrays that were computed elsewhere, the type of its finding, and its tests. It
//! reads no files, prints nothing and draws no random numbers of its own. Jobs of the `mercer` crate compute the arrays
//! and pass them in.
//!
//! ```
//! let gram = ndarray::array![[2.0, 1.0], [1.0, 2.0]];
//! let found = mercer_lens::extent(gram.view())?;
//! assert!((found.lambda_max - 3.0).abs() < 1e-12 && (found.condition.unwrap() - 3.0).abs() < 1e-9);
//! # Ok::<(), mercer_lens::LensError>(())
//! ```

mod attribution;
mod compare;
mod error;
mod faithfulness;
mod local;

pub use attribution::{Distribution, Example, Grouping, Summary, attributions, summarise};
pub use compare::{Extent, Likeness, extent, likeness};
pub use error::{LensError, Result};
pub use faithfulness::{Bootstrap, Faithfulness, Line, SoftmaxTau, decisions, faithfulness, isotonic, log_odds};
pub use local::{Doubt, LARGE, LocalGap, local_gaps};
