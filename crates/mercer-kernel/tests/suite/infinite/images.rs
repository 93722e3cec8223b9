//! Convolutions and pools against the recursion written down plainly.

use super::reference::{Plain, relu};
use super::{both, grams, normal, worst};
use mercer_kernel::infinite::{LimitActivation, LimitNet, Patch, Scales};

/// Two convolutions with a pool between them if there is one, then a flatten or a global pool, for images of this side.
fn check(side: usize, patches: [Patch; 2], pool: Option<Patch>, global: bool) {
    let (w, b) = (1.3, 0.2);
    let mut net = LimitNet::new();
    let mut x = net.image([side, side], 2);
    for (at, patch) in patches.into_iter().enumerate() {
        x = net.conv("conv", x, Scales::ntk(w, b), patch).unwrap();
        x = net.activation("relu", x, LimitActivation::relu()).unwrap();
        if let (0, Some(pool)) = (at, pool) {
            x = net.average_pool("pool", x, pool, true).unwrap();
        }
    }
    let x = if global { net.global_average_pool("head", x) } else { net.flatten("head", x) };
    net.set_output(x);
    let size = 2 * side * side;
    let (left, right) = (normal(1, 2 * size), normal(2, 3 * size));
    let (nngp, ntk) = both(&net, (&left, 2), (&right, 3));
    for pair in 0..6 {
        let (i, j) = (pair / 3, pair % 3);
        let mut plain = Plain::new(&left[i * size..(i + 1) * size], &right[j * size..(j + 1) * size], 2, side);
        for (at, patch) in patches.iter().enumerate() {
            plain = plain.conv(patch, w, b).activation(relu);
            if let (0, Some(pool)) = (at, &pool) {
                plain = plain.pool(pool);
            }
        }
        let (k, theta) = if global { plain.global() } else { plain.flat() };
        // The plain recursion loses half the digits where a correlation is one: between equal patches of padding.
        assert!((nngp[pair] / k - 1.0).abs() < 1e-12, "{patches:?} {pool:?} {global}: {} {k}", nngp[pair]);
        assert!((ntk[pair] / theta - 1.0).abs() < 1e-8, "{patches:?} {pool:?} {global}: {} {theta}", ntk[pair]);
    }
}

#[test]
fn strides_paddings_and_pools() {
    let (same, valid, small) = (Patch::same([3, 3]), Patch::valid([3, 3]), Patch::valid([2, 2]));
    for global in [false, true] {
        check(5, [same, same], None, global);
        check(6, [valid, same], None, global);
        check(7, [same.stride([2, 2]), same], None, global);
        check(6, [same.stride([2, 2]), valid], None, global);
        check(5, [same.circular(), same.circular()], None, global);
        check(6, [same.circular().stride([2, 2]), same.circular()], None, global);
        check(5, [same.circular(), same], None, global);
        check(6, [same, same], Some(small.stride([2, 2])), global);
        check(6, [same, valid], Some(Patch { before: [1, 1], ..Patch::valid([3, 3]).stride([2, 2]) }), global);
        check(5, [same, same], Some(small.circular()), global);
    }
}

#[test]
fn rows_and_columns_are_not_mixed_up() {
    // A 1 × 3 patch on images of one row is a 3 × 1 patch on images of one column.
    let build = |space, size, pad| {
        let mut net = LimitNet::new();
        let x = net.image(space, 1);
        let patch = Patch { before: pad, ..Patch::valid(size) };
        let x = net.conv("conv", x, Scales::ntk(1.0, 0.3), patch).unwrap();
        let x = net.activation("relu", x, LimitActivation::relu()).unwrap();
        net.global_average_pool("pool", x);
        net
    };
    let (x, y) = (normal(3, 14), normal(4, 14));
    let row = both(&build([1, 7], [1, 3], [0, 1]), (&x, 2), (&y, 2));
    let column = both(&build([7, 1], [3, 1], [1, 0]), (&x, 2), (&y, 2));
    row.0.iter().zip(&column.0).chain(row.1.iter().zip(&column.1)).for_each(|(a, b)| {
        assert!((a / b - 1.0).abs() < 1e-14, "{a} {b}");
    });
}

/// Pools that leave out padding divide by the points that count: of a constant image they keep the constant.
#[test]
fn padding_that_does_not_count() {
    let patch = Patch { before: [1, 1], after: [1, 1], ..Patch::valid([3, 3]).stride([2, 2]) };
    let value = |count_padding: bool| {
        let mut net = LimitNet::new();
        let x = net.image([5, 5], 1);
        let x = net.conv("conv", x, Scales::ntk(1.0, 0.0), Patch::valid([1, 1])).unwrap();
        let x = net.average_pool("pool", x, patch, count_padding).unwrap();
        net.flatten("flatten", x);
        both::<f64>(&net, (&[2.0; 25], 1), (&[3.0; 25], 1)).0[0]
    };
    assert!((value(false) - 6.0).abs() < 1e-13);
    // Nine windows: four with 4 of 9 points inside, four with 6, one with 9.
    let shares: f64 = (4.0 * 16.0 + 4.0 * 36.0 + 81.0) / (9.0 * 81.0);
    assert!((value(true) - 6.0 * shares).abs() < 1e-13);
}

/// Ten layers in single precision, with flat regions (many correlations are one) and a global pool.
#[test]
fn deep_images_in_single_precision() {
    let mut net = LimitNet::new();
    let mut x = net.image([8, 8], 1);
    for _ in 0..10 {
        x = net.conv("conv", x, Scales::ntk(2.0f64.sqrt(), 0.1), Patch::same([3, 3])).unwrap();
        x = net.activation("relu", x, LimitActivation::relu()).unwrap();
    }
    net.global_average_pool("pool", x);
    let mut images = normal(9, 4 * 64);
    images[64..128].fill(0.0);
    images[128..160].fill(0.7);
    let single: Vec<f32> = images.iter().map(|&x| x as f32).collect();
    let exact: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
    let ((k, theta), (k_single, theta_single)) = (grams(&net, &exact, 4), grams(&net, &single, 4));
    assert!(worst(&k_single, &k) < 1e-5 && worst(&theta_single, &theta) < 1e-5);
}
