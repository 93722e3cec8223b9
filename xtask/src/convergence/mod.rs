//! `cargo xtask convergence`: how networks of finite width approach their limit.
//!
//! *circle* is the experiment of Jacot, Gabriel and Hongler 2018 (arXiv 1806.07572, section 6.1, figure 1), *rates* measures how
//! distances from the limit fall with the width.

mod circle;
mod rates;

use crate::{Outcome, option};

/// Takes `--only circle|rates`, `--widths N,N`, `--seeds N` and `--steps N` of the circle, `--networks N` of the rates, and `-o
/// FIGURE.svg`.
pub(crate) fn run(arguments: &[String]) -> Outcome {
    let only = option(arguments, "--only");
    let mut good = true;
    if only.is_none_or(|name| name == "circle") {
        good &= circle::run(arguments)?;
    }
    if only.is_none_or(|name| name == "rates") {
        good &= rates::run(arguments)?;
    }
    Ok(good)
}
