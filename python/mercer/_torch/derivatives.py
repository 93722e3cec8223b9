"""Derivatives, of which ONNX knows nothing: Mercer differentiates the formula that is in the file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mercer._torch.call import Call, tensors
from mercer._torch.errors import ExportError, class_of, reason
from mercer._torch.lines import caller

if TYPE_CHECKING:
    import torch


def derivatives(call: Call, trainable: dict[str, torch.nn.Parameter]) -> tuple[set[str], str | None]:
    """The names of parameters that no output depends on, and a function with a derivative of its own, if there is one.

    Refuse a module that stops gradients.
    """
    import torch

    with torch.enable_grad():
        try:
            results, stop = _run_watching_stops(call)
        except Exception as error:
            raise ExportError(
                f"{class_of(call.module)} fails while gradients are enabled: {reason(error)}",
                hints=["do not change parameters in forward: tangent kernels need gradients"],
            ) from error
        if stop is not None:
            raise ExportError(
                f"{stop}, which a file cannot express",
                hints=[
                    "remove detach() or no_grad() there",
                    "freeze the parameters before it by requires_grad_(False)",
                ],
            )
        ends = [result for result in results if result.requires_grad]
        if not ends or not trainable:
            return set(trainable), None
        total = torch.stack([end.sum().double() for end in ends]).sum()
        gradients = torch.autograd.grad(total, list(trainable.values()), retain_graph=True, allow_unused=True)
        idle = {name for name, gradient in zip(trainable, gradients, strict=True) if gradient is None}
        return idle, _custom_function(ends)


def _run_watching_stops(call: Call) -> tuple[tuple[torch.Tensor, ...], str | None]:
    """The outputs; and what stopped a gradient on the way to them, if anything did."""
    import torch
    from torch.overrides import TorchFunctionMode

    # Tensors that depend on a parameter without its gradient: the tensor, which is kept so that no identity is used
    # twice, what stopped the gradient, and whether the tensor had no gradient at all. A function with its own
    # derivative stops gradients inside, and gives its results one afterwards.
    stopped: dict[int, tuple[torch.Tensor, str, bool]] = {}

    def has_gradient(tensor: torch.Tensor) -> bool:
        return tensor.requires_grad or not tensor.is_floating_point()

    def find(values: Iterable[torch.Tensor]) -> str | None:
        for value in values:
            _, stop, bare = stopped.get(id(value), (None, None, False))
            if stop is not None and not (bare and value.requires_grad):
                return stop
        return None

    class Watch(TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            name = getattr(func, "__name__", "")
            # These take the shape alone.
            if name.endswith("_like") or name.startswith("new_"):
                return result
            given = tensors((args, kwargs))
            made = given[:1] if name == "__setitem__" else tensors(result)
            stop = find(given)
            if stop is None and any(tensor.requires_grad for tensor in given):
                made = tuple(tensor for tensor in made if not has_gradient(tensor))
                if made:
                    line, method = caller("torch.")
                    stop = f"{method} stops gradients (`{line.text}`)"
            if stop is not None:
                stopped.update((id(tensor), (tensor, stop, not has_gradient(tensor))) for tensor in made)
            return result

    with Watch():
        results = tensors(call.run(call.few()))
    return results, find(results)


def _custom_function(ends: Sequence[torch.Tensor]) -> str | None:
    """A function among those that computed some tensors whose derivative is written in Python."""
    import torch

    seen: set[Any] = set()
    waiting = [end.grad_fn for end in ends]
    while waiting:
        node: Any = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        name = class_of(node).removesuffix("Backward")
        if isinstance(node, torch.autograd.function.BackwardCFunction) and name != "CheckpointFunction":
            return name
        waiting.extend(before for before, _ in node.next_functions)
    return None
