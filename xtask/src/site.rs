//! `cargo xtask site`: the documentation as a site in `target/site`.

use crate::python::{Environment, run};
use crate::{Outcome, root};

/// Builds the site. A broken link is an error.
pub(crate) fn build() -> Outcome {
    let requirements = std::fs::read_to_string(root().join("docs/requirements.txt"))?;
    let packages: Vec<&str> = requirements.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let python = Environment::new("python-site", &packages)?;
    run(python.command().current_dir(root()).args(["-m", "mkdocs", "build", "--strict"]))?;
    Ok(true)
}
