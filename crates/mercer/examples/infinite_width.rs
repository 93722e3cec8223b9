//! The NNGP and the NTK of an infinitely wide network, as kernels of support vector machines.
//!
//! `cargo run --release -p mercer --example infinite_width`

use mercer::prelude::*;
use ndarray::{Axis, s};

pub(crate) fn main() -> Result<(), mercer::Error> {
    let (train, test) = digits::split()?;
    let x = train.pixels()?.insert_axis(Axis(1));
    let new = test.pixels()?.insert_axis(Axis(1));
    let (x, labels) = (x.slice(s![..400, .., .., ..]), &train.classes.indices()[..400]);
    let network = Cnn::new(&[1, 8, 8], &[CnnLayer::dense(64), CnnLayer::dense(64)], 10).build(0)?;
    for kernel in ["nngp", "ntk-limit"] {
        let kernel_fn = KernelFn::new(kernel, &network)?;
        let gram = kernel_fn.gram(x)?;
        let machine = kernel_fn.fit(&Svm::new(10.0)?, x, labels)?;
        let accuracy = metrics::accuracy(&machine.classify(&new)?, test.classes.indices())?;
        println!("{kernel:9}  K(x, x) = {:.4}  accuracy {:.1} %", gram[[0, 0]], 100.0 * accuracy);
    }
    Ok(())
}
