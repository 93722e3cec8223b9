"""Kernel matrices on the workers of a Dask cluster.

A matrix is a store on a file system that all workers see. The planner divides its tiles into parts of equal work; each
worker takes a part and writes its tiles. Every writer of a tile writes the same bytes, so the store alone says what is
left: a part whose worker died is done again by another one, which finds the tiles that are there.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
import threading
import uuid
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mercer import _mercer
from mercer._errors import Error, MercerWarning
from mercer._jobs import Command, call, commands
from mercer._resources import Progress, resources

logger = logging.getLogger("mercer")

#: The share of a worker's memory limit that the work may take. Dask pauses a worker at 0.8 of its limit.
_SHARE = 0.7

#: How often parts are given out again although nothing was added to the result.
_ROUNDS = 3

#: Seconds between two looks at the result while the workers are busy.
_LOOK = 1.0

#: A worker does one part at a time, on all of its threads.
_TURN = threading.Lock()


@dataclass(frozen=True)
class _Worker:
    """What a worker says of itself."""

    version: str
    instructions: str
    sees: bool


@dataclass(frozen=True)
class Shared:
    """The work of a cluster.

    Attributes
    ----------
    workers : int
        The workers that took part.
    parts : int
        The parts that the work was divided into.
    tiles : int
        Tiles that were computed.
    prepared_blocks : int
        Blocks of samples that were prepared, by all workers together.
    """

    workers: int
    parts: int
    tiles: int
    prepared_blocks: int


def _about(probe: str) -> _Worker:
    """Runs on a worker: what decides whether it can take part."""
    return _Worker(_mercer.VERSION, _mercer.instructions(), os.path.exists(probe))


def _work(path: tuple[str, ...], keywords: dict[str, Any], budget: int | None) -> tuple[int, int]:
    """Runs on a worker: one part. How many tiles were computed, and blocks prepared."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    memory = int(limit * _SHARE) if limit else budget
    with _TURN, warnings.catch_warnings():
        # The process of the user has told of them.
        warnings.simplefilter("ignore", MercerWarning)
        outcome = call(path, {**keywords, "memory": memory, "threads": worker.state.nthreads, "progress": False})
    found = outcome.to_dict()
    prepared = found.get("prepared_blocks")
    if prepared is None:
        prepared = found["measurements"]["plan"]["prepared_blocks"]
    return int(found["tiles_computed"]), int(prepared)


def run(
    client: Any,
    path: tuple[str, ...],
    keywords: Mapping[str, Any],
    shared: str,
    left: Callable[[], int | None],
    progress: Progress | None = None,
    done: Callable[[], tuple[int, int]] | None = None,
) -> Shared:
    """Give the parts of a job to the workers until nothing is left.

    Parameters
    ----------
    client : distributed.Client
        The cluster.
    path : tuple of str
        The command, which takes ``part``.
    keywords : mapping
        Its keywords.
    shared : str
        The folder that all workers must see.
    left : callable
        How many tiles are missing, or none if that cannot be said.
    progress : callable, optional
        Is told of the work that is done.
    done : callable, optional
        How many tiles there are, and how many there will be.
    """
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise Error("a cluster needs dask and distributed", "missing-package", ["pip install distributed"]) from error
    workers = _checked(client, shared)
    parts = len(workers)
    tiles = prepared = 0
    rounds, missing = 0, left()
    while True:
        budget = _budget(workers)
        futures = [
            client.submit(
                _work, path, {**keywords, "part": f"{part}/{parts}"}, budget,
                key=f"mercer-{uuid.uuid4().hex}", pure=False, retries=1,
            )
            for part in range(1, parts + 1)
        ]
        try:
            _wait(futures, progress, done)
            failures = [future.exception() for future in futures if future.status != "finished"]
            for own in (future.result() for future in futures if future.status == "finished"):
                tiles, prepared = tiles + own[0], prepared + own[1]
        except BaseException:
            client.cancel(futures, force=True)
            raise
        wrong = next((failure for failure in failures if isinstance(failure, Error)), None)
        if wrong is not None:
            raise wrong
        now = left()
        if not failures and not now:
            return Shared(len(workers), parts, tiles, prepared)
        rounds = 0 if missing is not None and now is not None and now < missing else rounds + 1
        if rounds >= _ROUNDS:
            reason = str(failures[0]) if failures else f"{now} tiles are still missing"
            hints = ["see the logs of the workers", "the result is kept: resume=True goes on with it"]
            raise Error(f"the cluster makes no progress: {reason}", "cluster", hints)
        missing = now
        logger.info("%d parts failed; giving out what is left", len(failures))
        workers = _checked(client, shared)


def _wait(
    futures: list[Any], progress: Progress | None, done: Callable[[], tuple[int, int]] | None
) -> None:
    """Wait for all parts, and tell of the tiles that appear in the result."""
    from distributed import TimeoutError as Late
    from distributed import wait

    while True:
        try:
            wait(futures, timeout=None if progress is None or done is None else _LOOK)
        except (Late, TimeoutError):
            if progress is not None and done is not None:
                progress(*done(), "tiles")
        else:
            return


def _budget(workers: Mapping[str, _Worker]) -> int:
    """Memory for a worker without a limit: its share of the machine."""
    from distributed.system import MEMORY_LIMIT

    hosts = [address.rpartition(":")[0] for address in workers]
    most = max((hosts.count(host) for host in hosts), default=1)
    return int(MEMORY_LIMIT * _SHARE / most)


def _checked(client: Any, shared: str) -> dict[str, _Worker]:
    """The workers, if they can work on one result together."""
    if not client.scheduler_info(n_workers=-1)["workers"]:
        try:
            client.wait_for_workers(1, timeout=30)
        except Exception as error:
            raise Error("the cluster has no workers", "cluster", ["start workers, or wait for them"]) from error
    probe = os.path.join(shared, f".mercer-{uuid.uuid4().hex}")
    with open(probe, "x", encoding="utf-8"):
        pass
    try:
        found: dict[str, _Worker] = client.run(_about, probe, on_error="return")
    finally:
        os.unlink(probe)
    for name, about in found.items():
        if isinstance(about, ModuleNotFoundError):
            raise Error(f"worker {name} has no package {about.name}", "cluster", ["pip install mercer on all workers"])
        if isinstance(about, BaseException):
            raise Error(f"worker {name} cannot take part: {about}", "cluster") from about
    if not found:
        raise Error("the cluster has no workers", "cluster", ["start workers, or wait for them"])
    _same(found, shared)
    return found


def _same(workers: Mapping[str, _Worker], shared: str) -> None:
    """Refuse workers that would write other bytes, or elsewhere."""
    for name, about in workers.items():
        if about.version != _mercer.VERSION:
            message = f"worker {name} has mercer {about.version}, this process {_mercer.VERSION}"
            raise Error(message, "cluster", ["install the same version everywhere"])
    blind = [name for name, about in workers.items() if not about.sees]
    if blind:
        hints = ["put the result on a file system that all workers mount at the same path"]
        raise Error(f"worker {blind[0]} does not see the folder {shared}", "cluster", hints)
    sets: dict[str, str] = {}
    for name, about in workers.items():
        sets.setdefault(about.instructions, name)
    if len(sets) > 1:
        listed = "; ".join(f"{name}: {instructions}" for instructions, name in sets.items())
        message = f"the workers have different instruction sets, and would write different last bits ({listed})"
        raise Error(message, "cluster", ["use workers on processors of one kind"])


@contextlib.contextmanager
def staged(path: tuple[str, ...], keywords: Mapping[str, Any], folder: str) -> Iterator[dict[str, Any]]:
    """Keywords whose arrays and networks are files that all workers see, in ``folder`` while the work lasts."""
    command = commands()[path]
    made: list[str] = []

    def place(name: str) -> str:
        if not made:
            os.makedirs(folder)
            made.append(folder)
        return os.path.join(folder, name)

    try:
        found: dict[str, Any] = {}
        for key, value in keywords.items():
            if value is not None:
                found.update(_staged(command, key, value, place))
        yield found
    finally:
        for own in made:
            shutil.rmtree(own, ignore_errors=True)


def _staged(command: Command, key: str, value: Any, place: Callable[[str], str]) -> dict[str, Any]:
    """A keyword, and others that belong to it, with files in the place of arrays and networks."""
    import numpy as np

    from mercer._arrays import as_array, as_labels
    from mercer._network import Network

    flag = command.keywords.get(key)

    def saved(name: str, array: Any) -> str:
        if isinstance(array, (str, os.PathLike)):
            return _absolute(os.fspath(array))
        path = place(f"{name}.npy")
        np.save(path, as_array(array, name))
        return path

    if isinstance(value, Network):
        path = place(f"{key}.onnx")
        value.to_onnx(path)
        options = {name: each for name, each in value.options().items() if each and name != "weights"}
        return {key: path, **options}
    if flag is None or not flag.takes_samples or isinstance(value, (str, os.PathLike)):
        kind = "" if flag is None or flag.value is None else flag.value
        names_file = any(word in kind for word in ("FILE", "DIR", "PATH", "GRAM", "onnx"))
        is_path = isinstance(value, os.PathLike) or (names_file and _is_file(value))
        return {key: _absolute(os.fspath(value)) if is_path else value}
    if flag.takes_labels:
        codes, names = as_labels(value, key)
        return {key: saved(key, codes), **({"classes": names} if names is not None and key == "labels" else {})}
    if isinstance(value, Mapping):
        return {key: {name: saved(f"{key}-{name}", each) for name, each in value.items()}}
    if isinstance(value, tuple):
        return {key: tuple(saved(f"{key}-{index}", each) for index, each in enumerate(value))}
    return {key: saved(key, value)}


def _is_file(value: object) -> bool:
    """Whether a text names a file, also ``FILE:KEY``."""
    return isinstance(value, str) and any(os.path.exists(name) for name in (value, value.rpartition(":")[0]) if name)


def _absolute(text: str) -> str:
    """A path that means the same in every working directory, also ``FILE:KEY``."""
    name, colon, key = text.rpartition(":")
    if not os.path.exists(text) and colon and os.path.exists(name):
        return f"{os.path.abspath(name)}:{key}"
    return os.path.abspath(text)


def fill_store(client: Any, keywords: Mapping[str, Any], out: str | os.PathLike[str]) -> Shared:
    """A matrix or features in a store, computed by the workers."""
    path = ("kernel",)
    target = os.path.abspath(os.fspath(out))
    settings = dict(keywords)
    if not target.endswith(".zarr"):
        raise Error(f"out {target}: a cluster fills a store", "bad-request", ["out='gram.zarr'"])
    if os.path.lexists(target) and settings.get("force"):
        # The old store is replaced here, with a first tile, before several workers continue it.
        call(("kernel",), {**settings, "out": target, "tiles": "0..1"})
    elif os.path.lexists(target) and not settings.get("resume"):
        raise Error(f"{target} exists already", "exists", ["resume=True continues it; force=True replaces it"])
    wanted = settings.pop("progress", None)
    for name in ("force", "resume", "memory", "threads"):
        settings.pop(name, None)
    # Whatever is wrong with the job is found here, before the workers begin.
    call(path, {**settings, "out": target, "dry_run": True, "resume": os.path.lexists(target)})
    with (
        staged(path, settings, f"{target}.inputs-{uuid.uuid4().hex[:8]}") as shared,
        resources(None, None, wanted) as use,
    ):
        keywords = {**shared, "out": target, "resume": True}
        folder = os.path.dirname(target)
        return run(client, path, keywords, folder, lambda: _left(target), use.progress, _Tiles(target))


class _Tiles:
    """How many tiles of a store there are, by the names of their files: cheap enough to be asked every second."""

    def __init__(self, store: str) -> None:
        self._store = store
        self._about: dict[str, Any] | None = None

    def __call__(self) -> tuple[int, int]:
        if self._about is None:
            if not os.path.isdir(self._store):
                return 0, 1
            from mercer._gram import Gram

            self._about = Gram(self._store).info()
        layout = self._about["layout"]
        symmetric = layout["columns"].get("samples", {}).get("symmetric", False)
        arrays = [entry.path for entry in os.scandir(self._store) if entry.is_dir() and not entry.name.startswith(".")]
        tiles: set[tuple[int, int]] = set()
        chunks = os.path.join(min(arrays), "c") if arrays else self._store
        for folder, _, names in os.walk(chunks):
            for name in names:
                place = os.path.relpath(os.path.join(folder, name), chunks).split(os.sep)[:2]
                if len(place) == 2 and all(part.isdigit() for part in place):
                    row, column = int(place[0]), int(place[1])
                    # Tiles below the diagonal are mirror images.
                    tiles.add((min(row, column), max(row, column)) if symmetric else (row, column))
        total = int(self._about["n_tiles"])
        return min(len(tiles), total), total


def _left(store: str) -> int | None:
    """How many tiles of a store are missing."""
    from mercer._gram import Gram

    if not os.path.isdir(store):
        return None
    info = Gram(store).info()
    return int(info["n_tiles"]) - int(info["done"]) + len(info["damaged"])


def explain(client: Any, keywords: Mapping[str, Any]) -> Any:
    """An explanation whose kernel values the workers compute."""
    path = ("explain",)
    if keywords.get("cache") is None:
        hints = ["cache='kernels', a folder on a file system that all workers see"]
        raise Error("explain with a client needs cache: the workers share kernel values there", "missing-keyword", hints)
    cache = os.path.abspath(os.fspath(keywords["cache"]))
    os.makedirs(cache, exist_ok=True)
    settings = {key: value for key, value in keywords.items() if key not in ("memory", "threads", "progress", "out", "force")}
    call(path, {**settings, "out": os.path.join(cache, "plan"), "dry_run": True})
    own = _mercer.instructions()
    for name, about in _checked(client, cache).items():
        if about.instructions != own:
            message = f"worker {name} has the instruction set {about.instructions}, this process {own}"
            hints = ["run this process on the same kind of machine: it reads the values that the workers wrote"]
            raise Error(message, "cluster", hints)
    inputs = os.path.join(cache, f"inputs-{uuid.uuid4().hex[:8]}")
    with staged(path, {**settings, "cache": cache}, inputs) as shared:
        done = run(client, path, {**shared, "out": os.path.join(cache, "part")}, cache, lambda: None)
    logger.info("%d workers prepared %d blocks for %d tiles", done.workers, done.prepared_blocks, done.tiles)
    return call(path, {**keywords, "cache": cache})
