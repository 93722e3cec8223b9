//! The network of the demo as a kernel machine: which training digits a prediction is closest to.

use super::Part;
use crate::console::Console;
use crate::failure::Failure;
use crate::format::{duration, table};
use mercer::data::{Existing, Labels, write_npy};
use mercer::kernel::gram::Gram;
use mercer::kernel::{Kernel, Kind, Normalised, Ntk};
use mercer::net::Network;
use mercer::net::network::largest;
use ndarray::{ArrayD, Axis};
use std::path::Path;
use std::sync::Arc;

/// Digits that are shown.
const SHOWN: usize = 6;

/// Training digits that are named for each.
const NEAREST: usize = 5;

/// What the kernel says.
pub(super) struct Findings {
    /// The part of the unseen digits whose nearest training digit is of their class.
    nearest_right: f64,
    n_test: usize,
    /// Mean similarity of digits of the same class, and of others.
    same: f64,
    other: f64,
    examples: Vec<Example>,
    seconds: f64,
}

/// An unseen digit.
struct Example {
    place: usize,
    class: usize,
    /// Places, classes and similarities of the nearest training digits.
    nearest: Vec<(usize, usize, f32)>,
}

/// Compares unseen digits with the training digits, and writes the matrix.
pub(super) fn compare(folder: &Path, train: &Part, test: &Part, console: &Console) -> Result<Findings, Failure> {
    let network = Network::from_onnx(folder.join("model.onnx"))?;
    let shapes = [test.inputs.sample_shape().to_vec()];
    let failed = |error: mercer::kernel::KernelError| Failure::new(error.to_string());
    let tangent: Arc<dyn Kernel<f32>> = Arc::new(Ntk::new(&network, &shapes, Kind::Trace).map_err(failed)?);
    let kernel = Normalised::new(tangent);
    let (rows, columns) = (std::slice::from_ref(&test.inputs), std::slice::from_ref(&train.inputs));
    let bar = console.context();
    let start = std::time::Instant::now();
    let matrix = Gram::new(&kernel, rows).against(columns).to_kernel(&bar).map_err(failed)?;
    write_npy(&folder.join("ntk-test-train.npy"), &matrix, Existing::Replace)?;
    Ok(findings(&matrix, classes(&test.labels), classes(&train.labels), start.elapsed().as_secs_f64()))
}

fn classes(labels: &Labels) -> &[usize] {
    match labels {
        Labels::Classes(classes) => classes.indices(),
        Labels::Targets(_) => &[],
    }
}

fn findings(matrix: &ArrayD<f32>, test: &[usize], train: &[usize], seconds: f64) -> Findings {
    let (mut right, mut examples) = (0, Vec::new());
    let mut sums = [(0.0, 0usize); 2];
    for (at, (row, &class)) in matrix.axis_iter(Axis(0)).zip(test).enumerate() {
        let row: Vec<f32> = row.iter().copied().collect();
        right += usize::from(train[largest(&row)] == class);
        for (&similarity, &other) in row.iter().zip(train) {
            let sum = &mut sums[usize::from(other != class)];
            *sum = (sum.0 + f64::from(similarity), sum.1 + 1);
        }
        if at < SHOWN {
            let mut order: Vec<usize> = (0..row.len()).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            let nearest = order.iter().take(NEAREST).map(|&place| (place, train[place], row[place])).collect();
            examples.push(Example { place: at, class, nearest });
        }
    }
    let mean = |(sum, count): (f64, usize)| sum / count.max(1) as f64;
    let n_test = test.len();
    let nearest_right = right as f64 / n_test.max(1) as f64;
    Findings { nearest_right, n_test, same: mean(sums[0]), other: mean(sums[1]), examples, seconds }
}

impl Findings {
    pub(super) fn text(&self) -> String {
        let mut rows = vec![vec!["unseen".to_owned(), "is a".to_owned(), "most alike in training".to_owned()]];
        for Example { place, class, nearest } in &self.examples {
            let named = nearest.iter().map(|(place, class, similarity)| format!("{class} (#{place}, {similarity:.2})"));
            rows.push(vec![format!("#{place}"), class.to_string(), named.collect::<Vec<_>>().join("  ")]);
        }
        format!(
            "The network as a kernel: its trace-NTK between {} unseen digits and the training digits, in {}.\n\
             Digits of the same class are alike by {:.2} on average, others by {:.2}; the nearest training digit is of\n\
             the right class in {:.1} % of cases.\n{}",
            self.n_test,
            duration(self.seconds),
            self.same,
            self.other,
            100.0 * self.nearest_right,
            table(&rows, &[])
        )
    }
}
