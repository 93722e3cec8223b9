//! Summaries of attributions against full sorts.

use mercer_data::random::stream;
use mercer_lens::{Distribution, Grouping, attributions, summarise};
use rand::RngExt;

fn problem(n: usize) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
    let mut random = stream(5, "attribution");
    let kernel: Vec<f64> = (0..n).map(|_| random.random::<f64>()).collect();
    let weights: Vec<f64> = (0..n).map(|_| random.random::<f64>() - 0.5).collect();
    let groups = (0..n).map(|_| random.random_range(0..3)).collect();
    (kernel, weights, groups)
}

/// The quantile of sorted numbers, interpolated, as numpy computes it.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, high) = (place.floor() as usize, place.ceil() as usize);
    sorted[low] + (place - low as f64) * (sorted[high] - sorted[low])
}

#[test]
fn attributions_sum_to_the_score() {
    let (kernel, weights, groups) = problem(500);
    let score: f64 = kernel.iter().zip(&weights).map(|(k, w)| k * w).sum::<f64>() + 0.7;
    let found = summarise(&kernel, &attributions(&kernel, &weights, 0.7), 5, &Grouping::new(&groups, 3));
    assert!((found.sum - score).abs() < 1e-10);
    let by_group: f64 = found.groups.iter().map(|group| group.mean * group.n as f64).sum();
    assert!((by_group - score).abs() < 1e-10);
}

#[test]
fn ends_and_shares_are_those_of_a_full_sort() {
    let (kernel, weights, groups) = problem(301);
    let all = attributions(&kernel, &weights, -0.2);
    let found = summarise(&kernel, &all, 7, &Grouping::new(&groups, 3));
    let mut order: Vec<usize> = (0..301).collect();
    order.sort_by(|&a, &b| all[b].total_cmp(&all[a]));
    assert_eq!(found.supporting.iter().map(|example| example.train).collect::<Vec<_>>(), order[..7]);
    order.reverse();
    assert_eq!(found.opposing.iter().map(|example| example.train).collect::<Vec<_>>(), order[..7]);
    let mut sizes: Vec<f64> = all.iter().map(|value| value.abs()).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    assert!((found.top_share - sizes[..7].iter().sum::<f64>() / sizes.iter().sum::<f64>()).abs() < 1e-12);
    let squares: f64 = all.iter().map(|value| value * value).sum();
    assert!((found.effective - sizes.iter().sum::<f64>().powi(2) / squares).abs() < 1e-9);
}

#[test]
fn equal_attributions_count_all_and_one_counts_one() {
    let grouping = Grouping::new(&[0; 10], 1);
    let equal = summarise(&[1.0; 10], &[0.3; 10], 2, &grouping);
    assert!((equal.effective - 10.0).abs() < 1e-12 && (equal.top_share - 0.2).abs() < 1e-12);
    // Ties are broken by the order of the samples.
    assert_eq!(equal.supporting.iter().map(|example| example.train).collect::<Vec<_>>(), [0, 1]);
    let mut one = [0.0; 10];
    one[4] = -2.0;
    let found = summarise(&[1.0; 10], &one, 2, &grouping);
    assert_eq!((found.effective, found.top_share, found.opposing[0].train), (1.0, 1.0, 4));
    assert!(!found.groups[0].mean_is_inside());
    assert_eq!(summarise(&[1.0; 10], &[0.0; 10], 2, &grouping).effective, 0.0);
}

#[test]
fn boxes_are_those_of_sorted_numbers() {
    let mut random = stream(6, "boxes");
    for n in [1, 2, 3, 4, 5, 50, 101] {
        let mut values: Vec<f64> = (0..n).map(|_| random.random::<f64>().powi(4)).collect();
        let mut sorted = values.clone();
        sorted.sort_by(f64::total_cmp);
        let found = Distribution::new(&mut values);
        for (value, share) in [(found.q1, 0.25), (found.median, 0.5), (found.q3, 0.75)] {
            assert!((value - quantile(&sorted, share)).abs() < 1e-14, "{n}");
        }
        let (low, high) = (found.q1 - 1.5 * (found.q3 - found.q1), found.q3 + 1.5 * (found.q3 - found.q1));
        let inside: Vec<f64> = sorted.iter().copied().filter(|x| (low..=high).contains(x)).collect();
        assert_eq!(found.n_fliers, n - inside.len(), "{n}");
        assert_eq!((found.low_whisker, found.high_whisker), (inside[0], inside[inside.len() - 1]));
        assert!((found.mean - sorted.iter().sum::<f64>() / n as f64).abs() < 1e-14);
    }
    assert_eq!(Distribution::new(&mut []), Distribution::default());
}

#[test]
fn groups_without_samples_and_long_lists_are_allowed() {
    let found = summarise(&[1.0, 2.0], &[1.0, -1.0], 9, &Grouping::new(&[2, 0], 3));
    assert_eq!((found.supporting.len(), found.opposing.len()), (2, 2));
    assert_eq!(found.groups.iter().map(|group| group.n).collect::<Vec<_>>(), [1, 0, 1]);
    let none = summarise(&[], &[], 3, &Grouping::new(&[], 0));
    assert_eq!((none.sum, none.effective, none.supporting.len()), (0.0, 0.0, 0));
}
