//! Memory: which layers are held at once, and how many are worked on side by side.

use crate::Error;
use crate::text::{bytes as shown, suggested};
use mercer_run::{Context, resident_memory};

/// Code, stacks and small arrays that are touched for the first time.
const REST: usize = 32 << 20;

/// Columns that are converted to double precision at a time.
const STRIP: usize = 512;

/// The layers of each forward pass, and how many of them are worked on side by side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Groups {
    pub(super) passes: Vec<Vec<usize>>,
    pub(super) side_by_side: usize,
    /// Peak memory.
    pub(super) bytes: usize,
}

/// Sizes that memory depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub(super) n_train: usize,
    pub(super) n_test: usize,
    /// Bytes of a number of the network.
    pub(super) element: usize,
    /// Bytes that are held throughout: matrices of pairs, passes of the network.
    pub(super) fixed: usize,
    pub(super) threads: usize,
}

impl Sizes {
    /// The activations of a layer.
    fn held(&self, width: usize) -> usize {
        (self.n_train + self.n_test).saturating_mul(width).saturating_mul(self.element)
    }

    /// The work on a layer: products and their decomposition, coordinates, the Gram matrix of support vector machines.
    fn work(&self, width: usize) -> usize {
        let (n, side) = (self.n_train, self.n_train.min(width));
        let square = |a: usize, b: usize| a.saturating_mul(b);
        let decomposed = square(side, side).saturating_mul(6);
        let coordinates = square(n, side).saturating_mul(2).saturating_add(square(self.n_test, side));
        let trained = square(n, n).saturating_add(square(256, n)).saturating_add(square(self.n_test, n));
        let strips = square(n.saturating_add(self.n_test), STRIP.min(width)).saturating_mul(2);
        decomposed.max(trained).saturating_add(coordinates).saturating_add(strips).saturating_mul(size_of::<f64>())
    }

    /// Packs layers into as few passes as fit.
    pub(super) fn groups(&self, names: &[String], widths: &[usize], context: &Context) -> Result<Groups, Error> {
        let base = resident_memory().saturating_add(REST).saturating_add(self.fixed);
        // Without a promise, what the process holds already is no part of what is free.
        let allowed = context.promised_memory().unwrap_or_else(|| context.memory().saturating_add(resident_memory()));
        let most_work = widths.iter().map(|&width| self.work(width)).max().unwrap_or(0);
        let alone = |&width: &usize| base.saturating_add(self.held(width)).saturating_add(most_work);
        if let Some((at, needed)) = widths.iter().map(alone).enumerate().max_by_key(|(_, needed)| *needed)
            && needed > allowed
        {
            let text = format!(
                "layer {} of {} numbers needs about {} for {} samples, but {} may be used",
                names[at],
                widths[at],
                shown(needed),
                self.n_train + self.n_test,
                shown(allowed)
            );
            let hint = format!("‹memory› {}; or fewer samples; or other layers with ‹layer›", suggested(needed));
            return Err(Error::with_code("memory", text).hint(hint));
        }
        // First all layers in one pass, then as many side by side as fit.
        let room = |side: usize| allowed.saturating_sub(base).saturating_sub(most_work.saturating_mul(side));
        let total = widths.iter().map(|&width| self.held(width)).fold(0, usize::saturating_add);
        let side_by_side =
            (1..=self.threads.max(1)).rev().find(|&side| room(side) >= total).unwrap_or(1).min(widths.len().max(1));
        let mut passes: Vec<Vec<usize>> = Vec::new();
        let mut held = 0_usize;
        let mut most_held = 0;
        for (at, &width) in widths.iter().enumerate() {
            let own = self.held(width);
            match passes.last_mut() {
                Some(pass) if held.saturating_add(own) <= room(side_by_side) => pass.push(at),
                _ => {
                    passes.push(vec![at]);
                    held = 0;
                }
            }
            held = held.saturating_add(own);
            most_held = most_held.max(held);
        }
        let bytes = base.saturating_add(most_held).saturating_add(most_work.saturating_mul(side_by_side));
        Ok(Groups { passes, side_by_side, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Large, so that what the test itself holds does not matter.
    fn sizes() -> Sizes {
        Sizes { n_train: 20_000, n_test: 10_000, element: 4, fixed: 0, threads: 2 }
    }

    #[test]
    fn layers_share_a_pass_if_they_fit() {
        let names: Vec<String> = (0..3).map(|at| at.to_string()).collect();
        let widths = [100_000, 200_000, 100_000];
        let (work, held) = (sizes().work(200_000), sizes().held(200_000));
        let plenty = Context::new().with_memory(1 << 45);
        let groups = sizes().groups(&names, &widths, &plenty).unwrap();
        assert_eq!((groups.passes, groups.side_by_side), (vec![vec![0, 1, 2]], 2));
        // Room for the largest layer alone.
        let allowed = work + held + (1 << 30);
        let groups = sizes().groups(&names, &widths, &Context::new().with_memory(allowed)).unwrap();
        assert_eq!((groups.passes, groups.side_by_side), (vec![vec![0], vec![1], vec![2]], 1));
        assert!(groups.bytes <= allowed, "{} {allowed}", groups.bytes);
        // Room for all layers, one at a time.
        let allowed = work + 2 * held + (1 << 30);
        let groups = sizes().groups(&names, &widths, &Context::new().with_memory(allowed)).unwrap();
        assert_eq!((groups.passes, groups.side_by_side), (vec![vec![0, 1, 2]], 1));
        let none = Context::new().with_memory(1 << 20);
        let error = sizes().groups(&names, &widths, &none).unwrap_err();
        assert!(error.to_string().contains("layer 1"), "{error}");
    }
}
