//! The values of `tests/golden/laplace`, by laplace-torch.

use super::nets::{Case, STRUCTURES, diabetes, distance, iris};
use mercer_learn::laplace::PredictiveDraws;
use mercer_run::Context;

/// Both sides are computed in f64 from the same weights: what is left is rounding, through matrices of condition 10⁴.
const TOLERANCE: f64 = 1e-10;

fn check(case: &Case, probabilities: bool) {
    for (name, structure) in STRUCTURES {
        let machine = case.fit(structure);
        let functional = machine.predict(&case.test, &Context::new()).expect("predicts");
        let close = |what: &str, distance: f64| assert!(distance < TOLERANCE, "{name}: {what} is off by {distance:e}");
        close("the mean", distance(&functional.mean, &case.array("map_out")));
        close("the covariance", distance(&functional.covariance, &case.array(&format!("{name}_fvar"))));
        let evidence = machine.log_evidence(machine.prior_precision()).expect("an evidence");
        let reference = case.number(&format!("{name}_logmarglik"));
        close("the evidence", (evidence / reference - 1.0).abs());
        if probabilities {
            close("the probit", distance(&functional.probit(), &case.array(&format!("{name}_probit"))));
        }
    }
}

#[test]
fn classification_is_the_references() {
    check(&iris(), true);
}

#[test]
fn regression_is_the_references() {
    check(&diabetes(), false);
}

/// Draws agree with the closed form where that is exact: the mean of many draws of the outputs.
#[test]
fn monte_carlo_agrees_with_probit() {
    let case = iris();
    let machine = case.fit(mercer_learn::laplace::Structure::LastLayerFull);
    let functional = machine.predict(&case.test, &Context::new()).expect("predicts");
    let draws = PredictiveDraws { draws: 4096, ..PredictiveDraws::default() };
    let drawn = functional.monte_carlo(&draws, &Context::new()).expect("draws");
    assert_eq!(drawn, functional.monte_carlo(&draws, &Context::new()).expect("draws"), "the same seed");
    let probit = functional.probit();
    // Probit is an approximation of about a hundredth here, 4096 draws one of another.
    assert!(drawn.iter().zip(&probit).all(|(a, b)| (a - b).abs() < 0.05), "{drawn} and {probit}");
    let wide = functional.monte_carlo(&PredictiveDraws { scale: 20.0, ..draws }, &Context::new()).expect("draws");
    let sure = |p: &ndarray::Array2<f64>| p.iter().fold(0.0_f64, |most, &x| most.max(x));
    assert!(sure(&wide) < sure(&drawn), "more noise, less certainty");
}
