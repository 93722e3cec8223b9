//! The idioms of exporters in `tests/golden/idioms`: number of parameters, outputs and the full tangent kernel against the
//! module's own by torch.func.
//!
//! What the exporter merged is counted apart. Where it computed with weights (folded batch normalisation, a weight norm), the
//! file has the parameters of another module, and is compared with that one. Weights were computed, and constants written, in
//! single precision: 1e-6 in relative Frobenius norm.

use mercer_data::{Dataset, Source};
use mercer_kernel::{Ntk, NtkKind};
use mercer_net::Network;
use std::path::{Path, PathBuf};

const TOLERANCE: f64 = 1e-6;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/idioms")
}

/// Name and exporter of every file.
fn files() -> Vec<(String, String, PathBuf)> {
    let mut found: Vec<_> = std::fs::read_dir(folder())
        .expect("the fixtures")
        .map(|entry| entry.expect("an entry").path())
        .filter_map(|path| {
            let stem = path.file_name()?.to_str()?.strip_suffix(".onnx")?.to_owned();
            let (name, exporter) = stem.split_once('.')?;
            Some((name.to_owned(), exporter.to_owned(), path))
        })
        .collect();
    found.sort();
    assert!(found.len() > 30, "{} files", found.len());
    found
}

fn array(name: &str, key: &str) -> Dataset {
    Source::new(folder().join(format!("{name}.npz")), Some(key)).open().expect("a fixture")
}

fn numbers(name: &str, key: &str) -> Vec<f64> {
    array(name, key).read::<f64>().expect("a fixture").into_iter().collect()
}

/// The end of the keys of the reference: the module's own or its twin's.
fn suffix(name: &str, exporter: &str) -> &'static str {
    if numbers(name, &format!("folded_{exporter}"))[0] != 0.0 { "_folded" } else { "" }
}

fn unmerged(path: &Path) -> Network {
    let mut network = Network::from_onnx(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    network.unmerge().expect("counts apart");
    network
}

fn distance(ours: &[f64], theirs: &[f64]) -> f64 {
    assert_eq!(ours.len(), theirs.len());
    let difference: f64 = ours.iter().zip(theirs).map(|(a, b)| (a - b).powi(2)).sum();
    (difference / theirs.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// Collects what is wrong, so that one run shows all of it.
fn all(check: impl Fn(&str, &str, &Path) -> Option<String>) {
    let wrong: Vec<String> = files()
        .iter()
        .filter_map(|(name, exporter, path)| {
            check(name, exporter, path).map(|text| format!("{name} by {exporter}: {text}"))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn parameters_are_those_of_the_module() {
    all(|name, exporter, path| {
        let network = unmerged(path);
        let expected = numbers(name, &format!("n_params{}", suffix(name, exporter)))[0] as usize;
        let listed: Vec<_> = network.parameters().iter().map(|p| (p.name(), p.shape(), p.reason())).collect();
        (network.n_params() != expected)
            .then(|| format!("{} parameters, not {expected}: {listed:#?}", network.n_params()))
    });
}

#[test]
fn outputs_are_pytorchs() {
    all(|name, _, path| {
        let (x, data) = (array(name, "x"), numbers(name, "x"));
        let expected = numbers(name, "outputs");
        [Network::from_onnx(path).expect("opens"), unmerged(path)].iter().find_map(|network| {
            let found = network.predict(&[(&data[..], x.sample_shape())], x.n_samples(), None, None).expect("runs");
            let error = distance(&found.values, &expected);
            (error > TOLERANCE).then(|| format!("outputs off by {error:e}"))
        })
    });
}

#[test]
fn tangent_kernels_are_those_of_the_module() {
    all(|name, exporter, path| {
        let network = unmerged(path);
        let (x, data) = (array(name, "x"), numbers(name, "x"));
        let expected = numbers(name, &format!("ntk{}", suffix(name, exporter)));
        let ntk = Ntk::<f64>::new(&network, &[x.sample_shape().to_vec()], NtkKind::Full).expect("a kernel");
        let error = distance(&ntk.gram(&[&data], x.n_samples()).expect("runs"), &expected);
        (error > TOLERANCE).then(|| format!("off by {error:e}"))
    });
}
