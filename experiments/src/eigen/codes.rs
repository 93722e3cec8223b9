//! Codes of any length from pairs of views (neural eigenmaps): accuracy and retrieval as a function of the length.

use crate::Fallible;
use crate::experiment::{Experiment, Needs};
use crate::images::{Images, linear_probe};
use crate::options::Options;
use crate::report::{Cell, Drawing, Format, Report, Table};
use mercer::net::arch::{Cnn, CnnLayer};
use mercer::net::train::{Decay, Schedule};
use mercer::report::{Axis, Figure, Panel, Series};
use mercer::run::Context;
use mercer::spectral::Eigenfunctions;
use mercer::spectral::learnt::{
    Augmentation, Learn, LearningMethod, LearningSettings, Learnt, Nesting, Pairs, side_by_side,
};
use mercer::spectral::retrieval::{Codes, Retrieval, retrieval};
use ndarray::{Array2, s};

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "codes",
    group: "Eigenfunctions",
    title: "Codes of any length",
    paper: "Deng et al. 2022, Neural eigenfunctions are structured representation learners, arXiv 2210.12637",
    claim: "Eigenfunctions learnt from pairs of views are codes whose first numbers carry most, so that any length can be kept.",
    published: "on other data only.",
    setting: "4000 images of MNIST, 500 steps of 256 pairs of crops with noise, a small CNN with 64 outputs; 1000 test images. \"Low \
        rank\" learns the span alone, \"nested\" an order too. Accuracy is that of a linear classifier; precision and mAP are of \
        retrieval among the training images.",
    cost: 600,
    needs: &[Needs::Mnist],
    options: &["samples", "test", "steps", "pairs"],
    threads: 1,
    run,
};

const LENGTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Items that a query's precision looks at.
const FIRST: usize = 20;

fn run(options: &Options) -> Fallible<Report> {
    let folder = &options.set(Needs::Mnist)?;
    let train = Images::idx(folder, "train", 0..options.number("samples", 4000, 200)?)?;
    let test = Images::idx(folder, "t10k", 0..options.number("test", 1000, 100)?)?;
    let (steps, pairs) = (options.number("steps", 500, 4)?, options.number("pairs", 256, 64)?);
    let width = LENGTHS[LENGTHS.len() - 1];
    let mut accuracy = Panel::new("Linear classifier").x(Axis::log("length")).y(Axis::linear("accuracy"));
    let mut map = Panel::new("Retrieval").x(Axis::log("length")).y(Axis::linear("mAP"));
    let mut table = Table::new("Codes of several lengths:").column("measure, codes", Format::Plain);
    for length in LENGTHS {
        table = table.column(length.to_string(), Format::Percent(1));
    }
    for (name, method) in [
        ("low rank", LearningMethod::Nested(Nesting::None)),
        ("nested, joint", LearningMethod::Nested(Nesting::Joint)),
        ("NeuralEF", LearningMethod::NeuralEf),
    ] {
        let found = learn(&train, method, steps, pairs, width, options.seed)?;
        // Without nesting, the same functions before the finish know the same, in no order.
        let order = if method == LearningMethod::Nested(Nesting::None) { "no order" } else { "its own order" };
        for (name, functions) in [
            (format!("{name}, ordered by the finish"), &found.after[0]),
            (format!("{name}, {order}"), &found.before[0]),
        ] {
            let measured = measure(functions, &train, &test)?;
            for (what, numbers) in ["accuracy", "precision at 20", "mAP"].into_iter().zip(&measured) {
                // The finish may have dropped functions that depend on the others.
                let cells = (0..LENGTHS.len()).map(|at| Cell::from(numbers.get(at).copied()));
                table.push(std::iter::once(Cell::from(format!("{what}, {name}"))).chain(cells).collect());
            }
            let line = |numbers: &[f64]| LENGTHS.iter().map(|&l| l as f64).zip(numbers.to_vec()).collect::<Vec<_>>();
            accuracy = accuracy.series(Series::marked_line(name.clone(), line(&measured[0])));
            map = map.series(Series::marked_line(name, line(&measured[2])));
        }
    }
    let figure = Figure::new("Codes of several lengths").columns(2).panel(accuracy).panel(map);
    let drawing = Drawing { file: "contrastive.svg", caption: "Codes of several lengths", figure };
    Ok(Report { tables: vec![table], figures: vec![drawing], ..Report::default() })
}

/// Accuracy, precision and mAP of codes of every length that there is.
fn measure(functions: &Eigenfunctions<f32>, train: &Images, test: &Images) -> Fallible<[Vec<f64>; 3]> {
    let eval = |images: &Images| functions.eval_data(&images.data, &Context::new());
    let (items, queries) = (eval(train)?, eval(test)?);
    let lengths: Vec<usize> = LENGTHS.iter().copied().filter(|&length| length <= items.ncols()).collect();
    let looked_up = retrieval(
        Codes { codes: items.view(), classes: &train.classes },
        Codes { codes: queries.view(), classes: &test.classes },
        &lengths,
        FIRST,
        &Context::new(),
    )?;
    let probes = lengths.iter().map(|&length| {
        let cut = |x: &Array2<f32>| x.slice(s![.., ..length]).to_owned();
        linear_probe((cut(&items).view(), &train.classes), (cut(&queries).view(), &test.classes))
    });
    let of = |part: fn(&Retrieval) -> f64| looked_up.iter().map(part).collect::<Vec<f64>>();
    Ok([probes.collect::<Fallible<_>>()?, of(|r| r.precision), of(|r| r.mean_average_precision)])
}

fn learn(
    train: &Images,
    method: LearningMethod,
    steps: usize,
    pairs: usize,
    width: usize,
    seed: u64,
) -> Fallible<Learnt<f32>> {
    let conv = |channels| CnnLayer::Conv { channels, kernel: 5, stride: 1, padding: Some(0) };
    let layers = [conv(16), CnnLayer::max_pool(2), conv(32), CnnLayer::max_pool(2), CnnLayer::dense(128)];
    let network = Cnn::new(&[1, 28, 28], &layers, width).build(seed)?;
    let schedule = Schedule { decay: Decay::Cosine { floor: 0.0 }, ..Schedule::constant(2e-3) };
    let augmentation = Augmentation { crop: 0.6, flip: false, noise: 0.1 };
    let mut draws = Pairs::augmented(&train.data, augmentation, pairs, seed, &Context::new())?;
    let settings = LearningSettings::new(method).steps(steps).schedule(schedule);
    Ok(Learn::new(settings).run(side_by_side(&[network])?, &mut draws)?)
}
