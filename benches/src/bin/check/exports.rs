//! Well-known networks exported by both of PyTorch's exporters, compared with PyTorch.
//!
//! `tests/python/exports.py` makes them, small and with random weights, for a free batch size and, for transformers, any
//! number of tokens. Outputs are compared at batch 3 and 1 in both precisions, and the detected parameters are counted.
//! Then the small networks of `tests/python/idioms.py`, whose parameters are easily miscounted: also the full tangent kernel
//! against torch.func's.

mod idioms;

use crate::Outcome;
use crate::golden::{counted, distance};
use mercer_data::{Dataset, Source};
use mercer_net::network::Input;
use mercer_net::{Element, Network};
use std::path::{Path, PathBuf};

type Fallible<T> = Result<T, Box<dyn std::error::Error>>;

/// Weights are stored, and batch normalisations folded, in single precision.
const TOLERANCE: f64 = 1e-5;

/// Checks the exports of a folder whose name contains a text.
pub(crate) fn run(folder: &Path, only: &str) -> Outcome {
    let paths = files(folder)?;
    println!("{:<34} {:>9} {:>9}  {:>8} {:>8}", "network", "n_params", "PyTorch", "f32", "f64");
    let mut good = true;
    for path in paths.iter().filter(|path| named(path).contains(only)) {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("onnx") => good &= network(path, &named(path))?,
            Some("txt") => println!("{:<34} could not be exported", named(path).trim_end_matches(".txt")),
            _ => {}
        }
    }
    idioms::run(&folder.join("idioms"), only).map(|fine| fine && good)
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Fallible<Vec<PathBuf>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<Fallible<_>>()?;
    paths.sort();
    Ok(paths)
}

fn named(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn network(path: &Path, name: &str) -> Fallible<bool> {
    let stem = name.split('.').next().unwrap_or_default();
    let network = match Network::from_onnx(path) {
        Ok(network) => network,
        Err(error) => {
            println!("{name:<34} REFUSED {error}");
            return Ok(false);
        }
    };
    let mut good = true;
    for values in [path.with_file_name(format!("{stem}.npz")), path.with_file_name(format!("{stem}.short.npz"))] {
        if !values.exists() {
            continue;
        }
        // Some files are made for one number of tokens only, and say so.
        let fits = |input: &Input| Ok(input.check(open(&values, &input.name)?.sample_shape()).is_ok());
        if !network.inputs().iter().map(fits).collect::<Fallible<Vec<_>>>()?.into_iter().all(|fits| fits) {
            continue;
        }
        // Not every file shows that batch normalisations were folded.
        let (all, folded) = (counted(&values, "n_params")?, counted(&values, "n_params_folded")?);
        let n_params = if network.n_params() == folded { folded } else { all };
        match (error::<f32>(&network, &values), error::<f64>(&network, &values)) {
            (Ok(single), Ok(double)) => {
                let fine = network.n_params() == n_params && single <= TOLERANCE && double <= TOLERANCE;
                let (ours, word) = (network.n_params(), if fine { "ok" } else { "WRONG" });
                println!("{name:<34} {ours:>9} {n_params:>9}  {single:>8.1e} {double:>8.1e}  {word}");
                good &= fine;
            }
            (Err(error), _) | (_, Err(error)) => {
                println!("{name:<34} REFUSED {error}");
                good = false;
            }
        }
    }
    Ok(good)
}

fn open(values: &Path, key: &str) -> Fallible<Dataset> {
    Ok(Source::new(values, Some(key)).open()?)
}

/// The larger error of those at batch 3 and 1.
fn error<T: Element + mercer_data::DataScalar>(network: &Network, values: &Path) -> Fallible<f64> {
    let expected: Vec<f64> = open(values, "outputs")?.read::<f64>()?.into_iter().collect();
    let mut inputs: Vec<(Vec<T>, Vec<usize>)> = Vec::new();
    let mut samples = 0;
    for input in network.inputs() {
        let data = open(values, &input.name)?;
        samples = data.n_samples();
        inputs.push((data.read::<T>()?.into_iter().collect(), data.sample_shape().to_vec()));
    }
    let slices: Vec<(&[T], &[usize])> = inputs.iter().map(|(data, shape)| (&data[..], &shape[..])).collect();
    let mut worst = 0.0f64;
    for batch in [samples, 1] {
        let found = network.predict(&slices, samples, None, Some(batch))?;
        worst = worst.max(distance(&found.values, &expected));
    }
    Ok(worst)
}
