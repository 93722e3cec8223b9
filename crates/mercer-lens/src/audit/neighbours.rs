//! Opinions of neighbours and of copies.
//!
//! ```text
//! score(i) = Σ_{j nearest, yⱼ ≠ yᵢ} wⱼ / Σ_{j nearest} wⱼ          wⱼ = 1, or max(κ(xᵢ, xⱼ), 0)
//! ```

use super::{Opinion, Reason, winner};
use crate::checks::{check_count, check_labels, check_neighbours, check_rows};
use crate::duplicates::Duplicates;
use crate::error::Result;
use crate::neighbours::Neighbour;
use serde::Serialize;

/// How neighbours vote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub enum Votes {
    /// One vote each.
    #[default]
    Equal,
    /// As many votes as their kernel value, at least zero. If all are zero, one vote each.
    Weighted,
}

/// The share of a sample's neighbours with another label; the suggestion is the class with most votes.
///
/// A sample is not its own neighbour: entries of its own index are passed over. A tie of votes goes to the label that
/// the sample has, and otherwise to the smaller class.
///
/// # Errors
/// For samples without neighbours, neighbours or classes that do not exist, and another number of labels.
pub fn neighbour_disagreement(
    neighbours: &[Vec<Neighbour>],
    labels: &[usize],
    n_classes: usize,
    votes: Votes,
) -> Result<Opinion> {
    check_count("an audit", 1, labels.len())?;
    check_rows("the list of neighbours", labels.len(), neighbours.len())?;
    check_labels(labels, n_classes)?;
    check_neighbours(neighbours, labels.len())?;
    let mut opinion = Opinion { scores: vec![], suggested: vec![], reasons: vec![] };
    for (i, list) in neighbours.iter().enumerate() {
        let others: Vec<&Neighbour> = list.iter().filter(|neighbour| neighbour.index != i).collect();
        check_count("a vote of neighbours", 1, others.len())?;
        let is_equal = votes == Votes::Equal || others.iter().all(|neighbour| neighbour.value <= 0.0);
        // Divided by the largest value first, so that sums stay finite.
        let most = others.iter().fold(0.0, |most: f64, neighbour| most.max(neighbour.value));
        let mut tally = vec![0.0; n_classes];
        for neighbour in &others {
            tally[labels[neighbour.index]] += if is_equal { 1.0 } else { neighbour.value.max(0.0) / most };
        }
        let (all, own) = (tally.iter().sum::<f64>(), labels[i]);
        let against: f64 = tally.iter().enumerate().filter(|(class, _)| *class != own).map(|(_, vote)| vote).sum();
        let class = winner(&tally, own);
        let count = others.iter().filter(|neighbour| labels[neighbour.index] == class).count();
        opinion.scores.push(against / all);
        opinion.suggested.push(Some(class));
        opinion.reasons.push((class != own).then_some(Reason::Neighbours { count, of: others.len(), class }));
    }
    Ok(opinion)
}

/// The share of a sample's copies with another label; zero for a sample without copies. The suggestion is the most
/// frequent label of its group.
///
/// # Errors
/// For another number of labels, and classes that do not exist.
pub fn conflicting_duplicates(duplicates: &Duplicates, labels: &[usize], n_classes: usize) -> Result<Opinion> {
    check_count("an audit", 1, labels.len())?;
    check_rows("the list of labels", duplicates.samples, labels.len())?;
    check_labels(labels, n_classes)?;
    let n = labels.len();
    let mut opinion = Opinion { scores: vec![0.0; n], suggested: vec![None; n], reasons: vec![None; n] };
    for group in &duplicates.groups {
        let mut tally = vec![0.0; n_classes];
        group.members.iter().for_each(|&i| tally[labels[i]] += 1.0);
        for &i in &group.members {
            let other = group.members.iter().find(|&&j| labels[j] != labels[i]);
            let size = group.members.len() as f64;
            opinion.scores[i] = (size - tally[labels[i]]) / (size - 1.0);
            opinion.suggested[i] = Some(winner(&tally, labels[i]));
            opinion.reasons[i] = other.map(|&j| Reason::Duplicate { index: j, label: labels[j], exact: group.exact });
        }
    }
    Ok(opinion)
}
