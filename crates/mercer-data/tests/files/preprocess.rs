use mercer_data::{Dataset, Preprocess, Result, Step};
use ndarray::{Array, ArrayD, Axis, IxDyn, s};
use proptest::prelude::*;

use crate::{fails, fixture, open};

fn images(shape: &[usize]) -> ArrayD<f32> {
    let n_values: usize = shape.iter().product();
    Array::from_iter((0..n_values).map(|value| value as f32)).into_shape_with_order(IxDyn(shape)).unwrap()
}

#[test]
fn layouts_are_those_of_transpose() {
    let nhwc = images(&[2, 4, 5, 3]);
    let nchw = Preprocess::new().channels_first().apply(nhwc.clone()).unwrap();
    assert_eq!(nchw, nhwc.view().permuted_axes(IxDyn(&[0, 3, 1, 2])));
    assert!(nchw.is_standard_layout());
    assert_eq!(Preprocess::new().channels_last().apply(nchw).unwrap(), nhwc);
    assert_eq!(Preprocess::new().add_channel().apply(images(&[2, 4, 5])).unwrap().shape(), [2, 1, 4, 5]);
}

#[test]
fn per_channel_statistics() {
    let (mean, std) = (vec![1.0, 2.0, 3.0], vec![2.0, 4.0, 8.0]);
    let array = images(&[2, 3, 2, 2]);
    let done = Preprocess::new().normalise(mean.clone(), std.clone()).apply(array.clone()).unwrap();
    for channel in 0..3 {
        let expected = array.slice(s![.., channel, .., ..]).mapv(|v| (v - mean[channel] as f32) / std[channel] as f32);
        assert_eq!(done.index_axis(Axis(1), channel), expected.into_dyn());
    }
    let last = Step::Normalise { mean: vec![5.0], std, axis: 2 };
    assert!(Preprocess::new().then(last).sample_shape(&[2, 2, 3]).is_ok());
}

#[test]
fn scaling_bytes_is_division() {
    let bytes = Array::from_iter((0..=255).map(|value| value as f32)).into_dyn();
    let scaled = Preprocess::new().scale(1.0 / 255.0).apply(bytes.clone()).unwrap();
    assert_eq!(scaled, bytes.mapv(|value| value / 255.0));
}

#[test]
fn through_a_data_set() -> Result<()> {
    let steps = Preprocess::new().reshape(&[2, 3]).add_channel().scale(0.5);
    let dataset = open(&fixture("u1.npy"), None)?.with_preprocess(steps.clone())?;
    assert_eq!((dataset.shape(), dataset.stored_shape()), (&[4, 1, 2, 3][..], &[4, 3, 2][..]));
    assert_eq!(dataset.preprocess(), &steps);
    assert_eq!(dataset.rows::<f32>(1..2)?[[0, 0, 1, 2]], 11.0 * 0.5);
    Ok(())
}

#[test]
fn misfits_are_explained() {
    let shape = |steps: Preprocess| steps.sample_shape(&[4, 5]);
    fails(shape(Preprocess::new().reshape(&[3, 7])), &["[4, 5]", "number of elements"]);
    fails(shape(Preprocess::new().reshape(&[usize::MAX, 2])), &["too large"]);
    fails(shape(Preprocess::new().flatten().channels_first()), &["two or more axes"]);
    fails(shape(Preprocess::new().normalise(vec![0.0; 3], vec![1.0; 3])), &["3 means", "axis 0"]);
    fails(shape(Preprocess::new().normalise(vec![], vec![])), &["0 means"]);
    fails(shape(Preprocess::new().normalise(vec![0.0], vec![0.0])), &["std", "positive"]);
    fails(shape(Preprocess::new().normalise(vec![f64::NAN], vec![1.0])), &["mean"]);
    fails(shape(Preprocess::new().scale(f64::INFINITY)), &["scale"]);
    fails(Preprocess::new().apply(ArrayD::<f32>::zeros(IxDyn(&[]))), &["axis of samples"]);
    let scaled = open(&fixture("le-f4.npy"), None).unwrap().with_preprocess(Preprocess::new().scale(1e38)).unwrap();
    fails(scaled.read::<f32>(), &["sample 0", "after preprocessing", "[2, 0]"]);
    fails(
        Dataset::from_array("a", ndarray::array![1.0].into_dyn().view())
            .unwrap()
            .with_preprocess(Preprocess::new().channels_last()),
        &["two or more axes"],
    );
}

#[test]
fn stored_as_json() {
    let steps =
        Preprocess::new().scale(0.25).channels_first().normalise(vec![0.5], vec![2.0]).reshape(&[1, 2]).flatten();
    let json = serde_json::to_string(&steps).unwrap();
    let expected = concat!(
        r#"[{"scale":0.25},"channels_first",{"normalise":{"mean":[0.5],"std":[2.0],"axis":0}},"#,
        r#"{"reshape":[1,2]},"flatten"]"#
    );
    assert_eq!(json, expected);
    assert_eq!(serde_json::from_str::<Preprocess>(&json).unwrap(), steps);
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<f64>().prop_map(Step::Scale),
        (prop::collection::vec(any::<f64>(), 0..4), prop::collection::vec(any::<f64>(), 0..4), 0..5_usize)
            .prop_map(|(mean, std, axis)| Step::Normalise { mean, std, axis }),
        Just(Step::ChannelsFirst),
        Just(Step::ChannelsLast),
        Just(Step::AddChannel),
        Just(Step::Flatten),
        prop::collection::vec(prop_oneof![0..5_usize, Just(usize::MAX)], 0..4).prop_map(Step::Reshape),
    ]
}

proptest! {
    #[test]
    fn the_promised_shape_is_the_one_we_get(
        steps in prop::collection::vec(step(), 0..6),
        sample in prop::collection::vec(0..4_usize, 0..4),
    ) {
        let steps = Preprocess { steps };
        let whole: Vec<usize> = std::iter::once(2).chain(sample.iter().copied()).collect();
        match (steps.sample_shape(&sample), steps.apply(images(&whole))) {
            (Ok(shape), Ok(array)) => prop_assert_eq!(&array.shape()[1..], &shape[..]),
            (Err(_), Err(_)) => {}
            (promised, got) => prop_assert!(false, "{:?} but {:?}", promised, got),
        }
    }
}
