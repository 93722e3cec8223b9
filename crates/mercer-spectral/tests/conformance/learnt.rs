//! What only learnt functions have to do: resume, export, kernels per output, pairs.

use crate::problems::{COREGIONAL, POLYNOMIAL, Problem, RBF, points};
use mercer_data::Dataset;
use mercer_net::Network;
use mercer_net::arch::{Activation, Mlp};
use mercer_net::train::Schedule;
use mercer_run::{Context, Listener};
use mercer_spectral::learnt::{
    Augmentation, Batches, FeatureRows, Learn, LearningMethod, LearningSettings, Learnt, Matrices, Nesting, Pairs,
    PerBatch, side_by_side,
};
use mercer_spectral::{Comparison, Solver, SpectralError, Spectrum};
use ndarray::{Array2, s};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `functions` networks with `outputs` outputs each, or one with all of them.
pub(crate) fn networks(inputs: usize, functions: usize, outputs: usize, shared: bool) -> Network {
    let mlp = |outputs: usize, seed: u64| {
        Mlp::new(inputs, &[24, 24], outputs).activation(Activation::SinCos).build(seed).expect("builds")
    };
    if shared {
        return side_by_side(&[mlp(functions * outputs, 1)]).expect("one network");
    }
    let each: Vec<Network> = (0..functions as u64).map(|seed| mlp(outputs, seed)).collect();
    side_by_side(&each).expect("alike")
}

/// Learns the functions of a problem from its matrix.
pub(crate) fn learnt(
    problem: &Problem,
    method: LearningMethod,
    shared: bool,
    settings: &LearningSettings,
) -> Result<Learnt<f64>, SpectralError> {
    let mut kernel = Matrices::new(problem.gram.clone(), problem.kernel.per_sample())?;
    let mut batches = Batches::new(&problem.data, &mut kernel, 64, 0, &Context::new())?;
    let (inputs, outputs) = (problem.points.ncols(), problem.kernel.per_sample());
    let settings = LearningSettings { method, ..settings.clone() }.components(problem.k);
    let network = networks(inputs, problem.k + 8, outputs, shared);
    Learn::new(settings).run(network, &mut batches)
}

fn quick(method: LearningMethod) -> LearningSettings {
    LearningSettings::new(method).steps(60)
}

/// Stops a run after some reports.
struct Stop {
    after: usize,
    seen: AtomicUsize,
}

impl Listener for Stop {
    fn progress(&self, _: usize, _: usize, _: &str) {
        self.seen.fetch_add(1, Ordering::Relaxed);
    }

    fn cancelled(&self) -> bool {
        self.seen.load(Ordering::Relaxed) >= self.after
    }
}

/// A run that was stopped at any time and resumed ends with the bits of one that was not.
#[test]
fn resumed_runs_are_the_same() {
    let problem = Problem::new("rbf", RBF, points(50, 2, 1.0), 3);
    for (method, shared) in [
        (LearningMethod::NeuralEf, false),
        (LearningMethod::Spin, false),
        (LearningMethod::Spin, true),
        (LearningMethod::Nested(Nesting::Joint), true),
    ] {
        let run = |folder: Option<&Path>, stop: Option<usize>| {
            let mut kernel = Matrices::new(problem.gram.clone(), 1).expect("a kernel matrix");
            let mut batches = Batches::new(&problem.data, &mut kernel, 16, 0, &Context::new()).expect("batches");
            let handle = Context::listening(Stop { after: stop.unwrap_or(usize::MAX), seen: AtomicUsize::new(0) });
            let mut learn = Learn::new(quick(method)).context(&handle).resume(true);
            if let Some(folder) = folder {
                learn = learn.folder(folder);
            }
            let found: Result<Learnt<f64>, _> = learn.run(networks(2, 3, 1, shared), &mut batches);
            found.map(|learnt| learnt.before[0].eval_data(&problem.data, &Context::new()).expect("evaluates"))
        };
        let whole = run(None, None).expect("learns");
        let folder = tempfile::tempdir().expect("a folder");
        for stop in [17, 25] {
            assert!(matches!(run(Some(folder.path()), Some(stop)), Err(SpectralError::Cancelled)), "{method:?}");
        }
        assert_eq!(run(Some(folder.path()), None).expect("resumes"), whole, "{method:?}, shared {shared}");
        // A finished run is not trained again.
        assert_eq!(run(Some(folder.path()), Some(1)).expect("is there"), whole, "{method:?}");
    }
}

/// SpIN finds the eigenfunctions in their order by itself: before any finish, on batches, against the exact ones.
#[test]
fn spin_comes_into_its_order() {
    let problem = Problem::new("polynomial", POLYNOMIAL, points(128, 1, 1.0), 3);
    let mut kernel = Matrices::new(problem.gram.clone(), 1).expect("a kernel matrix");
    let mut batches = Batches::new(&problem.data, &mut kernel, 64, 0, &Context::new()).expect("batches");
    let settings = LearningSettings::new(LearningMethod::Spin).steps(800).schedule(Schedule::constant(2e-3));
    let found: Learnt<f64> = Learn::new(settings).run(networks(1, 3, 1, false), &mut batches).expect("learns");
    let psi = found.before[0].eval_data(&problem.data, &Context::new()).expect("evaluates");
    let values = found.before[0].values();
    let compared = Comparison::new(values.view(), psi.view(), &problem.truth).expect("same rows");
    assert!(compared.cosines.iter().all(|c| *c > 0.98), "{compared:?}");
    assert!(compared.value_errors.iter().take(2).all(|e| e.abs() < 0.1), "{compared:?}");
}

#[test]
fn the_state_of_another_run_is_refused() {
    let problem = Problem::new("rbf", RBF, points(30, 2, 1.0), 3);
    let folder = tempfile::tempdir().expect("a folder");
    let run = |settings: LearningSettings, gram: &Array2<f64>, resume: bool| {
        let mut kernel = Matrices::new(gram.clone(), 1).expect("a kernel matrix");
        let mut batches = Batches::new(&problem.data, &mut kernel, 16, 0, &Context::new()).expect("batches");
        let learn = Learn::new(settings).folder(folder.path()).resume(resume);
        learn.run(networks(2, 2, 1, false), &mut batches).map(|_: Learnt<f64>| ())
    };
    run(quick(LearningMethod::NeuralEf), &problem.gram, false).expect("learns");
    let text = |settings, gram: &Array2<f64>, resume| run(settings, gram, resume).expect_err("refused").to_string();
    assert!(text(quick(LearningMethod::NeuralEf), &problem.gram, false).contains("exists"));
    assert!(text(quick(LearningMethod::NeuralEf).steps(70), &problem.gram, true).contains("settings"));
    assert!(text(quick(LearningMethod::NeuralEf), &(&problem.gram * 2.0), true).contains("data and kernel"));
    std::fs::write(folder.path().join("state.safetensors"), b"nothing").expect("writes");
    assert!(text(quick(LearningMethod::NeuralEf), &problem.gram, true).contains("safetensors"));
}

/// What is exported as ONNX and read again gives the functions, for kernels of one and of two outputs.
#[test]
fn exported_networks_are_the_functions() {
    for (kernel, outputs) in [(RBF, 1), (COREGIONAL, 2)] {
        let problem = Problem::new("exported", kernel, points(40, 2, 1.0), 3);
        let found =
            learnt(&problem, LearningMethod::NeuralEf, false, &quick(LearningMethod::NeuralEf)).expect("learns");
        for functions in [&found.before[0], &found.after[0]] {
            let bytes = functions.to_network().expect("a network").to_onnx_bytes().expect("exports");
            let network = Network::from_onnx_bytes(&bytes, Default::default()).expect("reads");
            let shape: &[usize] = &[2];
            let values = network.predict::<f64>(&[(problem.rows(5), shape)], 5, None, None).expect("runs").values;
            let expected = functions.eval(&[problem.rows(5)], 5).expect("evaluates");
            assert_eq!(values.len(), 5 * outputs * functions.n_components());
            let scale = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
            // The file holds single precision; the combinations of the finish amplify its rounding.
            assert!(values.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-3 * scale));
        }
    }
    let plain = mercer_spectral::exact(
        Arc::new(RBF),
        &Problem::new("rbf", RBF, points(10, 2, 1.0), 2).data,
        2,
        Solver::Full,
        &Context::new(),
    );
    assert!(matches!(plain.expect("solves").0.to_network(), Err(SpectralError::Setting(_))));
}

/// One kernel per output: each is learnt as if it were alone in the loss.
#[test]
fn kernels_per_output() {
    let data = points(64, 1, 1.0);
    let problems = [Problem::new("polynomial", POLYNOMIAL, data.clone(), 3), Problem::new("rbf", RBF, data.clone(), 3)];
    let grams = problems.iter().map(|problem| problem.gram.clone()).collect();
    let mut kernels = Matrices::per_output(grams).expect("kernel matrices");
    let mut batches = Batches::new(&problems[0].data, &mut kernels, 64, 0, &Context::new()).expect("batches");
    let settings = LearningSettings::new(LearningMethod::NeuralEf).steps(400).components(3);
    let found: Learnt<f64> = Learn::new(settings).run(networks(1, 9, 2, false), &mut batches).expect("learns");
    assert_eq!((found.before.len(), found.after.len()), (2, 2));
    for (problem, functions) in problems.iter().zip(&found.after) {
        let psi = functions.eval_data(&problem.data, &Context::new()).expect("evaluates");
        let compared = Comparison::new(functions.values().view(), psi.view(), &problem.truth).expect("same rows");
        assert!(compared.cosines.iter().all(|c| *c > 0.99), "{}: {compared:?}", problem.name);
        assert!(compared.value_errors.iter().all(|e| e.abs() < 0.02), "{}: {compared:?}", problem.name);
        let folder = tempfile::tempdir().expect("a folder");
        functions.save(folder.path(), mercer_data::Existing::Refuse).expect("saves");
        let loaded = mercer_spectral::Eigenfunctions::<f64>::load(folder.path(), None).expect("loads");
        assert_eq!(loaded.eval_data(&problem.data, &Context::new()).expect("evaluates"), psi);
    }
}

/// A kernel from its matrix, from its features, and computed for every batch: the same run, up to rounding.
#[test]
fn the_kernel_may_come_from_anywhere() {
    let problem = Problem::new("polynomial", POLYNOMIAL, points(48, 1, 1.0), 3);
    let root = Spectrum::of_matrix(problem.gram.view(), 48, Solver::Full, &Context::new()).expect("solves");
    let features = &root.functions * &root.values.mapv(f64::sqrt);
    let learn = |coupling: &mut dyn mercer_spectral::learnt::Coupling<f64>| {
        let mut batches = Batches::new(&problem.data, coupling, 16, 0, &Context::new()).expect("batches");
        let found =
            Learn::new(quick(LearningMethod::NeuralEf)).run(networks(1, 3, 1, false), &mut batches).expect("learns");
        (found.before[0].values().clone(), found.after[0].values().clone())
    };
    let expected = learn(&mut Matrices::new(problem.gram.clone(), 1).expect("a matrix"));
    let from_features = learn(&mut FeatureRows::new(features, 1).expect("features"));
    let per_batch = learn(&mut PerBatch::new(Arc::clone(&problem.kernel), &problem.data).expect("a kernel"));
    for found in [from_features, per_batch] {
        assert!((&found.0 - &expected.0).iter().all(|e| e.abs() < 1e-6 * expected.0[0]), "{found:?} {expected:?}");
        assert!((&found.1 - &expected.1).iter().all(|e| e.abs() < 1e-6 * expected.1[0]), "{found:?} {expected:?}");
    }
}

/// Two views `x = c + a`, `x' = c + b` of a class `c` on a circle, with noise that does not reach the next class: the kernel
/// `p(x, x')/(p(x)p(x'))` is the number of classes within a class and zero beyond, with eigenvalue one for everything that is
/// constant on classes. The constant is skipped, so `classes − 1` functions have the value one, and the others none.
#[test]
fn pairs_find_what_they_share() {
    let (classes, samples) = (4, 160);
    let views = |name: &str| {
        use rand::RngExt;
        let mut random = mercer_data::random::stream(5, name);
        let point = |index: usize, column: usize, noise: f64| {
            let angle = std::f64::consts::TAU * ((index % classes) as f64 + noise) / classes as f64;
            if column == 0 { angle.cos() } else { angle.sin() }
        };
        let noise: Vec<f64> = (0..samples).map(|_| 0.3 * random.random::<f64>()).collect();
        Array2::from_shape_fn((samples, 2), |(index, column)| point(index, column, noise[index]))
    };
    let sets =
        ["first", "second"].map(|name| [Dataset::from_array(name, views(name).into_dyn().view()).expect("data")]);
    let mut pairs = Pairs::<f64>::given(&sets[0], &sets[1], 80, 0, &Context::new()).expect("pairs");
    let settings = LearningSettings::new(LearningMethod::NeuralEf).steps(300);
    let found = Learn::new(settings).run(networks(2, 6, 1, true), &mut pairs).expect("learns");
    let functions = &found.after[0];
    let values = functions.values();
    assert!(values.slice(s![..classes - 1]).iter().all(|v| (v - 1.0).abs() < 0.05), "{values}");
    assert!(values.iter().skip(classes - 1).all(|v| *v < 0.3), "{values}");
    // Functions of value one are constant on classes.
    let psi = functions.eval_data(&sets[0], &Context::new()).expect("evaluates");
    for class in 0..classes {
        for column in psi.slice(s![class..;classes, ..classes - 1]).columns() {
            let mean = column.mean().expect("samples");
            assert!(column.iter().all(|x| (x - mean).abs() < 0.5), "{column}");
        }
    }
}

#[test]
fn what_cannot_be_learnt_is_refused() {
    let problem = Problem::new("rbf", RBF, points(20, 2, 1.0), 2);
    let two = Problem::new("two", COREGIONAL, points(20, 2, 1.0), 2);
    let run = |gram: &Array2<f64>, each: usize, settings: LearningSettings, network: Network| {
        let mut kernel = Matrices::new(gram.clone(), each)?;
        let mut batches = Batches::new(&problem.data, &mut kernel, 16, 0, &Context::new())?;
        Learn::new(settings).run(network, &mut batches).map(|_: Learnt<f64>| ())
    };
    let text = |found: Result<(), SpectralError>| found.expect_err("refused").to_string();
    let one = || networks(2, 2, 1, false);
    assert!(text(run(&problem.gram, 1, quick(LearningMethod::NeuralEf).steps(0), one())).contains("steps"));
    assert!(text(run(&problem.gram, 1, quick(LearningMethod::NeuralEf).components(0), one())).contains("components"));
    assert!(text(run(&two.gram, 1, quick(LearningMethod::NeuralEf), one())).contains("samples"));
    assert!(text(run(&two.gram, 2, quick(LearningMethod::Spin), networks(2, 2, 2, false))).contains("SpIN"));
    assert!(text(run(&two.gram, 2, quick(LearningMethod::NeuralEf), networks(2, 3, 1, false))).contains("outputs"));
    let zero = Array2::zeros((20, 20));
    assert!(matches!(run(&zero, 1, quick(LearningMethod::NeuralEf), one()), Err(SpectralError::NoSpectrum { .. })));
    let mut broken = problem.gram.clone();
    broken[(3, 4)] = f64::NAN;
    assert!(run(&broken, 1, quick(LearningMethod::NeuralEf), one()).is_err());
    assert!(side_by_side(&[]).is_err());
    let wide = Mlp::new(3, &[4], 1).build(0).expect("builds");
    let narrow = Mlp::new(2, &[4], 1).build(0).expect("builds");
    assert!(text(side_by_side(&[narrow, wide]).map(|_| ())).contains("inputs"));
    let images = [Dataset::from_array("flat", Array2::<f64>::zeros((4, 9)).into_dyn().view()).expect("data")];
    assert!(Pairs::<f64>::augmented(&images, Augmentation::new(), 2, 0, &Context::new()).is_err());
}
