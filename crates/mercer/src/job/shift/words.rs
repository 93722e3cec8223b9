//! What was found, in words.

use super::findings::{ShiftFindings, ShiftKind};
use crate::text::{count, grouped};
use mercer_run::names::Named;

/// Sentences about the findings, the most important first.
pub(super) fn sentences(found: &ShiftFindings) -> Vec<String> {
    let Some(p) = found.p_value else {
        return vec![format!(
            "The reference of {} was saved; there was nothing to compare it with.",
            count(found.n_samples, "sample")
        )];
    };
    let mut all = Vec::new();
    let tests = count(found.tests.len(), "test");
    all.push(match found.shifted {
        true => {
            format!("The new samples are not like the old ones: the least p-value of {tests} is {p:.3}, corrected.")
        }
        false => format!("No shift was found: the least p-value of {tests} is {p:.3}, corrected."),
    });
    let strongest = found.tests.iter().reduce(|a, b| if b.deviations > a.deviations { b } else { a });
    if let Some(test) = strongest.filter(|_| found.shifted) {
        all.push(format!(
            "It shows most in the {} test of {}, {:.1} standard deviations from chance.",
            test.name.name(),
            test.node,
            test.deviations
        ));
        let shifted: Vec<&str> =
            found.layers.iter().filter(|layer| layer.p_value <= found.level).map(|layer| layer.node.as_str()).collect();
        if found.layers.len() > 1 {
            all.push(format!("{} of {} layers and kernels show it.", shifted.len(), found.layers.len()));
        }
    }
    if let Some(layer) = found.samples.as_ref().and_then(|own| found.layers.iter().find(|layer| layer.node == own.node))
    {
        all.push(format!(
            "In {}, a linear classifier puts {} of held-out samples into the right set; chance is 50.0 %.",
            layer.node,
            percent(layer.accuracy)
        ));
    }
    if let Some(samples) = found.samples.as_ref().filter(|_| found.shifted) {
        all.push(format!(
            "{} of {} new samples lie where old ones are; {} of {} old samples lie where new ones are.",
            grouped(samples.n_kept_test),
            grouped(found.n_test),
            grouped(samples.n_kept),
            grouped(found.n_samples)
        ));
    }
    all.extend(of_classes(found));
    all
}

/// Label shift and accuracy.
fn of_classes(found: &ShiftFindings) -> Vec<String> {
    let mut all = Vec::new();
    if let Some(labels) = &found.label_shift {
        match found.kind {
            Some(ShiftKind::Label) => all.push(
                "Old samples with the estimated rates of classes are like the new ones: the rates of the classes explain the \
                 shift (label shift)."
                    .to_owned(),
            ),
            Some(ShiftKind::Covariate) => all.push(
                "Old samples with the estimated rates of classes differ from the new ones as well: samples of the same class \
                 look different (covariate shift), and the estimated rates are not reliable."
                    .to_owned(),
            ),
            None if found.shifted && labels.matched_p_value.is_some() => all.push(
                "Neither the rates of its decisions nor old samples with the estimated rates of classes show a difference: whether \
                 classes or samples have shifted is open."
                    .to_owned(),
            ),
            None => {}
        }
        if let Some(rates) = labels.rates.as_ref().filter(|_| found.kind == Some(ShiftKind::Label)) {
            let change = |class: &usize| rates.second[*class] - rates.first[*class];
            let largest = (0..labels.classes.len()).max_by(|a, b| change(a).abs().total_cmp(&change(b).abs()));
            if let Some(class) = largest {
                all.push(format!(
                    "Class {} changed most: from {} to an estimated {} of the samples.",
                    labels.classes[class],
                    percent(rates.first[class]),
                    percent(rates.second[class])
                ));
            }
        }
        if let Some(rates) = &labels.rates {
            let absent = labels.classes.iter().zip(&rates.first).filter(|(_, rate)| **rate == 0.0);
            let absent: Vec<&str> = absent.map(|(class, _)| class.as_str()).collect();
            if !absent.is_empty() {
                all.push(format!(
                    "The estimated rates leave out classes without an old sample, which cannot be told from the others: {}.",
                    absent.join(", ")
                ));
            }
        }
        if labels.rates.is_none() {
            all.push(
                "The decisions of the network say too little about the classes to estimate their rates.".to_owned(),
            );
        }
    }
    if let Some(accuracy) = &found.estimated_accuracy
        && let (Some(first), Some(second)) = (accuracy.estimates.first, accuracy.estimates.thresholded)
    {
        let truth = accuracy.test.map(|truth| format!("; it is {}", percent(truth))).unwrap_or_default();
        all.push(format!(
            "The network is right in {} of the old samples; on the new ones its estimated accuracy is {}{truth}.",
            percent(first),
            percent(second)
        ));
    }
    all
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
