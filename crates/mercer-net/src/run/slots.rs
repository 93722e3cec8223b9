//! Sharing memory between values that are not alive at the same time.

/// When a value is alive (first and last step, inclusive) and how large it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) size: usize,
}

/// A slot for every value (`None` for values that need none), and the size of each slot.
///
/// First come first served, into the free slot that fits best; steps are visited in order, so values that meet at a
/// step never share.
pub(super) fn assign(lives: &[Option<Life>]) -> (Vec<Option<usize>>, Vec<usize>) {
    let mut order: Vec<usize> = (0..lives.len()).filter(|&i| lives[i].is_some()).collect();
    order.sort_by_key(|&i| lives[i].map(|life| life.first));
    let mut slot_of = vec![None; lives.len()];
    let mut sizes: Vec<usize> = Vec::new();
    let mut busy_until: Vec<usize> = Vec::new();
    for index in order {
        let Some(life) = lives[index] else { continue };
        let free = (0..sizes.len()).filter(|&s| busy_until[s] < life.first);
        // The smallest that holds it, else the largest, which then grows.
        let best = free.min_by_key(|&s| if sizes[s] >= life.size { (0, sizes[s]) } else { (1, usize::MAX - sizes[s]) });
        let slot = best.unwrap_or_else(|| {
            sizes.push(0);
            busy_until.push(0);
            sizes.len() - 1
        });
        sizes[slot] = sizes[slot].max(life.size);
        busy_until[slot] = life.last;
        slot_of[index] = Some(slot);
    }
    (slot_of, sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_meet_never_share_and_a_chain_needs_two() {
        let chain: Vec<_> = (0..10).map(|i| Some(Life { first: i, last: i + 1, size: 4 })).collect();
        let (slot_of, sizes) = assign(&chain);
        assert_eq!(sizes, [4, 4]);
        for pair in slot_of.windows(2) {
            assert_ne!(pair[0], pair[1]);
        }
    }
}
