//! Kernels of networks.
//!
//! A kernel is computed in two phases: *prepare* runs once per block of samples (forward, seeded reverse, factors), and
//! *contract* once per pair of blocks (matrix products). See [`Kernel`].
//!
//! ```
//! use mercer_kernel::{Ntk, NtkKind};
//! use mercer_net::arch::Mlp;
//!
//! let network = Mlp::new(2, &[8], 3).build(0)?;
//! let ntk = Ntk::<f64>::new(&network, &[vec![2]], NtkKind::Trace)?;
//! let gram = ntk.gram(&[&[1.0, 0.0, 0.5, -1.0]], 2)?;
//! assert_eq!(gram[1], gram[2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod activation;
pub mod algebra;
pub mod classic;
pub mod direction;
pub mod empirical;
mod error;
mod feature;
pub mod gram;
pub mod infinite;
mod kernel;
pub mod language;
pub mod montecarlo;
pub mod operator;
mod products;
mod recipe;
mod saved;
mod shards;
pub mod sketch;
pub mod store;

pub use activation::{Activations, Conjugate};
pub use algebra::{Normalised, Product, Scaled, Sum};
pub use classic::Classic;
pub use direction::Directions;
pub use empirical::{Ntk, NtkForm, NtkKind, Selection};
pub use error::{KernelError, Result};
pub use feature::{Effort, FeatureMap, Features};
pub use kernel::{Block, Cost, Kernel, Real};
pub use montecarlo::{MonteCarlo, RandomNetworks};
pub use operator::NtkOperator;
pub use recipe::{Built, Recipe};
pub use saved::{SavedKernel, same_kernel};
pub use sketch::Sketch;
