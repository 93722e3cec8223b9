//! The sentence transformer: at the tokens of its reference values, and against onnxruntime at other lengths.

use super::{Fallible, distance};
use mercer_data::{Dataset, Source};
use mercer_kernel::gram::Gram;
use mercer_kernel::{Ntk, NtkKind, NtkOperator, Selection};
use mercer_net::{Element, Network};
use mercer_run::Context;
use std::path::Path;
use std::time::Instant;

pub(super) fn run(model: &Path, lengths: Option<&str>, tokens: Option<&str>) -> Fallible<bool> {
    let network = Network::from_onnx(model)?;
    println!("\n{:<28} {:>9}", "minilm_l6", network.n_params());
    let mut good = compare(&network, &model.with_extension("npz"), "reference", 1e-5)?;
    for length in lengths.iter().flat_map(|folder| [7, 48].map(|n| Path::new(folder).join(format!("minilm_{n}.npz")))) {
        good &= compare(&network, &length, "onnxruntime", 1e-5)?;
    }
    good &= kernel(&network, &model.with_extension("npz"))?;
    if let Some(tokens) = tokens {
        good &= kernel(&network, Path::new(tokens))?;
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
fn error<T: Element + mercer_data::DataScalar>(network: &Network, values: &Path) -> Fallible<(usize, f64)> {
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

/// The pseudo-NTK of some texts, against directional derivatives: `Θ v` by a reverse pass for `Jᵀ v` and a forward-mode pass for
/// `J (Jᵀ v)`, which never see a factor or a Gram matrix.
fn kernel(network: &Network, tokens: &Path) -> Fallible<bool> {
    let open = |key: &str| Source::new(tokens, Some(key)).open();
    let data: [Dataset; 2] = [open("input_ids")?, open("attention_mask")?];
    let shapes: Vec<Vec<usize>> = data.iter().map(|set| set.sample_shape().to_vec()).collect();
    let n = data[0].n_samples();
    let start = Instant::now();
    let ntk = Ntk::<f32>::new(network, &shapes, NtkKind::Pseudo)?;
    let gram = Gram::new(&ntk, &data).to_arrays(&Context::new())?.remove(0);
    let (seconds, peak) = (start.elapsed().as_secs_f64(), mercer_run::peak_memory());
    let operator = NtkOperator::<f32>::new(network, &data, NtkKind::Pseudo, &Selection::default(), &Context::new())?;
    let v: Vec<f32> = (0..n).map(|at| (at as f32 * 0.7).sin()).collect();
    let found = operator.multiply(&v)?;
    let expected: Vec<f64> =
        (0..n).map(|row| (0..n).map(|column| f64::from(gram[[row, column]]) * f64::from(v[column])).sum()).collect();
    let error = distance(&found, &expected);
    // Two different ways through six layers in single precision.
    let good = error <= 1e-4;
    let word = if good { "ok" } else { "WRONG" };
    let (tokens, gib) = (shapes[0][0], peak as f64 / 1_073_741_824.0);
    println!(
        "  pseudo-NTK of {n} texts of {tokens} tokens: {seconds:.1} s, {gib:.1} GiB, Θv off by {error:.1e}  {word}"
    );
    Ok(good)
}
