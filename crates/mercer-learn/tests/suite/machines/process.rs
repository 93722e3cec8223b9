use super::sets::{labels, rbf, rows, targets};
use mercer_learn::process::{Covariance, ProcessClassification, ProcessRegression, Tune};
use mercer_learn::{Classify, Fit, Predict, Result, SampleRows};
use mercer_run::Context;
use ndarray::{Array1, Array2, ArrayView2, Axis, array};

/// `variance·exp(−‖x − y‖²/(2ℓ²))`, with derivatives written down by hand.
#[derive(Clone, Debug)]
struct Rbf {
    variance: f64,
    length: f64,
}

impl Rbf {
    fn squares(rows: ArrayView2<'_, f64>) -> Array2<f64> {
        rbf(rows, rows).mapv(|k| -k.ln())
    }
}

impl Covariance for Rbf {
    fn logs(&self) -> Vec<f64> {
        vec![self.variance.ln(), self.length.ln()]
    }

    fn with_logs(&self, logs: &[f64]) -> Result<Self> {
        Ok(Self { variance: logs[0].exp(), length: logs[1].exp() })
    }

    fn gram(&self, rows: ArrayView2<'_, f64>) -> Result<Array2<f64>> {
        Ok(Self::squares(rows).mapv(|d| self.variance * (-0.5 * d / self.length.powi(2)).exp()))
    }

    fn gradient(&self, rows: ArrayView2<'_, f64>, seeds: ArrayView2<'_, f64>) -> Result<Vec<f64>> {
        let k = self.gram(rows)? * seeds;
        Ok(vec![k.sum(), (k * Self::squares(rows) / self.length.powi(2)).sum()])
    }
}

/// By hand: two samples, and the density of a Gaussian in two dimensions.
#[test]
fn two_samples_by_hand() {
    let k = array![[1.0, 0.5], [0.5, 1.0]];
    let y = array![[1.0], [-2.0]];
    let machine = ProcessRegression::new(0.5).unwrap().fit(&SampleRows::Gram(k.view()), &y).unwrap();
    // K + ½I = [[1.5, .5], [.5, 1.5]], determinant 2, inverse [[.75, −.25], [−.25, .75]].
    let square = 0.75 + 4.0 * 0.75 - 2.0 * (-0.25) * 2.0;
    let expected = -0.5 * (square + 2f64.ln() + 2.0 * std::f64::consts::TAU.ln());
    assert!((machine.log_likelihood() - expected).abs() < 1e-12);
    let cross = array![[0.2, 0.8]];
    let posterior = machine.posterior(&SampleRows::Gram(cross.view()), array![1.0].view()).unwrap();
    let a = [0.75 + 0.5, -0.25 - 1.5];
    assert!((posterior.means[(0, 0)] - (0.2 * a[0] + 0.8 * a[1])).abs() < 1e-12);
    let explained = 0.75 * (0.04 + 0.64) - 2.0 * 0.25 * 0.16;
    assert!((posterior.variances[0] - (1.0 - explained)).abs() < 1e-12);
}

#[test]
fn draws_have_the_posterior_moments() {
    let (x, z) = (rows(10, 2, "process"), rows(3, 2, "new"));
    let (k, c, prior) = (rbf(x.view(), x.view()), rbf(z.view(), x.view()), rbf(z.view(), z.view()));
    let y = targets(x.view());
    let machine = ProcessRegression::new(0.1).unwrap().centred().fit(&SampleRows::Gram(k.view()), &y).unwrap();
    let posterior = machine.posterior(&SampleRows::Gram(c.view()), prior.diag()).unwrap();
    let count = 40_000;
    let draws = machine.draw(&SampleRows::Gram(c.view()), prior.view(), 1, count, 7).unwrap();
    let means = draws.mean_axis(Axis(1)).unwrap();
    for i in 0..3 {
        let variance = draws.row(i).mapv(|v| (v - means[i]).powi(2)).sum() / count as f64;
        // Five standard errors.
        assert!((means[i] - posterior.means[(i, 1)]).abs() < 5.0 * (posterior.variances[i] / count as f64).sqrt());
        assert!((variance / posterior.variances[i] - 1.0).abs() < 5.0 * (2.0 / count as f64).sqrt());
    }
    assert!(machine.draw(&SampleRows::Gram(c.view()), prior.view(), 2, 1, 0).is_err());
}

/// The likelihood at the tuned place is not below any neighbour's, and its log likelihood is the machine's own.
#[test]
fn tuning_ends_at_a_maximum() {
    let x = rows(40, 1, "tune");
    let y = x.mapv(|x| (4.0 * x).sin()) + rows(40, 1, "tune noise") * 0.1;
    let start = Rbf { variance: 1.0, length: 1.0 };
    let tuned = Tune { noise: 0.5, centred: false, restarts: 1, seed: 3 }
        .run(&start, x.view(), y.view(), &Context::new())
        .unwrap();
    assert!(tuned.converged, "{tuned:?}");
    let value = |kernel: &Rbf, noise: f64| {
        let gram = kernel.gram(x.view()).unwrap();
        let machine = ProcessRegression::new(noise).unwrap().fit(&SampleRows::Gram(gram.view()), &y).unwrap();
        machine.log_likelihood()
    };
    let best = value(&tuned.kernel, tuned.noise);
    assert!((best - tuned.log_likelihood).abs() < 1e-8);
    for factor in [0.9, 1.1] {
        assert!(value(&Rbf { variance: tuned.kernel.variance * factor, ..tuned.kernel }, tuned.noise) < best);
        assert!(value(&Rbf { length: tuned.kernel.length * factor, ..tuned.kernel }, tuned.noise) < best);
        assert!(value(&tuned.kernel, tuned.noise * factor) < best);
    }
    // The noise was uniform on (−0.1, 0.1): its variance is 1/300.
    assert!((tuned.noise * 300.0).ln().abs() < 0.7, "{}", tuned.noise);
}

/// The gradients of classic kernels lead to the same place as those written down by hand.
#[test]
fn classic_kernels_are_tuned() {
    let x = rows(40, 1, "tune");
    let y = x.mapv(|x| (4.0 * x).sin()) + rows(40, 1, "tune noise") * 0.1;
    let by_hand = Tune { noise: 0.5, centred: false, restarts: 0, seed: 3 }
        .run(&Rbf { variance: 1.0, length: 1.0 }, x.view(), y.view(), &Context::new())
        .unwrap();
    let expression: mercer_kernel::classic::Formula = "1*rbf(lengthscale=1)".parse().unwrap();
    let tuned = Tune { noise: 0.5, centred: false, restarts: 0, seed: 3 }
        .run(&expression, x.view(), y.view(), &Context::new())
        .unwrap();
    assert!((tuned.log_likelihood - by_hand.log_likelihood).abs() < 1e-6);
    let length = tuned.kernel.parameters().into_iter().find(|parameter| parameter.name == "rbf.lengthscale").unwrap();
    assert!((length.value / by_hand.kernel.length - 1.0).abs() < 1e-3);
}

/// Two classes and one sample: the mode, the variance and the probability by a one-dimensional integral.
#[test]
fn classification_of_few_samples() {
    let k = array![[2.0, 0.0], [0.0, 2.0]];
    let y = mercer_data::Classes::new(vec![1, 0], 2).unwrap();
    let machine = ProcessClassification.fit(&SampleRows::Gram(k.view()), &y).unwrap();
    let scores = machine.predict(&SampleRows::Gram(k.view())).unwrap();
    let f = scores[(0, 1)];
    let p = 1.0 / (1.0 + (-f).exp());
    // Independent samples: f/2 = 1 − σ(f).
    assert!((f / 2.0 - (1.0 - p)).abs() < 1e-7);
    let w = p * (1.0 - p);
    let variance = 1.0 / (0.5 + w);
    let steps = 20_000;
    let integral: f64 = (0..steps)
        .map(|i| {
            let z = -10.0 + 20.0 * (i as f64 + 0.5) / steps as f64;
            let density = (-0.5 * z * z).exp() / std::f64::consts::TAU.sqrt();
            density / (1.0 + (-(f + variance.sqrt() * z)).exp()) * 20.0 / steps as f64
        })
        .sum();
    let prior = Array1::from_elem(2, 2.0);
    let probabilities = machine.posterior_probabilities(&SampleRows::Gram(k.view()), prior.view()).unwrap();
    assert!((probabilities[(0, 1)] - integral).abs() < 1e-7, "{} {integral}", probabilities[(0, 1)]);
    assert!((probabilities[(1, 1)] + probabilities[(0, 1)] - 1.0).abs() < 1e-9);
}

#[test]
fn several_classes_are_told_apart() {
    let x = rows(60, 2, "classes");
    let y = labels(x.view(), 3);
    let k = rbf(x.view(), x.view()) * 20.0;
    let samples = SampleRows::Gram(k.view());
    let machine = ProcessClassification.fit(&samples, &y).unwrap();
    let probabilities = machine.posterior_probabilities(&samples, k.diag()).unwrap();
    assert!(probabilities.sum_axis(Axis(1)).iter().all(|sum| (sum - 1.0).abs() < 1e-12));
    let right = mercer_learn::metrics::accuracy(&machine.decide(&samples).unwrap(), y.indices()).unwrap();
    assert!(right > 0.85 && machine.log_likelihood() < 0.0);
}
