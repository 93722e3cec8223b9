//! The reference networks of a folder: outputs and parameter counts.
//!
//! `DIR/nets/NAME.onnx` with `NAME.npz` (`x`, `outputs`, `n_params`) at batch 6 and 1 in both precisions, and
//! `DIR/text/minilm_l6.onnx` at the 32 tokens of its reference values and, against onnxruntime, at other lengths with
//! padding; then its tangent kernel against directional derivatives, also of the texts in `--tokens FILE.npz` (`input_ids`,
//! `attention_mask`). Errors are relative, in the Frobenius norm.

mod text;

use crate::{Outcome, option};
use mercer_data::{Dataset, Source};
use mercer_net::{Element, Network};
use std::path::{Path, PathBuf};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Runs all networks of the folder; `--lengths DIR` has the values of onnxruntime.
pub(crate) fn run(folder: &Path, arguments: &[String]) -> Outcome {
    let mut good = true;
    println!(
        "{:<28} {:>9} {:>9}  {:>8} {:>8}  {:>8} {:>8}",
        "network", "n_params", "expected", "f32, 6", "f32, 1", "f64, 6", "f64, 1"
    );
    let mut paths: Vec<PathBuf> =
        std::fs::read_dir(folder.join("nets"))?.map(|e| Ok(e?.path())).collect::<Fallible<_>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "onnx"));
    paths.sort();
    for path in paths {
        good &= network(&path)?;
    }
    let text = folder.join("text/minilm_l6.onnx");
    if text.exists() {
        good &= text::run(&text, option(arguments, "--lengths"), option(arguments, "--tokens"))?;
    }
    Ok(good)
}

/// What double precision can be held to: some files hold constants that were rounded to single precision.
fn tolerance(name: &str) -> f64 {
    let rounded = ["bert", "vit", "dynamo"].iter().any(|part| name.contains(part));
    if rounded { 1e-7 } else { 1e-10 }
}

fn network(path: &Path) -> Fallible<bool> {
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let network = Network::from_onnx(path)?;
    let values = path.with_extension("npz");
    let open = |key: &str| -> Fallible<Dataset> { Ok(Source::new(&values, Some(key)).open()?) };
    let x = open("x")?;
    let expected: Vec<f64> = open("outputs")?.read::<f64>()?.into_iter().collect();
    let n_params = counted(&values, "n_params")?;
    let single = both::<f32>(&network, &x, &expected)?;
    let double = both::<f64>(&network, &x, &expected)?;
    let good = network.n_params() == n_params
        && single.iter().all(|&error| error <= 1e-5)
        && double.iter().all(|&error| error <= tolerance(&name));
    println!(
        "{name:<28} {:>9} {n_params:>9}  {:>8.1e} {:>8.1e}  {:>8.1e} {:>8.1e}  {}",
        network.n_params(),
        single[0],
        single[1],
        double[0],
        double[1],
        if good { "ok" } else { "WRONG" }
    );
    Ok(good)
}

/// A number of parameters of the reference.
pub(crate) fn counted(values: &Path, key: &str) -> Fallible<usize> {
    let count = Source::new(values, Some(key)).open()?.read::<f64>()?;
    Ok(*count.first().ok_or("a count is empty")? as usize)
}

/// The errors at batch 6 and 1.
fn both<T: Element + mercer_data::DataScalar>(network: &Network, x: &Dataset, expected: &[f64]) -> Fallible<[f64; 2]> {
    let data: Vec<T> = x.read::<T>()?.into_iter().collect();
    let error = |batch| -> Fallible<f64> {
        let found = network.predict(&[(&data[..], x.sample_shape())], x.n_samples(), None, Some(batch))?;
        Ok(distance(&found.values, expected))
    };
    Ok([error(6)?, error(1)?])
}

/// ‖ours − theirs‖ / ‖theirs‖.
pub(crate) fn distance<T: Element>(ours: &[T], theirs: &[f64]) -> f64 {
    if ours.len() != theirs.len() {
        return f64::INFINITY;
    }
    let difference: f64 = ours.iter().zip(theirs).map(|(a, b)| (a.wide() - b).powi(2)).sum();
    (difference / theirs.iter().map(|b| b * b).sum::<f64>()).sqrt()
}
