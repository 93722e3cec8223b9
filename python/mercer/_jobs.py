"""The jobs of the command line as functions.

The extension module describes every command and its flags. A function of the package has one keyword per flag, with
underscores for dashes, and its documentation is the help of the command. A command that is added to the program is a
function here without more.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from mercer import _mercer
from mercer._errors import Error
from mercer._outcome import Outcome, Place
from mercer._resources import resources

#: Commands that are not functions: what they do has another place in Python.
_HIDDEN = {("completions",), ("manual",), ("kernel",)}

#: Flags that are not keywords: they concern the terminal.
_TERMINAL = {"json", "quiet", "verbose", "help", "version"}

#: Keywords of every function, which are not flags of the line.
_COMMON = ("memory", "threads", "progress")

#: Functions whose work a Dask cluster can share, with the keyword ``client``.
SHARED = {("explain",)}

#: The name of a temporary result: commands that write an array need its ending.
_RESULTS: dict[tuple[str, ...], str] = {("predict",): "predictions.npy", ("kernel",): "kernel.npy", ("report",): "report.html"}

def _keyword(flag: str) -> str:
    """The name of a flag in Python."""
    name = flag.replace("-", "_")
    return f"{name}_" if iskeyword(name) else name


@dataclass(frozen=True)
class Flag:
    """A flag of a command."""

    name: str
    dashed: str | None
    help: str
    value: str | None
    optional_value: bool
    delimiter: str | None
    repeated: bool
    required: bool
    defaults: list[str]
    choices: list[tuple[str, str]]

    @property
    def keyword(self) -> str:
        """The name in Python."""
        return _keyword(self.name)

    @property
    def takes_samples(self) -> bool:
        """Whether its value is an array of samples or labels."""
        return self.value in ("[NAME=]FILE[:KEY]", "FILE[:KEY]")

    @property
    def takes_labels(self) -> bool:
        """Whether its value is an array of labels."""
        return self.takes_samples and self.name.endswith("labels")


@dataclass(frozen=True)
class Command:
    """A command with its flags."""

    path: tuple[str, ...]
    about: str
    more: str
    flags: tuple[Flag, ...]

    @property
    def name(self) -> str:
        """As it is written: ``fit ridge``."""
        return " ".join(self.path)

    @functools.cached_property
    def keywords(self) -> dict[str, Flag]:
        """The flags that are keywords."""
        flags = (flag for flag in self.flags if flag.name not in _TERMINAL and flag.name not in _COMMON)
        return {flag.keyword: flag for flag in flags}


@functools.cache
def commands() -> dict[tuple[str, ...], Command]:
    """All commands that are functions, and ``kernel``."""
    found = {}
    for entry in _mercer.describe():
        path = tuple(entry["path"])
        flags = tuple(Flag(**flag) for flag in entry["flags"])
        found[path] = Command(path, entry["about"], entry["more"], flags)
    return found


@dataclass
class _Line:
    """The command line that stands for a call, and the arrays that it names."""

    words: list[str]
    arrays: list[tuple[str, Any]] = field(default_factory=list)
    folders: list[tuple[str, bytes]] = field(default_factory=list)
    folder: tempfile.TemporaryDirectory[str] | None = None
    classes: list[str] | None = None

    def file(self, name: str) -> str:
        """A path for a temporary file."""
        if self.folder is None:
            self.folder = tempfile.TemporaryDirectory(prefix="mercer-", ignore_cleanup_errors=True)
        return os.path.join(self.folder.name, name)

    def add(self, flag: Flag, *values: str) -> None:
        """A flag with its values."""
        if flag.dashed is None:
            self.words += values
        elif not values:
            self.words.append(flag.dashed)
        else:
            self.words += [f"{flag.dashed}={value}" for value in values]

    def give(self, name: str, array: Any) -> str:
        """Text that names an array."""
        names = {given for given, _ in self.arrays}
        unique = name
        while unique in names:
            unique += "'"
        self.arrays.append((unique, array))
        return "\0" + unique


def call(path: tuple[str, ...], keywords: Mapping[str, Any]) -> Outcome:
    """Run a command with these keywords."""
    if path in SHARED and keywords.get("client") is not None:
        from mercer import _cluster

        rest = {key: value for key, value in keywords.items() if key != "client"}
        _check(commands()[path], {key: value for key, value in rest.items() if key not in _COMMON})
        shared: Outcome = _cluster.explain(keywords["client"], rest)
        return shared
    command = commands()[path]
    settings = {key: value for key, value in keywords.items() if value is not None}
    common = {key: settings.pop(key, None) for key in _COMMON}
    _check(command, settings)
    line = _Line(list(path))
    place = Place(None)
    if "out" in command.keywords:
        place = Place.new(settings.pop("out", None), _RESULTS.get(path, "result"))
        line.add(command.keywords["out"], str(place.path))
    for key, value in settings.items():
        _append(line, command.keywords[key], value)
    if line.classes is not None and "classes" in command.keywords and "classes" not in settings:
        _append(line, command.keywords["classes"], line.classes)
    with resources(**common) as use:
        text = _mercer.call(line.words, line.arrays, use, line.folders)
    return Outcome(command.name, json.loads(text) if text.strip() else {}, place)


def _check(command: Command, settings: Mapping[str, Any]) -> None:
    """Every keyword is known, and those that are needed are there."""
    import difflib

    known = [*command.keywords, *_COMMON]
    for key in settings:
        if key not in command.keywords:
            near = difflib.get_close_matches(key, known, 3)
            hint = [f"did you mean {' or '.join(near)}?"] if near else [f"it takes {', '.join(sorted(known))}"]
            raise Error(f"{command.name} has no keyword {key}", "unknown-keyword", hint)
    for key, flag in command.keywords.items():
        if flag.required and key != "out" and key not in settings:
            raise Error(f"{command.name} needs {key}: {flag.help}", "missing-keyword")


def _append(line: _Line, flag: Flag, value: Any) -> None:
    """Add a keyword to the line."""
    from mercer._network import Network
    from mercer._saved import Saved

    if flag.value is None:
        if not isinstance(value, bool):
            raise Error(f"{flag.keyword} is True or False, not {value!r}")
        if value:
            line.add(flag)
    elif isinstance(value, bool):
        if value and flag.optional_value:
            line.add(flag)
        elif value or flag.optional_value is False:
            line.add(flag, str(value).lower())
    elif isinstance(value, Network):
        line.add(flag, value.path)
        line.words += value.flags()
    elif isinstance(value, Saved):
        line.add(flag, "\0" + flag.keyword)
        line.folders += value.named(flag.keyword)
    elif isinstance(value, (str, os.PathLike)):
        line.add(flag, os.fspath(value))
    elif flag.takes_labels:
        line.add(flag, _labels(line, flag, value))
    elif flag.takes_samples:
        line.add(flag, *_samples(line, flag, value))
    elif flag.value in ("FILE", "GRAM") and not isinstance(value, (int, float)):
        line.add(flag, *_files(line, flag, value))
    elif flag.value.startswith("FILE.toml") and isinstance(value, Mapping):
        from mercer._network import _toml

        path = line.file(f"{flag.name}.toml")
        with open(path, "w", encoding="utf-8") as file:
            file.write(_toml(value))
        line.add(flag, path)
    elif flag.name == "classes":
        path = line.file("classes.txt")
        with open(path, "w", encoding="utf-8") as file:
            file.write("\n".join(str(name) for name in value) + "\n")
        line.add(flag, path)
    elif isinstance(value, (list, tuple)) or hasattr(value, "tolist"):
        values = value.tolist() if hasattr(value, "tolist") else value
        texts = [_text(each) for each in (values if isinstance(values, (list, tuple)) else [values])]
        line.add(flag, *([flag.delimiter.join(texts)] if flag.delimiter else texts))
    else:
        line.add(flag, _text(value))


def _text(value: Any) -> str:
    """A number, a text or a path as it is written on the command line."""
    if isinstance(value, os.PathLike):
        return str(os.fspath(value))
    return repr(value) if isinstance(value, float) else str(value)


def _samples(line: _Line, flag: Flag, value: Any) -> list[str]:
    from mercer._arrays import as_array

    if isinstance(value, Mapping):
        return [_one(line, str(key), each) for key, each in value.items()]
    if isinstance(value, tuple) and flag.repeated:
        return [_one(line, f"{flag.keyword}[{index}]", each) for index, each in enumerate(value)]
    return [line.give(flag.keyword, as_array(value, flag.keyword))]


def _one(line: _Line, name: str, value: Any) -> str:
    """One of several inputs: an array, or a file."""
    from mercer._arrays import as_array

    if isinstance(value, (str, os.PathLike)):
        return f"{name}={os.fspath(value)}"
    return line.give(name, as_array(value, name))


def _labels(line: _Line, flag: Flag, value: Any) -> str:
    """Labels as numbers; texts are numbered in the order of the first labels' names."""
    import numpy as np

    from mercer._arrays import as_labels

    codes, names = as_labels(value, flag.keyword)
    if names is not None and line.classes is not None:
        unknown = [name for name in names if name not in line.classes]
        if unknown:
            raise Error(f"{flag.keyword}: the class {unknown[0]!r} is not among the training labels", "labels")
        codes = np.asarray([line.classes.index(name) for name in names], dtype=np.int64)[codes]
    elif names is not None:
        line.classes = names
    return line.give(flag.keyword, codes)


def _files(line: _Line, flag: Flag, value: Any) -> list[str]:
    """Matrices as files, because these flags take stores, too."""
    import numpy as np

    from mercer._arrays import as_array

    if isinstance(value, (list, tuple)) and flag.repeated:
        return [path for each in value for path in _files(line, flag, each)]
    if isinstance(value, (str, os.PathLike)):
        return [os.fspath(value)]
    path = line.file(f"{flag.name}-{len(line.words)}.npy")
    np.save(path, as_array(value, flag.keyword))
    return [path]


def function(path: tuple[str, ...]) -> Callable[..., Outcome]:
    """The function of a command."""

    def run(**keywords: Any) -> Outcome:
        return call(path, keywords)

    return _described(run, path, [])


def group(word: str, members: Iterable[str]) -> object:
    """The functions of the commands with this first word: ``fit.ridge(...)``, or ``fit("ridge", ...)``."""

    def dispatch(self: object, name: str, /, **keywords: Any) -> Outcome:
        path = (word, name.replace("_", "-"))
        if path not in commands():
            known = ", ".join(sub for first, *rest in commands() if first == word for sub in rest)
            raise Error(f"{word}: there is no {name}", "unknown-name", [f"one of {known}"])
        return call(path, keywords)

    def method(path: tuple[str, ...]) -> Callable[..., Outcome]:
        def run(self: object, **keywords: Any) -> Outcome:
            return call(path, keywords)

        return _described(run, path, [inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)])

    content: dict[str, Any] = {member.replace("-", "_"): method((word, member)) for member in members}
    content["__call__"] = dispatch
    content["__repr__"] = lambda self: f"<functions mercer.{word}>"
    content["__doc__"] = group.__doc__
    content["__module__"] = "mercer"
    return type(f"_{word.title()}", (), content)()


def _described(run: Any, path: tuple[str, ...], first: list[inspect.Parameter]) -> Callable[..., Outcome]:
    """A function with the signature and the documentation of a command."""
    command = commands()[path]
    run.__name__ = path[-1].replace("-", "_")
    run.__qualname__ = run.__name__ if len(path) == 1 else f"_{path[0].title()}.{run.__name__}"
    run.__module__ = "mercer"
    run.__signature__ = inspect.Signature([*first, *parameters(command)])
    run.__doc__ = documentation(command)
    described: Callable[..., Outcome] = run
    return described


def parameters(command: Command) -> list[inspect.Parameter]:
    """The keywords of a function."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    needed, others = [], []
    for name, flag in command.keywords.items():
        if flag.required and name != "out":
            needed.append(inspect.Parameter(name, keyword))
        else:
            others.append(inspect.Parameter(name, keyword, default=None))
    common = [*_COMMON, *(["client"] if command.path in SHARED else [])]
    return [*needed, *others, *(inspect.Parameter(name, keyword, default=None) for name in common)]


def documentation(command: Command) -> str:
    """The help of a command in the style of NumPy."""
    from mercer._types import shown

    lines = [command.about + ".", "", "Parameters", "----------"]
    flags = sorted(command.keywords.items(), key=lambda item: not item[1].required)
    for name, flag in flags:
        lines.append(f"{name} : {shown(flag)}{'' if flag.required and name != 'out' else ', optional'}")
        default = f" Default: {', '.join(flag.defaults)}." if flag.defaults and flag.value is not None else ""
        lines.append(f"    {_in_python(flag.help.rstrip('.'))}.{default}")
        lines += [f"    - ``{choice}``: {text}" for choice, text in flag.choices if text]
    lines += ["memory : int or str, optional", "    Memory limit in bytes, or as ``\"4GiB\"``."]
    lines += ["threads : int, optional", "    Number of threads; this does not change the results."]
    lines += ["progress : bool or callable, optional", "    Whether to show progress, or a function that is told."]
    if command.path in SHARED:
        lines += ["client : distributed.Client, optional", "    A Dask cluster whose workers compute the kernel values."]
    lines += ["", "Returns", "-------", "Outcome", "    Findings, arrays and figures."]
    return "\n".join(lines)


def _in_python(text: str) -> str:
    """Help of the command line, with keywords for flags."""
    return re.sub(r"--([a-z][a-z-]*)", lambda match: f"``{_keyword(match[1])}``", text)


def public() -> dict[str, Sequence[str] | None]:
    """The names of all functions, and of the members of groups."""
    found: dict[str, list[str] | None] = {}
    for path in commands():
        if path in _HIDDEN:
            continue
        if len(path) == 1:
            found[path[0]] = None
        else:
            members = found.setdefault(path[0], [])
            if members is not None:
                members.append(path[1])
    return dict(found)
