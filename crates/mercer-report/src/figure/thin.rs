//! Fewer points where more would not be seen, so that a figure stays small.

/// The number of marks in a panel. Five thousand take about 200 kB.
pub(super) const LIMIT: usize = 5000;
/// Small classes keep this many, so that none disappears.
const FEW: usize = 20;
/// A line with more points than this is made slim.
const LINE: usize = 4000;

/// How many points of each set are shown: all, or a part in proportion to the sets.
pub(super) fn shares(counts: &[usize]) -> Vec<usize> {
    let total: usize = counts.iter().sum();
    if total <= LIMIT {
        return counts.to_vec();
    }
    let mut before = 0_u128;
    let upto = |count: u128| (count * LIMIT as u128 / total as u128) as usize;
    let share = |&count: &usize| {
        let share = upto(before + count as u128) - upto(before);
        before += count as u128;
        share.max(count.min(FEW))
    };
    counts.iter().map(share).collect()
}

/// The indices of `share` points, in order: the extreme ones, and of the others one from every stretch of equal length, at
/// a place in it that looks random but is always the same. An order in the data therefore leaves no pattern.
pub(super) fn pick(points: &[(f64, f64)], share: usize) -> Vec<usize> {
    if share >= points.len() {
        return (0..points.len()).collect();
    }
    let mut kept = vec![false; points.len()];
    let by = |key: fn(&(f64, f64)) -> f64| {
        let order = |a: &usize, b: &usize| key(&points[*a]).total_cmp(&key(&points[*b]));
        [(0..points.len()).min_by(order), (0..points.len()).max_by(order)]
    };
    let extremes = [by(|point| point.0), by(|point| point.1)];
    extremes.into_iter().flatten().flatten().take(share).for_each(|at| kept[at] = true);
    let rest: Vec<usize> = (0..points.len()).filter(|&at| !kept[at]).collect();
    let wanted = share - (points.len() - rest.len());
    for stretch in 0..wanted {
        let (from, to) = (stretch * rest.len() / wanted, (stretch + 1) * rest.len() / wanted);
        kept[rest[from + scrambled(stretch) % (to - from).max(1)]] = true;
    }
    (0..points.len()).filter(|&at| kept[at]).collect()
}

/// The finaliser of SplitMix64.
pub(super) fn scrambled(at: usize) -> usize {
    let mut z = (at as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 1) as usize
}

/// A line of pixels that looks the same with fewer points: of neighbours within half a pixel across, the first, the
/// lowest, the highest and the last are kept.
pub(super) fn slim(run: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    if run.len() <= LINE {
        return run;
    }
    let mut slim = Vec::new();
    for column in run.chunk_by(|a, b| (2.0 * a.0).floor() == (2.0 * b.0).floor()) {
        let order = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let (lowest, highest) = ((0..column.len()).min_by(order), (0..column.len()).max_by(order));
        let mut kept = [Some(0), lowest, highest, column.len().checked_sub(1)].map(|at| at.unwrap_or(0));
        kept.sort_unstable();
        slim.extend(kept.iter().enumerate().filter(|&(at, k)| at == 0 || kept[at - 1] != *k).map(|(_, &k)| column[k]));
    }
    slim
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_in_proportion() {
        assert_eq!(shares(&[10, 4990]), [10, 4990]);
        assert_eq!(shares(&[60_000]), [5000]);
        assert_eq!(shares(&[30_000, 0, 10_000]), [3750, 0, 1250]);
        assert_eq!(shares(&[7, 1_000_000])[0], 7, "a small class is kept");
    }

    #[test]
    fn picks_are_exact_ordered_and_keep_the_extremes() {
        let points: Vec<(f64, f64)> = (0..60_000).map(|at| (f64::from(at), f64::from((at * 7919) % 60_013))).collect();
        let picked = pick(&points, 5000);
        assert_eq!(picked.len(), 5000);
        assert!(picked.is_sorted() && picked == pick(&points, 5000));
        assert!(picked.contains(&0) && picked.contains(&59_999));
        // Every tenth of the data has about a tenth of the points.
        let early = picked.iter().filter(|&&at| at < 6000).count();
        assert!((495..=505).contains(&early), "{early}");
        // No period in the order: remainders are spread.
        let even = picked.iter().filter(|&&at| at % 2 == 0).count();
        assert!((2300..2700).contains(&even), "{even}");
        assert!([0, 1, 3].into_iter().all(|share| pick(&points, share).len() == share));
        assert!(pick(&[], 5).is_empty());
    }

    #[test]
    fn slim_lines_keep_their_peaks() {
        let run: Vec<(f64, f64)> = (0..100_000).map(|at| (f64::from(at) / 500.0, f64::from(at % 977))).collect();
        let slimmer = slim(run.clone());
        assert!(slimmer.len() <= 1700, "{}", slimmer.len());
        assert_eq!((slimmer[0], slimmer[slimmer.len() - 1]), (run[0], run[99_999]));
        assert_eq!(slimmer.iter().map(|point| point.1).fold(0.0, f64::max), 976.0);
        assert_eq!(slim(run[..100].to_vec()), run[..100]);
    }
}
