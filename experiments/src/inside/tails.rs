//! Power laws in the tails of weights, beside WeightWatcher's.

use crate::experiment::{Experiment, Needs};
use crate::explain::cifar::golden;
use crate::options::Options;
use crate::peers::script;
use crate::report::{Cell, Format, Report, Table};
use crate::work::Work;
use crate::{Fallible, row};
use mercer::job::SpectrumJob;
use serde_json::Value;
use std::ffi::OsStr;
use std::path::Path;

pub(crate) const EXPERIMENT: Experiment = Experiment {
    name: "weight-tails",
    group: "Layers and spectra",
    title: "Power-law tails of weights",
    paper: "",
    claim: "On the same matrices, exponent, threshold and distance of the power law are WeightWatcher's where a layer has at least 20 \
        eigenvalues.",
    published: "",
    setting: "The weights of a ResNet-20 and of a ResNet-56, whose files hold batch normalisation folded into convolutions. Both programs \
        follow Clauset, Shalizi and Newman: every eigenvalue but the largest is tried as the threshold x_min, and the fit with the smallest \
        distance D is taken, D from the left of the steps. Definitions differ in four places. Matrix: ours has a row per output, and all \
        input channels and positions of the kernel as columns; WeightWatcher takes a convolution apart into a matrix per position of the \
        kernel, each scaled, and pools their eigenvalues (last column), so for the comparison it gets our matrices as the weights of \
        dense layers. Scale: our eigenvalues are those of W·Wᵀ/d for d inputs, WeightWatcher's those of W·Wᵀ; α and D do not depend on it, \
        and x_min is compared after it. Few eigenvalues: below 20, WeightWatcher corrects α for bias and chooses x_min in another way. \
        Thresholds: `powerlaw` with its defaults leaves out those with α > 3. Eigenvalues are computed twice: WeightWatcher gets the \
        weights, not our spectra. `--layers` layers of each network are listed, evenly spread over those with 20 eigenvalues.",
    cost: 60,
    needs: &[Needs::WeightWatcher],
    options: &["layers", "only", "peers"],
    threads: 0,
    run,
};

const NETWORKS: [(&str, &str); 2] = [("ResNet-20", "cifar10_resnet20.onnx"), ("ResNet-56", "cifar10_resnet56.onnx")];

/// With fewer eigenvalues, WeightWatcher fits in another way.
const LEAST: usize = 20;

/// Relative differences up to this are rounding: the weights are single precision.
const ROUNDING: f64 = 1e-3;

/// The fits of a layer.
struct Layer<'a> {
    own: &'a Value,
    theirs: &'a Value,
}

impl Layer<'_> {
    fn number(&self, key: &str) -> Option<f64> {
        self.own[key].as_f64()
    }

    fn eigenvalues(&self) -> usize {
        self.own["eigenvalues"].as_array().map_or(0, Vec::len)
    }

    /// The largest relative difference of exponent, threshold and distance; none without the other fit.
    fn difference(&self) -> Option<f64> {
        let columns = self.number("columns")?;
        let pairs = [("alpha", "alpha", 1.0), ("x_min", "x_min", columns), ("tail_distance", "distance", 1.0)];
        let relative = pairs.map(|(key, theirs, factor)| {
            let theirs = self.theirs["same"][theirs].as_f64()?;
            Some((self.number(key)? * factor / theirs - 1.0).abs())
        });
        relative.into_iter().try_fold(0.0, |largest, own| Some(f64::max(largest, own?)))
    }

    fn row(&self, network: &str) -> Vec<Cell> {
        let theirs = |group: &str, key: &str| self.theirs[group][key].as_f64();
        let (alpha, same) = (self.number("alpha"), theirs("same", "alpha"));
        let mut cells = row![network, self.own["layer"].as_str().unwrap_or_default()];
        cells.push(format!("{} × {}", self.own["rows"], self.own["columns"]).into());
        cells.extend([alpha, same, alpha.zip(same).map(|(own, same)| own - same)].map(Cell::from));
        cells.extend([self.number("tail_distance"), theirs("same", "distance")].map(Cell::from));
        cells.push(self.number("n_tail").into());
        cells.extend([theirs("powerlaw", "alpha"), theirs("pooled", "alpha")].map(Cell::from));
        cells
    }
}

fn run(options: &Options) -> Fallible<Report> {
    let work = Work::new(options)?;
    let listed = options.number("layers", 10, 2)?;
    let mut table = Table::new(String::new());
    for name in ["network", "layer", "shape"] {
        table = table.column(name, Format::Plain);
    }
    table = table.column("α", Format::Fixed(4)).column("α, WeightWatcher", Format::Fixed(4));
    table = table.column("difference", Format::Scientific(1)).column("D", Format::Fixed(4));
    table = table.column("D, WeightWatcher", Format::Fixed(4)).column("eigenvalues in the tail", Format::Plain);
    table = table.column("α, powerlaw", Format::Fixed(4)).column("α, WeightWatcher, pooled", Format::Fixed(4));
    let (mut notes, mut holds) = (Vec::new(), None);
    for (name, file) in NETWORKS.into_iter().filter(|(name, _)| options.wants(name)) {
        let network = golden(file);
        let done = work.run(&name.to_lowercase(), &SpectrumJob::new(&network))?;
        let theirs = match options.peers() {
            Some(python) => {
                let (versions, found) = peers(python, &network, &done.folder.with_extension("tails.json"))?;
                table.caption = format!("{versions}, measured here:");
                found
            }
            None => Value::Null,
        };
        let weights = done.found["checkpoints"][0]["weights"].as_array().ok_or("there are no weights")?;
        let (enough, few): (Vec<_>, Vec<_>) = (weights.iter())
            .map(|own| Layer { own, theirs: &theirs[own["layer"].as_str().unwrap_or_default()] })
            .partition(|own| own.eigenvalues() >= LEAST);
        for at in 0..listed.min(enough.len()) {
            table.push(enough[at * enough.len() / listed.min(enough.len())].row(name));
        }
        let largest = |layers: &[Layer<'_>]| layers.iter().filter_map(Layer::difference).reduce(f64::max);
        if let Some(difference) = largest(&enough) {
            let missing = enough.iter().filter(|own| own.difference().is_none()).count();
            holds = Some(holds.unwrap_or(true) && difference <= ROUNDING && missing == 0);
            notes.push(format!(
                "{name}: in {} layers with at least {LEAST} eigenvalues, exponent, threshold and distance differ by a factor of at most 1 \
                 + {difference:.1e}; in {} smaller ones by one of up to 1 + {:.2}.",
                enough.len() - missing,
                few.len(),
                largest(&few).unwrap_or(0.0)
            ));
        }
    }
    Ok(Report { tables: vec![table], notes, holds, earlier: work.earlier(), ..Report::default() })
}

/// The versions of the other programs, and their fits by layer.
fn peers(python: &Path, network: &Path, out: &Path) -> Fallible<(String, Value)> {
    let arguments: [&OsStr; 2] = [network.as_ref(), out.as_ref()];
    let versions = script(python, "weightwatcher_tails.py", arguments)?;
    Ok((versions, serde_json::from_str(&std::fs::read_to_string(out)?)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_of_the_same_matrix_and_scale() {
        let own = json!({ "columns": 4, "alpha": 2.0, "x_min": 0.5, "tail_distance": 0.1, "eigenvalues": [1.0, 0.5] });
        let difference = |alpha: f64, x_min: f64| {
            let theirs = json!({ "same": { "alpha": alpha, "x_min": x_min, "distance": 0.1 } });
            Layer { own: &own, theirs: &theirs }.difference()
        };
        assert_eq!(difference(2.0, 2.0), Some(0.0));
        assert!(difference(2.0, 0.5).unwrap() > 1.0 && difference(4.0, 2.0) == Some(0.5));
        assert_eq!(Layer { own: &own, theirs: &Value::Null }.difference(), None);
    }
}
