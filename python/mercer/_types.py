"""The types of keywords, from the names of the flags' values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mercer._jobs import Flag

_PATH = "str | os.PathLike[str]"

#: The type in a stub, and in documentation.
_TYPES = {
    "[NAME=]FILE[:KEY]": ("_Samples", "array-like, mapping or path"),
    "FILE[:KEY]": ("_ArrayLike", "array-like or path"),
    "FILE": (f"_ArrayLike | {_PATH}", "array-like or path"),
    "GRAM": (f"_ArrayLike | {_PATH} | Sequence[_ArrayLike | {_PATH}]", "array-like, path, or several"),
    "MODEL.onnx": (f"Network | {_PATH}", "Network or path"),
    "FILE.toml": (f"Mapping[str, Any] | {_PATH}", "mapping or path"),
    "FILE.toml|MODEL.onnx": (f"Network | Mapping[str, Any] | {_PATH}", "Network, mapping or path"),
    "FILE|A,B,…": (f"Sequence[str] | {_PATH}", "sequence of str, or path"),
    "DIR": (f"Outcome | Saved | {_PATH}", "Outcome, Saved or path"),
    "RESULT": (f"Outcome | {_PATH}", "Outcome or path"),
    "PATH": (_PATH, "path"),
    "FILE.safetensors": (_PATH, "path"),
    "FILE.json": (_PATH, "path"),
    "N": ("int", "int"),
    "K": ("int", "int"),
    "M": ("int", "int"),
    "D": ("int", "int"),
    "SIZE": ("int | str", "int or str"),
    "NUMBERS": ("float | Sequence[float]", "float or sequence of float"),
    "EPOCHS": ("int | Sequence[int]", "int or sequence of int"),
    "GLOB": ("str | Sequence[str]", "str or sequence of str"),
    "BOOL": ("bool", "bool"),
    **dict.fromkeys(
        ["FACTOR", "FRACTION", "LOSS", "NUMBER", "RATE", "SCORE", "SHARE", "SIGMA", "STEP", "STRENGTH", "TIME", "VARIANCE"],
        ("float | str", "float or str"),
    ),
}


def _entry(flag: Flag) -> tuple[str, str]:
    if flag.value is None:
        return "bool", "bool"
    if flag.choices:
        names = [choice for choice, _ in flag.choices]
        listed = ", ".join(f'"{name}"' for name in names)
        stub, text = f"Literal[{listed}]", "{" + listed + "}"
    else:
        stub, text = _TYPES.get(flag.value, ("str", "str"))
    if flag.repeated and "Sequence" not in stub and stub not in ("_Samples", "_ArrayLike"):
        stub, text = f"{stub} | Sequence[{stub}]", f"{text}, or several"
    if flag.optional_value:
        stub, text = f"{stub} | bool", f"{text} or bool"
    return stub, text


def stub(flag: Flag) -> str:
    """The type of a flag's keyword in a stub."""
    return _entry(flag)[0]


def shown(flag: Flag) -> str:
    """The type of a flag's keyword in documentation."""
    return _entry(flag)[1]
