//! Networks and data of the tests.

use mercer_data::folder::{Folder, FolderWriter};
use mercer_data::{Dataset, Labels, Source};
use mercer_learn::laplace::{KIND, Laplace, LaplaceSettings, Likelihood, Structure};
use mercer_net::Network;
use mercer_run::Context;
use ndarray::ArrayD;
use std::path::PathBuf;

pub(crate) const STRUCTURES: [(&str, Structure); 5] = [
    ("all_full", Structure::Full),
    ("all_diag", Structure::Diagonal),
    ("all_kron", Structure::Kronecker),
    ("last_layer_full", Structure::LastLayerFull),
    ("last_layer_kron", Structure::LastLayerKronecker),
];

/// Those that have reference values, and the diagonal of the last layer, which has none.
pub(crate) fn all_structures() -> impl Iterator<Item = Structure> {
    STRUCTURES.map(|(_, structure)| structure).into_iter().chain([Structure::LastLayerDiagonal])
}

/// A posterior as a folder in memory.
pub(crate) fn saved(machine: &Laplace<f64>) -> Folder {
    let writer = FolderWriter::in_memory(KIND);
    let content = machine.write(&writer.objects()).expect("writes");
    Folder::from_bytes(writer.into_bytes(&content).expect("bytes"), Some(KIND)).expect("opens")
}

pub(crate) struct Case {
    name: &'static str,
    pub(crate) network: Network,
    pub(crate) train: Vec<Dataset>,
    pub(crate) labels: Labels,
    pub(crate) test: Vec<Dataset>,
}

pub(crate) fn iris() -> Case {
    Case::open("lla_iris_tanh")
}

pub(crate) fn diabetes() -> Case {
    Case::open("lla_diabetes_regression")
}

impl Case {
    fn open(name: &'static str) -> Self {
        let network = Network::from_onnx(folder().join(format!("{name}.onnx"))).expect("a fixture");
        let part = |key: &str| source(name, key).open().expect("a fixture");
        let labels = Labels::read(&part("y_train")).expect("labels");
        Self { name, network, train: vec![part("x_train")], labels, test: vec![part("x_test")] }
    }

    /// An array of the reference.
    pub(crate) fn array(&self, key: &str) -> ArrayD<f64> {
        source(self.name, key).open().and_then(|data| data.read()).expect("a fixture")
    }

    pub(crate) fn number(&self, key: &str) -> f64 {
        self.array(key).iter().copied().next().expect("a number")
    }

    pub(crate) fn settings(&self, structure: Structure) -> LaplaceSettings {
        LaplaceSettings::new(structure, Likelihood::for_labels(&self.labels))
            .prior_precision(self.number("prior_precision"))
    }

    pub(crate) fn fit(&self, structure: Structure) -> Laplace<f64> {
        let settings = self.settings(structure);
        Laplace::fit(&self.network, &self.train, &self.labels, &settings, &Context::new()).expect("fits")
    }
}

pub(crate) fn dataset(name: &str, array: ArrayD<f64>) -> Dataset {
    Dataset::from_array(name, array.view()).expect("an array")
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/laplace")
}

fn source(name: &str, key: &str) -> Source {
    Source::new(folder().join(format!("{name}.npz")), Some(key))
}

/// The largest difference, relative to the largest number.
pub(crate) fn distance<'a>(a: impl IntoIterator<Item = &'a f64>, b: impl IntoIterator<Item = &'a f64>) -> f64 {
    let (a, b): (Vec<f64>, Vec<f64>) = (a.into_iter().copied().collect(), b.into_iter().copied().collect());
    assert_eq!(a.len(), b.len(), "as many numbers");
    let largest = b.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    a.iter().zip(&b).fold(0.0_f64, |most, (x, y)| most.max((x - y).abs())) / largest
}
