//! One suite for all eigen-solvers: what every member of the table in `members.rs` must do, on every problem of `problems.rs`
//! that it can be used on. Beside it, what only some of them have to do.

mod architectures;
mod bad_input;
mod comparison;
#[path = "../../../mercer-net/tests/suite/train/damage.rs"]
mod damage;
mod exact;
mod folder;
mod fourier;
mod learnt;
mod members;
mod nystrom;
mod problems;
mod states;
mod suite;
mod tangent;
