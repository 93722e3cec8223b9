"""The module, which is left as it was."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


def state(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """All parameters and buffers, each once and under its first name."""
    return {**dict(module.named_parameters()), **dict(module.named_buffers())}


def aliases(module: torch.nn.Module) -> dict[str, str]:
    """The further names of tied tensors, and the first name of each."""
    pairs = (*module.named_parameters(remove_duplicate=False), *module.named_buffers(remove_duplicate=False))
    first: dict[int, str] = {}
    for name, tensor in pairs:
        first.setdefault(id(tensor), name)
    return {name: first[id(tensor)] for name, tensor in pairs if first[id(tensor)] != name}


@contextlib.contextmanager
def undisturbed(module: torch.nn.Module) -> Iterator[None]:
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


@contextlib.contextmanager
def padding(module: torch.nn.Module) -> Iterator[None]:
    """Write into the formula that the row of an embedding for padding has no gradient."""
    import torch

    def without(index: int, row: torch.Tensor) -> Callable[..., torch.Tensor]:
        def hook(_: Any, args: Any, kwargs: Any, output: torch.Tensor) -> torch.Tensor:
            ids = args[0] if args else kwargs["input"]
            return torch.where((ids == index).unsqueeze(-1), row, output)

        return hook

    with contextlib.ExitStack() as hooks:
        for part in module.modules():
            if isinstance(part, torch.nn.Embedding) and part.padding_idx is not None and part.weight.requires_grad:
                hook = without(part.padding_idx, part.weight[part.padding_idx].detach().clone())
                hooks.callback(part.register_forward_hook(hook, with_kwargs=True).remove)
        yield
