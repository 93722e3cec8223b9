//! Gradient flow on kernels: reference values, the differential equation itself, and limits.

use mercer_data::{Existing, Source};
use mercer_kernel::infinite::{Limit, LimitActivation, LimitKind, LimitNet, Scales};
use mercer_kernel::{Ntk, NtkKind};
use mercer_learn::ensemble::{FlowSettings, InfiniteEnsemble, Linearised, Prior};
use mercer_learn::{LearnError, Repair};
use mercer_net::arch::Mlp;
use ndarray::{Array, Array2, Axis, Ix2, array, concatenate, s};
use std::path::PathBuf;

const SETTINGS: FlowSettings = FlowSettings { learning_rate: 1.0, regularisation: 1e-3 };

fn golden(key: &str) -> Array2<f64> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/infinite");
    let source = Source::new(folder.join("gd_ensemble_fc_relu_3h.npz"), Some(key));
    let array = source.open().and_then(|data| data.read::<f64>()).expect("a fixture");
    array.into_dimensionality::<Ix2>().expect("a matrix")
}

/// The kernel of the fixture's network, of the training samples followed by the test samples.
fn limit(of: LimitKind) -> Array2<f64> {
    let x = concatenate![Axis(0), golden("x_train"), golden("x_test")];
    let mut net = LimitNet::new();
    let mut value = net.input(x.ncols());
    for layer in 0..3 {
        value = net.dense(&format!("dense{layer}"), value, Scales::ntk(1.5, 0.1)).expect("a layer");
        value = net.activation(&format!("relu{layer}"), value, LimitActivation::relu()).expect("an activation");
    }
    net.dense("output", value, Scales::ntk(1.5, 0.1)).expect("a layer");
    let kernel = Limit::<f64>::new(net, of).expect("a limit");
    let gram = kernel.gram(&[x.as_slice().expect("contiguous")], x.nrows()).expect("a matrix");
    Array2::from_shape_vec((x.nrows(), x.nrows()), gram).expect("square")
}

struct Kernels {
    ntk: Array2<f64>,
    nngp: Array2<f64>,
    y: Array2<f64>,
}

impl Kernels {
    fn new() -> Self {
        Self { ntk: limit(LimitKind::Ntk), nngp: limit(LimitKind::Nngp), y: golden("y_train") }
    }

    fn prior(&self) -> Prior<'_> {
        let n = self.y.nrows();
        Prior { cross: self.nngp.slice(s![n.., ..n]), test: self.nngp.slice(s![n.., n..]) }
    }
}

fn distance(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    assert_eq!(a.dim(), b.dim());
    let largest = b.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    (a - b).iter().fold(0.0_f64, |most, x| most.max(x.abs())) / largest
}

#[test]
fn ensembles_are_the_references() {
    let kernels = Kernels::new();
    let (n, y) = (kernels.y.nrows(), kernels.y.view());
    let (ntk, nngp) = (kernels.ntk.slice(s![..n, ..n]), kernels.nngp.slice(s![..n, ..n]));
    let last = InfiniteEnsemble::last_layer(nngp, y, SETTINGS).expect("fits");
    let all = InfiniteEnsemble::all_layers(ntk, nngp, y, SETTINGS).expect("fits");
    for (time, key) in [(1.0, "1.0"), (10.0, "10.0"), (100.0, "100.0"), (f64::INFINITY, "None")] {
        let nngp = last.predict(time, None, kernels.prior()).expect("predicts");
        let ntk = all.predict(time, Some(kernels.ntk.slice(s![n.., ..n])), kernels.prior()).expect("predicts");
        for (kind, found) in [("nngp", nngp), ("ntk", ntk)] {
            let mean = distance(&found.mean, &golden(&format!("{kind}_mean_t{key}")));
            let covariance = distance(&found.covariance, &golden(&format!("{kind}_cov_t{key}")));
            // Both in f64; the reference's kernel is good to about 1e-8 at small angles.
            assert!(mean < 1e-7 && covariance < 1e-7, "{kind} at {key}: {mean:e}, {covariance:e}");
        }
    }
}

/// An ensemble is what its members are: the mean and covariance of `f_t` with `f_0` drawn from the prior follow from that of one.
#[test]
fn nothing_is_learnt_in_no_time_and_the_training_data_at_the_end() {
    let kernels = Kernels::new();
    let (n, settings) = (kernels.y.nrows(), FlowSettings::default());
    let train = s![..n, ..n];
    let (ntk, nngp) = (kernels.ntk.slice(train), kernels.nngp.slice(train));
    let ensemble = InfiniteEnsemble::all_layers(ntk, nngp, kernels.y.view(), settings).expect("fits");
    let start = ensemble.predict(0.0, Some(kernels.ntk.slice(s![n.., ..n])), kernels.prior()).expect("predicts");
    assert!(start.mean.iter().all(|&x| x == 0.0));
    assert!(distance(&start.covariance, &kernels.nngp.slice(s![n.., n..]).to_owned()) < 1e-15);
    let own = Prior { cross: nngp, test: nngp };
    let end = ensemble.predict(f64::INFINITY, Some(ntk), own).expect("predicts");
    assert!(distance(&end.mean, &kernels.y) < 1e-10);
    assert!(end.covariance.iter().all(|x| x.abs() < 1e-10));
}

/// `f_lin` is the solution of `df/dt = −η/N Θ (f − Y)`: small steps of that equation end in the same place.
#[test]
fn the_linearised_network_follows_gradient_flow() {
    let network = Mlp::new(3, &[16], 2).build(1).expect("a network");
    let x = Array::from_shape_fn((9, 3), |(row, column)| ((3 * row + column) as f64 * 0.7).sin());
    let flat = x.as_slice().expect("contiguous");
    let outputs = network.predict(&[(flat, &[3][..])], 9, None, None).expect("predicts").values;
    let f0 = Array2::from_shape_vec((9, 2), outputs).expect("outputs");
    let targets = f0.mapv(|x| (5.0 * x).cos());
    let (n, time, rate) = (6, 7.0, 0.3);
    for kind in [NtkKind::Full, NtkKind::Pseudo] {
        let gram = Ntk::<f64>::new(&network, &[vec![3]], kind).expect("a kernel").gram(&[flat], 9).expect("a matrix");
        let per = if kind == NtkKind::Full { 2 } else { 1 };
        let gram = Array2::from_shape_vec((9 * per, 9 * per), gram).expect("square");
        let settings = FlowSettings { learning_rate: rate, regularisation: 0.0 };
        let train = s![..n * per, ..n * per];
        let (known, y) = (f0.slice(s![..n, ..]), targets.slice(s![..n, ..]));
        let machine = Linearised::fit(gram.slice(train), known, y, settings).expect("fits");
        assert_eq!(machine.is_full(), kind == NtkKind::Full);
        let cross = gram.slice(s![n * per.., ..n * per]);
        let found = machine.predict(time, cross, f0.slice(s![n.., ..])).expect("predicts");
        // Runge and Kutta's fourth order: the error of 4000 steps is far below the tolerance.
        let columns = 2 / per;
        let shape = (9 * per, columns);
        let mut f = f0.to_shape(shape).expect("outputs").to_owned();
        let goal = targets.to_shape(shape).expect("targets").to_owned();
        let slope = |f: &Array2<f64>| {
            let error = &f.slice(s![..n * per, ..]) - &goal.slice(s![..n * per, ..]);
            gram.slice(s![.., ..n * per]).dot(&error) * (-rate / n as f64)
        };
        let steps = 4000;
        let step = time / steps as f64;
        for _ in 0..steps {
            let a = slope(&f);
            let b = slope(&(&f + &(&a * (step / 2.0))));
            let c = slope(&(&f + &(&b * (step / 2.0))));
            let d = slope(&(&f + &(&c * step)));
            f = f + (a + 2.0 * b + 2.0 * c + d) * (step / 6.0);
        }
        let f = f.to_shape((9, 2)).expect("outputs").slice(s![n.., ..]).to_owned();
        assert!(distance(&found, &f) < 1e-8, "{kind:?}: {found} and {f}");
    }
}

#[test]
fn saved_machines_predict_the_same() {
    let kernels = Kernels::new();
    let n = kernels.y.nrows();
    let (ntk, nngp) = (kernels.ntk.slice(s![..n, ..n]), kernels.nngp.slice(s![..n, ..n]));
    let cross = kernels.ntk.slice(s![n.., ..n]);
    let folder = tempfile::tempdir().expect("a folder");
    let ensemble = InfiniteEnsemble::all_layers(ntk, nngp, kernels.y.view(), SETTINGS).expect("fits");
    ensemble.save(folder.path(), Existing::Refuse).expect("saves");
    assert!(ensemble.save(folder.path(), Existing::Refuse).is_err());
    let loaded = InfiniteEnsemble::load(folder.path()).expect("loads");
    let predict =
        |machine: &InfiniteEnsemble| machine.predict(3.0, Some(cross), kernels.prior()).expect("predicts").covariance;
    assert_eq!(predict(&loaded), predict(&ensemble));
    assert!(matches!(Linearised::load(folder.path()), Err(LearnError::Data(_))), "another machine");
    let zeros = Array2::zeros(kernels.y.dim());
    let linearised = Linearised::fit(ntk, zeros.view(), kernels.y.view(), SETTINGS).expect("fits");
    assert!(linearised.save(folder.path(), Existing::Replace).is_err(), "another machine is not replaced");
    let folder = tempfile::tempdir().expect("a folder");
    linearised.save(folder.path(), Existing::Replace).expect("saves");
    let test = Array2::zeros((cross.nrows(), 1));
    let predict = |machine: &Linearised| machine.predict(3.0, cross, test.view()).expect("predicts");
    assert_eq!(predict(&Linearised::load(folder.path()).expect("loads")), predict(&linearised));
}

#[test]
fn bad_input_is_refused_and_singular_kernels_are_repaired() {
    let y = array![[1.0], [2.0]];
    let good = array![[2.0, 1.0], [1.0, 2.0]];
    let settings = FlowSettings::default();
    assert!(InfiniteEnsemble::last_layer(array![[1.0, f64::NAN], [0.0, 1.0]].view(), y.view(), settings).is_err());
    assert!(InfiniteEnsemble::last_layer(good.view(), array![[1.0]].view(), settings).is_err());
    assert!(
        InfiniteEnsemble::last_layer(Array2::zeros((0, 0)).view(), Array2::zeros((0, 1)).view(), settings).is_err()
    );
    assert!(
        InfiniteEnsemble::last_layer(good.view(), y.view(), FlowSettings { learning_rate: 0.0, ..settings }).is_err()
    );
    let last = InfiniteEnsemble::last_layer(good.view(), y.view(), settings).expect("fits");
    let prior = Prior { cross: good.view(), test: good.view() };
    assert!(last.predict(-1.0, None, prior).is_err() && last.predict(1.0, Some(good.view()), prior).is_err());
    let all = InfiniteEnsemble::all_layers(good.view(), good.view(), y.view(), settings).expect("fits");
    assert!(all.predict(1.0, None, prior).is_err());
    // A point twice, with two values: their mean is learnt, and the repair is told.
    let twice = array![[1.0, 1.0], [1.0, 1.0]];
    let machine = Linearised::fit(twice.view(), Array2::zeros((2, 1)).view(), y.view(), settings).expect("fits");
    assert!(matches!(machine.repairs()[..], [Repair::Truncated { kept: 1, of: 2, .. }]));
    let found = machine.predict(f64::INFINITY, twice.view(), Array2::zeros((2, 1)).view()).expect("predicts");
    assert!(found.iter().all(|x| (x - 1.5).abs() < 1e-12), "{found}");
    assert!(
        Linearised::fit(good.view(), Array2::zeros((3, 1)).view(), Array2::zeros((3, 1)).view(), settings).is_err()
    );
}
