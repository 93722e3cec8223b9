//! The ResNet-20 and the images of CIFAR-10, as a user has them.

use crate::Fallible;
use crate::record::home;
use crate::work::Work;
use mercer::data::Source;
use mercer::spec::{DataRef, DataSpec, Layout, PreprocessSpec};
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

/// The first training or test images as they are published, with their classes and the preprocessing of the network.
pub(crate) fn part(work: &Work, folder: &Path, train: bool, rows: Range<usize>) -> Fallible<DataSpec> {
    chosen(work, folder, train, (&rows.end.to_string(), &rows.clone().collect::<Vec<_>>()))
}

/// The same of images by their rows, with a name for these.
pub(crate) fn chosen(work: &Work, folder: &Path, train: bool, (name, rows): (&str, &[usize])) -> Fallible<DataSpec> {
    let [images, labels] = if train { ["train_images", "train_labels"] } else { ["images", "labels"] };
    let open = |name: &str| Source::new(folder.join(format!("{name}.npy")), None).open();
    let pixels = open(images)?.select::<f32>(rows)?.mapv(|pixel| pixel as u8);
    let classes: Vec<usize> = open(labels)?.select::<f32>(rows)?.iter().map(|&class| class as usize).collect();
    let data = vec![work.array(&format!("{images}-{name}"), &pixels)?];
    let labels = Some(work.numbers(&format!("{labels}-{name}"), &classes)?);
    let preprocess = PreprocessSpec {
        layout: Some(Layout::Nhwc),
        scale: Some(1.0 / 255.0),
        mean: vec![0.485, 0.456, 0.406],
        std: vec![0.229, 0.224, 0.225],
        ..PreprocessSpec::default()
    };
    Ok(DataSpec { data, labels, preprocess, ..DataSpec::default() })
}

/// Images of the same shape from elsewhere: the array `X` of the npz file of a folder.
pub(crate) fn crops(work: &Work, folder: &Path) -> Fallible<DataRef> {
    let is_npz = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "npz");
    let file = std::fs::read_dir(folder)?.filter_map(|entry| Some(entry.ok()?.path())).find(is_npz);
    let file = file.ok_or_else(|| format!("{}: there is no npz file", folder.display()))?;
    let pixels = Source::new(file, Some("X")).open()?.read::<f32>()?.mapv(|pixel| pixel as u8);
    work.array("crops", &pixels)
}
