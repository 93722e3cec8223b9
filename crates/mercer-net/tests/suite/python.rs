//! Exported networks with inputs and outputs, which `tests/python/test_export.py` reads.

use mercer_data::{Existing, write_npy};
use mercer_net::Network;
use mercer_net::arch::{Activation, Cnn, CnnLayer, Initialisation, Mlp, Resnet, TwoLayer};
use ndarray::ArrayD;
use std::path::Path;

const N_SAMPLES: usize = 6;

fn write(folder: &Path, name: &str, network: &Network) -> Result<(), Box<dyn std::error::Error>> {
    let folder = folder.join(name);
    std::fs::create_dir_all(&folder)?;
    network.save_onnx(folder.join("model.onnx"))?;
    network.save_safetensors(folder.join("model.safetensors"))?;
    let sample = network.inputs()[0].declared_sample()?;
    let shape: Vec<usize> = std::iter::once(N_SAMPLES).chain(sample.iter().copied()).collect();
    let size: usize = shape.iter().product();
    let inputs: Vec<f32> = (0..size).map(|i| (i as f32 * 0.618).sin()).collect();
    let outputs = network.predict::<f32>(&[(&inputs, &sample)], N_SAMPLES, None, None)?;
    let out_shape: Vec<usize> = std::iter::once(N_SAMPLES).chain(outputs.shape).collect();
    write_npy(&folder.join("inputs.npy"), &ArrayD::from_shape_vec(shape, inputs)?, Existing::Replace)?;
    write_npy(&folder.join("outputs.npy"), &ArrayD::from_shape_vec(out_shape, outputs.values)?, Existing::Replace)?;
    Ok(())
}

#[test]
fn exports_for_python() -> Result<(), Box<dyn std::error::Error>> {
    let folder = &Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports");
    for activation in Activation::all() {
        write(folder, &format!("mlp-{activation}"), &Mlp::new(5, &[16, 8], 3).activation(activation).build(1)?)?;
    }
    let layers = [
        CnnLayer::conv(6, 5),
        CnnLayer::max_pool(2),
        CnnLayer::conv(8, 3),
        CnnLayer::average_pool(2),
        CnnLayer::dense(16),
    ];
    let cnn = Cnn::new(&[1, 12, 12], &layers, 10);
    write(folder, "cnn", &cnn.clone().build(2)?)?;
    write(folder, "cnn-ntk", &cnn.initialisation(Initialisation::Ntk).build(2)?)?;
    write(folder, "resnet8", &Resnet { inputs: vec![3, 16, 16], ..Resnet::new(8, 10) }.build(3)?)?;
    write(folder, "two-layer", &TwoLayer::new(10, 50).build(4)?)?;
    Ok(())
}
