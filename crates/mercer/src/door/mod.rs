//! The front door: arrays in, arrays out.
//!
//! A [`KernelFn`] is a kernel written as text, with the network it belongs to. It computes Gram matrices, finds eigenfunctions and fits
//! machines. [`train`], [`predict`] and [`posterior`] do the same for networks. Everything takes `ndarray` arrays of `f32` or `f64` whose
//! first axis counts samples, and computes kernels in the precision of the array. The functions are thin: they return
//! the types of the other crates, so a program can continue with those.
//!
//! ```
//! use mercer::prelude::*;
//!
//! let network = Mlp::new(2, &[32], 1).build(0)?; // or Network::from_onnx("model.onnx")?
//! let x = ndarray::array![[0.0, 1.0], [1.0, 0.5], [-1.0, 0.25]];
//! let kernel = KernelFn::new("trace", &network)?;
//! let gram = kernel.gram(&x)?;
//! let machine = kernel.fit(&Ridge::new(1e-3)?, &x, &ndarray::array![0.0, 1.0, -1.0])?;
//! assert_eq!((gram.dim(), machine.predict(&x)?.dim()), ((3, 3), (3, 1)));
//! # Ok::<(), mercer::Error>(())
//! ```

mod arrays;
mod evaluate;
mod kernel;
mod machine;
mod network;
mod recipe;

pub use arrays::{InputArrays, TargetArrays};
pub use evaluate::Evaluate;
pub use kernel::{KernelFn, features_on, gram_on};
pub use machine::FittedMachine;
pub use network::{classify, posterior, predict, predict_on, train, train_on};
pub use recipe::IntoRecipe;
