//! Small networks of PyTorch's exporters whose parameters are easily miscounted: number of parameters, outputs and the full
//! tangent kernel in both precisions.
//!
//! What an exporter merged is counted apart. A file in which weights were computed with (folded batch normalisation, weight norm)
//! is compared with the module that has such parameters (`folded`).

use super::{Fallible, TOLERANCE, error, files, named, open};
use crate::Outcome;
use crate::golden::{counted, distance};
use mercer_kernel::{Ntk, NtkKind, Real};
use mercer_net::Network;
use std::path::Path;

/// Checks the files whose name contains `only`.
pub(super) fn run(folder: &Path, only: &str) -> Outcome {
    println!(
        "\n{:<38} {:>7} {:>8} {:>7}  {:>8} {:>8}  {:>8} {:>8}",
        "network", "as read", "unmerged", "PyTorch", "out, f32", "out, f64", "NTK, f32", "NTK, f64"
    );
    let mut good = true;
    for path in files(folder)?.iter().filter(|path| named(path).contains(only)) {
        if path.extension().is_some_and(|extension| extension == "onnx") {
            good &= check(path)?;
        }
    }
    Ok(good)
}

fn check(path: &Path) -> Fallible<bool> {
    let name = named(path);
    let mut parts = name.split('.');
    let (stem, exporter) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let values = path.with_file_name(format!("{stem}.npz"));
    let folded = counted(&values, &format!("folded_{exporter}"))? != 0;
    let suffix = if folded { "_folded" } else { "" };
    let mut network = Network::from_onnx(path)?;
    let merged = network.n_params();
    network.unmerge()?;
    let (ours, theirs) = (network.n_params(), counted(&values, &format!("n_params{suffix}"))?);
    let outputs = [error::<f32>(&network, &values)?, error::<f64>(&network, &values)?];
    let key = format!("ntk{suffix}");
    let kernels = [kernel::<f32>(&network, &values, &key)?, kernel::<f64>(&network, &values, &key)?];
    let fine = ours == theirs && outputs.iter().chain(&kernels).all(|&error| error <= TOLERANCE);
    println!(
        "{:<38} {merged:>7} {ours:>8} {theirs:>7}  {:>8.1e} {:>8.1e}  {:>8.1e} {:>8.1e}  {}{}",
        name.trim_end_matches(".onnx"),
        outputs[0],
        outputs[1],
        kernels[0],
        kernels[1],
        if fine { "ok" } else { "WRONG" },
        if folded { ", folded" } else { "" }
    );
    Ok(fine)
}

fn kernel<T: Real>(network: &Network, values: &Path, key: &str) -> Fallible<f64> {
    let x = open(values, "x")?;
    let data: Vec<T> = x.read::<T>()?.into_iter().collect();
    let expected: Vec<f64> = open(values, key)?.read::<f64>()?.into_iter().collect();
    let ntk = Ntk::<T>::new(network, &[x.sample_shape().to_vec()], NtkKind::Full)?;
    Ok(distance(&ntk.gram(&[&data], x.n_samples())?, &expected))
}
