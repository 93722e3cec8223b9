//! Values and gradients of scikit-learn, and of forty digits where it has none; see `tests/golden/classic/make.py`.

use super::kernel;
use ndarray::Array2;
use serde_json::Value;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/classic/classic.json");
    serde_json::from_str(&std::fs::read_to_string(path).expect("a fixture")).expect("JSON")
}

fn matrix(value: &Value) -> Array2<f64> {
    let rows: Vec<Vec<f64>> = serde_json::from_value(value.clone()).expect("a matrix");
    Array2::from_shape_vec((rows.len(), rows[0].len()), rows.concat()).expect("a rectangle")
}

#[test]
fn values_are_those_of_scikit_learn() {
    let golden = golden();
    for case in golden["cases"].as_array().expect("cases") {
        let text = case["kernel"].as_str().expect("a text");
        let (left, right) = (case["x"].as_str().expect("a name"), case["y"].as_str().expect("a name"));
        let (x, y) = (matrix(&golden["data"][left]), matrix(&golden["data"][right]));
        let (kernel, expected) = (kernel(text), matrix(&case["values"]));
        let mut found = vec![kernel.cross(x.view(), y.view()).unwrap()];
        if left == right {
            found.push(kernel.gram(x.view()).unwrap());
        }
        let size = expected.iter().fold(1.0, |most: f64, x| most.max(x.abs()));
        // The square root of a vanishing distance amplifies rounding; ours has all digits, the reference subtracts too.
        for found in &found {
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                assert!(
                    (found - expected).abs() <= 1e-12 * size,
                    "{text} of {left}, {right} at {at}: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn gradients_are_those_of_scikit_learn() {
    let golden = golden();
    let mut checked = 0;
    for case in golden["cases"].as_array().expect("cases").iter().filter(|case| case.get("gradient").is_some()) {
        let (text, name) = (case["kernel"].as_str().expect("a text"), case["x"].as_str().expect("a name"));
        let expected: Vec<f64> = serde_json::from_value(case["gradient"].clone()).expect("numbers");
        let (x, weights) = (matrix(&golden["data"][name]), matrix(&golden["weights"][name]));
        let found = kernel(text).gradient(x.view(), weights.view()).unwrap();
        assert_eq!(found.len(), expected.len(), "{text}");
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() <= 1e-11 * expected.abs().max(1.0), "{text}: {found} {expected}");
        }
        checked += 1;
    }
    assert!(checked >= 15, "{checked}");
}
