//! Distributions, comparisons and curves.

use crate::{noise, normal};
use mercer_report::{Axis, BoxSummary, Figure, Panel, RankCurve, Series};

const CLASSES: [&str; 10] = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"];

pub(crate) fn figure() -> Figure {
    Figure::new("Distributions, comparisons and curves")
        .panel(boxes())
        .panel(groups())
        .panel(means())
        .panel(log_odds())
        .panel(densities())
        .panel(map())
        .panel(quantiles())
        .panel(roc())
        .panel(precision())
        .panel(large())
        .panel(confusion())
        .panel(sixty())
}

fn values(seed: u32, count: u32, shift: f64, scale: f64) -> Vec<f64> {
    // Heavy tails, so that there are outliers.
    (0..count).map(|at| normal(seed * 10_007 + at)).map(|x| shift + scale * x * (1.0 + x * x)).collect()
}

fn boxes() -> Panel {
    let summary = |class: u32| {
        let shift = if class == 3 { 1.5 } else { noise(class) / 4.0 };
        BoxSummary::of(&values(class, 5000, shift, 0.25))
    };
    Panel::boxes("Attribution by class", CLASSES, Axis::linear("attribution"), [("", (0..10).map(summary))])
        .horizontal(0.0)
}

fn groups() -> Panel {
    let group = |seed: u32| [0, 1, 2].map(|at| BoxSummary::of(&values(seed + at, 60, f64::from(at), 0.4)));
    let groups = [("trace", group(20)), ("pseudo", group(40)), ("embedding", group(60))];
    Panel::boxes("Groups", ["early", "middle", "late"], Axis::linear("distance"), groups)
}

fn means() -> Panel {
    let value = |at: u32| if at / 10 == at % 10 { 0.8 + noise(at) / 2.0 } else { noise(at) / 2.0 };
    Panel::named_heat_map("Mean attribution", CLASSES, CLASSES, (0..100).map(value))
        .signed()
        .x(Axis::linear("output"))
        .y(Axis::linear("training class"))
}

fn log_odds() -> Panel {
    let point = |at: u32| {
        let x = 6.0 * normal(at);
        (x, 4.0 * (x / 4.0).tanh() + normal(at + 500_000) / 2.0)
    };
    let points: Vec<(f64, f64)> = (0..60_000).map(point).collect();
    let stairs = (-16..=16).map(|at| f64::from(at) / 1.5).map(|x| (x, 4.0 * (x / 4.0).tanh()));
    Panel::scatter(
        "Network and surrogate",
        Axis::linear("log-odds of the network"),
        Axis::linear("log-odds of the kernel"),
        [("samples", points.clone())],
    )
    .diagonal()
    .series(Series::fitted_line("least squares", points))
    .series(Series::stairs("monotone", stairs).colour(6))
}

fn densities() -> Panel {
    let sets = [("network", values(1, 900, 0.0, 1.0)), ("kernel", values(2, 900, 1.0, 0.6)), ("one", vec![3.0])];
    Panel::density("Densities", "log-odds", sets)
}

fn map() -> Panel {
    let point = |at: u32| {
        let (x, y) = (normal(at), normal(at + 70_000));
        if at.is_multiple_of(3) { (x + 2.0, y - 1.0) } else { (x, y + x) }
    };
    Panel::density_map("Density in the plane", Axis::linear("first"), Axis::linear("second"), (0..20_000).map(point))
}

fn quantiles() -> Panel {
    Panel::quantiles("Quantiles", ("network", values(5, 3000, 0.0, 0.5)), ("kernel", values(6, 700, 0.1, 0.7)))
}

fn scores(skill: f64) -> impl Iterator<Item = (f64, bool)> {
    (0..4000).map(move |at| (normal(at + 9000) + if at % 4 == 0 { skill } else { 0.0 }, at % 4 == 0))
}

fn roc() -> Panel {
    Panel::roc("Poisoned samples", [("trace", RankCurve::roc(scores(1.0))), ("embedding", RankCurve::roc(scores(0.3)))])
}

fn precision() -> Panel {
    let curve = |skill: f64| RankCurve::precision_recall(scores(skill));
    Panel::precision_recall("Poisoned samples", [("trace", curve(1.0)), ("embedding", curve(0.3))])
}

fn large() -> Panel {
    let value = |at: u32| (-f64::from((at / 800).abs_diff(at % 800)) / 80.0).exp() + noise(at) / 8.0;
    Panel::heat_map(
        "A kernel of 800 samples",
        800,
        (0..640_000).map(value),
        [("cats", 400), ("dogs", 250), ("owls", 150)],
    )
}

fn confusion() -> Panel {
    let names = ["yes", "no", "perhaps"];
    Panel::named_heat_map("Confusion", names, names, [120.0, 7.0, 3.0, 12.0, 98.0, 20.0, 0.0, f64::NAN, 55.0])
        .x(Axis::linear("predicted"))
        .y(Axis::linear("true"))
}

fn sixty() -> Panel {
    let names = (0..60).map(|class| format!("class {class}"));
    Panel::boxes(
        "Sixty classes",
        names,
        Axis::linear("attribution"),
        [("", (0..60).map(|class| BoxSummary::of(&values(class, 300, noise(class), 0.2))))],
    )
}
