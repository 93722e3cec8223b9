//! Power-law tails against samples of known distributions, and against `powerlaw` and WeightWatcher.

mod common;

use common::{features, normals};
use mercer_lens::spectra::{PowerLaw, hill, is_heavy, power_law};
use serde_json::Value;

/// Numbers between 0 and 1.
fn uniform(n: usize, seed: u64) -> Vec<f64> {
    features(n, 1, seed).iter().map(|u| u + 0.5).collect()
}

fn pareto(n: usize, alpha: f64, seed: u64) -> Vec<f64> {
    uniform(n, seed).iter().map(|u| (1.0 - u).powf(-1.0 / (alpha - 1.0))).collect()
}

fn fit(values: &[f64]) -> PowerLaw {
    power_law(values, 2).unwrap().unwrap()
}

#[test]
fn samples_of_a_power_law_give_back_its_exponent() {
    for alpha in [1.5, 2.5, 4.0] {
        let values = pareto(3000, alpha, 11);
        let found = fit(&values);
        assert!((found.alpha - alpha).abs() < 3.0 * found.standard_error, "{found:?}");
        assert!(found.distance < 0.03 && is_heavy(&found), "{found:?}");
        let top = hill(&values, 500).unwrap().unwrap();
        assert!((top.alpha - alpha).abs() < 3.0 * top.standard_error, "{top:?}");
        assert!((top.standard_error - (top.alpha - 1.0) / 500f64.sqrt()).abs() < 1e-12);
    }
}

/// Below its threshold the distribution is another one, as in the paper's figure 3.2.
#[test]
fn the_threshold_is_found() {
    let body = uniform(1500, 3).into_iter();
    let values: Vec<f64> = body.chain(pareto(1500, 2.5, 4)).map(|x| x * 7.0).collect();
    let found = fit(&values);
    assert!(
        (0.95..1.3).contains(&(found.x_min / 7.0)) && (found.alpha - 2.5).abs() < 3.0 * found.standard_error,
        "{found:?}"
    );
    // The scale moves the threshold only.
    let small: Vec<f64> = values.iter().map(|x| x * 1e-30).collect();
    assert!((fit(&small).alpha - found.alpha).abs() < 1e-9 && fit(&small).n_tail == found.n_tail);
}

#[test]
fn the_tests_tell_other_tails() {
    let normal = normals(3000, 1, 5);
    let exponential: Vec<f64> = uniform(3000, 6).iter().map(|u| 1.0 - (1.0 - u).ln()).collect();
    let lognormal: Vec<f64> = normal.iter().map(|z| (0.5 * z).exp()).collect();
    let least = 500;
    let found = power_law(&exponential, least).unwrap().unwrap();
    assert!(found.exponential.ratio.unwrap() < 0.0 && found.exponential.p_value.unwrap() < 1e-3, "{found:?}");
    let found = power_law(&lognormal, least).unwrap().unwrap();
    assert!(
        found.lognormal.ratio.unwrap() < 0.0 && found.lognormal.p_value.unwrap() < 0.05 && !is_heavy(&found),
        "{found:?}"
    );
    let found = fit(&pareto(3000, 2.0, 7));
    assert!(found.exponential.ratio.unwrap() > 3.0 && found.lognormal.p_value.is_none_or(|p| p > 0.05), "{found:?}");
}

/// The eigenvalues of the 20 layers of a ResNet-20. `powerlaw` fits the other tails by a search that stops early, so
/// their ratios agree to fewer digits, and for a lognormal tail where its parameters are moderate.
#[test]
fn layers_agree_with_powerlaw_and_weightwatcher() {
    let layers: Vec<Value> = serde_json::from_str(include_str!("fixtures/tails.json")).unwrap();
    assert_eq!(layers.len(), 20);
    let (mut watched, mut compared) = (0, 0);
    for (index, layer) in layers.iter().enumerate() {
        let values: Vec<f64> = layer["eigenvalues"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect();
        let found = fit(&values);
        let close = |name: &str, found: f64, expected: &Value, tolerance: f64| {
            let expected = expected.as_f64().unwrap();
            assert!(
                (found - expected).abs() <= tolerance * expected.abs(),
                "layer {index}, {name}: {found} {expected}"
            );
        };
        let other = &layer["powerlaw"];
        close("alpha", found.alpha, &other["alpha"], 1e-10);
        close("x_min", found.x_min, &other["xmin"], 1e-12);
        close("standard error", found.standard_error, &other["sigma"], 1e-10);
        close("distance", found.distance, &other["D"], 1e-10);
        assert_eq!(found.n_tail as u64, other["n_tail"].as_u64().unwrap());
        let against = &other["against"];
        close("exponential", found.exponential.ratio.unwrap(), &against["exponential"]["ratio"], 1e-3);
        close("exponential, p", found.exponential.p_value.unwrap(), &against["exponential"]["p"], 1e-3);
        if other["lognormal"][0].as_f64().unwrap() > -20.0 {
            close("lognormal", found.lognormal.ratio.unwrap(), &against["lognormal"]["ratio"], 1e-2);
            compared += 1;
        }
        // With fewer values WeightWatcher has another definition.
        if values.len() >= 20 {
            let watcher = &layer["weightwatcher"];
            close("alpha of WeightWatcher", found.alpha, &watcher["alpha"], 1e-10);
            close("D of WeightWatcher", found.distance, &watcher["D"], 1e-10);
            close("sigma of WeightWatcher", found.standard_error, &watcher["sigma"], 1e-10);
            close("xmin of WeightWatcher", found.x_min, &watcher["xmin"], 1e-12);
            watched += 1;
        }
    }
    assert_eq!((watched, compared), (12, 19));
}

#[test]
fn tails_that_are_not_there() {
    assert_eq!(power_law(&[], 2).unwrap(), None);
    assert_eq!(power_law(&[3.0; 9], 2).unwrap(), None);
    assert_eq!(power_law(&[0.0, 0.0, 1.0], 2).unwrap(), None);
    assert!(power_law(&[1.0, 2.0], 1).is_err() && power_law(&[1.0, -2.0], 2).is_err());
    assert!(power_law(&[1.0, f64::INFINITY], 2).is_err());
    assert!(hill(&[1.0, 2.0], 2).is_err() && hill(&[1.0, 2.0], 0).is_err());
    assert_eq!(hill(&[2.0, 2.0, 2.0], 2).unwrap(), None);
    // Zeros, and values that are rounding beside the largest, are no part of a tail.
    let with_zeros: Vec<f64> = pareto(200, 2.5, 8).into_iter().chain([0.0, 1e-20, -1e-20]).collect();
    assert_eq!((fit(&with_zeros).n_values, fit(&with_zeros)), (200, fit(&pareto(200, 2.5, 8))));
    assert!(power_law(&pareto(200, 2.5, 8), 150).unwrap().unwrap().n_tail >= 150);
}
