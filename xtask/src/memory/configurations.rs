//! What is computed, and from what.

use super::Error;
use std::path::Path;

/// A command: a name for the table, what is computed, the place of the result and the number of threads.
pub(super) struct Configuration {
    pub(super) name: &'static str,
    pub(super) arguments: &'static str,
    pub(super) output: &'static str,
    pub(super) threads: &'static str,
}

const FILE: &str = "out.npy";
const STORE: &str = "out.zarr";

const fn on(threads: &'static str, name: &'static str, arguments: &'static str, output: &'static str) -> Configuration {
    Configuration { name, arguments, output, threads }
}

/// On two threads.
const fn two(name: &'static str, arguments: &'static str, output: &'static str) -> Configuration {
    on("2", name, arguments, output)
}

/// All kinds of kernels, results and precisions.
pub(super) const ALL: &[Configuration] = &[
    two("rbf, 12,000 points", "--kernel rbf(lengthscale=2) --data points.npy", FILE),
    two("rbf, store", "--kernel rbf(lengthscale=2) --data points.npy", STORE),
    on("1", "rbf, one thread", "--kernel rbf(lengthscale=2) --data points.npy", FILE),
    two("Matérn 5/2, f64", "--kernel matern52(lengthscale=2) --data fewer.npy --precision f64", FILE),
    two("polynomial + rbf, store", "--kernel polynomial(degree=3)+rbf() --data fewer.npy", STORE),
    two("Laplacian", "--kernel laplacian() --data vectors.npy", FILE),
    two("linear, large data, some tiles", "--kernel linear() --data large.npy --tiles 0..20", STORE),
    two("trace, MLP", "--arch mlp.toml --data vectors.npy --kernel trace", FILE),
    on("1", "trace, MLP, one thread", "--arch mlp.toml --data vectors.npy --kernel trace", FILE),
    two("trace, MLP, f64 store", "--arch mlp.toml --data vectors.npy --kernel trace --precision f64", STORE),
    two("trace, MLP, by layer", "--arch mlp.toml --data vectors.npy --kernel trace --by-layer", STORE),
    two("trace, MLP, normalised", "--arch mlp.toml --data vectors.npy --kernel normalised(trace)", FILE),
    two("pseudo, MLP, against others", "--arch mlp.toml --data vectors.npy --against few.npy --kernel pseudo", FILE),
    two("full, MLP, f64 store", "--arch mlp.toml --data few.npy --kernel full --precision f64", STORE),
    two("trace, CNN", "--arch cnn.toml --data images.npy --kernel trace", FILE),
    two("trace, CNN, f64 store", "--arch cnn.toml --data images.npy --kernel trace --precision f64", STORE),
    on("1", "trace, CNN, by layer", "--arch cnn.toml --data images.npy --kernel trace --by-layer", FILE),
    two("logit, CNN", "--arch cnn.toml --data images.npy --kernel logit(3)", FILE),
    on("1", "pseudo, CNN", "--arch cnn.toml --data images.npy --kernel pseudo", FILE),
    two("ck, MLP", "--arch mlp.toml --data vectors.npy --kernel ck", FILE),
    two(
        "embedding, CNN",
        "--arch cnn.toml --data images.npy --kernel embedding(nodes=['layer1/relu','layer2/relu'])",
        FILE,
    ),
    two("sjlt", "--arch mlp.toml --data few.npy --kernel trace(sketch=sjlt:512)", FILE),
    two("sjlt, features", "--arch mlp.toml --data vectors.npy --kernel trace(sketch=sjlt:512) --as-features", STORE),
    two("srht, features", "--arch cnn.toml --data images.npy --kernel trace(sketch=srht:512) --as-features", FILE),
    two("gaussian, features", "--arch mlp.toml --data few.npy --kernel pseudo(sketch=gaussian:64) --as-features", FILE),
    two("khatri-rao", "--arch mlp.toml --data few.npy --kernel trace(sketch=khatri-rao:512)", FILE),
    on(
        "1",
        "khatri-rao, features",
        "--arch cnn.toml --data images.npy --kernel pseudo(sketch=khatri-rao:512) --as-features",
        FILE,
    ),
    two("nngp, MLP", "--arch mlp.toml --data vectors.npy --kernel nngp", FILE),
    two("ntk-limit, MLP, f64 store", "--arch mlp.toml --data vectors.npy --kernel ntk-limit --precision f64", STORE),
    two("ntk-limit, CNN with a pool", "--arch pool.toml --data small.npy --kernel ntk-limit", FILE),
    two("nngp-mc, 20 networks", "--arch mlp.toml --data few.npy --kernel nngp-mc(networks=20)", FILE),
    two("nngp-mc, 60 networks, store", "--arch mlp.toml --data vectors.npy --kernel nngp-mc(networks=60)", STORE),
    two("nngp-mc, 300 wide networks", "--arch wide.toml --data tiny.npy --kernel nngp-mc(networks=300)", FILE),
    two("nngp-mc, features", "--arch mlp.toml --data vectors.npy --kernel nngp-mc(networks=100) --as-features", FILE),
    two("ntk-mc, 4 networks", "--arch mlp.toml --data few.npy --kernel ntk-mc(networks=4)", FILE),
    two("ntk-mc, 24 networks", "--arch mlp.toml --data few.npy --kernel ntk-mc(networks=24)", FILE),
    two("ntk-mc, CNN, normalised", "--arch cnn.toml --data images.npy --kernel normalised(ntk-mc(networks=6))", FILE),
];

/// Names and shapes of data.
const DATA: [(&str, &[usize]); 8] = [
    ("points.npy", &[12_000, 16]),
    ("fewer.npy", &[5_000, 16]),
    ("large.npy", &[40_000, 256]),
    ("vectors.npy", &[3_000, 64]),
    ("few.npy", &[600, 64]),
    ("tiny.npy", &[520, 8]),
    ("images.npy", &[400, 3, 16, 16]),
    ("small.npy", &[200, 1, 8, 8]),
];

const NETWORKS: [(&str, &str); 4] = [
    ("mlp.toml", "[mlp]\ninputs = [64]\nwidths = [256, 256]\noutputs = 10\n"),
    ("wide.toml", "[mlp]\ninputs = [8]\nwidths = [64]\noutputs = 2000\n"),
    (
        "cnn.toml",
        "[cnn]\ninputs = [3, 16, 16]\noutputs = 10\nlayers = [{ conv = { channels = 16, kernel = 3 } }, \
         { conv = { channels = 32, kernel = 3 } }, { max-pool = { size = 2 } }]\n",
    ),
    (
        "pool.toml",
        "[cnn]\ninputs = [1, 8, 8]\noutputs = 10\nlayers = [{ conv = { channels = 16, kernel = 3 } }, \
         { global-average-pool = {} }]\n",
    ),
];

/// Writes data and networks into a folder.
pub(super) fn make_inputs(folder: &Path) -> Result<(), Error> {
    for (name, shape) in DATA {
        let mut state = 1u32;
        let next = || {
            // Any numbers between −1 and 1 do.
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            f64::from(state) as f32 / 2_147_483_648.0 - 1.0
        };
        let numbers = std::iter::repeat_with(next).take(shape.iter().product()).flat_map(f32::to_le_bytes);
        std::fs::write(folder.join(name), npy_header(shape).into_iter().chain(numbers).collect::<Vec<u8>>())?;
    }
    for (name, text) in NETWORKS {
        std::fs::write(folder.join(name), text)?;
    }
    Ok(())
}

/// What a `.npy` file of single precision begins with.
fn npy_header(shape: &[usize]) -> Vec<u8> {
    let sizes: String = shape.iter().map(|size| format!("{size}, ")).collect();
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({sizes}), }}");
    // Before the text ten bytes; numbers begin at a multiple of 64.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut header = b"\x93NUMPY\x01\x00".to_vec();
    header.extend((length as u16).to_le_bytes());
    header.extend(format!("{text:<0$}\n", length - 1).bytes());
    header
}
