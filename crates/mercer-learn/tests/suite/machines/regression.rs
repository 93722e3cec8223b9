use super::sets::{rbf, rows, targets};
use mercer_data::{Columns, Existing};
use mercer_learn::regression::{Decomposition, Filter, IterativeRidge, LeastSquares, Ridge};
use mercer_learn::{Fit, KernelMachine, Machine, Predict, SampleRows};
use mercer_run::Context;
use ndarray::{Array1, Array2, Axis, array, s};

fn worst(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    (a - b).iter().fold(0.0, |most: f64, d| most.max(d.abs()))
}

#[test]
fn ridge_solves_its_normal_equations() {
    let x = rows(30, 2, "ridge");
    let (k, y) = (rbf(x.view(), x.view()), targets(x.view()));
    let machine = Ridge::new(0.2).unwrap().fit(&SampleRows::Gram(k.view()), &y).unwrap();
    let left = k.dot(machine.weights()) + machine.weights() * 0.2;
    assert!(worst(&left, &y) < 1e-12);
}

/// All filters on one decomposition: ridge is ridge, everything kept interpolates, the flow is Euler's method with small steps.
#[test]
fn filters_are_what_they_are_called() {
    let x = rows(25, 2, "filters");
    let (k, y) = (rbf(x.view(), x.view()), targets(x.view()));
    let samples = SampleRows::Gram(k.view());
    let spectrum = Decomposition::new(&samples).unwrap();
    let ridge = Ridge::new(0.3).unwrap().fit(&samples, &y).unwrap().predict(&samples).unwrap();
    let filtered = spectrum.fit(&Filter::Ridge { alpha: 0.3 }, y.view()).unwrap().predict(&samples).unwrap();
    assert!(worst(&ridge, &filtered) < 1e-11);
    let (time, steps) = (40.0, 40_000);
    let mut f = Array2::<f64>::zeros(y.dim());
    for _ in 0..steps {
        let force = k.dot(&(&y - &f)) * (time / steps as f64 / 25.0);
        f += &force;
    }
    let flow = spectrum.fit(&Filter::Flow { time }, y.view()).unwrap().predict(&samples).unwrap();
    // Euler's method is off by half a step: ½·(λt/N)²/steps·|y|.
    assert!(worst(&flow, &f) < 2e-3, "{}", worst(&flow, &f));
    let kept = spectrum.fit(&Filter::Truncate { components: 3 }, y.view()).unwrap().predict(&samples).unwrap();
    let u = mercer_linalg::symmetric_eigen(k.view()).unwrap().vectors;
    let u = u.slice(s![.., ..3]);
    assert!(worst(&kept, &u.dot(&u.t().dot(&y))) < 1e-10);
    assert!(spectrum.fit(&Filter::Truncate { components: 26 }, y.view()).is_err());
    assert!(spectrum.fit(&Filter::Flow { time: f64::NAN }, y.view()).is_err());
}

/// The closed form against leaving every sample out, with a Gram matrix and with few features.
#[test]
fn leave_one_out_is_leaving_one_out() {
    let x = rows(18, 3, "leave");
    let y = targets(x.view());
    let k = rbf(x.view(), x.view());
    for samples in [SampleRows::Gram(k.view()), SampleRows::Features(x.view())] {
        let spectrum = Decomposition::new(&samples).unwrap();
        let gram = samples.gram();
        for alpha in [1e-3, 0.1, 10.0] {
            let mut sum = 0.0;
            for out in 0..18 {
                let others: Vec<usize> = (0..18).filter(|&i| i != out).collect();
                let part = gram.select(Axis(0), &others).select(Axis(1), &others);
                let machine = Ridge::new(alpha).unwrap();
                let machine = machine.fit(&SampleRows::Gram(part.view()), &y.select(Axis(0), &others)).unwrap();
                let row = gram.select(Axis(0), &[out]).select(Axis(1), &others);
                let error = machine.predict(&SampleRows::Gram(row.view())).unwrap() - y.select(Axis(0), &[out]);
                sum += error.mapv(|e| e * e).sum();
            }
            let closed = spectrum.leave_one_out(alpha, y.view()).unwrap();
            assert!((closed / (sum / 36.0) - 1.0).abs() < 1e-8, "{alpha}: {closed} {}", sum / 36.0);
        }
        let candidates = [1e-4, 1e-2, 1.0, 100.0];
        let found = spectrum.best_penalty(&candidates, y.view()).unwrap();
        let error = |penalty: f64| spectrum.leave_one_out(penalty, y.view()).unwrap();
        assert!(candidates.iter().all(|&penalty| error(penalty) >= error(found.value)));
        assert!(found.candidates.iter().all(|tried| tried.score == error(tried.value)));
        assert_eq!(found.candidates.len(), candidates.len());
    }
}

/// The definition of the generalised score, with the smoother as a matrix.
#[test]
fn generalised_cross_validation_is_its_definition() {
    let x = rows(15, 2, "generalised");
    let (k, y) = (rbf(x.view(), x.view()), targets(x.view()));
    let spectrum = Decomposition::new(&SampleRows::Gram(k.view())).unwrap();
    for filter in [Filter::Ridge { alpha: 0.1 }, Filter::Truncate { components: 4 }, Filter::Flow { time: 20.0 }] {
        let smoother = k.dot(spectrum.fit(&filter, Array2::eye(15).view()).unwrap().weights());
        let residual = &y - &smoother.dot(&y);
        let left = 15.0 - smoother.diag().sum();
        let expected = 15.0 * residual.mapv(|r| r * r).sum() / 2.0 / (left * left);
        assert!((spectrum.generalised(&filter, y.view()).unwrap() / expected - 1.0).abs() < 1e-8, "{filter:?}");
    }
    assert!(spectrum.generalised(&Filter::Truncate { components: 15 }, y.view()).is_err());
}

#[test]
fn the_flow_is_stopped_where_validation_is_best() {
    let (x, v) = (rows(30, 2, "stop"), rows(20, 2, "validation"));
    let noisy = |x: &Array2<f64>| targets(x.view()) + rows(x.nrows(), 2, "noise");
    let (y, w) = (noisy(&x), targets(v.view()));
    let (k, c) = (rbf(x.view(), x.view()), rbf(v.view(), x.view()));
    let spectrum = Decomposition::new(&SampleRows::Gram(k.view())).unwrap();
    let times = [1.0, 10.0, 100.0, 1e3, 1e6, 1e12];
    let (time, error) = spectrum.early_stopping(&times, y.view(), &SampleRows::Gram(c.view()), w.view()).unwrap();
    let interpolated = spectrum.fit(&Filter::Flow { time: 1e12 }, y.view()).unwrap();
    let late = (interpolated.predict(&SampleRows::Gram(c.view())).unwrap() - &w).mapv(|d| d * d).sum() / 20.0;
    assert!(time < 1e6 && error < late, "{time} {error} {late}");
}

/// Against the normal equations, well conditioned; and the Jacobian form keeps what the kernel form loses.
#[test]
fn weighted_least_squares_in_both_forms() {
    let phi = rows(20, 4, "features");
    let y = targets(rows(20, 2, "more").view());
    let weights: Array1<f64> = (0..20).map(|i| 0.5 + (i % 3) as f64).collect();
    let method = LeastSquares::new().with_weights(weights.clone()).unwrap().with_cutoff(1e-10).unwrap();
    let features = method.fit(&SampleRows::Features(phi.view()), &y).unwrap();
    let weighted = &phi * &weights.view().insert_axis(Axis(1));
    let normal = mercer_linalg::cholesky(weighted.t().dot(&phi).view()).unwrap();
    let expected = normal.solve(weighted.t().dot(&y).view()).unwrap();
    assert!(worst(features.weights(), &expected.as_standard_layout().to_owned()) < 1e-11);
    let gram = phi.dot(&phi.t());
    let kernel = method.fit(&SampleRows::Gram(gram.view()), &y).unwrap();
    let (a, b) = (
        kernel.predict(&SampleRows::Gram(gram.view())).unwrap(),
        features.predict(&SampleRows::Features(phi.view())).unwrap(),
    );
    assert!(worst(&a, &b) < 1e-9);
    // A direction at 10⁻⁹ of the others: gone in the Gram matrix, there in the features.
    let mut thin = phi.clone();
    thin.column_mut(3).mapv_inplace(|v| v * 1e-9);
    let exact = thin.dot(&array![[1.0], [2.0], [-1.0], [1e9]]);
    let gram = thin.dot(&thin.t());
    let jacobian = LeastSquares::new().fit(&SampleRows::Features(thin.view()), &exact).unwrap();
    let kernel = LeastSquares::new().fit(&SampleRows::Gram(gram.view()), &exact).unwrap();
    let error = |found: Array2<f64>| worst(&found, &exact);
    let of_features = error(jacobian.predict(&SampleRows::Features(thin.view())).unwrap());
    let of_kernel = error(kernel.predict(&SampleRows::Gram(gram.view())).unwrap());
    assert!(of_features < 1e-6 && of_kernel > 1e-2, "{of_features:e} {of_kernel:e}");
}

/// Matrix-free and preconditioned in both ways, against the factorisation.
#[test]
fn iterations_end_where_the_factorisation_is() {
    let x = rows(120, 2, "iterative");
    let (k, y) = (rbf(x.view(), x.view()), targets(x.view()));
    let samples = SampleRows::Gram(k.view());
    let exact = Ridge::new(1e-4).unwrap().fit(&samples, &y).unwrap().predict(&samples).unwrap();
    let method = IterativeRidge::new(1e-4, 1e-10).unwrap();
    let plain = method.fit(&samples, &y).unwrap();
    let pivoted = method.precondition(30, 1).fit(&samples, &y).unwrap();
    let nystrom = method.precondition(30, 1).fit_operator(&k, y.view(), &Context::new()).unwrap();
    for found in [&plain, &pivoted, &nystrom] {
        assert!(worst(&found.predict(&samples).unwrap(), &exact) < 1e-8);
    }
    assert!(pivoted.iterations * 3 < plain.iterations, "{} {}", pivoted.iterations, plain.iterations);
    assert!(nystrom.iterations * 3 < plain.iterations, "{} {}", nystrom.iterations, plain.iterations);
    assert_eq!((plain.rank, pivoted.rank), (0, 30));
    let hasty = method.max_iterations(2).fit(&samples, &y);
    assert!(hasty.unwrap_err().to_string().contains("relative residual"));
}

/// The columns of the training table are kept beside the machine; a folder without them has none.
#[test]
fn a_machine_keeps_its_columns() {
    let folder = tempfile::tempdir().unwrap();
    let x = rows(12, 2, "columns");
    let machine = Ridge::new(0.1).unwrap().fit(&SampleRows::Features(x.view()), &targets(x.view())).unwrap();
    let machine = Machine::from(machine);
    let mut saved = KernelMachine::from(machine.clone());
    saved.save(folder.path(), Existing::Refuse).unwrap();
    assert!(KernelMachine::load(folder.path()).unwrap().samples.columns.is_empty());
    let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
    let columns =
        Columns { inputs: names(&["b", "a"]), used: names(&["y"]), named: true, single: false, reading: None };
    saved.samples.columns = vec![Some(columns)];
    saved.save(folder.path(), Existing::Replace).unwrap();
    let loaded = KernelMachine::load(folder.path()).unwrap();
    assert_eq!(loaded.samples.columns, saved.samples.columns);
    let rows = SampleRows::Features(x.view());
    assert_eq!(loaded.machine.predict(&rows).unwrap(), machine.predict(&rows).unwrap());
}
