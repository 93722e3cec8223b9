//! `functions.svg`: the first functions over one-dimensional data, or the data in their coordinates.

use mercer_data::Labels;
use mercer_report::{Axis, Figure, Panel, Series};
use mercer_spectral::orient;
use ndarray::{Array2, ArrayView1, Axis as Along};

/// The number of functions to draw over a line.
const LINES: usize = 5;

/// The number of points to draw. More would make the figure larger, but not clearer.
const POINTS: usize = 2000;

/// The figure of `ψ(x)`, a row per sample, beside the eigenvalues. `line` holds the samples if they are numbers.
pub(super) fn draw(
    line: Option<ArrayView1<'_, f64>>,
    psi: &Array2<f64>,
    values: &[f64],
    labels: Option<&Labels>,
) -> Figure {
    let spectrum = values.iter().enumerate().map(|(j, &value)| ((j + 1) as f64, value));
    let spectrum = Panel::lines("Eigenvalues", Axis::whole("j"), Axis::log("μ"), [Series::marked_line("μ", spectrum)]);
    let step = psi.nrows().div_ceil(POINTS).max(1);
    let rows: Vec<usize> = (0..psi.nrows()).step_by(step).collect();
    let functions = match line {
        Some(line) => over_line(line, psi, &rows),
        None => projection(psi, values, labels, &rows),
    };
    Figure::new("").panel(functions).panel(spectrum)
}

fn over_line(line: ArrayView1<'_, f64>, psi: &Array2<f64>, rows: &[usize]) -> Panel {
    let mut psi = psi.clone();
    orient(psi.view_mut());
    let mut order = rows.to_vec();
    order.sort_by(|&a, &b| line[a].total_cmp(&line[b]));
    let series = psi.axis_iter(Along(1)).take(LINES).enumerate().map(|(j, function)| {
        Series::line(format!("ψ{}", j + 1), order.iter().map(|&row| (line[row], function[row])).collect::<Vec<_>>())
    });
    Panel::lines("Eigenfunctions", Axis::linear("x"), Axis::linear("ψ(x)"), series.collect::<Vec<_>>())
}

/// `√μ ψ` in three dimensions, or in fewer if there are fewer.
fn projection(psi: &Array2<f64>, values: &[f64], labels: Option<&Labels>, rows: &[usize]) -> Panel {
    let at = |row: usize, j: usize| psi[(row, j)] * values[j].max(0.0).sqrt();
    let classes: Vec<(String, Vec<usize>)> = match labels {
        Some(Labels::Classes(classes)) => {
            let of =
                |class: usize| rows.iter().copied().filter(|&row| classes.indices().get(row) == Some(&class)).collect();
            classes.names().iter().enumerate().map(|(class, name)| (name.clone(), of(class))).collect()
        }
        _ => vec![("data".to_owned(), rows.to_vec())],
    };
    let title = "Data, seen through √μ ψ";
    match values.len() {
        0 => Panel::new(title),
        1 => {
            let sets = classes.into_iter().map(|(name, rows)| (name, rows.into_iter().map(|row| at(row, 0)).collect()));
            Panel::histogram(title, "√μ₁ ψ₁", 40, sets.collect::<Vec<_>>())
        }
        2 => {
            let classes = classes
                .into_iter()
                .map(|(name, rows)| (name, rows.into_iter().map(|row| (at(row, 0), at(row, 1))).collect::<Vec<_>>()));
            Panel::scatter(title, Axis::linear("√μ₁ ψ₁"), Axis::linear("√μ₂ ψ₂"), classes.collect::<Vec<_>>())
        }
        _ => {
            let space =
                |rows: Vec<usize>| rows.into_iter().map(|row| [0, 1, 2].map(|j| at(row, j))).collect::<Vec<_>>();
            let classes = classes.into_iter().map(|(name, rows)| (name, space(rows)));
            Panel::scatter3(title, ["√μ₁ ψ₁", "√μ₂ ψ₂", "√μ₃ ψ₃"], classes.collect::<Vec<_>>())
        }
    }
}
