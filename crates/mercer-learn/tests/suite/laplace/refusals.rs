//! What cannot be done is said, not panicked about.

use super::nets::{dataset, diabetes, iris};
use mercer_data::{Classes, Labels};
use mercer_learn::LearnError;
use mercer_learn::laplace::{Laplace, LaplaceSettings, Likelihood, PredictiveDraws, Structure};
use mercer_run::Context;
use ndarray::Array;

fn error(result: Result<Laplace<f64>, LearnError>) -> String {
    result.expect_err("refused").to_string()
}

#[test]
fn bad_settings_are_refused() {
    let case = iris();
    let fit =
        |settings: &LaplaceSettings| Laplace::fit(&case.network, &case.train, &case.labels, settings, &Context::new());
    for precision in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let settings = case.settings(Structure::Diagonal).prior_precision(precision);
        assert!(error(fit(&settings)).contains("prior precision"));
    }
    let gaussian = LaplaceSettings::new(Structure::Full, Likelihood::Gaussian { noise: 1.0 });
    assert!(error(fit(&gaussian)).contains("likelihood"));
    let silent = LaplaceSettings::new(Structure::Full, Likelihood::Gaussian { noise: 0.0 });
    assert!(error(fit(&silent)).contains("noise"));
    let features = LaplaceSettings::new(Structure::Features { residual: false }, Likelihood::Categorical);
    assert!(error(fit(&features)).contains("features"));
    let mut chosen = case.settings(Structure::LastLayerFull);
    chosen.parameters = vec!["0.*".to_owned()];
    assert!(error(fit(&chosen)).contains("last layer"));
    let mut unknown = case.settings(Structure::Full);
    unknown.parameters = vec!["nowhere".to_owned()];
    assert!(error(fit(&unknown)).contains("nowhere"));
    let mut hidden = case.settings(Structure::LastLayerFull);
    hidden.output = Some("/3/Tanh_output_0".to_owned());
    let error = error(fit(&hidden));
    assert!(error.contains("Tanh"), "{error}");
}

#[test]
fn bad_data_are_refused() {
    let case = iris();
    let settings = case.settings(Structure::Kronecker);
    let fit = |data: mercer_data::Dataset, labels: &Labels| {
        Laplace::fit(&case.network, &[data], labels, &settings, &Context::new())
    };
    let classes = |count: usize| Labels::Classes(Classes::new(vec![0; count], 3).expect("classes"));
    let numbers = |rows: usize, width: usize| Array::from_elem((rows, width), 0.5).into_dyn();
    assert!(error(fit(dataset("few", numbers(3, 4)), &classes(4))).contains("labels"));
    assert!(fit(dataset("wide", numbers(3, 5)), &classes(3)).is_err());
    let mut broken = numbers(3, 4);
    broken[[1, 2]] = f64::NAN;
    assert!(
        mercer_data::Dataset::from_array("broken", broken.view()).is_err()
            || fit(dataset("broken", broken), &classes(3)).is_err()
    );
    let beyond = Labels::Classes(Classes::new(vec![0, 1, 4], 5).expect("classes"));
    assert!(error(fit(dataset("beyond", numbers(3, 4)), &beyond)).contains("class"));
    assert!(matches!(
        Laplace::<f64>::fit(&case.network, &[], &classes(3), &settings, &Context::new()),
        Err(LearnError::Empty { .. } | LearnError::Network(_))
    ));
    let cancelled = Context::new();
    cancelled.cancel();
    assert!(Laplace::<f64>::fit(&case.network, &case.train, &case.labels, &settings, &cancelled).is_err());
    let machine = case.fit(Structure::Kronecker);
    assert!(machine.predict(&[dataset("wide", numbers(2, 5))], &Context::new()).is_err());
}

/// One sample, all of one class, the same sample many times: there is a posterior in every case.
#[test]
fn poor_data_have_a_posterior() {
    let case = iris();
    let one = Array::from_shape_fn((1, 4), |(_, at)| at as f64);
    let many = Array::from_shape_fn((50, 4), |(_, at)| at as f64);
    for x in [one, many] {
        let labels = Labels::Classes(Classes::new(vec![1; x.nrows()], 3).expect("classes"));
        for structure in [Structure::Full, Structure::Diagonal, Structure::Kronecker, Structure::LastLayerFull] {
            let settings = case.settings(structure);
            let data = [dataset("poor", x.clone().into_dyn())];
            let machine = Laplace::<f64>::fit(&case.network, &data, &labels, &settings, &Context::new()).expect("fits");
            let functional = machine.predict(&case.test, &Context::new()).expect("predicts");
            assert!(functional.variances().iter().all(|&x| x > 0.0 && x.is_finite()));
        }
    }
}

#[test]
fn draws_need_a_number_and_a_scale() {
    let case = diabetes();
    let functional = case.fit(Structure::Diagonal).predict(&case.test, &Context::new()).expect("predicts");
    assert!(
        functional.monte_carlo(&PredictiveDraws { draws: 0, ..PredictiveDraws::default() }, &Context::new()).is_err()
    );
    assert!(
        functional
            .monte_carlo(&PredictiveDraws { scale: f64::NAN, ..PredictiveDraws::default() }, &Context::new())
            .is_err()
    );
}
