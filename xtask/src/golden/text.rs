//! The sentence transformer: at the tokens of its reference values, and against onnxruntime at other lengths.

use super::{Fallible, distance};
use crate::python::{self, Environment};
use mercer_data::Source;
use mercer_net::{Element, Network};
use std::path::Path;

/// Versions are pinned so that a comparison means the same next year.
const PACKAGES: &[&str] = &["onnxruntime==1.31.1", "numpy==2.4.6"];

pub(super) fn run(model: &Path) -> Fallible<bool> {
    let network = Network::from_onnx(model)?;
    println!("\n{:<28} {:>9}", "minilm_l6", network.n_params());
    let mut good = compare(&network, &model.with_extension("npz"), "reference", 1e-5)?;
    let environment = Environment::new("golden-venv", PACKAGES)?;
    let folder = crate::root().join("target/golden");
    std::fs::create_dir_all(&folder)?;
    let script = crate::root().join("xtask/src/golden/lengths.py");
    python::run(environment.command().arg(script).arg(model).arg(&folder))?;
    for length in [7, 48] {
        good &= compare(&network, &folder.join(format!("minilm_{length}.npz")), "onnxruntime", 1e-5)?;
    }
    Ok(good)
}

fn compare(network: &Network, values: &Path, whose: &str, limit: f64) -> Fallible<bool> {
    let single = error::<f32>(network, values)?;
    let double = error::<f64>(network, values)?;
    let good = single.1 <= limit && double.1 <= limit;
    let word = if good { "ok" } else { "WRONG" };
    println!("  {:>3} tokens, {whose:<12} f32 {:.1e}  f64 {:.1e}  {word}", single.0, single.1, double.1);
    Ok(good)
}

/// The number of tokens, and the error of the embeddings.
fn error<T: Element + mercer_data::Element>(network: &Network, values: &Path) -> Fallible<(usize, f64)> {
    let open = |key: &str| Source::new(values, Some(key)).open();
    let (ids, mask) = (open("input_ids")?, open("attention_mask")?);
    let expected: Vec<f64> = open("outputs")?.read::<f64>()?.into_iter().collect();
    let [ids_data, mask_data]: [Vec<T>; 2] = [ids.read::<T>()?, mask.read::<T>()?].map(|a| a.into_iter().collect());
    let shape = ids.sample_shape();
    let inputs = [(&ids_data[..], shape), (&mask_data[..], shape)];
    let mut worst = 0.0f64;
    for batch in [ids.n_samples(), 1] {
        let found = network.predict(&inputs, ids.n_samples(), None, Some(batch))?;
        worst = worst.max(distance(&found.values, &expected));
    }
    Ok((shape[0], worst))
}
