//! Laplace approximations against reference values, dense formulas and finite differences.

mod golden;
mod nets;
mod reference;
mod refusals;
mod stored;
