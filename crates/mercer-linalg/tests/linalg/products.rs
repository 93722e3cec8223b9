use crate::references::{distance, product, random, wide};
use mercer_linalg::{matmul, matmul_into, syrk, syrk_into};
use ndarray::{Array2, s};
use proptest::prelude::*;

proptest! {
    /// Entries are below one, so an inner product of k terms carries at most k ε of rounding, plus one for the result.
    #[test]
    fn products_match_three_loops(m in 0usize..24, k in 0usize..40, n in 0usize..24, seed: u64) {
        let (a, b) = (random::<f64>(m, k, seed), random::<f64>(k, n, !seed));
        let tolerance = (k + 1) as f64 * f64::EPSILON * 2.0;
        prop_assert!(distance(&matmul(a.view(), b.view()), &product(a.view(), b.view())) <= tolerance);
        let (a, b) = (random::<f32>(m, k, seed), random::<f32>(k, n, !seed));
        let tolerance = (k + 1) as f64 * f32::EPSILON as f64 * 2.0;
        prop_assert!(distance(&wide(matmul(a.view(), b.view()).view()), &product(a.view(), b.view())) <= tolerance);
    }

    #[test]
    fn symmetric_products_match_three_loops(n in 0usize..70, k in 0usize..20, seed: u64) {
        let a = random::<f64>(n, k, seed);
        let c = syrk(a.view());
        prop_assert!(distance(&c, &product(a.view(), a.t())) <= (k + 1) as f64 * f64::EPSILON * 2.0);
        prop_assert_eq!(&c, &c.t());
    }
}

#[test]
fn views_may_be_transposed_reversed_and_strided() {
    let a = random::<f64>(9, 12, 1);
    let (x, y) = (a.slice(s![..;2, ..;-3]), a.slice(s![1..5, ..]));
    let mut c = Array2::zeros((4, 10));
    matmul_into(2.0, y.slice(s![.., ..4]), x.slice(s![..4, ..]), false, c.slice_mut(s![.., ..;3]));
    let expected = product(y.slice(s![.., ..4]), x.slice(s![..4, ..])) * 2.0;
    assert!(distance(&c.slice(s![.., ..;3]).to_owned(), &expected) <= 1e-14);
    assert!(c.column(1).iter().all(|v| *v == 0.0), "the columns between are untouched");
}

#[test]
fn symmetric_products_of_several_strips_are_symmetric_to_the_last_bit() {
    let a = random::<f32>(600, 33, 5);
    let c = syrk(a.view());
    assert_eq!(c, c.t());
    assert!(distance(&wide(c.view()), &product(a.view(), a.t())) <= 34.0 * f32::EPSILON as f64);
}

#[test]
fn a_symmetric_update_adds() {
    let (a, b) = (random::<f64>(300, 4, 2), random::<f64>(300, 3, 3));
    let mut c = syrk(a.view());
    syrk_into(-0.5, b.view(), true, c.view_mut());
    assert!(distance(&c, &(product(a.view(), a.t()) - 0.5 * product(b.view(), b.t()))) <= 1e-14);
}
