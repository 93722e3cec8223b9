"""Exports modules of PyTorch to ONNX, so that Mercer gets exactly the module's parameters.

A tangent kernel depends on the parameters, not on the function alone. Exporters are free to change them: they fold
batch normalisation into convolutions, multiply and transpose weights in advance, store equal tensors once, and drop
biases of zeros. This module exports without any of that, and then checks the file.

How the parameters are kept
---------------------------
- PyTorch's exporter by tracing (``dynamo=False``) comes first. It needs nothing besides torch. Without constant folding
  and in ``TrainingMode.PRESERVE`` it folds nothing; the module itself is in evaluation mode.
- ``keep_initializers_as_inputs=True`` is the documented way to leave out the pass that stores equal tensors once.
  Tensors are then told apart by identity, as in ``module.parameters()``: a tied parameter is one object and one tensor,
  and parameters that happen to be equal are several. Perturbing the numbers before the export and restoring them later
  would change the module meanwhile. Separating merged tensors on reading (Mercer's ``--unmerge``) would rely on what
  the file tells about them. Neither is needed.
- The exporter by ``torch.export`` (``dynamo=True, optimize=False``) takes over if tracing fails and the packages
  ``onnx`` and ``onnxscript`` are installed.
- The file is then read back by a small reader of the protobuf wire format. Every trainable parameter must be there
  under its own name, with its own numbers. Parameters that the outputs do not depend on are added, because they count
  too. Copies of tensors (``Identity``) are replaced by the tensors. Anything else is an error.
- The lists `Exported.include` and `Exported.exclude` name all floating-point tensors of the file. Nothing is left to
  a guess: frozen parameters, buffers and numbers of formulas are constants.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import importlib.util
import inspect
import io
import linecache
import logging
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import torch

__all__ = ["ExportError", "Exported", "export"]

# Tracing writes opset 17 for everything that Mercer reads. The other exporter starts at 18.
_OPSET_OF_TRACING = 17
_OPSET_OF_EXPORT = 20

# Tracing sees this many samples. One sample would hide the batch axis from operators that drop axes of size one.
_SAMPLES = 2

# In bytes; a limit of protobuf.
_LARGEST_FILE = 2**31

_LONGEST_REASON = 300


class ExportError(Exception):
    """A module that cannot be exported. The message says which part of it, why, and what to do."""


@dataclasses.dataclass(frozen=True)
class Exported:
    """A module as an ONNX file.

    Attributes
    ----------
    onnx : bytes
        The file. It refers to no other files.
    unmerge : bool
        Whether tensors that the module has apart were merged and have to be separated on reading.
    include : tuple of str, or None
        The names of the tensors that are parameters. None would leave the choice to Mercer.
    exclude : tuple of str
        The names of all other floating-point tensors.
    inputs : tuple of str
        The names of the inputs, in the order of the examples.
    example_outputs : tuple of numpy.ndarray
        What the module computes from the examples in evaluation mode.
    """

    onnx: bytes
    unmerge: bool
    include: tuple[str, ...] | None
    exclude: tuple[str, ...]
    inputs: tuple[str, ...]
    example_outputs: tuple[np.ndarray[Any, Any], ...]


def export(module: torch.nn.Module, example_inputs: Any) -> Exported:
    """Export a module to ONNX with exactly its own parameters.

    The module is exported in evaluation mode: dropout is off, and batch normalisation uses its running statistics. The
    parameters of the kernel are the tensors of ``module.parameters()`` that require gradients. The module is left as it
    was, with its training flags, gradients, buffers and the state of PyTorch's random numbers.

    Parameters
    ----------
    module : torch.nn.Module
        The module.
    example_inputs : tensor, array, tuple or dict
        Inputs of the module: one, several by position (tuple or list), or several by keyword (dict). Samples are along
        the first axis of each, and any number of samples is allowed later. Other axes keep the size that they have
        here. Values that are not tensors or arrays, such as flags, are fixed.

    Returns
    -------
    Exported
        The file, and how Mercer has to read it.

    Raises
    ------
    ExportError
        If the module cannot be exported.
    """
    import torch

    if not isinstance(module, torch.nn.Module):
        raise ExportError(f"{_class(module)} is not a torch.nn.Module. Pass the module itself.")
    _check_kind(module)
    call = _Call.read(module, example_inputs)
    named = module.named_parameters()
    trainable = {name: tensor for name, tensor in named if tensor.requires_grad and tensor.numel() > 0}
    with _undisturbed(module):
        try:
            results = call.run(module, call.tensors)
        except Exception as error:
            raise ExportError(
                f"{_class(module)} fails on the example inputs: {_reason(error)}. "
                "Check the shapes and types of the examples, and that module and examples are on the same device."
            ) from error
        names, outputs = _results(module, results, taken=(*call.names, *_state(module)))
        idle, function = _derivatives(module, call, trainable)
        with _padding(module):
            file = _write(module, call, names, outputs, function)
        graph = _Graph(file)
        graph.settle(_aliases(module))
        _complete(module, graph, trainable, idle)
        include, exclude = _selection(module, graph, trainable)
        example_outputs = tuple(_to_numpy(output) for output in outputs)
    if function is not None:
        warnings.warn(
            f"{_class(module)} uses {function}, which defines its own derivative. Mercer takes the derivative of its "
            "forward pass.",
            stacklevel=2,
        )
    return Exported(graph.to_bytes(), False, include, exclude, call.names, example_outputs)


# What the module takes and returns.


@dataclasses.dataclass(frozen=True)
class _Call:
    """A call of a module as a function of tensors alone.

    `leaves` are the values of the call, with None in the places of tensors.
    """

    names: tuple[str, ...]
    tensors: tuple[torch.Tensor, ...]
    leaves: tuple[Any, ...]
    places: tuple[int, ...]
    structure: Any

    @classmethod
    def read(cls, module: torch.nn.Module, examples: Any) -> _Call:
        import torch
        from torch.utils import _pytree as pytree

        args: tuple[Any, ...] = ()
        kwargs: dict[str, Any] = {}
        if isinstance(examples, Mapping):
            kwargs = dict(examples)
        elif isinstance(examples, (tuple, list)):
            args = tuple(examples)
        else:
            args = (examples,)
        labels = _labels(module, args, kwargs)
        _, structure = pytree.tree_flatten((args, kwargs))
        device, dtype = _home(module)
        leaves: list[Any] = []
        names: list[str] = []
        tensors: list[torch.Tensor] = []
        places: list[int] = []
        taken = set(_state(module))
        for label, value in zip(labels, (*args, *kwargs.values()), strict=True):
            parts, _ = pytree.tree_flatten(value)
            arrays = [part for part in parts if isinstance(part, (torch.Tensor, np.ndarray))]
            for part in parts:
                if not isinstance(part, (torch.Tensor, np.ndarray)):
                    leaves.append(part)
                    continue
                if isinstance(part, np.ndarray):
                    part = torch.as_tensor(part, device=device)
                    part = part.to(dtype) if part.is_floating_point() else part
                count = len(tensors)
                name = label if len(arrays) == 1 else f"{label}_{count}"
                names.append(_free(name, taken))
                places.append(len(leaves))
                tensors.append(part.detach())
                leaves.append(None)
        _check_samples(module, names, tensors)
        return cls(tuple(names), tuple(tensors), tuple(leaves), tuple(places), structure)

    def run(self, module: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> Any:
        """Call the module on other tensors."""
        from torch.utils import _pytree as pytree

        leaves = list(self.leaves)
        for place, tensor in zip(self.places, tensors, strict=True):
            leaves[place] = tensor
        args, kwargs = pytree.tree_unflatten(leaves, self.structure)
        return module(*args, **kwargs)

    def few(self, count: int = _SAMPLES) -> tuple[torch.Tensor, ...]:
        """As many samples as tracing needs."""
        import torch

        repeated = (torch.cat([tensor] * count) if len(tensor) < count else tensor for tensor in self.tensors)
        return tuple(tensor[:count].clone() for tensor in repeated)


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


def _check_samples(module: torch.nn.Module, names: list[str], tensors: list[torch.Tensor]) -> None:
    if not tensors:
        raise ExportError(f"The examples for {_class(module)} hold no tensor. Pass the inputs of one call.")
    sizes = {name: tuple(tensor.shape) for name, tensor in zip(names, tensors, strict=True)}
    counts = {shape[0] if shape else None for shape in sizes.values()}
    if len(counts) > 1 or None in counts or 0 in counts:
        shapes = ", ".join(f"{name} {list(shape)}" for name, shape in sizes.items())
        raise ExportError(
            f"The inputs of {_class(module)} do not hold the same samples along their first axes: {shapes}. "
            "Pass tensors whose first axis counts samples, and wrap the module if it needs others."
        )


def _results(
    module: torch.nn.Module, results: Any, taken: Iterable[str]
) -> tuple[tuple[str, ...], tuple[torch.Tensor, ...]]:
    """The tensors among the results, and their names."""
    keys = list(results) if isinstance(results, Mapping) else []
    outputs = _tensors(results)
    if not outputs:
        raise ExportError(f"{_class(module)} returns {_class(results)} without a tensor. Wrap it to return tensors.")
    if len(keys) == len(outputs):
        labels = [f"output_{key}" if str(key).isdigit() else str(key) for key in keys]
    elif len(outputs) == 1:
        labels = ["output"]
    else:
        labels = [f"output_{at}" for at in range(len(outputs))]
    used = set(taken)
    return tuple(_free(label, used) for label in labels), outputs


def _tensors(results: Any) -> tuple[torch.Tensor, ...]:
    import torch
    from torch.utils import _pytree as pytree

    leaves, _ = pytree.tree_flatten(results)
    return tuple(leaf for leaf in leaves if isinstance(leaf, torch.Tensor))


def _free(name: str, taken: set[str]) -> str:
    """The name or a similar one that is free, which is then taken."""
    free, count = name, 1
    while free in taken:
        count += 1
        free = f"{name}_{count}"
    taken.add(free)
    return free


def _to_numpy(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    import torch

    tensor = tensor.detach().cpu()
    array: np.ndarray[Any, Any] = (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy().copy()
    return array


# The module, which is left as it was.


def _class(thing: object) -> str:
    return type(thing).__name__


def _state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """All parameters and buffers, each once and under its first name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def _aliases(module: torch.nn.Module) -> dict[str, str]:
    """The further names of tied tensors, and the first name of each."""
    pairs = (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
    first: dict[int, str] = {}
    for name, tensor in pairs:
        first.setdefault(id(tensor), name)
    return {name: first[id(tensor)] for name, tensor in pairs if first[id(tensor)] != name}


def _check_kind(module: torch.nn.Module) -> None:
    """Reject modules that are no plain modules."""
    import torch

    if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise ExportError(f"{_class(module)} runs copies of another module. Pass `module.module`.")
    if hasattr(module, "_orig_mod"):
        raise ExportError("The module was compiled by torch.compile. Pass the module from before.")
    if isinstance(module, torch.jit.ScriptModule):
        raise ExportError(f"{_class(module)} was compiled by torch.jit. Pass the module from before.")
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_mean is None:
            raise ExportError(
                f"{_class(part)} has no running statistics, so that its samples depend on each other. Set "
                "track_running_stats=True and train the module."
            )
        if isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and part.max_norm is not None:
            raise ExportError(f"{_class(part)} with max_norm changes its weight in every call. Set max_norm=None.")
    for name, tensor in (*module.named_parameters(), *module.named_buffers()):
        if torch.nn.parameter.is_lazy(tensor):
            raise ExportError(f"{name!r} of {_class(module)} has no shape yet. Call the module once before the export.")
    size = sum(tensor.numel() * tensor.element_size() for tensor in _state(module).values())
    if size >= _LARGEST_FILE:
        raise ExportError(
            f"{_class(module)} has {size / 2**30:.1f} GiB of parameters and buffers, and an ONNX file holds at most "
            "2 GiB. Export a part of the module, or convert it to a smaller type such as torch.bfloat16."
        )


@contextlib.contextmanager
def _undisturbed(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards everything is as before."""
    import torch

    flags = [(part, part.training) for part in module.modules()]
    gradients = [(tensor, tensor.requires_grad) for tensor in module.parameters()]
    buffers = [(buffer, buffer.detach().clone()) for buffer in module.buffers()]
    registered = [(part, dict(part._buffers)) for part in module.modules()]
    cuda: Any = torch.cuda
    devices = range(cuda.device_count()) if cuda.is_initialized() else ()
    # The fast path of attention is one operator for a whole layer, which ONNX does not have.
    fast = torch.backends.mha.get_fastpath_enabled()
    with torch.random.fork_rng(devices=list(devices)), torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.backends.mha.set_fastpath_enabled(False)
            module.eval()
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(fast)
            for part, flag in flags:
                part.training = flag
            for tensor, needs in gradients:
                if tensor.requires_grad != needs:
                    tensor.requires_grad_(needs)
            for part, named in registered:
                part._buffers.update(named)
            for buffer, saved in buffers:
                if not torch.equal(buffer, saved):
                    buffer.copy_(saved)


def _adapter(module: torch.nn.Module, call: _Call) -> torch.nn.Module:
    """A module that maps a list of tensors to a list of tensors, with the state of `module` under the same names."""
    import torch

    class Adapter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            # The very dictionaries of the module, so that names have no prefix.
            self._parameters = module._parameters
            self._buffers = module._buffers
            self._modules = module._modules
            self._non_persistent_buffers_set = module._non_persistent_buffers_set
            self.training = False

        def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return _tensors(call.run(module, tensors))

        def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
            # Modules may rename their state for checkpoints. The exporter has to see the real names.
            destination = {} if destination is None else destination
            for name, tensor in _state(module).items():
                destination[prefix + name] = tensor if keep_vars else tensor.detach()
            return destination

    return Adapter()


# Derivatives, of which ONNX knows nothing: Mercer differentiates the formula that is in the file.


def _derivatives(
    module: torch.nn.Module, call: _Call, trainable: dict[str, torch.nn.Parameter]
) -> tuple[set[str], str | None]:
    """The names of parameters that no output depends on, and a function with a derivative of its own, if there is one.

    Raise if a gradient is stopped.
    """
    import torch

    with torch.enable_grad():
        try:
            results, stop = _run_watching_stops(module, call)
        except Exception as error:
            raise ExportError(
                f"{_class(module)} fails while gradients are enabled: {_reason(error)}. Tangent kernels need "
                "gradients; do not change parameters in forward."
            ) from error
        if stop is not None:
            raise ExportError(
                f"{stop[0]} stops gradients (`{stop[1]}`), which a file cannot express. Remove detach() or no_grad() "
                "there, or freeze the parameters before it by requires_grad_(False)."
            )
        ends = [result for result in results if result.requires_grad]
        if not ends or not trainable:
            return set(trainable), None
        total = torch.stack([end.sum().double() for end in ends]).sum()
        gradients = torch.autograd.grad(total, list(trainable.values()), retain_graph=True, allow_unused=True)
        idle = {name for name, gradient in zip(trainable, gradients, strict=True) if gradient is None}
        return idle, _custom_function(ends)


def _run_watching_stops(
    module: torch.nn.Module, call: _Call
) -> tuple[tuple[torch.Tensor, ...], tuple[str, str] | None]:
    """The outputs; and the method and the line where a gradient was stopped on the way to them, if there is one."""
    import torch
    from torch.overrides import TorchFunctionMode
    from torch.utils import _pytree as pytree

    # Tensors that depend on a parameter without its gradient: the tensor, which is kept so that no identity is used
    # twice, the place of the stop, and whether the tensor had no gradient at all. A function with its own derivative
    # stops gradients inside, and gives its results one afterwards.
    stopped: dict[int, tuple[torch.Tensor, tuple[str, str], bool]] = {}

    def tensors(values: Any) -> list[torch.Tensor]:
        return [value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor)]

    def has_gradient(tensor: torch.Tensor) -> bool:
        return tensor.requires_grad or not tensor.is_floating_point()

    def find(values: Iterable[torch.Tensor]) -> tuple[str, str] | None:
        for value in values:
            _, place, bare = stopped.get(id(value), (None, None, False))
            if place is not None and not (bare and value.requires_grad):
                return place
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
            place = find(given)
            if place is None and any(tensor.requires_grad for tensor in given):
                made = [tensor for tensor in made if not has_gradient(tensor)]
                place = _own_line() if made else None
            if place is not None:
                stopped.update((id(tensor), (tensor, place, not has_gradient(tensor))) for tensor in made)
            return result

    with Watch():
        results = _tensors(call.run(module, call.few()))
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
        name = _class(node).removesuffix("Backward")
        if isinstance(node, torch.autograd.function.BackwardCFunction) and name != "CheckpointFunction":
            return name
        waiting.extend(before for before, _ in node.next_functions)
    return None


def _caller() -> tuple[tuple[str, int], str]:
    """The file and the line that called an operator, and the method of a module that it is part of."""
    frame: Any = sys._getframe(2)
    between = ("torch.utils.", "torch._ops", "torch._C", "torch._dynamo.", "torch._compile")
    while frame.f_globals.get("__name__", "").startswith(between):
        frame = frame.f_back
    return (frame.f_code.co_filename, frame.f_lineno), _method(frame)


def _own_line() -> tuple[str, str]:
    """The innermost method outside of PyTorch, and its line."""
    frame: Any = sys._getframe(2)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("torch."):
        frame = frame.f_back
    return _method(frame), linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()


def _method(frame: Any) -> str:
    """The method of a module that a frame is part of."""
    import torch

    while frame is not None:
        own = frame.f_locals.get("self")
        if isinstance(own, torch.nn.Module) and frame.f_globals.get("__name__") != "torch.nn.modules.module":
            return f"{_class(own)}.{frame.f_code.co_name}"
        frame = frame.f_back
    return "The module"


@contextlib.contextmanager
def _padding(module: torch.nn.Module) -> Iterator[None]:
    """Write into the formula that the row of an embedding for padding has no gradient."""
    import torch

    hooks = []
    for part in module.modules():
        if isinstance(part, torch.nn.Embedding) and part.padding_idx is not None and part.weight.requires_grad:
            index, row = part.padding_idx, part.weight[part.padding_idx].detach().clone()

            def without(
                _: Any, args: Any, kwargs: Any, output: Any, index: int = index, row: torch.Tensor = row
            ) -> torch.Tensor:
                ids = args[0] if args else kwargs["input"]
                return torch.where((ids == index).unsqueeze(-1), row, output)

            hooks.append(part.register_forward_hook(without, with_kwargs=True))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


# The exporters.


class _Decision(Exception):
    """The module decides by the values of its inputs."""


class _Fixed(Exception):
    """The module fixes the number of samples."""


def _write(
    module: torch.nn.Module,
    call: _Call,
    names: tuple[str, ...],
    outputs: tuple[torch.Tensor, ...],
    function: str | None,
) -> bytes:
    """The file from the first exporter that succeeds. `function` is one that defines its own derivative."""
    adapter = _adapter(module, call)
    samples = len(call.tensors[0])
    batched = [name for name, output in zip(names, outputs, strict=True) if output.ndim and len(output) == samples]
    axes = {name: {0: "batch"} for name in (*call.names, *batched)}
    try:
        return _trace(module, adapter, call, names, axes)
    except _Decision as error:
        raise ExportError(
            f"{error} The file would hold only what happens for the example. Write this line with tensors alone, "
            "such as torch.where for a condition."
        ) from error
    except Exception as error:
        traced = error
    second = ""
    if all(importlib.util.find_spec(package) is not None for package in ("onnx", "onnxscript")):
        try:
            return _export(adapter, call, names)
        except Exception as error:
            second = f" The exporter by torch.export failed too: {_reason(error)}."
    raise ExportError(
        f"{_class(module)} cannot be exported to ONNX: {_reason(traced)}.{second} {_advice(traced, second, function)}"
    ) from traced


def _advice(error: Exception, second: str, function: str | None) -> str:
    if function is not None:
        return f"It uses {function}, a torch.autograd.Function. Write its forward pass as a plain function."
    if isinstance(error, _Fixed):
        return "Use x.shape[0] as it is, without len(), int() or a loop over samples; or x.flatten(1)."
    if "requires grad as a constant" in str(error):
        return "Register the tensor with the module (nn.Parameter as an attribute, or nn.ParameterList), or detach it."
    if "Invalid name" in str(error):
        return "Names of parameters must not be numbers; rename this one."
    if "operator" in str(error):
        other = "" if second else ", or install onnxscript, with which PyTorch exports more operators"
        return f"Write this part with other operators{other}."
    return "Wrap or rewrite this part with tensor operations that torch.onnx.export supports."


def _trace(
    module: torch.nn.Module,
    adapter: torch.nn.Module,
    call: _Call,
    names: tuple[str, ...],
    axes: dict[str, dict[int, str]],
) -> bytes:
    """By tracing, which needs no other package."""
    import torch

    def write(samples: int) -> tuple[bytes, list[warnings.WarningMessage]]:
        file: Any = io.BytesIO()
        with warnings.catch_warnings(record=True) as caught, _tracing():
            warnings.simplefilter("always")
            torch.onnx.export(
                adapter,
                call.few(samples),
                file,
                input_names=list(call.names),
                output_names=list(names),
                dynamic_axes=axes,
                opset_version=_OPSET_OF_TRACING,
                dynamo=False,
                # Neither folding nor merging; see the top of this file.
                training=torch.onnx.TrainingMode.PRESERVE,
                do_constant_folding=False,
                keep_initializers_as_inputs=True,
            )
        return bytes(file.getvalue()), caught

    file, caught = write(_SAMPLES)
    _check_decisions(module, adapter, call.few(), caught)
    # Sizes that become numbers of Python are written into the file. Another number of samples shows which do.
    signs = ("Using len", "Iterating over", "Converting a tensor to a Python integer")
    suspects = [warning for warning in caught if str(warning.message).startswith(signs)]
    if suspects and _Graph(file).nodes() != _Graph(write(_SAMPLES + 1)[0]).nodes():
        lines = dict.fromkeys(linecache.getline(warning.filename, warning.lineno).strip() for warning in suspects)
        raise _Fixed("it takes the number of samples as a number: " + ", ".join(f"`{line}`" for line in lines))
    return file


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """Let tracing work without the package `onnx`, without printing, and with operators that it does not know.

    Its last step adds functions of custom operators to the file and imports `onnx` for it, even if there are none. If
    the package is missing there can be none, and the step is left out. When tracing fails it prints the whole graph,
    whatever `verbose` is.
    """
    changed: list[tuple[Any, str, Callable[..., Any]]] = []

    def replace(place: str, name: str, function: Callable[..., Any]) -> None:
        # Versions of PyTorch have these functions in different places, or not at all.
        with contextlib.suppress(ImportError, AttributeError):
            holder = importlib.import_module(place)
            changed.append((holder, name, getattr(holder, name)))
            setattr(holder, name, function)

    replace("torch._C", "_jit_set_onnx_log_enabled", lambda _: None)
    replace("torch", "vdot", lambda a, b: (a * b).sum())
    replace("torch.nn.functional", "rms_norm", _rms_norm)
    if importlib.util.find_spec("onnx") is None:
        for place in ("torch.onnx._internal.torchscript_exporter", "torch.onnx._internal"):
            replace(f"{place}.onnx_proto_utils", "_add_onnxscript_fn", lambda file, _: file)
    try:
        yield
    finally:
        for holder, name, original in changed:
            setattr(holder, name, original)


def _rms_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    """`torch.nn.functional.rms_norm` by simpler operators."""
    import torch

    axes = tuple(range(-len(shape), 0))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    x = x * torch.rsqrt(x.pow(2).mean(axes, keepdim=True) + eps)
    return x if weight is None else x * weight


def _check_decisions(
    module: torch.nn.Module,
    adapter: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    caught: Sequence[warnings.WarningMessage],
) -> None:
    """Raise `_Decision` if the module takes numbers out of tensors that depend on its inputs.

    Tracing writes such numbers, and what was decided by them, into the file as they are for the example. It warns of
    every number taken out of a tensor, also of sizes and of numbers of the module, which are harmless. The module is
    therefore run once more, not traced, and watched at the places of these warnings.
    """
    places = {}
    for warning in caught:
        text = str(warning.message)
        if text.startswith("Converting a tensor"):
            places[warning.filename, warning.lineno] = text
    lines = {place: linecache.getline(*place).strip() for place in places}
    for place, text in places.items():
        if "NumPy array" in text or "Python list" in text:
            raise _Decision(f"{_class(module)} computes outside of PyTorch (`{lines[place]}`).")
    for place, where in _reads(adapter, inputs) if places else ():
        # What an assertion finds does not change the outputs.
        if place in places and not lines[place].startswith("assert"):
            raise _Decision(f"{where} decides by the values of its inputs (`{lines[place]}`).")


def _reads(adapter: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> list[tuple[tuple[str, int], str]]:
    """Where the module takes numbers out of tensors that depend on its inputs: file and line, and the method.

    Storages are followed rather than tensors, so that views and changes in place are seen.
    """
    import torch
    from torch.utils import _pytree as pytree
    from torch.utils._python_dispatch import TorchDispatchMode

    reading = (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default)
    # Kept alive, so that no address is used twice.
    known: dict[int, Any] = {}
    found: list[tuple[tuple[str, int], str]] = []

    def storages(values: Any) -> list[Any]:
        tensors = (value for value in pytree.tree_leaves(values) if isinstance(value, torch.Tensor))
        return [tensor.untyped_storage() for tensor in tensors if tensor.layout == torch.strided]

    class Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if any(storage._cdata in known for storage in storages((args, kwargs))):
                known.update((storage._cdata, storage) for storage in storages(result))
                if func in reading:
                    found.append(_caller())
            return result

    known.update((storage._cdata, storage) for storage in storages(inputs))
    with Watch():  # type: ignore[no-untyped-call]
        adapter(*inputs)
    return found


def _export(adapter: torch.nn.Module, call: _Call, names: tuple[str, ...]) -> bytes:
    """By torch.export, which needs the packages `onnx` and `onnxscript`."""
    import torch

    batch = torch.export.Dim("batch")
    log = logging.getLogger("torch.onnx")
    level = log.level
    try:
        log.setLevel(logging.ERROR)
        program = torch.onnx.export(
            adapter,
            call.few(),
            input_names=list(call.names),
            output_names=list(names),
            dynamic_shapes=(tuple({0: batch} for _ in call.names),),
            opset_version=_OPSET_OF_EXPORT,
            dynamo=True,
            external_data=False,
            # Neither folding nor merging; see the top of this file.
            optimize=False,
            verbose=False,
        )
    finally:
        log.setLevel(level)
    if program is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    file: bytes = program.model_proto.SerializeToString()
    return file


def _reason(error: BaseException) -> str:
    """The exporter's own reason, in one line."""
    operator = ""
    # The exporter by torch.export wraps the reason several times, and names the operator on the way.
    while type(error).__module__.startswith("torch.onnx._internal.exporter") and error.__cause__ is not None:
        if found := re.search(r"target=torch\.ops\.([\w.]+)", str(error)):
            operator = f" (operator {found[1]})"
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = re.sub(r"\x1b\[[0-9;]*m", "", lines[0]) if lines else _class(error)
    text = text if len(text) <= _LONGEST_REASON else f"{text[:_LONGEST_REASON]}…"
    return text.rstrip(".:") + operator


# Checks of the file.


def _complete(
    module: torch.nn.Module, graph: _Graph, trainable: dict[str, torch.nn.Parameter], idle: set[str]
) -> None:
    """Check that the trainable parameters are in the file, and add those that no output depends on."""
    for name, parameter in trainable.items():
        stored = graph.initialisers.get(name)
        if stored is None and name in idle:
            graph.add(name, tuple(parameter.shape), _ELEMENTS[str(parameter.dtype)], _raw(parameter))
        elif stored is None:
            raise ExportError(
                f"The exporter computed with the parameter {name!r} of {_class(module)} in advance, so that it is not "
                "in the file. Write this part of the module without copies of parameters."
            )
        elif stored.shape != tuple(parameter.shape) or stored.raw != _raw(parameter):
            raise ExportError(
                f"The exporter changed the parameter {name!r} of {_class(module)}. Use another version of PyTorch."
            )


def _raw(tensor: torch.Tensor) -> bytes:
    import torch

    array = tensor.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
    return bytes(array.tobytes())


def _selection(
    module: torch.nn.Module, graph: _Graph, trainable: dict[str, torch.nn.Parameter]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of parameters and of all other floating-point tensors."""
    include = tuple(trainable)
    exclude = tuple(name for name in graph.floats() if name not in trainable)
    for patterns, others in ((include, exclude), (exclude, include)):
        for pattern in (name for name in patterns if "*" in name or "?" in name):
            wild = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
            if hit := next((name for name in others if re.fullmatch(wild, name)), None):
                raise ExportError(
                    f"The tensor {pattern!r} of {_class(module)} has a wildcard in its name, which matches {hit!r}. "
                    "Rename it."
                )
    return include, exclude


# The file: as much of ONNX's protobuf messages as is needed.

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# ONNX's numbers for types of elements.
_ELEMENTS = {"torch.float32": 1, "torch.float16": 10, "torch.float64": 11, "torch.bfloat16": 16}

_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALISER, _GRAPH_INPUT, _GRAPH_OUTPUT = 1, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_OP, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_TENSOR, _ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 5, 6, 11
_TENSOR_DIMS, _TENSOR_TYPE, _TENSOR_FLOATS, _TENSOR_NAME, _TENSOR_RAW, _TENSOR_DOUBLES = 1, 2, 4, 8, 9, 10
_VALUE_NAME = 1


@dataclasses.dataclass
class _Field:
    """A field of a message: its number, how it is stored, and its value as an integer or as bytes."""

    number: int
    wire: int
    value: int | bytes

    @property
    def data(self) -> bytes:
        if isinstance(self.value, int):
            raise ValueError(f"field {self.number} holds no bytes")
        return self.value

    @property
    def text(self) -> str:
        return self.data.decode()


def _parse(message: bytes) -> list[_Field]:
    fields = []
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _varint(message, at)
            fields.append(_Field(number, wire, value))
            continue
        if wire == _BYTES:
            length, at = _varint(message, at)
        elif wire in (_FIXED32, _FIXED64):
            length = 4 if wire == _FIXED32 else 8
        else:
            raise ValueError(f"unknown wire type {wire}")
        if at + length > len(message):
            raise ValueError("a field is longer than its message")
        fields.append(_Field(number, wire, message[at : at + length]))
        at += length
    return fields


def _varint(message: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def _build(fields: Iterable[_Field]) -> bytes:
    parts = []
    for field in fields:
        parts.append(_packed(field.number << 3 | field.wire))
        if isinstance(field.value, int):
            parts.append(_packed(field.value))
            continue
        if field.wire == _BYTES:
            parts.append(_packed(len(field.value)))
        parts.append(field.value)
    return b"".join(parts)


def _packed(value: int) -> bytes:
    parts = bytearray()
    while value >= 0x80:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    parts.append(value)
    return bytes(parts)


def _texts(fields: Iterable[_Field], number: int) -> list[str]:
    return [field.text for field in fields if field.number == number]


def _text(fields: Iterable[_Field], number: int) -> str:
    return next(iter(_texts(fields, number)), "")


@dataclasses.dataclass(frozen=True)
class _Tensor:
    """A tensor of the file."""

    name: str
    shape: tuple[int, ...]
    element: int
    raw: bytes

    @classmethod
    def read(cls, message: bytes) -> _Tensor:
        name, element, raw = "", 0, b""
        shape: list[int] = []
        for field in _parse(message):
            if field.number == _TENSOR_DIMS:
                shape.extend(_integers(field))
            elif field.number == _TENSOR_TYPE and isinstance(field.value, int):
                element = field.value
            elif field.number == _TENSOR_NAME:
                name = field.text
            elif field.number == _TENSOR_RAW or field.number in (_TENSOR_FLOATS, _TENSOR_DOUBLES):
                # Packed numbers are stored as raw ones are.
                raw += field.data
        return cls(name, tuple(shape), element, raw)

    @property
    def is_float(self) -> bool:
        return self.element in _ELEMENTS.values()

    @property
    def numel(self) -> int:
        count = 1
        for size in self.shape:
            count *= size
        return count


def _integers(field: _Field) -> list[int]:
    """A repeated integer, packed or not."""
    if isinstance(field.value, int):
        return [field.value]
    values, at = [], 0
    while at < len(field.value):
        value, at = _varint(field.value, at)
        values.append(value)
    return values


class _Graph:
    """The file of a model, of which the main graph can be edited."""

    def __init__(self, file: bytes) -> None:
        self._model = _parse(file)
        self._place = next(at for at, field in enumerate(self._model) if field.number == _MODEL_GRAPH)
        self._fields = _parse(self._model[self._place].data)
        tensors = (_Tensor.read(field.data) for field in self._fields if field.number == _GRAPH_INITIALISER)
        self.initialisers = {tensor.name: tensor for tensor in tensors}

    def settle(self, aliases: Mapping[str, str]) -> None:
        """Use one name for each tensor, and remove initialisers from the inputs and copies of them from the nodes."""
        for name in [name for name in self.initialisers if name in aliases]:
            tensor = self.initialisers.pop(name)
            if aliases[name] not in self.initialisers:
                self.add(aliases[name], tensor.shape, tensor.element, tensor.raw)
        outputs = {_text(_parse(field.data), _VALUE_NAME) for field in self._fields if field.number == _GRAPH_OUTPUT}
        originals = dict(aliases)
        kept = []
        for field in self._fields:
            if field.number == _GRAPH_INITIALISER and _text(_parse(field.data), _TENSOR_NAME) in aliases:
                continue
            if field.number == _GRAPH_INPUT and _text(_parse(field.data), _VALUE_NAME) in self.initialisers:
                continue
            if field.number == _GRAPH_NODE:
                node = _parse(field.data)
                sources, results = _texts(node, _NODE_INPUT), _texts(node, _NODE_OUTPUT)
                if _text(node, _NODE_OP) == "Identity" and results[0] not in outputs:
                    source = originals.get(sources[0], sources[0])
                    if source in self.initialisers:
                        originals[results[0]] = source
                        continue
            kept.append(field)
        self._fields = _renamed(kept, originals) if originals else kept

    def add(self, name: str, shape: tuple[int, ...], element: int, raw: bytes) -> None:
        """Add an initialiser."""
        fields = [_Field(_TENSOR_DIMS, _VARINT, size) for size in shape]
        fields.append(_Field(_TENSOR_TYPE, _VARINT, element))
        fields.append(_Field(_TENSOR_NAME, _BYTES, name.encode()))
        fields.append(_Field(_TENSOR_RAW, _BYTES, raw))
        self._fields.append(_Field(_GRAPH_INITIALISER, _BYTES, _build(fields)))
        self.initialisers[name] = _Tensor(name, shape, element, raw)

    def nodes(self) -> list[bytes]:
        """The nodes as they are stored."""
        return [field.data for field in self._fields if field.number == _GRAPH_NODE]

    def floats(self) -> list[str]:
        """The names of the floating-point tensors: initialisers, and constants of more than one number."""
        names = [tensor.name for tensor in self.initialisers.values() if tensor.is_float]
        for field in self._fields:
            if field.number != _GRAPH_NODE:
                continue
            node = _parse(field.data)
            if _text(node, _NODE_OP) != "Constant":
                continue
            attributes = [field for at in node if at.number == _NODE_ATTRIBUTE for field in _parse(at.data)]
            values = (_Tensor.read(field.data) for field in attributes if field.number == _ATTRIBUTE_TENSOR)
            if any(value.is_float and value.numel > 1 for value in values):
                names.extend(_texts(node, _NODE_OUTPUT))
        return names

    def to_bytes(self) -> bytes:
        self._model[self._place] = _Field(_MODEL_GRAPH, _BYTES, _build(self._fields))
        return _build(self._model)


def _renamed(graph: list[_Field], names: Mapping[str, str]) -> list[_Field]:
    """The fields of a graph whose nodes, and the graphs inside of them, take other values."""

    def edit(fields: Iterable[_Field], numbers: tuple[int, ...], change: Callable[[bytes], bytes]) -> list[_Field]:
        def new(field: _Field) -> _Field:
            return _Field(field.number, field.wire, change(field.data)) if field.number in numbers else field

        return [new(field) for field in fields]

    def in_attribute(message: bytes) -> bytes:
        inner = (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS)
        return _build(edit(_parse(message), inner, lambda data: _build(_renamed(_parse(data), names))))

    def in_node(message: bytes) -> bytes:
        fields = edit(_parse(message), (_NODE_INPUT,), lambda data: names.get(data.decode(), data.decode()).encode())
        return _build(edit(fields, (_NODE_ATTRIBUTE,), in_attribute))

    return edit(graph, (_GRAPH_NODE,), in_node)
