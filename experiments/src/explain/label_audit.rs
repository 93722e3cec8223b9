//! Flipped labels: how many does an audit find, and how many do simpler ways?

use crate::experiment::{Experiment, Needs};
use crate::images::{Images, Part};
use crate::options::Options;
use crate::peers::script;
use crate::report::{Format, Report, Table};
use crate::work::{Done, Work};
use crate::{Fallible, row};
use mercer::data::random::stream;
use mercer::data::{Source, shuffled};
use mercer::job::train::TrainingSpec;
use mercer::job::{AuditJob, TrainJob};
use mercer::kernel::{Conjugate, FeatureMap};
use mercer::lens::audit::{AuditMeasures, measure};
use mercer::net::Network;
use mercer::spec::{DataRef, DataSpec};
use ndarray::{Array2, s};
use rand::RngExt;
use std::ffi::OsStr;
use std::num::NonZeroUsize;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "label-audit",
    group: "Explanations",
    title: "Flipped labels",
    paper: "",
    claim: "Of flipped labels of MNIST, at least 80 % are among the first 10 % of the review list and 97 % among the first 20 %. The \
        combined score is better than the loss of the network and than cleanlab on the same network's last layer.",
    published: "",
    setting: "The first 10,000 training images, a tenth of the labels changed to a random other class. A small CNN is trained on the \
        changed labels and audited with all defaults: the exact trace-NTK, cosine-normalised. Networks and training were chosen before any \
        recovery was looked at: defaults of `mercer train` on MNIST; thirty epochs with crops and flips on CIFAR-10, for which there is no \
        target. cleanlab gets out-of-fold probabilities of scikit-learn's logistic regression on the last hidden layer.",
    cost: 900,
    needs: &[Needs::Mnist, Needs::Cifar10, Needs::Cleanlab],
    options: &["samples", "flipped", "epochs", "cifar-epochs", "only", "peers"],
    threads: 0,
    run,
};

const MNIST: &str = include_str!("nets/audit_mnist.toml");

const CIFAR: &str = include_str!("nets/audit_cifar.toml");

/// The parts of the list that are inspected.
const BUDGETS: [f64; 2] = [0.1, 0.2];

/// What the combined score must find of MNIST's at these.
const TARGETS: [f64; 2] = [0.8, 0.97];

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let mut report = Report::default();
    for (name, set, arch) in [("MNIST", Needs::Mnist, MNIST), ("CIFAR-10", Needs::Cifar10, CIFAR)] {
        if options.wants(name) {
            let (table, holds) = audited(&work, name, set, arch, options)?;
            report.tables.push(table);
            if set == Needs::Mnist {
                report.holds = Some(holds);
            }
        }
    }
    report.earlier = work.earlier();
    Ok(report)
}

/// The table of a set, and whether the combined score meets the targets and is better than the others.
fn audited(work: &Work, name: &str, set: Needs, arch: &str, options: &Options) -> Fallible<(Table, bool)> {
    let (samples, share) = (options.number("samples", 10_000, 300)?, options.number("flipped", 0.1, 0.1)?);
    let epochs = match set {
        Needs::Cifar10 => options.number("cifar-epochs", 30, 1)?,
        _ => options.number("epochs", 10, 2)?,
    };
    let folder = options.set(set)?;
    let first = |part| Images::chosen((set, &folder), part, |all| (0..samples.min(all.len())).collect());
    let (mut train, test) = (first(Part::Train)?, first(Part::Test)?);
    let wrong = flip(&mut train, share, options.seed);
    let short = name.to_lowercase();
    let data = work.images(&short, &train)?;
    let held_out = work.images(&format!("{short}-test"), &test)?;
    let is_photo = set == Needs::Cifar10;
    let training = TrainingSpec {
        epochs: NonZeroUsize::new(epochs).ok_or("--epochs 0")?,
        crop_margin: NonZeroUsize::new(4).filter(|_| is_photo),
        flip: is_photo,
        seed: options.seed,
        ..TrainingSpec::default()
    };
    let job = TrainJob { training, ..TrainJob::new(work.architecture(&short, arch)?, data.clone()) };
    let trained =
        work.run(&short, &TrainJob { eval_data: Some(held_out.data[0].clone()), eval_labels: held_out.labels, ..job })?;
    let marks: Vec<usize> = wrong.iter().map(|&wrong| usize::from(wrong)).collect();
    let truth = Some(work.numbers(&format!("{short}-wrong"), &marks)?);
    let job = AuditJob { truth, seed: options.seed, ..AuditJob::new(trained.model(), data.clone()) };
    let review = work.run(&format!("{short}-audit"), &job)?;
    let mut table = Table::new(format!(
        "{name}, {} of {samples} labels flipped; the network agrees with {:.1} % of the labels it was trained on, and is right on {:.1} % of \
         the test images. Found among the first of the list:",
        marks.iter().sum::<usize>(),
        100.0 * review.number("/training_accuracy")?,
        100.0 * trained.number(&format!("/history/{}/evaluation_accuracy", epochs - 1))?,
    ))
    .column("score", Format::Plain)
    .column("10 %", Format::Percent(1))
    .column("20 %", Format::Percent(1))
    .column("AUROC", Format::Fixed(4))
    .column("AUPR", Format::Fixed(4));
    let mut all = Vec::new();
    for (score, column) in SCORES {
        let path = review.folder.join("scores.csv");
        let numbers = Source::new(path, Some(column)).open()?.read::<f64>()?;
        all.push((score.to_owned(), measure(&numbers.iter().copied().collect::<Vec<_>>(), &wrong, &BUDGETS)?));
    }
    if let Some(python) = options.peers() {
        all.extend(peers(work, &short, (python, options.seed), (&trained, &train, &data), &wrong)?);
    }
    for (score, found) in &all {
        table.push(row![score.as_str(), found.budgets[0].recall, found.budgets[1].recall, found.auroc, found.aupr]);
    }
    let combined = &all[0].1;
    let met = combined.budgets.iter().zip(TARGETS).all(|(found, target)| found.recall >= Some(target));
    let better = all[1 + OPINIONS..]
        .iter()
        .all(|(_, rival)| combined.auroc > rival.auroc && combined.budgets[0].recall > rival.budgets[0].recall);
    Ok((table, met && better))
}

/// The scores of an audit and their columns.
const SCORES: [(&str, &str); 6] = [
    ("combined", "combined"),
    ("leave-one-out alone", "leave_one_out"),
    ("out-of-fold alone", "out_of_fold"),
    ("neighbours alone", "neighbours"),
    ("self-influence alone", "self_influence"),
    ("training loss of the network", "network_loss"),
];

/// Opinions that only an audit has. The loss after them is an opinion too, and a rival.
const OPINIONS: usize = 4;

/// Changes a share of the classes to others, at random; says which.
fn flip(images: &mut Images, share: f64, seed: u64) -> Vec<bool> {
    let (samples, n_classes) = (images.samples(), images.n_classes());
    let mut wrong = vec![false; samples];
    let mut random = stream(seed, "flipped labels");
    for row in shuffled(samples, seed, 0).into_iter().take((share * samples as f64).round() as usize) {
        images.classes[row] = (images.classes[row] + random.random_range(1..n_classes)) % n_classes;
        wrong[row] = true;
    }
    wrong
}

/// What cleanlab finds with the features of the last hidden layer.
fn peers(
    work: &Work,
    name: &str,
    (python, seed): (&Path, u64),
    (trained, train, data): (&Done, &Images, &DataSpec),
    wrong: &[bool],
) -> Fallible<Vec<(String, AuditMeasures)>> {
    let network = Network::from_onnx(trained.model())?;
    let map = Conjugate::<f32>::new(&network, &[train.data[0].sample_shape().to_vec()], None)?.without_bias();
    let mut features = Array2::<f32>::zeros((train.samples(), map.n_features()));
    for start in (0..train.samples()).step_by(500) {
        let rows = start..(start + 500).min(train.samples());
        let pixels: Vec<f32> = train.data[0].rows::<f32>(rows.clone())?.into_iter().collect();
        let mut part = features.slice_mut(s![rows.clone(), ..]);
        map.features(&[&pixels], rows.len(), part.as_slice_mut().ok_or("layout")?)?;
    }
    let path = |kept: &DataRef| kept.to_string();
    let (features, labels) = (path(&work.array(&format!("{name}-features"), &features)?), data.labels.as_ref());
    let out = trained.folder.with_extension("cleanlab.npy");
    let seed = seed.to_string();
    let labels = path(labels.ok_or("no labels")?);
    let arguments: [&OsStr; 4] = [features.as_ref(), labels.as_ref(), seed.as_ref(), out.as_ref()];
    let versions = script(python, "cleanlab_scores.py", arguments)?;
    let scores = Source::new(&out, None).open()?.read::<f64>()?;
    let names = ["self-confidence", "find_label_issues, then self-confidence"];
    let rows = scores.outer_iter().zip(names).map(|(row, name)| {
        let found = measure(&row.iter().copied().collect::<Vec<_>>(), wrong, &BUDGETS)?;
        Ok((format!("{name} ({versions}, measured here)"), found))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mercer::data::Dataset;

    #[test]
    fn a_share_of_the_labels_becomes_another_class() {
        let classes: Vec<usize> = (0..200).map(|row| row % 10).collect();
        let data = [Dataset::from_array("images", Array2::<f32>::zeros((200, 1)).into_dyn().view()).unwrap()];
        let mut images = Images { data, classes: classes.clone() };
        let wrong = flip(&mut images, 0.1, 3);
        assert_eq!(wrong.iter().filter(|&&wrong| wrong).count(), 20);
        for ((before, after), wrong) in classes.iter().zip(&images.classes).zip(wrong) {
            assert!((before != after) == wrong && *after < 10);
        }
    }
}
