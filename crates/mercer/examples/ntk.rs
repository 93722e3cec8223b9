//! The empirical NTK of a small network on the embedded digits, before and after training.
//!
//! `cargo run --release -p mercer --example ntk`

use mercer::prelude::*;
use ndarray::{Array2, Axis, s};

pub(crate) fn main() -> Result<(), mercer::Error> {
    let (train, test) = digits::split()?;
    let x = train.pixels()?.insert_axis(Axis(1));
    let new = test.pixels()?.insert_axis(Axis(1));
    let layers = [CnnLayer::conv(8, 3), CnnLayer::max_pool(2), CnnLayer::dense(32)];
    let mut network = Cnn::new(&[1, 8, 8], &layers, 10).build(0)?;
    let before = KernelFn::new("normalised(trace)", &network)?.gram(new.slice(s![..100, .., .., ..]))?;
    mercer::train(&mut network, &x, &train.classes, &TrainingSpec::default())?;
    let after = KernelFn::new("normalised(trace)", &network)?.gram(new.slice(s![..100, .., .., ..]))?;

    let classes = &test.classes.indices()[..100];
    let contrast = |gram: &Array2<f32>| {
        let mean = |same: bool| {
            let chosen = gram.indexed_iter().filter(|((i, j), _)| (classes[*i] == classes[*j]) == same);
            chosen.clone().map(|(_, value)| value).sum::<f32>() / chosen.count() as f32
        };
        (mean(true), mean(false))
    };
    println!("mean kernel value within and between classes, before training: {:.3?}", contrast(&before));
    println!("mean kernel value within and between classes, after training:  {:.3?}", contrast(&after));
    Ok(())
}
