//! The ResNet-20 and the images of CIFAR-10, as a user has them.

use crate::Fallible;
use crate::record::home;
use crate::work::Work;
use mercer::data::Source;
use mercer::spec::{DataSpec, Layout, PreprocessSpec};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// The ResNet-20, of 91.7 %.
pub(crate) fn network() -> PathBuf {
    golden("cifar10_resnet20.onnx")
}

/// A network of the reference values.
pub(crate) fn golden(file: &str) -> PathBuf {
    home().join("../tests/golden/nets").join(file)
}

/// Some training or test images as they are published, with their classes and the preprocessing of the network.
pub(crate) fn part(work: &Work, folder: &Path, train: bool, rows: Range<usize>) -> Fallible<DataSpec> {
    let [images, labels] = if train { ["train_images", "train_labels"] } else { ["images", "labels"] };
    let open = |name: &str| Source::new(folder.join(format!("{name}.npy")), None).open();
    let wanted: Vec<usize> = rows.clone().collect();
    let pixels = open(images)?.select::<f32>(&wanted)?.mapv(|pixel| pixel as u8);
    let classes: Vec<usize> = open(labels)?.select::<f32>(&wanted)?.iter().map(|&class| class as usize).collect();
    let data = vec![work.array(&format!("{images}-{}", rows.end), &pixels)?];
    let labels = Some(work.numbers(&format!("{labels}-{}", rows.end), &classes)?);
    let preprocess = PreprocessSpec {
        layout: Some(Layout::Nhwc),
        scale: Some(1.0 / 255.0),
        mean: vec![0.485, 0.456, 0.406],
        std: vec![0.229, 0.224, 0.225],
        ..PreprocessSpec::default()
    };
    Ok(DataSpec { data, labels, preprocess, ..DataSpec::default() })
}
