//! What several experiments on images need: the images, linear classifiers, clusters.

use crate::Fallible;
use crate::experiment::Needs;
use mercer::data::random::stream;
use mercer::data::{Classes, Dataset, Labels, Preprocess, Source};
use mercer::learn::classification::{Glm, SgdGlm};
use mercer::learn::{Classify, Fit, SampleRows};
use ndarray::{Array2, ArrayView2, Axis};
use rand::RngExt;
use std::ops::Range;
use std::path::Path;

/// Of MNIST's training pixels, from 0 to 1.
const MEAN: f32 = 0.1307;
const DEVIATION: f32 = 0.3081;

/// A part of a set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Train,
    Test,
}

/// Labelled images `[channels, height, width]`, numbers from 0 to 1.
pub(crate) struct Images {
    pub(crate) data: [Dataset; 1],
    pub(crate) classes: Vec<usize>,
}

impl Images {
    fn new(images: Dataset, labels: &Dataset, rows: Range<usize>, preprocess: Preprocess) -> Fallible<Self> {
        let rows = rows.start.min(images.n_samples())..rows.end.min(images.n_samples());
        let data = images.with_preprocess(preprocess)?;
        let classes = labels.rows::<f32>(rows.clone())?.iter().map(|&label| label as usize).collect();
        Ok(Self { data: [Dataset::from_array("images", data.rows::<f32>(rows)?.view())?], classes })
    }

    /// Some of the training or the test images of a folder with the four IDX files of MNIST or Fashion-MNIST.
    pub(crate) fn idx(folder: &Path, part: &str, rows: Range<usize>) -> Fallible<Self> {
        let open = |kind: &str| {
            let plain = folder.join(format!("{part}-{kind}-ubyte"));
            let path = if plain.exists() { plain } else { plain.with_extension("gz") };
            Source::new(path, None).open()
        };
        let preprocess = Preprocess::new().scale(1.0 / 255.0).add_channel();
        Self::new(open("images-idx3")?, &open("labels-idx1")?, rows, preprocess)
    }

    /// The training or the test images of a set that are in these rows, chosen from the classes of all.
    pub(crate) fn chosen(
        (set, folder): (Needs, &Path),
        part: Part,
        rows: impl FnOnce(&[usize]) -> Vec<usize>,
    ) -> Fallible<Self> {
        let open = |name: &str| Source::new(folder.join(name), None).open();
        let gzipped = if set == Needs::FashionMnist { ".gz" } else { "" };
        let (images, labels, preprocess) = match (set, part) {
            (Needs::Cifar10, Part::Train) => {
                (open("train_images.npy")?, open("train_labels.npy")?, Preprocess::new().channels_first())
            }
            (Needs::Cifar10, Part::Test) => {
                (open("images.npy")?, open("labels.npy")?, Preprocess::new().channels_first())
            }
            _ => {
                let part = if part == Part::Train { "train" } else { "t10k" };
                let open = |kind: &str| open(&format!("{part}-{kind}-ubyte{gzipped}"));
                (open("images-idx3")?, open("labels-idx1")?, Preprocess::new().add_channel())
            }
        };
        let all: Vec<usize> = labels.read::<f32>()?.iter().map(|&label| label as usize).collect();
        let rows = rows(&all);
        let pixels = images.with_preprocess(preprocess.scale(1.0 / 255.0))?.select::<f32>(&rows)?;
        let classes = rows.iter().map(|&row| all[row]).collect();
        Ok(Self { data: [Dataset::from_array("images", pixels.view())?], classes })
    }

    /// The training or the test images of an npz file with `x_train`, `y_train`, `x_test`, `y_test`, channels last.
    pub(crate) fn npz(path: &Path, part: &str) -> Fallible<Self> {
        let open = |kind: &str| Source::new(path, Some(&format!("{kind}_{part}"))).open();
        let images = open("x")?;
        let preprocess = Preprocess::new().scale(1.0 / 255.0);
        let preprocess = if images.shape().len() == 3 { preprocess.add_channel() } else { preprocess.channels_first() };
        Self::new(images, &open("y")?, 0..usize::MAX, preprocess)
    }

    /// The same images with numbers of mean 0 and deviation 1, by the mean and the deviation of all training pixels.
    pub(crate) fn standardised(&self) -> Fallible<Self> {
        let numbers = self.data[0].read::<f32>()?.mapv(|x| (x - MEAN) / DEVIATION);
        Ok(Self { data: [Dataset::from_array("images", numbers.view())?], classes: self.classes.clone() })
    }

    /// The same images with numbers from -1 to 1.
    pub(crate) fn centred(&self) -> Fallible<Self> {
        let numbers = self.data[0].read::<f32>()?.mapv(|x| 2.0 * x - 1.0);
        Ok(Self { data: [Dataset::from_array("images", numbers.view())?], classes: self.classes.clone() })
    }

    pub(crate) fn samples(&self) -> usize {
        self.classes.len()
    }

    pub(crate) fn n_classes(&self) -> usize {
        self.classes.iter().max().map_or(0, |most| most + 1)
    }

    pub(crate) fn labels(&self) -> Fallible<Labels> {
        Ok(Labels::Classes(Classes::new(self.classes.clone(), self.n_classes())?))
    }
}

/// The rows of the first samples of classes 0 and 1.
pub(crate) fn first_of_each(classes: &[usize], most: usize) -> Vec<usize> {
    let of = |class: usize| (0..classes.len()).filter(move |&row| classes[row] == class).take(most);
    of(0).chain(of(1)).collect()
}

/// The accuracy on test samples of multinomial logistic regression (penalty 0.01, standardised features).
pub(crate) fn linear_probe(
    (train, train_classes): (ArrayView2<'_, f32>, &[usize]),
    (test, test_classes): (ArrayView2<'_, f32>, &[usize]),
) -> Fallible<f64> {
    let mean = train.mean_axis(Axis(0)).ok_or("no samples")?;
    let std = train.std_axis(Axis(0), 0.0).mapv(|x| x.max(1e-6));
    let standard = |x: ArrayView2<'_, f32>| ((&x - &mean) / &std).mapv(f64::from);
    let (train, test) = (standard(train), standard(test));
    let n_classes = train_classes.iter().chain(test_classes).max().map_or(0, |most| most + 1);
    let classes = Classes::new(train_classes.to_vec(), n_classes)?;
    let machine = Glm::new(0.01)?.fit(&SampleRows::Features(train.view()), &classes)?;
    let found = machine.decide(&SampleRows::Features(test.view()))?;
    Ok(found.iter().zip(test_classes).filter(|(a, b)| a == b).count() as f64 / test_classes.len().max(1) as f64)
}

/// The accuracy of logistic regression by stochastic gradient descent, one class against the others, on features as they are; the
/// penalty is scikit-learn's usual one.
pub(crate) fn sgd_probe(
    (train, train_classes): (ArrayView2<'_, f32>, &[usize]),
    (test, test_classes): (ArrayView2<'_, f32>, &[usize]),
    seed: u64,
) -> Fallible<f64> {
    let (train, test) = (train.mapv(f64::from), test.mapv(f64::from));
    let n_classes = train_classes.iter().chain(test_classes).max().map_or(0, |most| most + 1);
    let classes = Classes::new(train_classes.to_vec(), n_classes)?;
    let machine =
        SgdGlm::new(seed).with_alpha(1e-4)?.unbalanced().fit(&SampleRows::Features(train.view()), &classes)?;
    let found = machine.decide(&SampleRows::Features(test.view()))?;
    Ok(found.iter().zip(test_classes).filter(|(a, b)| a == b).count() as f64 / test_classes.len().max(1) as f64)
}

/// The accuracy of two clusters (k-means, best of ten starts) against two classes.
pub(crate) fn two_clusters(points: ArrayView2<'_, f32>, classes: &[usize]) -> f64 {
    let n = points.nrows();
    let mut random = stream(0, "k-means");
    let distance =
        |i: usize, centre: &[f32]| -> f32 { points.row(i).iter().zip(centre).map(|(x, c)| (x - c).powi(2)).sum() };
    let mut best = (f32::INFINITY, 0.0);
    for _ in 0..10 {
        let mut centres: Vec<Vec<f32>> = (0..2).map(|_| points.row(random.random_range(0..n)).to_vec()).collect();
        let mut own = vec![0; n];
        for _ in 0..100 {
            for (i, own) in own.iter_mut().enumerate() {
                *own = usize::from(distance(i, &centres[1]) < distance(i, &centres[0]));
            }
            for (c, centre) in centres.iter_mut().enumerate() {
                let members: Vec<usize> = (0..n).filter(|&i| own[i] == c).collect();
                if !members.is_empty() {
                    *centre = points.select(Axis(0), &members).mean_axis(Axis(0)).expect("members").to_vec();
                }
            }
        }
        let cost: f32 = (0..n).map(|i| distance(i, &centres[own[i]])).sum();
        let right = own.iter().zip(classes).filter(|(a, b)| a == b).count() as f64 / n as f64;
        if cost < best.0 {
            best = (cost, right.max(1.0 - right));
        }
    }
    best.1
}

/// `√μ_j ψ_j` from `ψ`.
pub(crate) fn weighted(psi: &Array2<f32>, values: &ndarray::Array1<f64>) -> Array2<f32> {
    psi * &values.mapv(|v| v.sqrt() as f32)
}
