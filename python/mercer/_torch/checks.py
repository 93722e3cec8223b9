"""What is refused: modules before the export, and files after it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mercer._torch.errors import ExportError, class_of
from mercer._torch.graph import ELEMENTS, Graph, Tensor
from mercer._torch.module import state

if TYPE_CHECKING:
    import torch

# In bytes; a limit of protobuf.
_LARGEST_FILE = 2**31


def check_module(module: torch.nn.Module) -> None:
    """Refuse what is no plain module."""
    import torch

    name = class_of(module)
    if not isinstance(module, torch.nn.Module):
        raise ExportError(f"{name} is not a torch.nn.Module", hints=["pass the module itself"])
    if isinstance(module, (torch.nn.DataParallel, torch.nn.parallel.DistributedDataParallel)):
        raise ExportError(f"{name} runs copies of another module", hints=["pass module.module"])
    if hasattr(module, "_orig_mod"):
        raise ExportError("the module was compiled by torch.compile", hints=["pass the module from before"])
    if isinstance(module, torch.jit.ScriptModule):
        raise ExportError(f"{name} was compiled by torch.jit", hints=["pass the module from before"])
    for part in module.modules():
        if isinstance(part, torch.nn.modules.batchnorm._BatchNorm) and part.running_mean is None:
            raise ExportError(
                f"{class_of(part)} has no running statistics, so that its samples depend on each other",
                hints=["set track_running_stats=True and train the module"],
            )
        if isinstance(part, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and part.max_norm is not None:
            message = f"{class_of(part)} with max_norm changes its weight in every call"
            raise ExportError(message, hints=["set max_norm=None"])
    for key, tensor in state(module).items():
        if torch.nn.parameter.is_lazy(tensor):
            raise ExportError(f"{key!r} of {name} has no shape yet", hints=["call the module once before the export"])
        if tensor.requires_grad and str(tensor.dtype) not in ELEMENTS:
            message = f"the parameter {key!r} of {name} holds numbers of {tensor.dtype}"
            raise ExportError(message, hints=["convert it to torch.float32, or freeze it by requires_grad_(False)"])
    size = sum(tensor.numel() * tensor.element_size() for tensor in state(module).values())
    if size >= _LARGEST_FILE:
        raise ExportError(
            f"{name} has {size / 2**30:.1f} GiB of parameters and buffers, and an ONNX file holds at most 2 GiB",
            hints=["export a part of the module, or convert it to a smaller type such as torch.bfloat16"],
        )


def complete(
    module: torch.nn.Module, graph: Graph, trainable: dict[str, torch.nn.Parameter], idle: set[str]
) -> None:
    """Check that the trainable parameters are in the file, and add those that no output depends on."""
    for name, parameter in trainable.items():
        wanted, stored = Tensor.of(name, parameter), graph.initialisers.get(name)
        if stored is None and name in idle:
            graph.add(wanted)
        elif stored is None:
            raise ExportError(
                f"the exporter computed with the parameter {name!r} of {class_of(module)} in advance, so that it is "
                "not in the file",
                hints=["write this part of the module without copies of parameters"],
            )
        elif stored != wanted:
            message = f"the exporter changed the parameter {name!r} of {class_of(module)}"
            raise ExportError(message, hints=["use another version of PyTorch"])


def constants(module: torch.nn.Module, graph: Graph, trainable: dict[str, torch.nn.Parameter]) -> tuple[str, ...]:
    """The names of the floating-point tensors that are no parameters. Refuse names that Mercer would confuse."""
    others = [name for name in graph.floats() if name not in trainable]
    for patterns, names in ((trainable, others), (others, trainable)):
        for pattern in (name for name in patterns if "*" in name or "?" in name):
            wild = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
            if hit := next((name for name in names if re.fullmatch(wild, name)), None):
                message = f"the tensor {pattern!r} of {class_of(module)} has a wildcard in its name and matches {hit!r}"
                raise ExportError(message, hints=["rename it"])
    return tuple(others)
