//! The leading eigenfunctions of a kernel, exactly and by Nyström's method, at new points.
//!
//! `cargo run --release -p mercer --example eigenfunctions`

use mercer::prelude::*;

pub(crate) fn main() -> Result<(), mercer::Error> {
    let (x, _) = synthetic::two_moons(400, 0.05, 0)?;
    let (new, _) = synthetic::two_moons(5, 0.05, 1)?;
    let kernel = KernelFn::new("rbf(lengthscale=0.5)", None)?;
    let exact = kernel.eigen(&x, 5)?;
    let nystrom = kernel.nystrom(&x, 5, Landmarks::PivotedCholesky(60))?;
    println!("eigenvalues  {:.5}", exact.values());
    println!("by Nyström   {:.5}", nystrom.values());
    println!("at new points\n{:.3}", exact.evaluate(&new)?);
    println!("by Nyström\n{:.3}", nystrom.evaluate(&new)?);
    Ok(())
}
