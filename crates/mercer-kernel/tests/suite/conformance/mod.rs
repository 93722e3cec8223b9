//! One suite for all kernels: what every member of the table in `members.rs` must do, on every network of `networks.rs`.
//! Beside it, what only some of them have to do.

mod activations;
mod algebra;
mod directions;
mod endings;
mod jacobian;
mod members;
mod networks;
mod operator;
mod suite;
