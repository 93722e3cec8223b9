//! A kernel machine on the NTK of a trained network: how often it agrees with the network.
//!
//! `cargo run --release -p mercer --example surrogate`

use mercer::prelude::*;
use ndarray::{Axis, s};

pub(crate) fn main() -> Result<(), mercer::Error> {
    let (train, test) = digits::split()?;
    let x = train.pixels()?.insert_axis(Axis(1));
    let new = test.pixels()?.insert_axis(Axis(1));
    let layers = [CnnLayer::conv(8, 3), CnnLayer::max_pool(2), CnnLayer::dense(32)];
    let mut network = Cnn::new(&[1, 8, 8], &layers, 10).build(0)?;
    mercer::train(&mut network, &x, &train.classes, &TrainingSpec::default())?;

    let kernel = KernelFn::new("normalised(trace)", &network)?;
    let (some, labels) = (x.slice(s![..400, .., .., ..]), &train.classes.indices()[..400]);
    let machine = kernel.fit(&Svm::new(10.0)?, some, labels)?;
    let (own, surrogate) = (mercer::classify(&network, &new)?, machine.classify(&new)?);
    println!("accuracy of the network  {:.1} %", 100.0 * metrics::accuracy(&own, test.classes.indices())?);
    println!("accuracy of the machine  {:.1} %", 100.0 * metrics::accuracy(&surrogate, test.classes.indices())?);
    println!("samples they agree on    {:.1} %", 100.0 * metrics::accuracy(&surrogate, &own)?);
    Ok(())
}
