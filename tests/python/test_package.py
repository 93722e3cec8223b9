"""The package `mercer`: values, arrays, threads and processes, errors."""

import doctest
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("mercer._mercer", reason="the extension module is not built")

import mercer as mc  # noqa: E402

BINARY = os.environ.get("MERCER_BINARY")
ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "crates/mercer-cli/tests/fixtures"

needs_binary = pytest.mark.skipif(not BINARY, reason="MERCER_BINARY names no binary")


def command(folder, *arguments):
    done = subprocess.run([BINARY, *map(str, arguments)], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def mlp():
    return mc.Network(FIXTURES / "mlp.onnx")


@pytest.fixture
def x():
    return np.load(FIXTURES / "mlp.x.npy")


def moons(n=60, seed=0):
    generator = np.random.default_rng(seed)
    angle, side = generator.uniform(0, np.pi, n), np.arange(n) % 2
    points = np.stack([np.cos(angle) * (1 - 2 * side) + side, np.sin(angle) * (1 - 2 * side) + side / 2], axis=1)
    return points + 0.1 * generator.normal(size=(n, 2)), side


# ---- values


@needs_binary
@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("name, data", [("mlp", "mlp.x"), ("cnn", "cnn.image"), ("tokens", "tokens.ids")])
@pytest.mark.parametrize("kernel", ["trace", "pseudo", "full", "ck", "normalised(trace)", "trace(sketch=sjlt:64)"])
def test_kernels_have_the_bits_of_the_command(tmp_path, name, data, kernel, precision):
    net, array = mc.Network(FIXTURES / f"{name}.onnx"), np.load(FIXTURES / f"{data}.npy")
    shared = ["--net", FIXTURES / f"{name}.onnx", "--data", FIXTURES / f"{data}.npy", "--kernel", kernel]
    done = subprocess.run(
        [BINARY, "kernel", *map(str, shared), "--precision", precision, "-o", tmp_path / "k.npy", "-q"],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        with pytest.raises(mc.Error):
            mc.kernel(kernel, array, net=net, precision=precision)
        return
    ours = mc.kernel(kernel, array, net=net, precision=precision)
    theirs = np.load(tmp_path / "k.npy")
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert ours.tobytes() == theirs.tobytes()
    gram = mc.gram(kernel, array, net=net, precision=precision, out=tmp_path / "g.npy")
    assert gram.tobytes() == theirs.tobytes()


@needs_binary
def test_jobs_have_the_bits_of_the_command(tmp_path, x):
    labels = np.load(FIXTURES / "mlp.labels.npy")
    net = FIXTURES / "mlp.onnx"
    data = ["--data", FIXTURES / "mlp.x.npy"]
    command(tmp_path, "eigen", "nystrom", "--kernel", "trace", "--net", net, *data, "-k", 3, "--landmarks", 4, "-o", "e")
    outcome = mc.eigen.nystrom(kernel="trace", net=mc.Network(net), data=x, components=3, landmarks=4)
    assert outcome.psi_data.tobytes() == np.load(tmp_path / "e/psi_data.npy").tobytes()

    labelled = [*data, "--labels", FIXTURES / "mlp.labels.npy"]
    command(tmp_path, "fit", "svm", "--kernel", "trace", "--net", net, *labelled, "-o", "m")
    command(tmp_path, "predict", "--from", "m", *data, "-o", "p.npy")
    fitted = mc.fit("svm", kernel="trace", net=mc.Network(net), data=x, labels=labels)
    predicted = mc.predict(from_=fitted, data=x)
    assert predicted.predictions.tobytes() == np.load(tmp_path / "p.npy").tobytes()

    command(tmp_path, "uncertainty", "--net", net, *labelled, "--test", FIXTURES / "mlp.x.npy", "-o", "u")
    uncertain = mc.uncertainty(net=mc.Network(net), data=x, labels=labels, test=x)
    assert uncertain.probabilities.tobytes() == np.load(tmp_path / "u/probabilities.npy").tobytes()


def test_networks(mlp, x, tmp_path):
    expected = np.load(FIXTURES / "mlp.expected.npy")
    np.testing.assert_allclose(mlp(x), expected, rtol=1e-5, atol=1e-6)
    assert mlp(x.astype(np.float64)).dtype == np.float64
    assert mlp.inputs and mlp.outputs and mlp.n_params == sum(np.prod(each.shape) for each in mlp.parameters)
    nodes = [layer.output for layer in mlp.layers]
    values = mlp.activations(x, nodes)
    assert list(values) == nodes and all(len(value) == len(x) for value in values.values())
    for text in ("mlp.onnx", "parameters", mlp.inputs[0]):
        assert text in repr(mlp)
    again = pickle.loads(pickle.dumps(mlp))
    assert again(x).tobytes() == mlp(x).tobytes()
    assert pickle.loads(pickle.dumps(mc.Kernel("trace", mlp)))(x).tobytes() == mc.ntk(mlp, x).tobytes()
    mlp.to_onnx(tmp_path / "copy.onnx")
    assert mc.Network(tmp_path / "copy.onnx")(x).tobytes() == mlp(x).tobytes()
    with pytest.raises(FileExistsError):
        mlp.to_onnx(tmp_path / "copy.onnx")
    pair = mc.Network(FIXTURES / "pair.onnx")
    left, right = np.load(FIXTURES / "pair.left.npy"), np.load(FIXTURES / "pair.right.npy")
    np.testing.assert_allclose(pair((left, right)), np.load(FIXTURES / "pair.expected.npy"), rtol=1e-5, atol=1e-6)
    named = dict(zip(pair.inputs, (left, right)))
    assert pair(named).tobytes() == pair((left, right)).tobytes()
    assert mc.kernel("trace", (left, right), net=pair).tobytes() == mc.kernel("trace", named, net=pair).tobytes()


def test_training_leaves_the_network_alone():
    points, classes = moons()
    net = mc.Network.from_arch({"mlp": {"inputs": [2], "widths": [16], "outputs": 2}}, seed=1)
    before = net(points)
    trained, history = net.train(points, classes, epochs=60, learning_rate=0.05)
    assert history[-1].loss < history[0].loss and len(history) == 60
    assert net(points).tobytes() == before.tobytes()
    assert np.mean(np.argmax(trained(points), axis=1) == classes) > 0.9
    texts = np.array(["left", "right"])[classes]
    same, _ = net.train(points, texts, epochs=60, learning_rate=0.05)
    assert same(points).tobytes() == trained(points).tobytes()
    with pytest.raises(mc.Error, match="epoch"):
        net.train(points, classes, epochz=3)


def test_outcomes(tmp_path):
    points, classes = moons()
    outcome = mc.eigen("exact", kernel="rbf()", data=points, components=4)
    assert outcome.values[0] > outcome.values[1] and outcome.samples == 60
    assert outcome.to_dict()["method"] == "exact"
    assert "psi_data" in dir(outcome) and "exact" in repr(outcome)
    assert outcome._repr_svg_().lstrip().startswith("<svg")
    assert outcome.measurements["seconds"] > 0
    with pytest.raises(AttributeError, match="it has"):
        outcome.nothing
    kept = outcome.save(tmp_path / "kept")
    values = mc.predict(from_=kept, data=points[:5])
    place = outcome.path
    assert mc.predict(from_=outcome, data=points[:5]).predictions.tobytes() == values.predictions.tobytes()
    del outcome
    assert not os.path.exists(place)
    pandas = pytest.importorskip("pandas")
    trained = mc.train(arch={"mlp": {"inputs": [2], "widths": [4], "outputs": 2}}, data=points, labels=classes, epochs=3)
    assert isinstance(trained.to_frame(), pandas.DataFrame) and len(trained.to_frame()) == 3


def test_explanations_and_audits(tmp_path):
    points, classes = moons()
    trained = mc.train(
        arch={"mlp": {"inputs": [2], "widths": [16], "outputs": 2}},
        data=points, labels=classes, epochs=60, learning_rate=0.05, out=tmp_path / "net",
    )
    net = Path(trained.path) / "model.onnx"
    why = mc.explain(
        net=net, data=points, labels=classes, test=points[:10], test_labels=classes[:10], rows=[2, 0], penalty=0.1,
        class_="predicted", out=tmp_path / "why",
    )
    assert why.surrogates[0]["machine"] == "glm" and why.compared_class == "predicted"
    assert why.attribution.shape == (2, len(points), 2)
    assert np.allclose(why.attribution.sum(1), why.scores[[2, 0]], atol=1e-10)
    assert why.figures["faithfulness"].startswith("<svg")
    several = mc.explain(
        net=net, data=points, labels=classes, test=points[:10], kernel=["trace", "ck"], machine=["glm", "ridge"],
        fgsm=0.1, cache=tmp_path / "kept", penalty=0.1,
    )
    pairs = {(own["kernel"], own["machine"]) for own in several.surrogates}
    assert pairs == {(kernel, machine) for kernel in ("trace", "ck") for machine in ("glm", "ridge")}
    assert several.fgsm["epsilon"] == 0.1 and len(list((tmp_path / "kept").iterdir())) == 4
    again = mc.explain(from_=why, test=points[:10])
    assert again.scores.tobytes() == why.scores.tobytes()
    flipped = classes.copy()
    flipped[::10] = 1 - flipped[::10]
    review = mc.audit(net=net, data=points, labels=flipped, wrong=np.arange(0, len(points), 10), penalty=1)
    assert review.measures[0]["name"] == "combined" and review.measures[0]["auroc"] > 0.8
    with open(Path(review.path) / "review.csv", encoding="utf-8") as file:
        assert len(file.readlines()) == len(points) + 1


def test_probes_and_spectra(tmp_path):
    points, classes = moons()
    trained = mc.train(
        arch={"mlp": {"inputs": [2], "widths": [16], "outputs": 2}},
        data=points, labels=classes, epochs=20, learning_rate=0.05, checkpoint_every=10, out=tmp_path / "net",
    )
    net = Path(trained.path) / "model.onnx"
    checkpoints = [Path(trained.path) / f"epoch-{epoch:05}.safetensors" for epoch in (0, 20)]
    inside = mc.probe(
        net=net, data=points, labels=classes, test=points[::3], test_labels=classes[::3], weights=checkpoints,
        kernel=["trace", "ck"], svm_cost=0.5,
    )
    layer = inside.layers[0]
    assert layer["n_features"] == 16 and layer["accuracy"]["neighbours"] > 0.8
    assert [one["name"] for one in inside.checkpoints] == ["epoch-00000", "epoch-00020"]
    assert len(inside.similarity["names"]) == 6
    spectra = mc.spectrum(
        net=net, data=points, labels=classes, weights=checkpoints, direction=np.array([1.0, 0.0]), out=tmp_path / "spectra",
    )
    first, last = spectra.checkpoints
    assert "drift" not in first["weights"][0]
    assert last["weights"][0]["drift"]["frobenius"] > 0 and len(last["ntk"]["eigenvalues"]) == len(points)
    assert spectra.figures["weights"].startswith("<svg")


# ---- arrays


def test_a_contiguous_array_enters_and_leaves_by_pointer(x):
    """Eight gigabytes that were never touched stay untouched when a job is planned on them."""
    code = """
import numpy as np, mercer as mc
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
mc.eigen.exact(kernel="rbf()", data=np.zeros((4, 4)), components=2, dry_run=True)
x = np.zeros((1000, 2_000_000), dtype=np.float32)
before = peak()
mc.eigen.nystrom(kernel="linear", data=x, landmarks=4, components=2, dry_run=True)
print(peak() - before)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert float(found.stdout) < 50
    gram = mc.kernel("rbf()", x)
    assert gram.flags.writeable and gram.base is not None
    assert gram.__array_interface__["data"][0] == gram.base.__array_interface__["data"][0]


def test_layouts(x):
    kernel = mc.Kernel("rbf()")
    expected = kernel(x)
    read_only = x.copy()
    read_only.setflags(write=False)
    big = x.astype(">f4")
    strided = np.repeat(x, 2, axis=0)[::2]
    for array in (np.asfortranarray(x), read_only, big, strided, x[::-1][::-1], x.tolist()):
        found = kernel(array, precision="f32")
        assert found.tobytes() == expected.tobytes()
    assert kernel(x[::-1]).tobytes() == expected[::-1, ::-1].tobytes()
    for dtype in ("f2", "f8", "i1", "u1", "i8", "?"):
        whole = np.round(x).astype(dtype)
        wide = kernel(whole.astype("f8"), precision="f64")
        assert kernel(whole, precision="f64").tobytes() == wide.tobytes(), dtype


def test_memory_maps(x, tmp_path):
    np.save(tmp_path / "x.npy", x)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert mc.kernel("rbf()", mapped).tobytes() == mc.kernel("rbf()", x).tobytes()


def test_other_libraries(x):
    expected = mc.kernel("rbf()", x).tobytes()
    zarr = pytest.importorskip("zarr")
    chunked = zarr.create_array(zarr.storage.MemoryStore(), shape=x.shape, chunks=(2, x.shape[1]), dtype=x.dtype)
    chunked[...] = x
    assert mc.kernel("rbf()", chunked).tobytes() == expected
    pandas = pytest.importorskip("pandas")
    assert mc.kernel("rbf()", pandas.DataFrame(x)).tobytes() == expected
    dask = pytest.importorskip("dask.array")
    assert mc.kernel("rbf()", dask.from_array(x, chunks=(3, -1))).tobytes() == expected


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_columns_as_labels(library):
    module = pytest.importorskip(library)
    points, classes = moons()
    texts = [["left", "right"][each] for each in classes]
    make = {"pandas": "Series", "polars": "Series", "pyarrow": "array"}[library]
    column = getattr(module, make)(texts)
    outcome = mc.fit.svm(kernel="rbf()", data=points, labels=column)
    plain = mc.fit.svm(kernel="rbf()", data=points, labels=classes)
    ours = mc.predict(from_=outcome, data=points, labels=column)
    assert ours.predictions.tobytes() == mc.predict(from_=plain, data=points).predictions.tobytes()
    assert ours.accuracy > 0.8


def test_a_store_goes_on(tmp_path, mlp, x):
    zarr = pytest.importorskip("zarr")
    gram = mc.gram("trace", x, net=mlp, out=tmp_path / "g.zarr")
    assert gram.numpy().tobytes() == mc.ntk(mlp, x).tobytes()
    assert zarr.open_group(gram.path, mode="r")["kernel"].shape == (len(x), len(x))
    with pytest.raises(mc.Error) as caught:
        mc.gram("trace", x, net=mlp, out=tmp_path / "g.zarr")
    assert "resume" in str(caught.value)
    assert mc.gram("trace", x, net=mlp, out=tmp_path / "g.zarr", resume=True).info()["complete"]
    spectrum = mc.eigen.lanczos(gram=gram, components=2)
    assert spectrum.values[0] == pytest.approx(np.linalg.eigvalsh(np.asarray(gram, dtype="f8"))[-1] / len(x), rel=1e-4)


# ---- threads and processes


def test_two_threads_compute_at_once(mlp, x):
    expected, found = mc.ntk(mlp, x).tobytes(), []

    def work():
        found.extend(mc.ntk(mlp, x).tobytes() for _ in range(20))

    threads = [threading.Thread(target=work) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(found) == 40 and set(found) == {expected}


def test_python_runs_while_the_work_does():
    ticks = 0
    done = threading.Event()

    def work():
        mc.kernel("rbf()", np.random.default_rng(0).normal(size=(3000, 200)))
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.is_set():
        ticks += 1
        time.sleep(0.001)
    thread.join()
    assert ticks > 3


def test_forked_and_spawned_children(mlp, x):
    import multiprocessing

    expected = mc.ntk(mlp, x)
    for method in ("fork", "spawn"):
        with warnings.catch_warnings():
            # A fork of a process with threads is what is tried here.
            warnings.simplefilter("ignore", DeprecationWarning)
            with multiprocessing.get_context(method).Pool(1) as pool:
                found = pool.apply_async(mc.ntk, (mlp, x)).get(timeout=60)
        assert found.tobytes() == expected.tobytes(), method
    assert mc.ntk(mlp, x).tobytes() == expected.tobytes()


def test_threads_do_not_change_the_bits(mlp, x):
    assert len({mc.ntk(mlp, x, threads=threads).tobytes() for threads in (1, 2, 3)}) == 1
    code = """
import glob, time, numpy as np, mercer as mc
mc.kernel("rbf()", np.zeros((9, 2)))
time.sleep(0.3)
print(sum(open(name).read().startswith("mercer") for name in glob.glob("/proc/self/task/*/comm")))
"""
    for threads in ("1", "3"):
        environment = {**os.environ, "OMP_NUM_THREADS": threads}
        found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        assert found.stdout.strip() == threads


@pytest.mark.parametrize("kind", ["gram", "lanczos", "exact"])
def test_control_c_returns_soon_and_leaves_a_store_that_goes_on(tmp_path, kind):
    code = f"""
import sys, numpy as np, mercer as mc
x = np.random.default_rng(0).normal(size=(5000, 200)).astype("f4")
net = mc.Network.from_arch({{"mlp": {{"inputs": [200], "widths": [1000, 1000], "outputs": 10}}}})
print("begins", flush=True)
try:
    if {kind!r} == "gram":
        mc.gram("trace", x, net=net, out={str(tmp_path / "g.zarr")!r}, resume="resume" in sys.argv, progress=False)
    else:
        mc.eigen({kind!r}, kernel="rbf()", data=x, components=50, progress=False)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "begins\n"
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    line = process.stdout.readline()
    process.kill()
    process.wait()
    if line == "":
        pytest.skip("the work was done before the signal")
    assert line == "interrupted\n"
    if kind == "gram":
        assert not mc.Gram(tmp_path / "g.zarr").info()["complete"]
        subprocess.run([sys.executable, "-c", code, "resume"], check=True)
        assert mc.Gram(tmp_path / "g.zarr").info()["complete"]


def test_progress_is_told(mlp):
    told = []
    x = np.random.default_rng(0).normal(size=(6000, 1000))
    mc.kernel("rbf()", x, progress=lambda done, total, message: told.append((done, total)))
    assert told and all(0 <= done <= total for done, total in told)

    def stop(done, total, message):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        mc.kernel("rbf()", np.random.default_rng(0).normal(size=(9000, 1000)), progress=stop)


# ---- errors


def test_errors_have_code_message_and_hint(mlp, x):
    with pytest.raises(mc.Error) as caught:
        mc.kernel("rbf(lengthscle=2)", x)
    assert "column 5" in str(caught.value) and "lengthscale" in str(caught.value)
    with pytest.raises(mc.Error) as caught:
        mc.kernel("trace", x)
    assert caught.value.code == "bad-request" and "net" in caught.value.hints[0]
    with pytest.raises(mc.Error) as caught:
        mc.kernel("rbf()", np.zeros((60_000, 2)), memory="64MiB")
    assert caught.value.code == "memory" and "memory" in caught.value.hints[0] and "--" not in str(caught.value)
    assert pickle.loads(pickle.dumps(caught.value)).code == "memory"
    with pytest.raises(mc.Error, match="did you mean kernel"):
        mc.fit.ridge(kernl="rbf()", data=x, labels=x[:, 0])
    with pytest.raises(mc.Error, match="needs labels"):
        mc.fit.ridge(kernel="rbf()", data=x)
    with pytest.raises(mc.Error, match="there is no rigde"):
        mc.fit("rigde", kernel="rbf()", data=x, labels=x[:, 0])
    with pytest.raises(AttributeError):
        mc.nothing
    with pytest.raises(mc.Error, match="no_such"):
        mc.Network("no_such.onnx")
    with pytest.raises(mc.Error, match="4 lightyears"):
        mc.kernel("rbf()", x, memory="4 lightyears")


@pytest.mark.parametrize(
    "array, text",
    [
        (np.array([[1.0, None]], dtype=object), "objects"),
        (np.array([["a", "b"]]), "texts"),
        (np.ones((2, 2), dtype=complex), "complex"),
        (np.array([["2020-01-01"]], dtype="datetime64[D]"), "dates"),
        (np.ones((2, 2), dtype=np.longdouble), "float"),
        (np.float64(3.0), "first axis"),
        (np.array([[1.0, np.nan]]), "nan|NaN"),
        (np.array([[1.0, np.inf]]), "inf"),
        ("x.npy", "not an array"),
        ([[1.0], [2.0, 3.0]], "array"),
    ],
)
def test_arrays_that_are_refused(array, text):
    with pytest.raises(mc.Error, match=text):
        mc.kernel("rbf()", array)


def test_odd_shapes(mlp, x):
    assert mc.kernel("rbf()", np.zeros((0, 3))).shape == (0, 0)
    with pytest.raises(mc.Error):
        mlp(x[:, :-1])
    with pytest.raises(mc.Error, match="beside samples"):
        mc.kernel("rbf()", x, x[:, :-1])
    with pytest.raises(mc.Error):
        mc.fit.ridge(kernel="rbf()", data=x, labels=np.zeros(len(x) - 1))


def test_notes_are_warnings(tmp_path):
    points, _ = moons()
    targets = points[:, 0] + 50.0
    with pytest.warns(mc.MercerWarning, match="mean"):
        mc.fit.process(kernel="1*rbf()", data=points, labels=targets, tune=True)


# ---- documentation and types


@pytest.mark.parametrize("module", ["_network", "_kernels", "_gram"])
def test_examples_in_the_documentation_run(module):
    found = doctest.testmod(__import__(f"mercer.{module}", fromlist=["x"]))
    assert found.attempted > 0 and found.failed == 0


def test_the_page_about_python_runs():
    found = doctest.testfile(str(ROOT / "docs/python.md"), module_relative=False, optionflags=doctest.ELLIPSIS)
    assert found.attempted > 10 and found.failed == 0


def test_every_command_is_a_function():
    from mercer import _jobs, _mercer

    described = {tuple(each["path"]) for each in _mercer.describe()}
    assert {path[0] for path in described} - {"completions", "manual", "kernel"} <= set(dir(mc))
    for path in described - {("completions",), ("manual",), ("kernel",)}:
        function = getattr(mc, path[0])
        function = function if len(path) == 1 else getattr(function, path[1].replace("-", "_"))
        keywords = {*_jobs.commands()[path].keywords, "memory", "threads", "progress"}
        keywords |= {"client"} if path in _jobs.SHARED else set()
        assert set(inspect.signature(function).parameters) == keywords
        assert "Parameters" in function.__doc__ and " --" not in function.__doc__


def test_stubs_are_current():
    from mercer import _stubs

    assert (ROOT / "python/mercer/__init__.pyi").read_text() == _stubs.text(), "cargo xtask stubs"


def test_types():
    pytest.importorskip("mypy")
    package = Path(mc.__file__).parent
    environment = {**os.environ, "MYPYPATH": str(package.parent)}
    mypy = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "-p", "mercer", "--cache-dir", str(package.parent / ".mypy")]
    found = subprocess.run(mypy, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stdout
    stubtest = [sys.executable, "-m", "mypy.stubtest", "mercer", "--ignore-missing-stub"]
    stubtest += ["--mypy-config-file", str(ROOT / "pyproject.toml")]
    stubtest += ["--allowlist", str(ROOT / "tests/python/stubtest.txt"), "--ignore-unused-allowlist"]
    found = subprocess.run(stubtest, capture_output=True, text=True, env=environment)
    assert found.returncode == 0, found.stdout


def test_the_command_starts_without_numpy():
    # An import of NumPy is an error here.
    code = "import sys; sys.modules['numpy'] = None; import mercer._command; sys.exit(mercer._command.main())"
    done = subprocess.run([sys.executable, "-c", code, "info", FIXTURES / "mlp.onnx"], capture_output=True, text=True)
    assert done.returncode == 0 and "Parameters" in done.stdout, (done.stdout, done.stderr)
