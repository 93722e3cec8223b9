"""Kernel matrices on Dask's workers: the same bits, whatever happens to the workers."""

import dataclasses
import os
import signal
import threading
import time

import numpy as np
import pytest

pytest.importorskip("mercer._mercer", reason="the extension module is not built")
distributed = pytest.importorskip("distributed")
pytest.importorskip("zarr")

import mercer as mc  # noqa: E402
from mercer import _cluster, _mercer  # noqa: E402


def local_cluster(workers=4, **settings):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, memory_limit="1500MiB", dashboard_address=None, **settings
    )


@pytest.fixture(scope="module")
def client():
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        yield client


@pytest.fixture(scope="module")
def net():
    return mc.Network.from_arch({"mlp": {"inputs": [64], "widths": [256, 256], "outputs": 10}})


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(0).normal(size=(2000, 64)).astype("f4")


@pytest.fixture(scope="module")
def expected(net, x):
    return mc.ntk(net, x)


def tiles(store):
    return sum(len(names) for folder, _, names in os.walk(os.path.join(store, "kernel", "c")))


def kill_when(client, store, counts):
    """Kills a worker whenever the store has this many more files; returns the thread and the ids of the victims."""
    victims = []

    def work():
        for count in counts:
            while tiles(store) < count:
                time.sleep(0.002)
            pids = client.run(os.getpid, on_error="ignore")
            victim = next(pid for pid in pids.values() if pid not in victims)
            os.kill(victim, signal.SIGKILL)
            victims.append(victim)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread, victims


def test_four_workers_write_the_same_bits(client, net, x, expected, tmp_path):
    gram = mc.gram("trace", x, net=net, out=tmp_path / "g.zarr", client=client)
    assert gram.numpy().tobytes() == expected.tobytes()
    assert gram.dask().chunksize == (256, 256) and gram.info()["complete"]
    np.testing.assert_allclose(gram.dask().mean().compute(), expected.mean(dtype="f8"), rtol=1e-4)
    assert gram.shared.workers == gram.shared.parts == 4 and gram.shared.tiles == 36
    # Eight blocks; each worker prepares those of its part.
    assert gram.shared.prepared_blocks == 20
    assert not os.path.exists(tmp_path / "g.zarr.inputs")
    spectrum = mc.eigen.lanczos(gram=gram, components=2)
    vector = np.ones(len(x))
    for _ in range(60):
        vector = expected @ vector
        vector /= np.linalg.norm(vector)
    assert spectrum.values[0] == pytest.approx(vector @ expected @ vector / len(x), rel=1e-3)
    again = mc.gram("trace", x, net=net, out=tmp_path / "g.zarr", client=client, resume=True)
    assert again.shared.tiles == 0
    with pytest.raises(mc.Error, match="exists already"):
        mc.gram("trace", x, net=net, out=tmp_path / "g.zarr", client=client)


def test_solvers_run_on_the_store_and_work_is_told(client, net, x, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(_cluster, "_LOOK", 0.02)
    told = []
    gram = mc.gram(
        "trace", x, net=net, out=tmp_path / "g.zarr", client=client, progress=lambda *work: told.append(work)
    )
    assert told and {(total, what) for _, total, what in told} <= {(36, "tiles"), (1, "tiles")}
    assert [done for done, *_ in told] == sorted(done for done, *_ in told) and max(told)[0] <= 36
    assert _cluster._Tiles(os.fspath(tmp_path / "g.zarr"))() == (36, 36)
    # A store that is opened by its path alone, and larger than the memory that its solvers get.
    store = mc.Gram(tmp_path / "g.zarr")
    values = np.linalg.eigvalsh(expected.astype("f8"))[::-1][:3] / len(x)
    # The randomised decomposition approximates eigenvalues that are close to each other from below.
    for solver, tolerance in ((mc.eigen.lanczos, 2e-3), (mc.eigen.exact, 2e-3), (mc.eigen.randomised, 0.1)):
        np.testing.assert_allclose(solver(gram=store, components=3).values, values, rtol=tolerance)
    y = np.sin(x[:, :1])
    machine = mc.fit.ridge(gram=store, labels=y, penalty=10.0)
    found = mc.predict(from_=machine, data=expected).predictions
    theirs = expected.astype("f8") @ np.linalg.solve(expected.astype("f8") + 10.0 * np.eye(len(x)), y)
    np.testing.assert_allclose(found, theirs, atol=1e-4)


def test_a_run_that_was_given_up_cannot_write_into_the_next(client, net, x, tmp_path):
    """The workers go on after a cancelled call; the store that replaces theirs gets none of their tiles."""
    store = tmp_path / "g.zarr"
    failed = []

    def work():
        try:
            mc.gram("trace", x, net=net, out=store, client=client, progress=False)
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while tiles(store) < 4:
        time.sleep(0.002)
    other = mc.gram("pseudo", x, net=net, out=store, force=True)
    thread.join(timeout=60)
    assert failed and isinstance(failed[0], mc.Error), failed
    assert any(words in str(failed[0]) for words in ("was replaced", "other inputs")), failed
    assert mc.Gram(store).info()["complete"] and not mc.Gram(store).info()["damaged"]
    assert other.numpy().tobytes() == mc.kernel("pseudo", x, net=net).tobytes()


def test_workers_that_are_killed(net, x, expected, tmp_path):
    store = tmp_path / "g.zarr"
    with local_cluster() as cluster, distributed.Client(cluster) as client:
        thread, victims = kill_when(client, store, [6, 20])
        gram = mc.gram("trace", x, net=net, out=store, client=client)
        thread.join(timeout=30)
    assert len(victims) == 2, "no worker was killed in the middle"
    assert gram.info()["complete"] and gram.numpy().tobytes() == expected.tobytes()


def test_a_cluster_that_is_stopped_and_started_again(net, x, expected, tmp_path):
    store = tmp_path / "g.zarr"
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        outcome = []

        def work():
            try:
                mc.gram("trace", x, net=net, out=store, client=client)
            except BaseException as error:
                outcome.append(error)

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while tiles(store) < 8:
            time.sleep(0.002)
        for pid in client.run(os.getpid).values():
            os.kill(pid, signal.SIGKILL)
        client.close()
    thread.join(timeout=30)
    there = tiles(store)
    assert outcome and 8 <= there < 64, there
    with local_cluster(2) as cluster, distributed.Client(cluster) as client:
        gram = mc.gram("trace", x, net=net, out=store, client=client, resume=True)
    assert 0 < gram.shared.tiles < 36
    assert gram.numpy().tobytes() == expected.tobytes()


def test_features_and_rectangles(client, net, x, tmp_path):
    features = mc.features("ck", x, net=net, out=tmp_path / "f.zarr", client=client)
    assert features.numpy().tobytes() == np.asarray(mc.features("ck", x, net=net)).tobytes()
    replaced = mc.features("ck", x[:500], net=net, out=tmp_path / "f.zarr", client=client, force=True)
    assert len(replaced.numpy()) == 500
    cross = mc.gram("trace", x[:300], against=x[300:900], net=net, out=tmp_path / "c.zarr", client=client)
    assert cross.numpy().tobytes() == mc.ntk(net, x[:300], x[300:900]).tobytes()


def test_explanations(client, x, tmp_path):
    labels = np.array(["negative", "positive"])[(x[:600, 0] * x[:600, 1] > 0).astype(int)]
    net = mc.Network.from_arch({"mlp": {"inputs": [64], "widths": [32], "outputs": 2}})
    net, _ = net.train(x[:600], labels, epochs=5)
    job = {"net": net, "data": x[:600], "labels": labels, "test": x[600:700], "penalty": 1.0, "classes": ["negative", "positive"]}
    alone = mc.explain(**job, cache=tmp_path / "alone")
    shared = mc.explain(**job, cache=tmp_path / "shared", client=client)
    assert shared.scores.tobytes() == alone.scores.tobytes()
    names = lambda folder: {name for name in os.listdir(folder) if name.endswith(".zarr")}  # noqa: E731
    assert names(tmp_path / "shared") == names(tmp_path / "alone") and len(names(tmp_path / "alone")) == 2
    with pytest.raises(mc.Error, match="cache"):
        mc.explain(**job, client=client)


def test_what_a_cluster_refuses(client, net, x, tmp_path, monkeypatch):
    with pytest.raises(mc.Error, match="needs out"):
        mc.gram("trace", x, net=net, client=client)
    with pytest.raises(mc.Error, match="store"):
        mc.gram("trace", x, net=net, out=tmp_path / "g.npy", client=client)
    with pytest.raises(mc.Error, match="did you mean"):
        mc.gram("trce", x, net=net, out=tmp_path / "g.zarr", client=client)
    own = _cluster._Worker(_mercer.VERSION, _mercer.instructions(), True)
    other = {"version": "0.0.1", "instructions": "x86_64 v2", "sees": False}
    for field, text in [("version", "0.0.1.*\n.*same version"), ("instructions", "instruction sets"), ("sees", "does not see")]:
        with pytest.raises(mc.Error, match=text) as caught:
            _cluster._same({"tcp://a": own, "tcp://b": dataclasses.replace(own, **{field: other[field]})}, "/data")
        assert "tcp://b" in str(caught.value) and caught.value.hints and caught.value.code == "cluster"


def test_workers_that_do_not_share_the_folder_or_the_version(client, net, x, tmp_path):
    """The checks run on the workers themselves."""

    def other_version(version):
        from mercer import _mercer as own

        own.VERSION = version

    client.run(other_version, "0.0.0")
    try:
        with pytest.raises(mc.Error, match="has mercer 0.0.0"):
            mc.gram("trace", x, net=net, out=tmp_path / "g.zarr", client=client)
    finally:
        client.run(other_version, _mercer.VERSION)

    def blindfold(on):
        import os.path

        if on:
            os.path._exists, os.path.exists = os.path.exists, lambda path: ".mercer-" not in str(path) and os.path._exists(path)
        else:
            os.path.exists = os.path._exists

    client.run(blindfold, True)
    try:
        with pytest.raises(mc.Error, match="does not see the folder"):
            mc.gram("trace", x, net=net, out=tmp_path / "g.zarr", client=client)
    finally:
        client.run(blindfold, False)
    assert not os.path.exists(tmp_path / "g.zarr")
