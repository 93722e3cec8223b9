//! Kernel values that are kept in a folder.

use super::{case, explained, read, run};
use mercer::job::ExplainJob;
use mercer::prelude::Context;
use std::path::Path;

fn stores(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut found: Vec<_> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    found.sort();
    found
}

/// Values from disk give the same explanation, a kernel and its normalised form share them, and what is missing or
/// damaged is computed again.
#[test]
fn kept_values_are_used_shared_and_repaired() {
    let place = tempfile::tempdir().expect("a folder");
    let path = |name: &str| place.path().join(name);
    let scores = |name: &str| read(&path(name), "scores.npy");
    let job = |kernel: &str, keep: bool| ExplainJob {
        kernels: vec![kernel.to_owned()],
        cache: keep.then(|| path("kept")),
        ..case().job()
    };
    explained(&job("normalised(trace)", false), &path("direct"));
    explained(&job("normalised(trace)", true), &path("kept first"));
    let first = stores(&path("kept"));
    assert_eq!(first.len(), 2, "training samples with each other, and with test samples: {first:?}");
    let difference = |a: &str, b: &str| (scores(a) - scores(b)).iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    assert!(difference("direct", "kept first") < 1e-8);
    explained(&job("normalised(trace)", true), &path("kept again"));
    assert_eq!(scores("kept first"), scores("kept again"));
    explained(&job("trace", true), &path("unnormalised"));
    explained(&job("trace", false), &path("unnormalised direct"));
    assert_eq!(stores(&path("kept")), first, "the unnormalised kernel has the same stores");
    assert_eq!(scores("unnormalised"), scores("unnormalised direct"));
    // Features have a store too.
    explained(&job("ck", true), &path("features"));
    explained(&job("ck", false), &path("features direct"));
    assert_eq!(stores(&path("kept")).len(), 3);
    assert_eq!(scores("features"), scores("features direct"));
    // A lost tile.
    let tile = walk(&first[0]).into_iter().find(|file| file.file_name().is_some_and(|name| name != "zarr.json"));
    std::fs::remove_file(tile.expect("a tile")).expect("removes");
    explained(&job("normalised(trace)", true), &path("repaired"));
    assert_eq!(scores("kept first"), scores("repaired"));
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = stores(folder);
    entries.into_iter().flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

/// Planning writes nothing, and a file in the place of the folder is named.
#[test]
fn the_folder_of_kept_values_is_checked() {
    use mercer::job::{Destination, Job, Opened};
    use mercer::spec::{Inputs, Opening};
    let place = tempfile::tempdir().expect("a folder");
    let job = ExplainJob { cache: Some(place.path().join("kept")), ..case().job() };
    let (inputs, context) = (Inputs::none(), Context::new());
    let destination = Destination { dry_run: true, ..Destination::new(place.path().join("planned")) };
    let opened = job.open(&destination, Opening { inputs: &inputs, context: &context }).expect("plans");
    assert!(opened.plan().bytes > 0 && !place.path().join("kept").exists());
    std::fs::write(place.path().join("kept"), "a file").expect("writes");
    let refused = run(&job, &place.path().join("out"), &context).expect_err("refused").to_string();
    assert!(refused.contains("kept"), "{refused}");
}
