//! A Gram matrix that never has to fit into memory: a store on disk, and its spectrum by products with it.
//!
//! `cargo run --release -p mercer --example gram_store`

use mercer::prelude::*;

pub(crate) fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("gram.zarr");
    let context = Context::new().with_memory(2 << 30);
    let x = digits::load()?.pixels()?.insert_axis(ndarray::Axis(1));
    let network = Cnn::new(&[1, 8, 8], &[CnnLayer::dense(64)], 10).build(0)?;

    // A run that is interrupted goes on where it stopped when it is called again.
    let store = KernelFn::new("trace", &network)?.within(&context).store(&x, &path)?;
    println!("{:?} in {} tiles", store.layout().shape(), store.n_tiles());

    let gram = KeptGram::open(&Source::new(&path, None))?;
    let spectrum = Spectrum::of_operator(&gram.operator::<f32>(&context)?, 5, Solver::Lanczos, &context)?;
    println!("leading eigenvalues {:.4}", spectrum.values);
    Ok(())
}
