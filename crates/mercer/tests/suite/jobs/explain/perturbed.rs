//! Faithfulness on perturbed test samples.

use super::{case, explained, read, run};
use mercer::data::{Existing, write_npy};
use mercer::job::ExplainJob;
use mercer::prelude::Context;
use mercer::prelude::Network;
use ndarray::{Array2, Ix2};

/// The samples that the job perturbs are those that finite differences of the network perturb.
#[test]
fn test_samples_are_perturbed_against_the_network() {
    const STEP: f64 = 0.15;
    let (case, place) = (case(), tempfile::tempdir().expect("a folder"));
    let found = explained(&ExplainJob { fgsm: Some(STEP), ..case.job() }, &place.path().join("a"));
    let fgsm = found.fgsm.as_ref().expect("perturbed");
    assert_eq!(fgsm.epsilon, STEP);
    let network = Network::from_onnx(case.path("net.onnx")).expect("a network");
    let x = read(case.folder.path(), "t.npy").into_dimensionality::<Ix2>().expect("rows");
    let log_odds = |x: &Array2<f64>| -> Vec<f64> {
        let rows = x.as_slice().expect("contiguous");
        let scores = network.predict(&[(rows, &[64])], x.nrows(), None, None).expect("predicts").values;
        let row = |(row, &class): (&[f64], &usize)| {
            let others = row.iter().enumerate().filter(|(at, _)| *at != class);
            row[class] - others.map(|(_, score)| score.exp()).sum::<f64>().ln()
        };
        scores.chunks_exact(super::N_CLASSES).zip(&case.test_labels).map(row).collect()
    };
    let mut perturbed = x.clone();
    for column in 0..64 {
        let shifted = |by: f64| {
            let mut moved = x.clone();
            moved.column_mut(column).mapv_inplace(|value| value + by);
            log_odds(&moved)
        };
        let (up, down) = (shifted(1e-6), shifted(-1e-6));
        for (row, (up, down)) in up.iter().zip(&down).enumerate() {
            let slope = up - down;
            perturbed[(row, column)] -= STEP * if slope == 0.0 { 0.0 } else { slope.signum() };
        }
    }
    write_npy(&place.path().join("p.npy"), &perturbed, Existing::Refuse).expect("writes");
    let direct = ExplainJob { test: vec![place.path().join("p.npy").display().to_string().into()], ..case.job() };
    let direct = explained(&direct, &place.path().join("b"));
    let own = found.surrogates[0].faithfulness_fgsm.as_ref().expect("measured");
    assert_eq!(own.tau, direct.surrogates[0].faithfulness.tau);
    assert_eq!(own.agreement, direct.surrogates[0].faithfulness.agreement);
    assert_eq!(fgsm.network_accuracy, direct.network_accuracy);
    assert!(direct.network_accuracy < found.network_accuracy);
}

#[test]
fn a_step_must_be_positive() {
    let place = tempfile::tempdir().expect("a folder");
    for step in [0.0, -0.1, f64::NAN] {
        let job = ExplainJob { fgsm: Some(step), ..case().job() };
        let refused = run(&job, &place.path().join("out"), &Context::new()).expect_err("refused").to_string();
        assert!(refused.contains("fgsm"), "{refused}");
    }
}
