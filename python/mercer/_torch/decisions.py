"""Decisions of the module by the values of its inputs, which a file cannot hold."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mercer._torch.call import tensors
from mercer._torch.errors import ExportError
from mercer._torch.lines import Line, caller

if TYPE_CHECKING:
    import torch


def check_decisions(
    name: str,
    adapter: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    caught: Sequence[warnings.WarningMessage],
) -> None:
    """Refuse a module that takes numbers out of tensors that depend on its inputs.

    Tracing writes such numbers, and what was decided by them, into the file as they are for the example. It warns of
    every number taken out of a tensor, also of sizes and of numbers of the module, which are harmless. The module is
    therefore run once more, not traced, and watched at the lines of these warnings.
    """
    messages = ((Line(warning.filename, warning.lineno), str(warning.message)) for warning in caught)
    suspects = {line: text for line, text in messages if text.startswith("Converting a tensor")}
    for line, text in suspects.items():
        if "NumPy array" in text or "Python list" in text:
            raise _refusal(f"{name} computes outside of PyTorch", line)
    for line, method in _reads(adapter, inputs) if suspects else ():
        # What an assertion finds does not change the outputs.
        if line in suspects and not line.text.startswith("assert"):
            raise _refusal(f"{method} decides by the values of its inputs", line)


def _refusal(what: str, line: Line) -> ExportError:
    message = f"{what} (`{line.text}`), and the file would hold only what happens for the example"
    return ExportError(message, hints=["write this line with tensors alone, such as torch.where for a condition"])


def _reads(adapter: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> list[tuple[Line, str]]:
    """Where the module takes numbers out of tensors that depend on its inputs: the lines and the methods.

    Storages are followed rather than tensors, so that views and changes in place are seen.
    """
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    reading = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default)
    between = ("torch.utils.", "torch._ops", "torch._C", "torch._dynamo.", "torch._compile")
    # Kept alive, so that no address is used twice.
    known: dict[int, Any] = {}
    found: list[tuple[Line, str]] = []

    def storages(values: Any) -> list[Any]:
        return [tensor.untyped_storage() for tensor in tensors(values) if tensor.layout == torch.strided]

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if any(storage._cdata in known for storage in storages((args, kwargs))):
                known.update((storage._cdata, storage) for storage in storages(result))
                if func in reading:
                    found.append(caller(*between))
            return result

    known.update((storage._cdata, storage) for storage in storages(inputs))
    with Watch():  # type: ignore[no-untyped-call]
        adapter(*inputs)
    return found
