//! Codes of any length from pairs of views (neural eigenmaps): accuracy and retrieval as a function of the length.

use crate::tools::{Fallible, Images, linear_probe};
use crate::{Options, Outcome};
use mercer_data::Existing;
use mercer_net::arch::{Cnn, CnnLayer};
use mercer_net::train::{Decay, Schedule};
use mercer_report::{Axis, Figure, Panel, Series};
use mercer_run::Context;
use mercer_spectral::Eigenfunctions;
use mercer_spectral::learnt::{
    Augmentation, Learn, LearningMethod, LearningSettings, Learnt, Nesting, Pairs, side_by_side,
};
use mercer_spectral::retrieval::{Codes, Retrieval, retrieval};
use ndarray::{Array2, s};
use std::path::PathBuf;
use std::time::Instant;

const LENGTHS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Items that a query's precision looks at.
const FIRST: usize = 20;

/// Takes `--data-dir` (the four IDX files), `--samples`, `--test`, `--steps`, `--pairs`.
pub(crate) fn curves(options: &Options) -> Outcome {
    let folder = PathBuf::from(options.value("--data-dir").ok_or("--data-dir: a folder of IDX files")?);
    let train = Images::idx(&folder, "train", 0..options.number("--samples", 5000)?)?;
    let test = Images::idx(&folder, "t10k", 0..options.number("--test", 1000)?)?;
    let (steps, pairs) = (options.number("--steps", 600)?, options.number("--pairs", 256)?);
    println!("{} training and {} test images, {steps} steps of {pairs} pairs", train.samples(), test.samples());
    let width = LENGTHS[LENGTHS.len() - 1];
    let mut figure = Figure::new("Codes of several lengths").columns(2);
    let mut accuracy = Panel::new("Linear classifier").x(Axis::log("length")).y(Axis::linear("accuracy"));
    let mut map = Panel::new("Retrieval").x(Axis::log("length")).y(Axis::linear("mAP"));
    println!("\n| codes | measure | {} |", LENGTHS.map(|length| length.to_string()).join(" | "));
    println!("|---|---|{}|", LENGTHS.map(|_| "---:").join("|"));
    let methods = [
        ("low rank", LearningMethod::Nested(Nesting::None)),
        ("nested, joint", LearningMethod::Nested(Nesting::Joint)),
        ("NeuralEF", LearningMethod::NeuralEf),
    ];
    for (name, method) in methods {
        let start = Instant::now();
        let found = learn(&train, method, steps, pairs, width, options.seed)?;
        let seconds = start.elapsed().as_secs_f64();
        let mut variants = Vec::new();
        let mut add = |name: String, functions: &Eigenfunctions<f32>| -> Outcome {
            let eval = |images: &Images| functions.eval_data(&images.data, &Context::new());
            variants.push((name, eval(&train)?, eval(&test)?));
            Ok(())
        };
        add(format!("{name}, ordered by the finish ({seconds:.0} s)"), &found.after[0])?;
        // Without nesting, the same functions before the finish know the same, in no order.
        let order = if method == LearningMethod::Nested(Nesting::None) { "in no order" } else { "its own order" };
        add(format!("{name}, {order}"), &found.before[0])?;
        for (name, items, queries) in variants {
            let lengths: Vec<usize> = LENGTHS.iter().copied().filter(|&length| length <= items.ncols()).collect();
            let looked_up = retrieval(
                Codes { codes: items.view(), classes: &train.classes },
                Codes { codes: queries.view(), classes: &test.classes },
                &lengths,
                FIRST,
                &Context::new(),
            )?;
            let probes = lengths
                .iter()
                .map(|&length| {
                    let cut = |x: &Array2<f32>| x.slice(s![.., ..length]).to_owned();
                    linear_probe((cut(&items).view(), &train.classes), (cut(&queries).view(), &test.classes))
                })
                .collect::<Fallible<Vec<_>>>()?;
            let row = |what: &str, numbers: &[f64]| {
                // The finish may have dropped functions that depend on the others.
                let cell = |i: usize| numbers.get(i).map_or_else(|| "–".to_owned(), |x| format!("{:.1}", 100.0 * x));
                let cells: Vec<String> = (0..LENGTHS.len()).map(cell).collect();
                println!("| {name} | {what} | {} |", cells.join(" | "));
            };
            let of = |part: fn(&Retrieval) -> f64| looked_up.iter().map(part).collect::<Vec<f64>>();
            row("accuracy, %", &probes);
            row(&format!("precision at {FIRST}, %"), &of(|r| r.precision));
            row("mAP, %", &of(|r| r.mean_average_precision));
            let line = |numbers: &[f64]| lengths.iter().map(|&l| l as f64).zip(numbers.to_vec()).collect::<Vec<_>>();
            accuracy = accuracy.series(Series::marked_line(name.clone(), line(&probes)));
            map = map.series(Series::marked_line(name, line(&of(|r| r.mean_average_precision))));
        }
    }
    figure = figure.panel(accuracy).panel(map);
    let path = options.output.join("contrastive.svg");
    figure.write(&path, Existing::Replace)?;
    println!("\n{}", path.display());
    Ok(())
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
