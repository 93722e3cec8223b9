//! The tangent kernel of ten networks on the unit circle, before and after training.
//!
//! Depth 4 (three hidden layers of equal width, then the output), ReLU, `y = W x/√n + 0.1 b` with standard normal weights as the
//! paper has it; `Θ(x₀, x)` for `x₀ = (1, 0)` and `x` on the unit circle; gradient descent with learning rate 1 on half the mean
//! square of `f(x) − x₁x₂` over normal inputs. The number of inputs is not stated there; ours is [`INPUTS`].
//!
//! A network of width `n` has about `2n²` parameters and a second array of as many for the gradient, in single precision 1.6 GB
//! at width 10000. The kernel is contracted from the factors of 65 points, gradients of parameters per point are never formed.

use crate::experiment::Experiment;
use crate::options::Options;
use crate::report::{Drawing, Format, Report, Table};
use crate::{Fallible, row};
use mercer::data::random::stream;
use mercer::kernel::infinite::{Limit, LimitKind, Rule};
use mercer::kernel::montecarlo::Ensemble;
use mercer::kernel::{Kernel, Ntk, NtkKind, Selection};
use mercer::net::arch::{Initialisation, Mlp};
use mercer::net::run::{Keep, Reverse, Target, Weights, Workspace};
use mercer::report::{Axis, Figure, Panel, Series};
use mercer::run::peak_memory;
use rand::RngExt;
use rand_distr::StandardNormal;
use std::sync::Arc;
use std::time::Instant;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "circle",
    group: "Limits",
    title: "Tangent kernels on the unit circle",
    paper: "Jacot, Gabriel and Hongler 2018, arXiv 1806.07572",
    claim: "The tangent kernel of a wider network is nearer to its limit at initialisation, and training moves it less (section 6.1, \
        figure 1).",
    published: "as a figure only.",
    setting: "Depth 4, ReLU, ten networks of width 500 and of width 10,000, 200 steps of gradient descent with learning rate 1 on x₁x₂ \
        over 32 normal inputs (the paper does not say how many). Width 10,000 takes 1.6 GB.",
    cost: 3600,
    needs: &[],
    options: &["widths", "seeds", "steps"],
    threads: 0,
    run,
};

/// Points on the circle.
const POINTS: usize = 65;

/// Training inputs.
const INPUTS: usize = 32;

const LEARNING_RATE: f32 = 1.0;

/// `Θ(x₀, ·)` on the circle at initialisation and after training, and the loss at both times.
struct Run {
    before: Vec<f64>,
    after: Vec<f64>,
    loss: [f64; 2],
}

fn run(options: &Options) -> Fallible<Report> {
    let widths = options.list("widths", &[500, 10_000], &[32, 512])?;
    let (seeds, steps) = (options.number("seeds", 10, 2)?, options.number("steps", 200, 20)?);
    let limit = limit()?;
    let mut table = Table::new("Distances of Θ(x₀, ·), relative to the limit:").column("width", Format::Plain);
    for name in ["one network", "mean of all", "after training", "moved by training", "loss before", "loss after"] {
        table = table.column(name, Format::Fixed(4));
    }
    table = table.column("seconds each", Format::Fixed(1)).column("peak GiB", Format::Fixed(2));
    let (mut figure, mut singles, mut moves) =
        (Figure::new("Tangent kernels on the unit circle"), Vec::new(), Vec::new());
    for &width in &widths {
        let start = Instant::now();
        let ensemble = ensemble(width)?;
        let runs: Vec<Run> = (0..seeds)
            .map(|seed| one(&ensemble, options.seed as usize * 1000 + seed, steps))
            .collect::<Fallible<_>>()?;
        let seconds = start.elapsed().as_secs_f64() / seeds as f64;
        let average = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
        let mean: Vec<f64> = (0..POINTS).map(|at| average(&|run| run.before[at])).collect();
        let (single, moved) =
            (average(&|run| distance(&run.before, &limit)), average(&|run| distance(&run.after, &run.before)));
        let trained = average(&|run| distance(&run.after, &limit));
        let loss = [0, 1].map(|at| average(&|run| run.loss[at]));
        let peak = peak_memory() as f64 / 1_073_741_824.0;
        table.push(row![width, single, distance(&mean, &limit), trained, moved, loss[0], loss[1], seconds, peak]);
        singles.push(single);
        moves.push(moved);
        figure = figure.panel(panel(width, steps, &runs, &limit));
    }
    let falls = |list: &[f64]| list.windows(2).all(|pair| pair[1] < pair[0]);
    let drawing = Drawing { file: "circle.svg", caption: "Tangent kernels of ten networks on the unit circle", figure };
    let holds = Some(falls(&singles) && falls(&moves));
    Ok(Report { tables: vec![table], figures: vec![drawing], holds, ..Report::default() })
}

fn panel(width: usize, steps: usize, runs: &[Run], limit: &[f64]) -> Panel {
    let named = |name: String, at: usize| if at == 0 { name } else { String::new() };
    let curve = |values: &[f64]| angles().zip(values.to_vec()).collect::<Vec<_>>();
    let mut panel = Panel::new(format!("width {width}")).x(Axis::linear("angle of x")).y(Axis::linear("Θ(x₀, x)"));
    for (at, run) in runs.iter().enumerate() {
        panel = panel.series(Series::line(named("t = 0".to_owned(), at), curve(&run.before)).colour(0));
        panel = panel.series(Series::line(named(format!("t = {steps}"), at), curve(&run.after)).colour(1));
    }
    panel.series(Series::line("limit", curve(limit)).colour(3).dashed())
}

fn angles() -> impl Iterator<Item = f64> {
    (0..POINTS).map(|at| std::f64::consts::PI * (2.0 * at as f64 / (POINTS - 1) as f64 - 1.0))
}

/// The points of the circle, one after the other.
fn circle() -> Vec<f32> {
    angles().flat_map(|angle| [angle.cos() as f32, angle.sin() as f32]).collect()
}

fn distance(found: &[f64], from: &[f64]) -> f64 {
    let square: f64 = found.iter().zip(from).map(|(a, b)| (a - b).powi(2)).sum();
    (square / from.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

fn description(width: usize) -> Mlp {
    let mlp = Mlp::new(2, &[width; 3], 1).initialisation(Initialisation::Ntk);
    Mlp { weight_std: Some(1.0), bias_std: Some(0.1), ..mlp }
}

fn rule() -> Rule {
    Rule::initialisation(Initialisation::Ntk)
}

fn ensemble(width: usize) -> Fallible<Ensemble> {
    Ok(Ensemble::new(&description(width).build(0)?, &[vec![2]], &rule(), 1)?)
}

/// `Θ(x₀, ·)` at infinite width.
fn limit() -> Fallible<Vec<f64>> {
    let limit = Limit::<f64>::of_network(&description(1).build(0)?, &[vec![2]], &rule(), LimitKind::Ntk)?;
    let circle: Vec<f64> = angles().flat_map(|angle| [angle.cos(), angle.sin()]).collect();
    let (first, all) = (limit.prepare(&[&[1.0, 0.0]], 1)?, limit.prepare(&[&circle], POINTS)?);
    let mut row = vec![0.0; POINTS];
    limit.contract(&first, &all, &mut row);
    Ok(row)
}

fn one(ensemble: &Ensemble, seed: usize, steps: usize) -> Fallible<Run> {
    let (weights, before) = on_circle(ensemble, ensemble.weights(seed))?;
    let (weights, loss) = train(ensemble, weights, steps)?;
    let (_, after) = on_circle(ensemble, weights)?;
    Ok(Run { before, after, loss })
}

/// `Θ(x₀, ·)`, and the weights back.
fn on_circle(ensemble: &Ensemble, weights: Weights<f32>) -> Fallible<(Weights<f32>, Vec<f64>)> {
    let ntk = Ntk::at(Arc::clone(ensemble.graph()), weights, NtkKind::Trace, &Selection::default())?;
    let (first, all) = (ntk.prepare(&[&[1.0, 0.0]], 1)?, ntk.prepare(&[&circle()], POINTS)?);
    let mut row = vec![0.0; POINTS];
    ntk.contract(&first, &all, &mut row);
    Ok((ntk.into_weights(), row.into_iter().map(f64::from).collect()))
}

/// Gradient descent on all inputs at once.
fn train(ensemble: &Ensemble, mut weights: Weights<f32>, steps: usize) -> Fallible<(Weights<f32>, [f64; 2])> {
    let mut random = stream(0, "circle/inputs");
    let x: Vec<f32> = (0..2 * INPUTS).map(|_| random.sample::<f64, _>(StandardNormal) as f32).collect();
    let targets: Vec<f32> = x.chunks_exact(2).map(|x| x[0] * x[1]).collect();
    let graph = ensemble.graph();
    let output = graph.outputs()[0].1;
    let target = Target { output, parameters: vec![true; graph.parameters().len()], inputs: false };
    let mut workspace = Workspace::new(Arc::clone(graph), &Keep::All);
    let mut reverse = Reverse::new(Arc::clone(graph), target);
    let mut loss = [0.0; 2];
    for step in 0..=steps {
        workspace.forward(&weights, &[&x], INPUTS)?;
        let outputs = workspace.get(&weights, output).iter().zip(&targets);
        let residuals: Vec<f32> = outputs.map(|(y, target)| (y - target) / INPUTS as f32).collect();
        loss[1] = residuals.iter().map(|r| f64::from(*r).powi(2)).sum::<f64>() * INPUTS as f64 / 2.0;
        if step == 0 {
            loss[0] = loss[1];
        }
        if step < steps {
            reverse.summed(&workspace, &weights, &residuals);
            for (at, numbers) in weights.parameters.iter_mut().enumerate() {
                numbers.iter_mut().zip(reverse.gradient(at)).for_each(|(x, slope)| *x -= LEARNING_RATE * slope);
            }
        }
    }
    Ok((weights, loss))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At widths 32 and 512 single networks deviate by some 4 times less (√16), and training moves the kernel by less; the
    /// tolerances are what six networks scatter.
    #[test]
    fn wider_networks_are_nearer_and_move_less() {
        let limit = limit().unwrap();
        let measure = |width: usize| {
            let ensemble = ensemble(width).unwrap();
            let runs: Vec<Run> = (0..6).map(|seed| one(&ensemble, seed, 100).unwrap()).collect();
            assert!(runs.iter().all(|run| run.loss[1] < run.loss[0]), "training makes the loss smaller");
            let average = |of: &dyn Fn(&Run) -> f64| runs.iter().map(of).sum::<f64>() / 6.0;
            (average(&|run| distance(&run.before, &limit)), average(&|run| distance(&run.after, &run.before)))
        };
        let ((narrow, moved), (wide, stayed)) = (measure(32), measure(512));
        assert!((2.0..8.0).contains(&(narrow / wide)), "{narrow} {wide}");
        assert!(stayed < 0.5 * moved, "{moved} {stayed}");
    }
}
