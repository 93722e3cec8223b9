//! Laplace approximations against reference values, dense formulas and finite differences.

#![allow(clippy::result_large_err, reason = "closures that passes call return the error of the crate of kernels")]

mod endings;
mod evidence;
mod golden;
mod nets;
mod noise;
mod reference;
mod refusals;
mod spanned;
mod stored;
