"""What a call may use, and how it tells of its progress."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from mercer._errors import MercerWarning

logger = logging.getLogger("mercer")

#: A function of the work that is done, all work, and what is being done.
Progress = Callable[[int, int, str], object]

#: Work that takes less than this many seconds shows no progress.
PATIENCE = 0.5


class _Bar(Protocol):
    def update(self, done: int, total: int, message: str) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True)
class Resources:
    """What the extension module reads: memory in bytes, threads, and two functions."""

    memory: int | None
    threads: int | None
    progress: Progress | None
    note: Callable[[str], object] | None


class _Terminal:
    """A line on standard error that is overwritten."""

    def update(self, done: int, total: int, message: str) -> None:
        share = 100 * done // max(1, total)
        sys.stderr.write(f"\r\x1b[K{share:3d} % {done:,} of {total:,} {message}")
        sys.stderr.flush()

    def close(self) -> None:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()


class _Notebook:
    """A bar in the output of a cell."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html = HTML
        self._handle = display(HTML(""), display_id=True)

    def update(self, done: int, total: int, message: str) -> None:
        text = f'<progress value="{done}" max="{max(1, total)}"></progress> {done:,} of {total:,} {message}'
        self._handle.update(self._html(text))

    def close(self) -> None:
        self._handle.update(self._html(""))


def _bar() -> _Bar | None:
    """The bar that suits the place where Python runs."""
    shell = sys.modules.get("IPython")
    if shell is not None and type(shell.get_ipython()).__name__ == "ZMQInteractiveShell":
        return _Notebook()
    return _Terminal() if sys.stderr is not None and sys.stderr.isatty() else None


class _Show:
    """Shows progress once the work takes longer than a moment."""

    def __init__(self) -> None:
        self._start = time.monotonic()
        self._bar: _Bar | None = None

    def __call__(self, done: int, total: int, message: str) -> None:
        logger.debug("%d of %d %s", done, total, message)
        if time.monotonic() - self._start > PATIENCE:
            self._bar = self._bar or _bar()
            if self._bar is not None:
                self._bar.update(done, total, message)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def note(text: str) -> None:
    logger.info("%s", text)
    warnings.warn(text, MercerWarning, stacklevel=_depth())


def _depth() -> int:
    """The number of frames of this package above the caller, so that a warning names the user's line."""
    depth, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("mercer"):
        depth, frame = depth + 1, frame.f_back
    return depth


@contextlib.contextmanager
def resources(memory: int | str | None, threads: int | None, progress: bool | Progress | None) -> Iterator[Resources]:
    """What a call may use, from its keywords.

    Parameters
    ----------
    memory : int or str, optional
        The limit in bytes, or a text such as ``"4GiB"``.
    threads : int, optional
        The number of threads; without it ``OMP_NUM_THREADS``, or one per core.
    progress : bool or callable, optional
        Whether to show a bar, or a function ``progress(done, total, message)``. By default a bar in terminals and
        notebooks.
    """
    from mercer import _mercer

    size = _mercer.size(memory) if isinstance(memory, str) else memory
    show = _Show() if progress is None or progress is True else None
    callback: Progress | None = show if show is not None else progress if callable(progress) else None
    try:
        yield Resources(size, threads, callback, note)
    finally:
        if show is not None:
            show.close()
