"""Exports modules of PyTorch to ONNX, so that Mercer gets exactly the module's parameters.

A tangent kernel depends on the parameters, not on the function alone. Exporters are free to change them: they fold
batch normalisation into convolutions, multiply and transpose weights in advance, store equal tensors once, and drop
biases of zeros. This package exports without any of that, and then checks the file.

How the parameters are kept
---------------------------
- PyTorch's exporter by tracing (``dynamo=False``) comes first. It needs nothing besides torch. Without constant folding
  and in ``TrainingMode.PRESERVE`` it folds nothing; the module itself is in evaluation mode.
- ``keep_initializers_as_inputs=True`` is the documented way to leave out the pass that stores equal tensors once.
  Tensors are then told apart by identity, as in ``module.parameters()``: a tied parameter is one object and one tensor,
  and parameters that happen to be equal are several.
- The exporter by ``torch.export`` (``dynamo=True, optimize=False``) takes over if tracing fails and the packages
  ``onnx`` and ``onnxscript`` are installed.
- The file is then read back by a small reader of the protobuf wire format. Every trainable parameter must be there
  under its own name, with its own numbers. Parameters that the outputs do not depend on are added, because they count
  too. Copies of tensors (``Identity``) are replaced by the tensors. Anything else is an error.
- The lists `Exported.include` and `Exported.exclude` name all floating-point tensors of the file. Nothing is left to
  a guess: frozen parameters, buffers and numbers of formulas are constants.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from mercer._arrays import AnyArray
from mercer._resources import note
from mercer._torch.call import Call, to_numpy
from mercer._torch.checks import check_module, complete, constants
from mercer._torch.derivatives import derivatives
from mercer._torch.errors import ExportError, class_of
from mercer._torch.exporters import write
from mercer._torch.graph import Graph
from mercer._torch.module import aliases, padding, state, undisturbed

if TYPE_CHECKING:
    import torch

__all__ = ["ExportError", "Exported", "export"]


@dataclasses.dataclass(frozen=True)
class Exported:
    """A module as an ONNX file.

    Attributes
    ----------
    onnx : bytes
        The file. It refers to no other files.
    include : tuple of str
        The names of the tensors that are parameters.
    exclude : tuple of str
        The names of all other floating-point tensors.
    inputs : tuple of str
        The names of the inputs, in the order of the examples.
    example_inputs : tuple of numpy.ndarray
        The examples, in the order of `inputs`.
    example_outputs : tuple of numpy.ndarray
        What the module computes from the examples in evaluation mode.
    rounding : float
        The relative rounding error of the coarsest floating-point type in the module.
    """

    onnx: bytes
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    inputs: tuple[str, ...]
    example_inputs: tuple[AnyArray, ...]
    example_outputs: tuple[AnyArray, ...]
    rounding: float


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
    try:
        import torch
    except ImportError as error:
        raise ExportError(f"PyTorch cannot be imported: {error}", hints=["install torch"]) from error

    check_module(module)
    call = Call.read(module, example_inputs)
    named = module.named_parameters()
    trainable = {name: tensor for name, tensor in named if tensor.requires_grad and tensor.numel() > 0}
    with undisturbed(module):
        outputs = call.outputs()
        idle, function = derivatives(call, trainable)
        with padding(module):
            graph = Graph(write(call, outputs, function))
        graph.settle(aliases(module))
        complete(module, graph, trainable, idle)
        floats = (each.dtype for each in (*state(module).values(), *outputs.values()) if each.is_floating_point())
        exported = Exported(
            onnx=graph.to_bytes(),
            include=tuple(trainable),
            exclude=constants(module, graph, trainable),
            inputs=tuple(call.inputs),
            example_inputs=tuple(map(to_numpy, call.inputs.values())),
            example_outputs=tuple(map(to_numpy, outputs.values())),
            rounding=max((torch.finfo(dtype).eps for dtype in floats), default=0.0),
        )
    if function is not None:
        name = class_of(module)
        note(f"{name} uses {function}, which defines its own derivative; Mercer differentiates its forward pass")
    return exported
