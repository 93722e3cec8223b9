//! Folders that were saved by earlier versions open for ever, and give the numbers that they gave then.
//!
//! `cargo test -p mercer --test suite folders -- --ignored` writes the fixtures of the version at hand where there are none. Those that are
//! committed are never written again: whoever changes a format raises its version and adds fixtures beside them.

use mercer::data::folder::{Folder, SavedSamples};
use mercer::data::{Classes, Dataset, Existing, Labels, Preprocess, Source, write_npy};
use mercer::kernel::{NtkKind, Recipe, SavedKernel, Selection};
use mercer::learn::ensemble::{FlowSettings, InfiniteEnsemble, Linearised, Prior};
use mercer::learn::laplace::{Laplace, LaplaceSettings, Likelihood, Posterior, Structure};
use mercer::learn::regression::Ridge;
use mercer::learn::{Fit, KernelMachine, Machine, SampleRows};
use mercer::net::Network;
use mercer::net::arch::Mlp;
use mercer::net::network::{SavedNetwork, TrainedOn};
use mercer::run::Context;
use mercer::spectral::{Eigenfunctions, Landmarks, Nystrom};
use ndarray::{Array1, Array2, ArrayD, ArrayView2};
use std::path::{Path, PathBuf};

fn fixtures(version: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/folders").join(version)
}

/// Bytes, as those of images.
fn bytes(rows: usize, start: usize) -> Array2<u8> {
    Array2::from_shape_fn((rows, 2), |(row, column)| ((start + 37 * row + 91 * column + row * row) % 256) as u8)
}

fn samples(rows: usize, start: usize) -> Dataset {
    let dataset = Dataset::from_array("bytes", bytes(rows, start).into_dyn().view()).expect("data");
    dataset.with_preprocess(Preprocess::new().scale(1.0 / 255.0)).expect("steps")
}

fn classes(rows: usize) -> Classes {
    let names = Array1::from_shape_fn(rows, |row| [7_i64, -1, 3][row % 3]);
    Classes::read(&Dataset::from_array("labels", names.into_dyn().view()).expect("labels")).expect("classes")
}

fn network(outputs: usize) -> (Network, SavedNetwork) {
    let network = Mlp::new(2, &[3], outputs).build(5).expect("a network");
    let saved = SavedNetwork::new(network.to_onnx_bytes().expect("exports"));
    (saved.open().expect("opens"), saved)
}

fn tangent(kind: NtkKind) -> Recipe {
    Recipe::Tangent { kind, selection: Selection::default(), by_layer: false }
}

/// `exp(-‖x - y‖²)`.
fn gram(x: ArrayView2<'_, f64>, y: ArrayView2<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn((x.nrows(), y.nrows()), |(i, j)| (-(&x.row(i) - &y.row(j)).mapv(|v| v * v).sum()).exp())
}

fn points(rows: usize, start: usize) -> Array2<f64> {
    bytes(rows, start).mapv(|value| f64::from(value) / 255.0)
}

const FLOW: FlowSettings = FlowSettings { learning_rate: 1.0, regularisation: 0.01 };

const MACHINE: &str = "machine";
const FUNCTIONS: &str = "eigenfunctions";
const POSTERIOR: &str = "posterior";
const THROUGH: &str = "posterior-through-functions";
const ENSEMBLE: &str = "ensemble";
const LINEARISED: &str = "linearised";
const WEIGHTS: &str = "weights.safetensors";

/// What a saved thing says of samples that it has not seen.
fn numbers(folder: &Path, name: &str) -> ArrayD<f64> {
    let (new, context) = ([samples(4, 11)], Context::new());
    let kernels = || {
        let (train, test) = (points(6, 0), points(4, 11));
        (gram(test.view(), train.view()), gram(test.view(), test.view()))
    };
    let path = folder.join(name);
    match name {
        MACHINE => {
            let machine = KernelMachine::load(&path).expect("loads");
            assert_eq!(machine.samples.labels.as_ref().map(Labels::n_outputs), Some(3));
            assert_eq!(machine.samples.ids.as_ref().map(Vec::len), Some(6));
            machine.predict(&new, &context).expect("predicts").into_dyn()
        }
        FUNCTIONS => {
            let functions = Eigenfunctions::<f64>::load(&path, None).expect("loads");
            assert_eq!(functions.notes()["method"], "nystrom");
            functions.eval_data(&new, &context).expect("evaluates").into_dyn()
        }
        POSTERIOR | THROUGH => {
            let posterior = Posterior::<f64>::load(&path).expect("loads");
            assert_eq!(posterior.trained_on.classes.as_ref().map(Vec::len), Some(3));
            posterior.predict(&new, &context).expect("predicts").covariance.into_dyn()
        }
        ENSEMBLE => {
            let (cross, test) = kernels();
            let prior = Prior { cross: cross.view(), test: test.view() };
            InfiniteEnsemble::load(&path)
                .expect("loads")
                .predict(2.0, None, prior)
                .expect("predicts")
                .covariance
                .into_dyn()
        }
        LINEARISED => {
            let outputs = Array2::zeros((4, 1));
            let found = Linearised::load(&path).expect("loads").predict(2.0, kernels().0.view(), outputs.view());
            found.expect("predicts").into_dyn()
        }
        _ => {
            let mut network = Mlp::new(2, &[3], 3).build(8).expect("a network");
            network.load_safetensors(&path).expect("loads");
            let rows = new[0].read::<f64>().expect("rows").into_iter().collect::<Vec<f64>>();
            let found = network.predict(&[(&rows[..], &[2][..])], 4, None, None).expect("predicts");
            ArrayD::from_shape_vec(vec![found.values.len()], found.values).expect("a vector")
        }
    }
}

/// All of a version open, are whole, and give the numbers that they gave.
#[test]
fn folders_of_all_versions_open() {
    for (version, names) in [("v1", [MACHINE, FUNCTIONS, POSTERIOR, THROUGH, ENSEMBLE, LINEARISED, WEIGHTS])] {
        let folder = fixtures(version);
        for name in names {
            if name != WEIGHTS {
                let errors = Folder::open(&folder.join(name), None).expect(name).verify();
                assert!(errors.is_empty(), "{version} {name}: {errors:?}");
            }
            let path = folder.join(format!("{name}.expected.npy"));
            let expected = Source::new(path, None).open().and_then(|data| data.read::<f64>()).expect(name);
            let found = numbers(&folder, name);
            assert_eq!(found.shape(), expected.shape(), "{version} {name}");
            let close = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-9 * b.abs().max(1e-3);
            assert!(found.iter().zip(&expected).all(close), "{version} {name}: {found} {expected}");
        }
    }
}

#[test]
#[ignore = "writes the fixtures that are missing"]
fn write_fixtures() {
    let folder = fixtures("v1");
    std::fs::create_dir_all(&folder).expect("a folder");
    let (train, context) = ([samples(6, 0)], Context::new());
    let shapes = [vec![2]];
    let classes = classes(6);
    let labels = Labels::Classes(classes.clone());
    let (three, saved) = network(3);
    let trained_on = || TrainedOn {
        classes: Some(classes.names().to_vec()),
        columns: vec![None],
        preprocess: Some(vec![train[0].preprocess().clone()]),
    };
    let write = |name: &str, save: &dyn Fn(&Path)| {
        let path = folder.join(name);
        if !path.exists() {
            save(&path);
            let expected = folder.join(format!("{name}.expected.npy"));
            write_npy(&expected, &numbers(&folder, name), Existing::Refuse).expect(name);
        }
    };
    write(MACHINE, &|path| {
        let built = tangent(NtkKind::Trace).build::<f64>(Some(&three), &shapes).expect("a kernel");
        let matrix = mercer::kernel::gram::Gram::new(&*built.kernel, &train).to_kernel(&context).expect("a matrix");
        let matrix = matrix.into_dimensionality().expect("a matrix");
        let targets = classes.one_hot::<f64>().expect("targets");
        let ridge = Ridge::new(0.1).expect("a ridge").fit(&SampleRows::Gram(matrix.view()), &targets).expect("fits");
        let kernel = SavedKernel::new(tangent(NtkKind::Trace), Some(saved.clone()));
        let machine = KernelMachine {
            machine: Machine::from(ridge),
            kernel: Some(kernel.with_identity(built.kernel.identity())),
            samples: SavedSamples {
                inputs: train.to_vec(),
                columns: vec![None],
                labels: Some(labels.clone()),
                ids: Some((0..6).map(|row| format!("sample {row}")).collect()),
            },
        };
        machine.save(path, Existing::Refuse).expect("saves");
    });
    write(FUNCTIONS, &|path| {
        let kernel = tangent(NtkKind::Trace).build::<f64>(Some(&three), &shapes).expect("a kernel").kernel;
        let fit = Nystrom::new(Landmarks::Uniform(4)).fit(kernel, &train, 2, &context).expect("fits");
        let functions = fit.functions.note("method", "nystrom");
        let functions = functions.with_kernel(Some(SavedKernel::new(tangent(NtkKind::Trace), Some(saved.clone()))));
        functions.save(path, Existing::Refuse).expect("saves");
    });
    write(POSTERIOR, &|path| {
        let settings =
            LaplaceSettings::new(Structure::LastLayerKronecker, Likelihood::Categorical).prior_precision(0.7);
        let laplace = Laplace::<f64>::fit(&three, &train, &labels, &settings, &context).expect("fits");
        let posterior = Posterior { laplace, network: saved.clone(), functions: Vec::new(), trained_on: trained_on() };
        posterior.save(path, Existing::Refuse).expect("saves");
    });
    write(THROUGH, &|path| {
        let settings = LaplaceSettings::new(Structure::Features { residual: true }, Likelihood::Categorical);
        let selection = settings.selection(&three.graph(&shapes).expect("a graph")).expect("a selection");
        let recipe = Recipe::Tangent { kind: NtkKind::Full, selection, by_layer: false };
        let kernel = recipe.build::<f64>(Some(&three), &shapes).expect("a kernel").kernel;
        let fit = Nystrom::new(Landmarks::Uniform(5)).fit(kernel, &train, 2, &context).expect("fits");
        let functions = fit.functions.with_kernel(Some(SavedKernel::new(recipe, Some(saved.clone()))));
        let map = std::sync::Arc::new(functions.clone());
        let laplace = Laplace::fit_features(&three, map, &train, &labels, &settings, &context).expect("fits");
        let functions = vec![functions];
        let posterior = Posterior { laplace, network: saved.clone(), functions, trained_on: trained_on() };
        posterior.save(path, Existing::Refuse).expect("saves");
    });
    let (x, y) = (points(6, 0), Array2::from_shape_fn((6, 1), |(row, _)| row as f64 - 2.5));
    let kernel = gram(x.view(), x.view());
    write(ENSEMBLE, &|path| {
        let ensemble = InfiniteEnsemble::last_layer(kernel.view(), y.view(), FLOW).expect("fits");
        ensemble.save(path, Existing::Refuse).expect("saves");
    });
    write(LINEARISED, &|path| {
        let linearised = Linearised::fit(kernel.view(), Array2::zeros((6, 1)).view(), y.view(), FLOW).expect("fits");
        linearised.save(path, Existing::Refuse).expect("saves");
    });
    write(WEIGHTS, &|path| three.save_safetensors(path).expect("saves"));
}
