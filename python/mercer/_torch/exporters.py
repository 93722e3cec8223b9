"""The two exporters of PyTorch."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from mercer._torch.call import SAMPLES, Call
from mercer._torch.decisions import check_decisions
from mercer._torch.errors import ExportError, class_of, reason
from mercer._torch.graph import Graph
from mercer._torch.lines import Line

if TYPE_CHECKING:
    import torch

# Tracing writes opset 17 for everything that Mercer reads. The other exporter starts at 18.
_OPSET_OF_TRACING = 17
_OPSET_OF_EXPORT = 20

#: What to do about a failure, by a part of its message.
_ADVICE = {
    "number of samples as a number": "use x.shape[0] as it is, without len(), int() or a loop over samples; or "
    "x.flatten(1)",
    "requires grad as a constant": "register the tensor with the module (nn.Parameter as an attribute, or "
    "nn.ParameterList), or detach it",
    "Invalid name": "rename this parameter: names must not be numbers",
    "operator": "write this part with other operators",
    "": "wrap or rewrite this part with tensor operations that torch.onnx.export supports",
}


def write(call: Call, outputs: dict[str, torch.Tensor], function: str | None) -> bytes:
    """The file from the first exporter that succeeds. `function` is one that defines its own derivative."""
    adapter = call.adapter()
    try:
        return trace(call, adapter, outputs)
    except ExportError:
        raise
    except Exception as error:
        traced = error
    message = f"{class_of(call.module)} cannot be exported to ONNX: {reason(traced)}"
    hints = [next(advice for part, advice in _ADVICE.items() if part in str(traced))]
    if function is not None:
        hints = [f"write the forward pass of {function}, a torch.autograd.Function, as a plain function"]
    if all(importlib.util.find_spec(package) is not None for package in ("onnx", "onnxscript")):
        try:
            return export(call, adapter, outputs)
        except Exception as error:
            message += f"; the exporter by torch.export failed too: {reason(error)}"
    else:
        hints.append("install onnx and onnxscript, with which PyTorch can export more modules")
    raise ExportError(message, hints=hints) from traced


def trace(call: Call, adapter: torch.nn.Module, outputs: dict[str, torch.Tensor]) -> bytes:
    """By tracing, which needs no other package."""
    import torch

    batched = [name for name, output in outputs.items() if output.ndim and len(output) == call.samples]

    def run(samples: int) -> tuple[bytes, list[warnings.WarningMessage]]:
        file: Any = io.BytesIO()
        with warnings.catch_warnings(record=True) as caught, _tracing():
            warnings.simplefilter("always")
            torch.onnx.export(
                adapter,
                call.few(samples),
                file,
                input_names=list(call.inputs),
                output_names=list(outputs),
                dynamic_axes={name: {0: "batch"} for name in (*call.inputs, *batched)},
                opset_version=_OPSET_OF_TRACING,
                dynamo=False,
                # Neither folding nor merging; see the documentation of the package.
                training=torch.onnx.TrainingMode.PRESERVE,
                do_constant_folding=False,
                keep_initializers_as_inputs=True,
            )
        return bytes(file.getvalue()), caught

    file, caught = run(SAMPLES)
    check_decisions(class_of(call.module), adapter, call.few(), caught)
    # Sizes that become numbers of Python are written into the file. Another number of samples shows which do.
    signs = ("Using len", "Iterating over", "Converting a tensor to a Python integer")
    suspects = [Line(each.filename, each.lineno) for each in caught if str(each.message).startswith(signs)]
    if suspects and Graph(file).nodes != Graph(run(SAMPLES + 1)[0]).nodes:
        lines = ", ".join(dict.fromkeys(f"`{line.text}`" for line in suspects))
        raise RuntimeError(f"it takes the number of samples as a number: {lines}")
    return file


def export(call: Call, adapter: torch.nn.Module, outputs: dict[str, torch.Tensor]) -> bytes:
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
            input_names=list(call.inputs),
            output_names=list(outputs),
            dynamic_shapes=(tuple({0: batch} for _ in call.inputs),),
            opset_version=_OPSET_OF_EXPORT,
            dynamo=True,
            external_data=False,
            # Neither folding nor merging; see the documentation of the package.
            optimize=False,
            verbose=False,
        )
    finally:
        log.setLevel(level)
    if program is None:
        raise RuntimeError("torch.onnx.export returned nothing")
    file: bytes = program.model_proto.SerializeToString()
    return file


@contextlib.contextmanager
def _tracing() -> Iterator[None]:
    """Let tracing work without the package `onnx`, without printing, and with operators that it does not know.

    Its last step adds functions of custom operators to the file and imports `onnx` for it, even if there are none. If
    the package is missing there can be none, and the step is left out. When tracing fails it prints the whole graph,
    whatever `verbose` is.
    """
    with contextlib.ExitStack() as restore:

        def replace(place: str, name: str, function: Callable[..., Any]) -> None:
            # Versions of PyTorch have these functions in different places, or not at all.
            with contextlib.suppress(ImportError, AttributeError):
                holder = importlib.import_module(place)
                restore.callback(setattr, holder, name, getattr(holder, name))
                setattr(holder, name, function)

        replace("torch._C", "_jit_set_onnx_log_enabled", lambda _: None)
        replace("torch", "vdot", lambda a, b: (a * b).sum())
        replace("torch.nn.functional", "rms_norm", _rms_norm)
        if importlib.util.find_spec("onnx") is None:
            for place in ("torch.onnx._internal.torchscript_exporter", "torch.onnx._internal"):
                replace(f"{place}.onnx_proto_utils", "_add_onnxscript_fn", lambda file, _: file)
        yield


def _rms_norm(
    x: torch.Tensor, shape: Sequence[int], weight: torch.Tensor | None = None, eps: float | None = None
) -> torch.Tensor:
    """`torch.nn.functional.rms_norm` by simpler operators."""
    import torch

    axes = tuple(range(-len(shape), 0))
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    x = x * torch.rsqrt(x.pow(2).mean(axes, keepdim=True) + eps)
    return x if weight is None else x * weight
