"""Networks."""

from __future__ import annotations

import json
import os
import tempfile
import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from mercer import _mercer
from mercer._arrays import AnyArray, as_array, as_labels
from mercer._errors import Error
from mercer._resources import Progress, resources

if TYPE_CHECKING:
    from typing_extensions import Self


class Parameter(NamedTuple):
    """A parameter of a network."""

    name: str
    shape: tuple[int, ...]


class Layer(NamedTuple):
    """An operation of a network. The shape is that of its output for one sample, with a batch axis."""

    name: str
    operator: str
    output: str
    shape: tuple[int, ...]
    parameters: tuple[str, ...]


class Epoch(NamedTuple):
    """What was measured in an epoch of training."""

    epoch: int
    learning_rate: float
    loss: float
    accuracy: float | None


#: Samples: one array, or one per input of the network, by name or in order.
Samples = Any


def named_arrays(x: Samples, inputs: Sequence[str], name: str) -> list[tuple[str, AnyArray]]:
    """One named array per input."""
    if isinstance(x, Mapping):
        return [(str(key), as_array(value, f"{name}[{key!r}]")) for key, value in x.items()]
    if isinstance(x, tuple):
        if inputs and len(x) != len(inputs):
            raise Error(f"{name}: {len(x)} arrays for the {len(inputs)} inputs {', '.join(inputs)}", "shape")
        keys = list(inputs) if inputs else [f"{name}[{index}]" for index in range(len(x))]
        return [(key, as_array(value, f"{name}[{index}]")) for index, (key, value) in enumerate(zip(keys, x))]
    return [(inputs[0] if inputs else name, as_array(x, name))]


def is_double(arrays: Iterable[AnyArray], precision: str | None) -> bool:
    """Whether to compute in double precision: as asked, or if the numbers are."""
    if precision not in (None, "f32", "f64"):
        raise Error(f"precision: {precision!r} is not f32 or f64")
    return precision == "f64" if precision else any(array.dtype == np.float64 for array in arrays)


class Network:
    """A trained network. It never changes; :meth:`train` returns another one.

    Parameters
    ----------
    path : path-like
        An ONNX file.
    weights : path-like, optional
        A safetensors checkpoint whose values replace those of the file.
    include, exclude : sequence of str, optional
        Names of tensors that count as parameters, or as constants; ``*`` and ``?`` are wild.
    unmerge : bool, optional
        Separate parameters that the exporter merged because their values are equal.
    import_limit : int or str, optional
        Memory limit for reading the file.

    Examples
    --------
    >>> import mercer as mc
    >>> import numpy as np
    >>> net = mc.Network.from_arch({"mlp": {"inputs": [2], "widths": [8], "outputs": 3}})
    >>> net(np.zeros((5, 2))).shape
    (5, 3)
    >>> [parameter.shape for parameter in net.parameters]
    [(8, 2), (8,), (3, 8), (3,)]
    """

    _path: str
    _options: dict[str, Any]
    _core: _mercer.Network

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        weights: str | os.PathLike[str] | None = None,
        include: Sequence[str] = (),
        exclude: Sequence[str] = (),
        unmerge: bool = False,
        import_limit: int | str | None = None,
    ) -> None:
        if not isinstance(path, (str, os.PathLike)):
            hint = ["Network.from_torch(module, example_inputs)"] if hasattr(path, "state_dict") else []
            raise Error(f"a network is opened from a file, not from {type(path).__name__}", hints=hint)
        limit = _mercer.size(import_limit) if isinstance(import_limit, str) else import_limit
        self._path = os.fspath(path)
        self._options = {"include": list(include), "exclude": list(exclude), "unmerge": unmerge}
        if weights is not None:
            self._options["weights"] = os.fspath(weights)
        if limit is not None:
            self._options["import_limit"] = limit
        with resources(None, None, False) as use:
            self._core = _mercer.Network(self._path, json.dumps(self._options), use)

    @classmethod
    def from_bytes(cls, data: bytes, **options: Any) -> Self:
        """A network from the bytes of an ONNX file; the options are those of the class."""
        handle, path = tempfile.mkstemp(prefix="mercer-", suffix=".onnx")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        try:
            network = cls(path, **options)
        except BaseException:
            os.unlink(path)
            raise
        weakref.finalize(network, _remove, path, os.getpid())
        return network

    @classmethod
    def from_arch(cls, arch: Mapping[str, Any] | str, seed: int = 0) -> Self:
        """A network with random weights from a description.

        Parameters
        ----------
        arch : mapping or str
            The description, as a mapping or in TOML; ``mercer help train`` shows one.
        seed : int, optional
            The seed of the weights.
        """
        text = arch if isinstance(arch, str) else _toml(arch)
        return cls.from_bytes(_mercer.Network.build(text, seed))

    @classmethod
    def from_torch(cls, module: Any, example_inputs: Any, *, tolerance: float = 1e-4) -> Self:
        """A PyTorch module, exported by PyTorch itself in evaluation mode.

        The parameters of the network are those of the module that require gradients.

        Parameters
        ----------
        module : torch.nn.Module
            The module. It is not changed.
        example_inputs : tensor, array, tuple or dict
            Inputs that it takes, with a batch axis first.
        tolerance : float, optional
            Largest relative difference between the outputs of the module and of the network on the example. It is
            at least sixteen times the rounding error of the module's type, which matters in half precision.
        """
        from mercer._torch import export

        exported = export(module, example_inputs)
        network = cls.from_bytes(exported.onnx, include=exported.include, exclude=exported.exclude)
        examples = dict(zip(exported.inputs, exported.example_inputs))
        network._check(examples, exported.example_outputs, max(tolerance, 16 * exported.rounding))
        return network

    def _check(self, inputs: Mapping[str, AnyArray], outputs: Sequence[AnyArray], tolerance: float) -> None:
        """Compare the outputs with those of the module."""
        names = self.outputs
        double = is_double((*inputs.values(), *outputs), None)
        # Inputs that no output depends on are not in the network.
        arrays = [(name, as_array(inputs[name], name)) for name in self.inputs]
        with resources(None, None, False) as use:
            found = self._core.values(arrays, list(names), double, use)
        for name, own, expected in zip(names, map(np.asarray, found), outputs):
            if own.shape != expected.shape:
                raise Error(f"output {name}: {own.shape} from the network, {expected.shape} from the module", "export")
            difference = float(np.max(np.abs(own - expected), initial=0.0))
            scale = float(np.max(np.abs(expected), initial=0.0))
            if not difference <= tolerance * max(scale, 1e-12):
                message = f"output {name}: the network differs from the module by {difference:.3g} of {scale:.3g}"
                raise Error(message, "export", ["does the module use random numbers or the batch in evaluation mode?"])

    @property
    def path(self) -> str:
        """The file."""
        return self._path

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return tuple(name for name, _ in self._core.inputs)

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of the outputs."""
        return tuple(self._core.outputs)

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters."""
        return tuple(Parameter(name, tuple(shape)) for name, shape in self._core.parameters)

    @property
    def n_params(self) -> int:
        """The number of all elements of the parameters."""
        return sum(int(np.prod(parameter.shape, dtype=np.int64)) for parameter in self.parameters)

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The operations, in the order in which they run; their outputs are nodes for :meth:`activations`."""
        layers = self.info().get("layers") or []
        return tuple(
            Layer(each["name"], each["operator"], each["output"], tuple(each["shape"]), tuple(each.get("parameters", ())))
            for each in layers
        )

    def info(self) -> dict[str, Any]:
        """All that ``mercer info`` says of the file."""
        with resources(None, None, False) as use:
            found: dict[str, Any] = json.loads(_mercer.call(["info", self._path, *self.flags()], [], use))
        return found

    def flags(self) -> list[str]:
        """The choice of parameters as flags of a command."""
        options = self._options
        flags = [f"--include={name}" for name in options["include"]] + [f"--exclude={name}" for name in options["exclude"]]
        flags += ["--unmerge"] if options["unmerge"] else []
        flags += [f"--weights={options['weights']}"] if "weights" in options else []
        return flags + ([f"--import-limit={options['import_limit']}"] if "import_limit" in options else [])

    def options(self) -> dict[str, Any]:
        """The choice of parameters as keywords of a command."""
        return dict(self._options)

    def __call__(
        self,
        x: Samples,
        *,
        node: str | None = None,
        precision: str | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> AnyArray:
        """The first output, or another node, on samples.

        Parameters
        ----------
        x : array-like, tuple or dict
            The samples: one array, or one per input.
        node : str, optional
            An output or any other node.
        precision : {"f32", "f64"}, optional
            The precision; by default that of the samples.
        threads : int, optional
            The number of threads.
        progress : bool or callable, optional
            Whether to show progress.
        """
        return self._values(x, [node], precision, threads, progress)[0]

    def activations(
        self,
        x: Samples,
        nodes: Sequence[str],
        *,
        precision: str | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
    ) -> dict[str, AnyArray]:
        """The values of nodes on samples, by name."""
        names = [nodes] if isinstance(nodes, str) else list(nodes)
        return dict(zip(names, self._values(x, list(names), precision, threads, progress)))

    def _values(
        self,
        x: Samples,
        nodes: Sequence[str | None],
        precision: str | None,
        threads: int | None,
        progress: bool | Progress | None,
    ) -> list[AnyArray]:
        arrays = named_arrays(x, self.inputs, "x")
        double = is_double((array for _, array in arrays), precision)
        with resources(None, threads, progress) as use:
            return [np.asarray(values) for values in self._core.values(arrays, list(nodes), double, use)]

    def train(
        self,
        x: Samples,
        labels: object,
        *,
        precision: str | None = None,
        threads: int | None = None,
        progress: bool | Progress | None = None,
        **settings: Any,
    ) -> tuple[Self, list[Epoch]]:
        """Train a copy.

        Parameters
        ----------
        x, labels : array-like
            The samples, and a class or a row of numbers for each.
        precision : {"f32", "f64"}, optional
            The precision; by default that of the samples.
        threads : int, optional
            The number of threads.
        progress : bool or callable, optional
            Whether to show progress.
        **settings
            The settings of ``mercer train``: ``epochs``, ``batch``, ``optimiser``, ``learning_rate``, ``momentum``,
            ``nesterov``, ``weight_decay``, ``loss``, ``schedule``, ``step_every``, ``step_at``, ``step_factor``, ``warm_up``,
            ``stop_loss``, ``crop_margin``, ``flip``, ``seed``.

        Returns
        -------
        network : Network
            The trained network.
        history : list of Epoch
            What was measured in every epoch.
        """
        arrays = named_arrays(x, self.inputs, "x")
        targets, _ = as_labels(labels, "labels")
        double = is_double((array for _, array in arrays), precision)
        with resources(None, threads, progress) as use:
            data, history = self._core.train(arrays, targets, json.dumps(settings), double, use)
        epochs = [
            Epoch(each["epoch"], each["learning_rate"], each["loss"], each["accuracy"])
            for each in json.loads(history)
        ]
        return type(self).from_bytes(bytes(data)), epochs

    def to_onnx(self, path: str | os.PathLike[str] | None = None) -> bytes:
        """The network as an ONNX file: its bytes, also written to ``path``, which must not exist."""
        data = bytes(self._core.to_bytes())
        if path is not None:
            with open(path, "xb") as file:
                file.write(data)
        return data

    def __reduce__(self) -> tuple[Any, ...]:
        options = {key: value for key, value in self._options.items() if key != "weights"}
        return _restored, (type(self), self.to_onnx(), options)

    def __repr__(self) -> str:
        name = os.path.basename(self._path)
        inputs, outputs = ", ".join(self.inputs), ", ".join(self.outputs)
        return f"Network({name!r}: {inputs} -> {outputs}; {self.n_params:,} parameters in {len(self.parameters)} tensors)"


def _restored(cls: type[Network], data: bytes, options: dict[str, Any]) -> Network:
    return cls.from_bytes(data, **options)


def _remove(path: str, process: int) -> None:
    """Remove a temporary file, but not in a forked child: the parent still needs it."""
    if os.getpid() == process:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


def _toml(value: Mapping[str, Any]) -> str:
    """A mapping as TOML. JSON's numbers, texts and lists are TOML's, too."""

    def inline(value: Any) -> str:
        if isinstance(value, Mapping):
            return "{ " + ", ".join(f"{json.dumps(str(key))} = {inline(each)}" for key, each in value.items()) + " }"
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(inline(each) for each in value) + "]"
        if isinstance(value, np.generic):
            value = value.item()
        return json.dumps(value)

    return "\n".join(f"{json.dumps(str(key))} = {inline(each)}" for key, each in value.items()) + "\n"
