//! What was found, in words.

use super::findings::{LayerFindings, ProbeFindings};

/// Sentences about the findings, the most important first.
pub(super) fn sentences(found: &ProbeFindings) -> Vec<String> {
    let mut all = Vec::new();
    let best = |layer: &LayerFindings| {
        let own = layer.accuracy?;
        Some([own.neighbours, own.centre, own.svm.unwrap_or(0.0)].into_iter().fold(0.0, f64::max))
    };
    let top = found.layers.iter().filter_map(|layer| Some((layer, best(layer)?)));
    if let Some((layer, accuracy)) = top.reduce(|a, b| if b.1 > a.1 { b } else { a }) {
        all.push(format!(
            "The best probe reads the class from layer {} in {} of the test samples; the network is right in {}, chance is {}.",
            layer.node,
            percent(accuracy),
            percent(found.network_accuracy),
            percent(found.chance)
        ));
    }
    match (&found.agree_from, found.layers.last()) {
        (Some(node), _) => {
            all.push(format!("From layer {node} on, the probes agree within {:.0} points.", 100.0 * found.tolerance))
        }
        (None, Some(_)) if found.layers.iter().any(|layer| layer.accuracy.is_some()) => all.push(format!(
            "The probes disagree by more than {:.0} points up to the last layer.",
            100.0 * found.tolerance
        )),
        (None, _) => {}
    }
    if let Some(last) = found.layers.last() {
        if let (Some(d90), Some(variance)) = (last.d90, last.variance_at_d90) {
            let parts = match d90.centre {
                1 => "one principal component carries".to_owned(),
                n => format!("{n} principal components carry"),
            };
            all.push(format!(
                "In layer {}, {parts} 90 % of the accuracy of the nearest class centre, and {} of the variance.",
                last.node,
                percent(variance.centre)
            ));
        }
        if let Some(nc1) = last.collapse.nc1 {
            let word = match nc1 {
                nc1 if nc1 < 0.1 => "has collapsed",
                nc1 if nc1 < 1.0 => "has partly collapsed",
                _ => "has not collapsed",
            };
            all.push(format!(
                "Layer {} {word}: NC1 = {nc1:.3}, and its nearest class centre disagrees with the network on {} of the training samples.",
                last.node,
                percent(last.collapse.nc4)
            ));
        }
    }
    let dead: Vec<String> =
        found.layers.iter().filter(|layer| layer.n_components == 0).map(|layer| layer.node.clone()).collect();
    if !dead.is_empty() {
        all.push(format!("These layers are the same for all samples and were not probed: {}.", dead.join(", ")));
    }
    let unconverged: usize = found.layers.iter().map(|layer| layer.curves.n_unconverged).sum();
    if unconverged > 0 {
        all.push(format!(
            "{} of support vector machines were stopped before they converged.",
            crate::text::count(unconverged, "two-class problem")
        ));
    }
    all
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
