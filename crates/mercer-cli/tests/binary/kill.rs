//! A run that is killed at any moment goes on where it was, and ends with the same bits.

use crate::folder::{Folder, sound};
use ndarray::Array2;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// All chunks of a store, by name.
fn chunks(folder: &Folder, store: &str) -> Vec<(String, Vec<u8>)> {
    let root = folder.path(store).join("kernel/c");
    let mut found = Vec::new();
    for row in std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap()) {
        for chunk in std::fs::read_dir(row.path()).unwrap().map(|entry| entry.unwrap()) {
            let name = format!("{}/{}", row.file_name().display(), chunk.file_name().display());
            found.push((name, std::fs::read(chunk.path()).unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn killed_twenty_times() {
    const KILLS: u32 = 20;
    let folder = Folder::with(&["mlp.onnx"]);
    let x = Array2::from_shape_fn((2600, 4), |(i, j)| ((i * 37 + j * 11) % 211) as f32 / 100.0 - 1.0);
    folder.write_array("many.npy", x.view());
    let line = "kernel --net mlp.onnx --data many.npy --kernel trace --precision f64";
    let start = Instant::now();
    folder.succeed(&format!("{line} -o whole.zarr"));
    let whole_time = start.elapsed();
    let expected = chunks(&folder, "whole.zarr");

    let arguments = format!("{line} -o killed.zarr --resume -q");
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let (mut killed, mut finished) = (0, 0);
    // Moments spread over the whole run by the golden section, so that the test is the same every time.
    for kill in 1..=KILLS {
        let moment = whole_time.mul_f64((f64::from(kill) * 0.618_033_988_75).fract() * 0.9);
        let mut child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment.max(Duration::from_millis(1)));
        // SIGKILL on Unix.
        let _ = child.kill();
        if sound(child.wait().unwrap()).success() {
            // It was faster: begin again.
            assert_eq!(chunks(&folder, "killed.zarr"), expected);
            std::fs::remove_dir_all(folder.path("killed.zarr")).unwrap();
            finished += 1;
        } else {
            killed += 1;
        }
    }
    assert!(killed >= KILLS / 2, "killed {killed} times, finished {finished} times");
    folder.succeed(&arguments.join(" "));
    assert_eq!(chunks(&folder, "killed.zarr"), expected);
    // A process that is killed in the moment it makes the store leaves an empty one under a temporary name, and nothing else.
    for name in folder.files().into_iter().filter(|name| name.contains("part")) {
        let path = folder.path(&name);
        assert!(path.is_dir() && !path.join("kernel/c").exists(), "{name} of {:?}", folder.files());
    }
    assert_eq!(folder.run("info killed.zarr").code, Some(0));
}

/// What a run of `mercer eigen` leaves behind, byte by byte.
fn functions(folder: &Folder, name: &str) -> Vec<Vec<u8>> {
    let files = ["values.npy", "psi_data.npy", "values_before.npy"];
    let files = files.iter().map(|file| std::fs::read(folder.path(name).join(file)).unwrap());
    files.chain(["values", "weights", "functions"].map(|object| folder.object(name, object))).collect()
}

/// Learning that is killed goes on from its last state, and ends with the same bits.
#[test]
fn learning_is_killed() {
    let folder = Folder::with(&[]);
    let x = Array2::from_shape_fn((90, 1), |(i, _)| (i * 37 % 90) as f64 / 45.0 - 1.0);
    folder.write_array("x.npy", x.view());
    for method in ["neuralef", "shared", "spin"] {
        let line = format!(
            "eigen {method} --kernel rbf() --data x.npy -k 3 --iterations 1500 --batch 64 --checkpoint 25 -q -o"
        );
        folder.succeed(&format!("{line} whole-{method}"));
        let arguments = format!("{line} killed-{method} --resume");
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let state = folder.path(&format!("killed-{method}")).join("state.safetensors");
        for kill in 0..3 {
            let stored = std::fs::read(&state).ok();
            let mut child = folder.command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            let start = Instant::now();
            // As soon as it has got further than before, at another moment each time.
            while std::fs::read(&state).ok() == stored && start.elapsed() < Duration::from_secs(60) {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(7 * kill));
            let _ = child.kill();
            assert!(!sound(child.wait().unwrap()).success(), "{method}: there was nothing left to kill");
        }
        folder.succeed(&arguments.join(" "));
        let same = functions(&folder, &format!("killed-{method}")) == functions(&folder, &format!("whole-{method}"));
        assert!(same, "{method}: the functions differ");
    }
    // SpIN works in double precision, and says so.
    assert_eq!(folder.json("info whole-spin")["description"]["precision"], "f64");
    assert_eq!(folder.json("info whole-neuralef")["description"]["precision"], "f32");
}
