//! Gradients against finite differences of the losses, with values under stop-gradient held fixed.

use super::nested::{Nested, Nesting};
use super::neural_ef::NeuralEf;
use super::objective::{Objective, Rows, SecondPass};
use super::passes::Passes;
use super::spin::Spin;
use mercer_data::random::stream;
use mercer_linalg::{cholesky, matmul};
use mercer_net::Network;
use mercer_net::arch::{Activation, Mlp};
use mercer_run::Context;
use ndarray::{Array2, ArrayView1, s};
use rand::RngExt;

const ROWS: usize = 12;
const FUNCTIONS: usize = 4;

fn random(rows: usize, columns: usize, name: &str) -> Array2<f64> {
    let mut numbers = stream(3, name);
    Array2::from_shape_simple_fn((rows, columns), || 2.0 * numbers.random::<f64>() - 1.0)
}

/// A positive kernel matrix and the outputs of some functions.
fn problem() -> (Array2<f64>, Array2<f64>) {
    let factor = random(ROWS, ROWS, "factor");
    (matmul(factor.view(), factor.t()), random(ROWS, FUNCTIONS, "outputs"))
}

/// `∂ℓ/∂U` of an objective on a matrix.
fn cotangents(objective: &mut dyn Objective<f64>, gram: &Array2<f64>, outputs: &Array2<f64>) -> (f64, Array2<f64>) {
    let k = outputs.ncols();
    let mut product = |v: &[f64], out: &mut [f64]| {
        let v = Array2::from_shape_vec((ROWS, k), v.to_vec()).unwrap();
        out.iter_mut().zip(&gram.dot(&v)).for_each(|(to, &x)| *to = x);
        Ok(())
    };
    let mut found = Array2::zeros(outputs.dim());
    let batch = Rows { outputs: outputs.as_slice().unwrap(), rows: ROWS, functions: k, product: &mut product };
    let loss = objective.cotangents(batch, found.as_slice_mut().unwrap()).unwrap();
    (loss, found)
}

/// `found` is the gradient of `loss(j, U)` in column `j`, for every column; differences of second order at a step of
/// 1e-5 are good to some 1e-9 of the largest entry.
fn check(outputs: &Array2<f64>, found: &Array2<f64>, loss: impl Fn(usize, &Array2<f64>) -> f64) {
    let largest = found.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    for ((row, j), &slope) in found.indexed_iter() {
        let at = |step: f64| {
            let mut moved = outputs.clone();
            moved[(row, j)] += step;
            loss(j, &moved)
        };
        let expected = (at(1e-5) - at(-1e-5)) / 2e-5;
        assert!((slope - expected).abs() < 1e-7 * largest.max(1.0), "({row}, {j}): {slope} {expected}");
    }
}

fn quadratic(gram: &Array2<f64>, a: ArrayView1<'_, f64>, b: ArrayView1<'_, f64>) -> f64 {
    a.dot(&gram.dot(&b)) / (ROWS * ROWS) as f64
}

#[test]
fn neural_ef_follows_the_loss_of_each_function_with_those_before_it_fixed() {
    let (gram, outputs) = problem();
    let mut objective = NeuralEf::new(0.9);
    let (loss, found) = cotangents(&mut objective, &gram, &outputs);
    let of_function = |j: usize, u: &Array2<f64>| {
        let psi = |i: usize| {
            let column = u.column(i);
            &column / (column.dot(&column) / ROWS as f64).sqrt()
        };
        let own = psi(j);
        let penalty = |i: usize| {
            let other = psi(i);
            quadratic(&gram, other.view(), own.view()).powi(2) / quadratic(&gram, other.view(), other.view())
        };
        (0..j).map(penalty).sum::<f64>() - quadratic(&gram, own.view(), own.view())
    };
    check(&outputs, &found, of_function);
    let total: f64 = (0..FUNCTIONS).map(|j| of_function(j, &outputs)).sum();
    assert!((loss - total).abs() < 1e-12 * total.abs());
    // The first batch is the first average: the values are the Rayleigh quotients, the map undoes the scales.
    let (values, map) = objective.outcome().unwrap();
    let column = outputs.column(1);
    let square = column.dot(&column) / ROWS as f64;
    assert!((values[1] - quadratic(&gram, column, column) / square).abs() < 1e-12 * values[1]);
    assert!((map[(1, 1)] - square.sqrt().recip()).abs() < 1e-12 && map[(0, 1)] == 0.0);
}

#[test]
fn a_function_that_is_zero_stays_where_it_is() {
    let (gram, mut outputs) = problem();
    outputs.column_mut(1).fill(0.0);
    let (loss, found) = cotangents(&mut NeuralEf::new(0.9), &gram, &outputs);
    assert!(loss.is_finite() && found.iter().all(|x| x.is_finite()));
    assert!(found.column(1).iter().all(|&x| x == 0.0));
}

#[test]
fn nested_losses_have_these_gradients() {
    let (gram, outputs) = problem();
    let inner = |u: &Array2<f64>, i: usize, j: usize| u.column(i).dot(&u.column(j)) / ROWS as f64;
    let plain = |u: &Array2<f64>| {
        let k = u.ncols();
        let traces: f64 = (0..k).map(|j| quadratic(&gram, u.column(j), u.column(j))).sum();
        let squares: f64 = (0..k).flat_map(|i| (0..k).map(move |j| (i, j))).map(|(i, j)| inner(u, i, j).powi(2)).sum();
        squares - 2.0 * traces
    };
    let first = |u: &Array2<f64>, j: usize| plain(&u.slice(s![.., ..j]).to_owned());
    let (loss, found) = cotangents(&mut Nested::new(Nesting::None, 0.9), &gram, &outputs);
    assert!((loss - plain(&outputs)).abs() < 1e-12 * loss.abs());
    check(&outputs, &found, |_, u| plain(u));
    let joint = |u: &Array2<f64>| (1..=FUNCTIONS).map(|j| first(u, j)).sum::<f64>() / FUNCTIONS as f64;
    let (loss, found) = cotangents(&mut Nested::new(Nesting::Joint, 0.9), &gram, &outputs);
    assert!((loss - joint(&outputs)).abs() < 1e-12 * loss.abs());
    check(&outputs, &found, |_, u| joint(u));
    let (_, found) = cotangents(&mut Nested::new(Nesting::Sequential, 0.9), &gram, &outputs);
    check(&outputs, &found, |j, u| first(u, j + 1));
}

/// `Λ_jj` of outputs.
fn quotient(gram: &Array2<f64>, u: &Array2<f64>, j: usize) -> f64 {
    let n = ROWS as f64;
    let lower = cholesky((matmul(u.t(), u.view()) / n).view()).unwrap();
    let half = lower.solve_lower((matmul(u.t(), matmul(gram.view(), u.view()).view()) / (n * n)).view()).unwrap();
    lower.solve_lower(half.t()).unwrap()[(j, j)]
}

#[test]
fn the_gradient_of_spin_is_masked() {
    let (gram, outputs) = problem();
    for shared in [false, true] {
        let mlp = |seed| Mlp::new(3, &[4], if shared { FUNCTIONS } else { 1 }).activation(Activation::Tanh).build(seed);
        let networks: Vec<Network> = (0..if shared { 1 } else { FUNCTIONS as u64 }).map(|s| mlp(s).unwrap()).collect();
        let network = super::side_by_side(&networks).unwrap();
        let graph = network.declared_graph().unwrap();
        let weights = network.weights::<f64>(&graph);
        let points = random(ROWS, 3, "points");
        let mut passes = Passes::new(&graph);
        let mut u = Array2::zeros(outputs.dim());
        let inputs = [points.iter().copied().collect::<Vec<f64>>()];
        passes.forward(&weights, &inputs, ROWS, u.as_slice_mut().unwrap()).unwrap();
        let mut spin = Spin::new(0.99);
        let (_, by_kernel) = cotangents(&mut spin, &gram, &u);
        let mut gradient = passes.reverse(&weights, by_kernel.as_slice().unwrap()).to_vec();
        let owners = super::learn::owners(&graph, FUNCTIONS);
        assert_eq!(owners.len(), if shared { 0 } else { FUNCTIONS });
        let again = SecondPass {
            passes: &mut passes,
            weights: &weights,
            outputs: u.as_slice().unwrap(),
            rows: ROWS,
            owners: &owners,
        };
        Objective::<f64>::correct(&mut spin, again, &mut gradient);
        // The expected gradient of the outputs by differences, propagated back through the networks.
        let exact = Array2::from_shape_fn(u.dim(), |(row, j)| {
            let at = |step: f64| {
                let mut moved = u.clone();
                moved[(row, j)] += step;
                quotient(&gram, &moved, j)
            };
            (at(-1e-5) - at(1e-5)) / 2e-5
        });
        let expected = passes.reverse(&weights, exact.as_slice().unwrap());
        let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        assert!(largest > 1e-3);
        for (found, expected) in gradient.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6 * largest, "{found} {expected}, shared: {shared}");
        }
    }
}

/// `Σ` and its Jacobian are averages, but `Π` is that of the batch, so a batch with another kernel and the same outputs
/// has no lasting effect.
#[test]
fn spin_averages_the_covariance_and_not_the_kernel() {
    let (gram, _) = problem();
    let mlp = |seed| Mlp::new(3, &[4], 1).activation(Activation::Tanh).build(seed).unwrap();
    let network = super::side_by_side(&(0..FUNCTIONS as u64).map(mlp).collect::<Vec<_>>()).unwrap();
    let graph = network.declared_graph().unwrap();
    let weights = network.weights::<f64>(&graph);
    let owners = super::learn::owners(&graph, FUNCTIONS);
    let mut passes = Passes::new(&graph);
    let mut step = |spin: &mut Spin<f64>, gram: &Array2<f64>, points: &Array2<f64>| {
        let mut u = Array2::zeros((ROWS, FUNCTIONS));
        let inputs = [points.iter().copied().collect::<Vec<f64>>()];
        passes.forward(&weights, &inputs, ROWS, u.as_slice_mut().unwrap()).unwrap();
        let (loss, by_kernel) = cotangents(spin, gram, &u);
        let mut gradient = passes.reverse(&weights, by_kernel.as_slice().unwrap()).to_vec();
        let (passes, weights, outputs, owners) = (&mut passes, &weights, u.as_slice().unwrap(), &owners[..]);
        spin.correct(SecondPass { passes, weights, outputs, rows: ROWS, owners }, &mut gradient);
        (loss, gradient, u)
    };
    let (first, second) = (random(ROWS, 3, "points"), random(ROWS, 3, "other points"));
    let mut spin = Spin::new(0.75);
    step(&mut spin, &gram, &first);
    let (loss, gradient, _) = step(&mut spin, &(&gram * 5.0), &first);
    let (expected, slopes, _) = step(&mut Spin::new(0.75), &(&gram * 5.0), &first);
    assert!((loss - expected).abs() < 1e-12 * expected.abs(), "{loss} {expected}");
    let largest = slopes.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
    assert!(gradient.iter().zip(&slopes).all(|(a, b)| (a - b).abs() < 1e-12 * largest));
    // After two batches with different points, Σ̄ combines the kept and the new part.
    let mut spin = Spin::new(0.75);
    let (_, _, one) = step(&mut spin, &gram, &first);
    let (loss, _, two) = step(&mut spin, &gram, &second);
    let n = ROWS as f64;
    let sigma = matmul(one.t(), one.view()) * (0.75 / n) + matmul(two.t(), two.view()) * (0.25 / n);
    let lower = cholesky(sigma.view()).unwrap();
    let half = lower.solve_lower((matmul(two.t(), matmul(gram.view(), two.view()).view()) / (n * n)).view()).unwrap();
    let trace = lower.solve_lower(half.t()).unwrap().diag().sum();
    assert!((loss + trace).abs() < 1e-10 * trace.abs(), "{loss} {trace}");
}

/// The averages are those of all batches, not of the last one.
#[test]
fn averages_move_slowly() {
    let (gram, outputs) = problem();
    let mut objective = NeuralEf::new(0.75);
    cotangents(&mut objective, &gram, &outputs);
    let first = Objective::<f64>::outcome(&objective).unwrap().0[0];
    cotangents(&mut objective, &(&gram * 3.0), &outputs);
    let second = Objective::<f64>::outcome(&objective).unwrap().0[0];
    assert!((second - first * (0.75 + 0.25 * 3.0)).abs() < 1e-12 * first);
}

#[test]
fn tangents_begin_as_eigenfunctions_of_the_tangent_kernel() {
    use super::{Batches, Learn, LearningMethod, LearningSettings, Matrices, tangents};
    use mercer_data::{Dataset, synthetic};
    use mercer_kernel::{Ntk, NtkKind, Selection};
    use mercer_net::train::Schedule;
    let points = synthetic::uniform(60, 2, -1.0, 1.0, 1).unwrap();
    let data = [Dataset::from_array("points", points.view().into_dyn()).unwrap()];
    let network = Mlp::new(2, &[16], 2).activation(Activation::Tanh).build(2).unwrap();
    let selection = Selection { combine: Some(vec![-1.0, 2.0]), ..Selection::default() };
    let ntk = Ntk::<f64>::with_selection(&network, &[vec![2]], NtkKind::Trace, &selection).unwrap();
    let gram = Array2::from_shape_vec((60, 60), ntk.gram(&[points.as_slice().unwrap()], 60).unwrap()).unwrap();
    let truth = crate::Spectrum::of_matrix(gram.view(), 5, crate::Solver::Full, &Context::new()).unwrap();
    let all: Vec<usize> = (0..60).collect();
    let functions = tangents(&network, &data, &[-1.0, 2.0], &all, 5, &Context::new()).unwrap();
    let mut kernel = Matrices::new(gram, 1).unwrap();
    let mut batches = Batches::new(&data, &mut kernel, 60, 0, &Context::new()).unwrap();
    // A step of length zero: the functions stay as initialised.
    let settings = LearningSettings::new(LearningMethod::NeuralEf).steps(1).schedule(Schedule::constant(1e-14));
    let learnt = Learn::new(settings).run::<f64>(functions, &mut batches).unwrap();
    // The functions are differences over a finite step. Their error is of second order, and that of the eigenvalues is
    // quadratic in it.
    for (found, exact) in learnt.after[0].values().iter().zip(&truth.values) {
        assert!((found / exact - 1.0).abs() < 1e-4, "{found} {exact}");
    }
    // Before the finish, the last functions, whose eigenvalues are a hundred times smaller, still contain a little of
    // the first ones.
    let before = &learnt.before[0];
    for (found, exact) in before.values().iter().zip(&truth.values) {
        assert!((found / exact - 1.0).abs() < 5e-2, "{found} {exact}");
    }
}
