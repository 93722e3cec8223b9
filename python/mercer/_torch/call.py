"""What the module takes and returns."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mercer._arrays import AnyArray
from mercer._torch.errors import ExportError, class_of, reason
from mercer._torch.module import state

if TYPE_CHECKING:
    import torch

# The exporters see this many samples. One sample would hide the batch axis from operators that drop axes of size one.
SAMPLES = 2


@dataclasses.dataclass(frozen=True)
class Call:
    """A call of a module as a function of tensors alone.

    `leaves` are all values of the call, and `inputs` the tensors among them, by name.
    """

    module: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    leaves: list[Any]
    structure: Any

    @classmethod
    def read(cls, module: torch.nn.Module, examples: Any) -> Call:
        from torch.utils import _pytree as pytree

        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        if isinstance(examples, Mapping):
            kwargs = dict(examples)
        elif isinstance(examples, (tuple, list)):
            args = tuple(examples)
        else:
            args = (examples,)
        _, structure = pytree.tree_flatten((args, kwargs))
        device, dtype = _home(module)
        leaves: list[Any] = []
        inputs: dict[str, torch.Tensor] = {}
        taken = set(state(module))
        for label, value in zip(_labels(module, args, kwargs), (*args, *kwargs.values()), strict=True):
            parts = [_tensor(part, device, dtype) for part in pytree.tree_leaves(value)]
            found = tensors(parts)
            for tensor in found:
                inputs[_free(label if len(found) == 1 else f"{label}_{len(inputs)}", taken)] = tensor
            leaves += parts
        _check_samples(module, inputs)
        return cls(module, inputs, leaves, structure)

    @property
    def samples(self) -> int:
        """The number of samples of the examples."""
        return len(next(iter(self.inputs.values())))

    def run(self, given: Iterable[torch.Tensor]) -> Any:
        """Call the module on other tensors."""
        import torch
        from torch.utils import _pytree as pytree

        queue = iter(given)
        leaves = [next(queue) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return self.module(*args, **kwargs)

    def outputs(self) -> dict[str, torch.Tensor]:
        """What the module computes from the examples, by name."""
        name = class_of(self.module)
        try:
            results = self.run(tensor.clone() for tensor in self.inputs.values())
        except Exception as error:
            raise ExportError(
                f"{name} fails on the example inputs: {reason(error)}",
                hints=["check shapes and types of the examples, and that module and examples are on the same device"],
            ) from error
        found = tensors(results)
        if not found:
            message = f"{name} returns {class_of(results)} without a tensor"
            raise ExportError(message, hints=["wrap it to return tensors"])
        labels = ["output"] if len(found) == 1 else [f"output_{at}" for at in range(len(found))]
        if isinstance(results, Mapping) and len(results) == len(found):
            labels = [f"output_{key}" if str(key).isdigit() else str(key) for key in results]
        taken = {*self.inputs, *state(self.module)}
        return {_free(label, taken): output for label, output in zip(labels, found, strict=True)}

    def few(self, count: int = SAMPLES) -> tuple[torch.Tensor, ...]:
        """As many samples as the exporters need."""
        import torch

        repeated = (torch.cat([each] * count) if len(each) < count else each for each in self.inputs.values())
        return tuple(tensor[:count].clone() for tensor in repeated)

    def adapter(self) -> torch.nn.Module:
        """A module that maps tensors to tensors, and has the state of the module under the same names."""
        import torch

        call, module = self, self.module

        class Adapter(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                # The very dictionaries of the module, so that names have no prefix.
                self._parameters = module._parameters
                self._buffers = module._buffers
                self._modules = module._modules
                self._non_persistent_buffers_set = module._non_persistent_buffers_set
                self.training = False

            def forward(self, *given: torch.Tensor) -> tuple[torch.Tensor, ...]:
                return tensors(call.run(given))

            def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
                # Modules may rename their state for checkpoints. The exporter has to see the real names.
                destination = {} if destination is None else destination
                for name, tensor in state(module).items():
                    destination[prefix + name] = tensor if keep_vars else tensor.detach()
                return destination

        return Adapter()


def tensors(values: Any) -> tuple[torch.Tensor, ...]:
    """The tensors among nested values."""
    import torch
    from torch.utils import _pytree as pytree

    return tuple(value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor))


def to_numpy(tensor: torch.Tensor) -> AnyArray:
    """A copy. NumPy has no type for bfloat16, which becomes float32."""
    import torch

    tensor = tensor.detach().cpu()
    array: AnyArray = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()
    return array


def _labels(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[str]:
    """The names of arguments: those of the module's `forward`, if they are known."""
    known: list[str] = []
    # The signature of a compiled or scripted `forward` may be unknown.
    with contextlib.suppress(TypeError, ValueError):
        for name, parameter in inspect.signature(module.forward).parameters.items():
            if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
                known.append(name)
    positional = [known[at] if at < len(known) else f"input_{at}" for at in range(len(args))]
    return positional + list(kwargs)


def _home(module: torch.nn.Module) -> tuple[torch.device, torch.dtype]:
    """Where the parameters are, and their type."""
    import torch

    for tensor in (*module.parameters(), *module.buffers()):
        if tensor.is_floating_point():
            return tensor.device, tensor.dtype
    return torch.device("cpu"), torch.get_default_dtype()


def _tensor(value: Any, device: torch.device, dtype: torch.dtype) -> Any:
    """An array as a tensor of the module's type; other values as they are."""
    import torch

    if isinstance(value, np.ndarray):
        value = torch.from_numpy(np.array(value, order="C")).to(device)
        return value.to(dtype) if value.is_floating_point() else value
    return value.detach() if isinstance(value, torch.Tensor) else value


def _check_samples(module: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> None:
    if not inputs:
        raise ExportError(f"the examples for {class_of(module)} hold no tensor", hints=["pass the inputs of one call"])
    counts = {len(tensor) if tensor.ndim else 0 for tensor in inputs.values()}
    if len(counts) > 1 or 0 in counts:
        shapes = ", ".join(f"{name} {list(tensor.shape)}" for name, tensor in inputs.items())
        raise ExportError(
            f"the inputs of {class_of(module)} do not hold the same samples along their first axes: {shapes}",
            hints=["pass tensors whose first axis counts samples, and wrap the module if it needs others"],
        )


def _free(name: str, taken: set[str]) -> str:
    """The name or a similar one that is free, which is then taken."""
    free, count = name, 1
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    taken.add(free)
    return free
