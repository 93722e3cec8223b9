//! Diagnostics of functions whose error is known.

use crate::problems::{Problem, RBF, points};
use mercer_data::Dataset;
use mercer_run::Context;
use mercer_spectral::{Comparison, Landmarks, Nystrom, Repairs, Spectrum, Truth, orient};
use ndarray::{Array2, array};
use std::sync::Arc;

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

/// Functions that know the data by heart agree with the truth there, and not on samples that were held out.
#[test]
fn what_was_learnt_by_heart_shows_on_other_samples() {
    let (seen, new) = (points(80, 1, 1.0), points(50, 1, 0.95));
    let problem = Problem::new("rbf", RBF, seen, 3);
    let others = [Dataset::from_array("others", new.view().into_dyn()).expect("data")];
    let kernel = Arc::clone(&problem.kernel);
    let silent = Context::new();
    let truth = Truth::new(Arc::clone(&kernel), &problem.data, Some(&others), 3, &silent).expect("solves");
    // The exact functions themselves, by another way: landmarks that are all samples.
    let exact = Nystrom::new(Landmarks::All).fit(kernel, &problem.data, 3, &silent).expect("fits").functions;
    let on = |data: &[Dataset]| exact.eval_data(data, &silent).expect("evaluates");
    let (psi, queries) = (on(&problem.data), on(&others));
    let values = exact.values();
    let measured = truth.measure(values.view(), psi.view(), Some(queries.view())).expect("same rows");
    let held_out = measured.held_out.expect("samples were held out");
    assert!(held_out.cosines.iter().all(|c| *c > 1.0 - 1e-6), "{held_out:?}");
    assert!(held_out.gaps.iter().all(|gap| gap.abs() < 1e-6), "{held_out:?}");
    assert!(held_out.subspace_angles.iter().all(|angle| *angle < 0.1), "{held_out:?}");
    // The same on the data, and noise elsewhere.
    let mut random = mercer_data::random::stream(1, "noise");
    let noise = Array2::from_shape_simple_fn(queries.dim(), || rand::RngExt::random::<f64>(&mut random) - 0.5);
    let measured = truth.measure(values.view(), psi.view(), Some(noise.view())).expect("same rows");
    assert!(measured.data.cosines.iter().all(|c| *c > 1.0 - 1e-6));
    let held_out = measured.held_out.expect("samples were held out");
    assert!(held_out.cosines.iter().all(|c| *c < 0.6) && held_out.gaps.iter().all(|gap| *gap > 0.4), "{held_out:?}");
    // Without the kernel or other samples there is nothing to say.
    let alone = truth.measure(values.view(), psi.view(), None).expect("same rows");
    assert_eq!(alone.held_out, None);
    let unknown = Truth::of_spectrum(truth.spectrum.clone());
    assert_eq!(unknown.measure(values.view(), psi.view(), Some(queries.view())).expect("same rows").held_out, None);
    assert!(truth.measure(values.view(), psi.view(), Some(psi.view())).is_err(), "other rows");
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
