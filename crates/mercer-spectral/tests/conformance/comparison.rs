//! Diagnostics of functions whose error is known.

use mercer_spectral::{Comparison, Repairs, Spectrum, orient};
use ndarray::{Array2, array};

/// Two functions turned into each other by an angle span the same plane; a third tilts out of it.
#[test]
fn angles_are_those_of_a_rotation() {
    let root = 3f64.sqrt();
    let truth = Spectrum {
        values: array![2.0, 1.0],
        functions: Array2::from_diag(&array![root, root, root]).slice(ndarray::s![.., ..2]).to_owned(),
        repairs: Repairs::default(),
    };
    let (sin, cos) = (0.3f64.sin(), 0.3f64.cos());
    let turned = array![[cos, -sin], [sin, cos], [0.0, 0.0]] * root;
    let compared = Comparison::new(array![2.2, 0.5].view(), turned.view(), &truth).expect("same rows");
    let near = |found: f64, expected: f64| assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    near(compared.cosines[0], cos);
    near(compared.cosines[1], cos);
    near(compared.value_errors[0], 0.1);
    near(compared.value_errors[1], -0.5);
    near(compared.subspace_angles[0], 0.3f64.to_degrees());
    near(compared.subspace_angles[1], 0.0);
    let tilted = array![[1.0, 0.0], [0.0, cos], [0.0, sin]];
    let compared = Comparison::new(array![2.0, 1.0].view(), tilted.view(), &truth).expect("same rows");
    near(compared.subspace_angles[1], 0.3f64.to_degrees());
    assert!(Comparison::new(array![2.0].view(), array![[1.0], [2.0]].view(), &truth).is_err());
}

/// Rounding in entries of equal size and opposite sign does not flip a function.
#[test]
fn signs_do_not_depend_on_rounding() {
    for error in [1e-15, -1e-15] {
        let mut odd = array![[-1.0 + error], [0.1], [1.0]];
        orient(odd.view_mut());
        assert!(odd[(0, 0)] > 0.0 && odd[(2, 0)] < 0.0);
    }
}
