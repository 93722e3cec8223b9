//! How sure a network is near its training data and far from it: a Laplace approximation.
//!
//! `cargo run --release -p mercer --example posterior`

use mercer::prelude::*;

pub(crate) fn main() -> Result<(), mercer::Error> {
    let (x, classes) = synthetic::two_moons(300, 0.1, 0)?;
    let mut network = Mlp::new(2, &[32, 32], 2).build(0)?;
    let how = TrainingSpec { learning_rate: Some(0.02), ..TrainingSpec::default() };
    mercer::train(&mut network, &x, &classes, &how)?;

    let posterior = mercer::posterior(&network, &x, &classes, Structure::Kronecker)?;
    let predictive = posterior.evaluate(&ndarray::array![[0.0, 1.0], [1.0, -0.5], [8.0, 8.0], [-8.0, 8.0]])?;
    println!("prior precision of highest evidence  {:.3}", posterior.prior_precision());
    println!("probabilities of the network\n{:.3}", predictive.map());
    println!("with the posterior\n{:.3}", predictive.probit());
    Ok(())
}
