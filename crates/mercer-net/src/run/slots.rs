//! Sharing memory between values that are not alive at the same time.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// When a value is alive (first and last step, inclusive) and how large it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) first: usize,
    pub(super) last: usize,
    pub(super) size: usize,
}

/// A slot for every value (`None` for values that need none), and the size of each slot.
///
/// Greedy: each value takes the free slot that fits best. Steps are visited in order, so values that are alive at the
/// same step never share.
pub(super) fn assign(lives: &[Option<Life>]) -> (Vec<Option<usize>>, Vec<usize>) {
    let mut order: Vec<usize> = (0..lives.len()).filter(|&i| lives[i].is_some()).collect();
    order.sort_by_key(|&i| lives[i].map(|life| life.first));
    let mut slot_of = vec![None; lives.len()];
    let mut sizes: Vec<usize> = Vec::new();
    // The free slots by size, and the others by the step after which they are free.
    let mut free: BTreeSet<(usize, usize)> = BTreeSet::new();
    let mut busy: BinaryHeap<Reverse<(usize, usize)>> = BinaryHeap::new();
    for index in order {
        let Some(life) = lives[index] else { continue };
        while let Some(&Reverse((last, slot))) = busy.peek()
            && last < life.first
        {
            busy.pop();
            free.insert((sizes[slot], slot));
        }
        // The smallest slot that holds it, else the largest, which then grows; the first of equal ones.
        let fits = free.range((life.size, 0)..).next();
        let largest = || free.last().and_then(|&(size, _)| free.range((size, 0)..).next());
        let slot = match fits.or_else(largest).copied() {
            Some(found) => {
                free.remove(&found);
                found.1
            }
            None => {
                sizes.push(0);
                sizes.len() - 1
            }
        };
        sizes[slot] = sizes[slot].max(life.size);
        busy.push(Reverse((life.last, slot)));
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

    /// The same by a linear search over the slots for every value.
    fn by_search(lives: &[Option<Life>]) -> (Vec<Option<usize>>, Vec<usize>) {
        let mut order: Vec<usize> = (0..lives.len()).filter(|&i| lives[i].is_some()).collect();
        order.sort_by_key(|&i| lives[i].map(|life| life.first));
        let (mut slot_of, mut sizes, mut busy) = (vec![None; lives.len()], Vec::<usize>::new(), Vec::<usize>::new());
        for index in order {
            let Some(life) = lives[index] else { continue };
            let free = (0..sizes.len()).filter(|&slot| busy[slot] < life.first);
            let worth =
                |&slot: &usize| if sizes[slot] >= life.size { (0, sizes[slot]) } else { (1, usize::MAX - sizes[slot]) };
            let slot = free.min_by_key(worth).unwrap_or(sizes.len());
            if slot == sizes.len() {
                sizes.push(0);
                busy.push(0);
            }
            sizes[slot] = sizes[slot].max(life.size);
            busy[slot] = life.last;
            slot_of[index] = Some(slot);
        }
        (slot_of, sizes)
    }

    proptest::proptest! {
        #[test]
        fn the_choice_is_that_of_a_search(
            lives in proptest::collection::vec(proptest::option::weighted(0.9, (0usize..40, 0usize..9, 0usize..6)), 0..60),
        ) {
            let life = |(first, length, size)| Life { first, last: first + length, size };
            let lives: Vec<Option<Life>> = lives.into_iter().map(|own| own.map(life)).collect();
            proptest::prop_assert_eq!(assign(&lives), by_search(&lives));
        }
    }
}
