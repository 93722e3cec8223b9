//! Descriptions with batch normalisation and Cauchy weights, from training to kernels.

use super::train::{Scratch, points, results, run, run_until};
use mercer::spec::{KernelSpec, ParameterSpec, open_network};
use std::path::{Path, PathBuf};

const NORMALISED: &str = "[mlp]\ninputs = [2]\nwidths = [8, 6]\noutputs = 2\nbatch_norm = true\n";

fn outputs(model: &Path, weights: Option<PathBuf>) -> Vec<f64> {
    let network = open_network(model, &ParameterSpec { weights, ..ParameterSpec::default() }).unwrap();
    let values: Vec<f64> = points().0.iter().map(|&x| f64::from(x)).collect();
    network.predict(&[(&values, &[2])], 64, None, None).unwrap().values
}

/// A run that was called off ends as one that was not, and its checkpoints bring their statistics along.
#[test]
fn running_statistics_are_saved_and_loaded() {
    let scratch = Scratch::new();
    std::fs::write(scratch.path("mlp.toml"), NORMALISED).unwrap();
    let mut job = scratch.job(4);
    job.training.checkpoint_at = vec![0, 2, 4];
    run(&job, &scratch.to("whole")).unwrap();
    run_until(&job, &scratch.to("parts"), 2).unwrap_err();
    run(&job, &scratch.resuming("parts")).unwrap();
    assert_eq!(results(&scratch.path("parts")), results(&scratch.path("whole")));
    let model = scratch.path("whole/model.onnx");
    let last = outputs(&model, None);
    for (epoch, same) in [(0, false), (2, false), (4, true)] {
        let weights = scratch.path(&format!("whole/epoch-{epoch:05}.safetensors"));
        assert_eq!(outputs(&model, Some(weights)) == last, same, "epoch {epoch}");
    }
    // 64 samples in batches of 7 leave a single one, which has no variance in a dense layer.
    job.training.batch = std::num::NonZeroUsize::new(7);
    let error = run(&job, &scratch.to("ragged")).unwrap_err();
    assert!(error.message().contains("last batch of 64 samples has 1"), "{error}");
    assert!(!scratch.path("ragged").exists());
}

#[test]
fn kernels_that_draw_normal_weights_refuse_cauchy_weights() {
    let scratch = Scratch::new();
    let heavy = "[mlp]\ninputs = [2]\nwidths = [8]\noutputs = 2\ninitialisation = \"ntk\"\nlaw = \"cauchy\"\n";
    std::fs::write(scratch.path("heavy.toml"), heavy).unwrap();
    let spec = |kernel: &str| KernelSpec {
        kernel: Some(kernel.to_owned()),
        arch: Some(scratch.path("heavy.toml")),
        ..KernelSpec::default()
    };
    let error = spec("0.5*nngp").open().unwrap_err();
    assert!(error.message().contains("cauchy") && error.message().contains("heavy.toml"), "{error}");
    spec("trace").open().unwrap();
}
