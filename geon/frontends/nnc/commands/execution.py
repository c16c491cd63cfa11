"""Execution of commands on tensors: compiled programs by signature, ``cmd_exec``, autotune."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import geon

from ....errors import ArgumentError, AxisError, DeviceError, GeonError, UnavailableError
from ....transformers.base import Transformer, make_transformer
from ...positional.networks.common import pair
from ...positional.regions import ordered
from ...positional.values import PositionalArray, Value, as_array
from ..checks import checked
from ..streams import Stream, current_stream
from ..tensors import DEVICES, Tensor, TensorParam
from .command import Command, leaf_of
from .facts import Params, infer_params

# What autotune tries beside each transformer of geon: its name and options.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "native-serial": ("native", {"threads": 1}),  # threads cost more than a small command
    "pycuda-generated": ("pycuda", {"products": "generated", "convolutions": "generated"}),
}
TRIALS = 3  # timed runs of each backend; the shortest counts
# Transformers that submit work to a stream of a device, which their option ``stream`` names.
ON_STREAMS = ("pycuda", "cuda-on-host")
MAX_PROGRAMS = 1024  # compiled commands that are kept; the oldest is dropped first


@cache
def transformer_of(backend: str, lane: int | None = None) -> Transformer:
    """Return the transformer of a device, backend or variant by name, made once in a process.

    On a GPU it is that of the CUDA stream numbered ``lane``; None is the stream of commands that
    run at once.
    """
    device, _, number = backend.partition(":")
    name, options = _named(device)
    if number:
        options = {**options, "device": int(number)}
    if lane is not None:
        options = {**options, "stream": f"nnc {lane}"}
    return make_transformer(name, **options)


def _named(device: str) -> tuple[str | None, dict[str, Any]]:
    return VARIANTS.get(device, (DEVICES.get(device, device), {}))


def lane_of(backend: str, stream: Stream | None) -> int | None:
    """Return the number of a stream's CUDA stream; None for a backend that has no streams.

    Without a ``stream`` it is that of the thread that runs commands of one, if this is one.
    """
    stream = stream or current_stream()
    name, _ = _named(backend.partition(":")[0])
    return None if stream is None or name not in ON_STREAMS else stream.lane


@dataclass(frozen=True, eq=False)
class Program:
    """A compiled computation of values on tensors: inputs are fed, results written in place.

    With ``on_device`` the computation leaves results where it computes them. In the thread of a
    stream they may not be computed yet when a call returns: ``Stream.wait`` waits for them.
    """

    computation: Any
    fed: tuple[int, ...]
    results: tuple[PositionalArray, ...]
    what: str
    on_device: bool = False

    def check(self, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Raise ``GeonError`` unless the program can run on these tensors."""
        for k in self.fed:
            if not isinstance(inputs[k], Tensor):
                raise ArgumentError(
                    f"{self.what} reads input {k}, which is {inputs[k]}; give a tensor"
                )
        for number, (tensor, result) in enumerate(zip(outputs, self.results, strict=True)):
            if tensor.shape != result.shape or tensor.dtype != result.dtype:
                raise AxisError(
                    f"{self.what}: output {number} is {tensor.param}, and the result is {result}; "
                    f"give a tensor of shape {result.shape} and dtype {result.dtype}"
                )

    def __call__(self, inputs: Sequence[Any], outputs: Sequence[Tensor]) -> None:
        """Run on these tensors; outputs may share memory with inputs."""
        transformer, stream = self.computation.transformer, current_stream()
        if stream is not None and not transformer.memory.on_host:
            stream.begin_on(transformer.device)
        given = [elements_for(inputs[k], transformer) for k in self.fed]
        if not self.on_device:
            self.computation(*given, out=[np.squeeze(tensor.array) for tensor in outputs])
            for tensor in outputs:
                tensor.written()
            return
        if stream is None:
            call, made = None, self.computation(*given)
        else:
            call = self.computation.start(*given)
            stream.add_call(call)
            stays = all(tensor.may_stay for tensor in outputs)
            made = call.on_device() if stays else call.result()
        for tensor, result in zip(outputs, made, strict=True):
            if tensor.may_stay:
                tensor.resident.put(result, call)  # type: ignore[union-attr]  # it may stay
            else:
                tensor.array[...] = np.asarray(result).reshape(tensor.shape)
                tensor.written()


def elements_for(tensor: Tensor, transformer: Any) -> Any:
    """Return a tensor's elements without dimensions of length 1: on the device, if they are there.

    Else it is the array in host memory, without a copy.
    """
    held = tensor.resident.array if tensor.may_stay else None  # type: ignore[union-attr]  # it may
    return held if transformer.memory.holds(held) else np.squeeze(tensor.array)


def program_of(
    leaves: Sequence[PositionalArray | None], results: Sequence[Value], transformer: Transformer,
    what: str, memory: int | str | None = None, on_device: bool = False,
) -> Program:  # fmt: skip
    """Compile results over placeholders; those that no result needs are not fed.

    With ``on_device`` they stay on the device, for tensors that may be there.
    """
    made = [ordered(as_array(value)) for value in results]
    below = {id(op) for value in made for op in value.tensor.placeholders()}
    fed = [k for k, leaf in enumerate(leaves) if leaf is not None and id(leaf.tensor) in below]
    inputs: list[Any] = [leaves[k].tensor for k in fed]  # type: ignore[union-attr]  # not None
    computation = transformer.computation(
        [value.tensor for value in made], *inputs, memory=memory, on_device=on_device
    )
    return Program(computation, tuple(fed), tuple(made), what, on_device)


_RANDOM = geon.Random(0)  # of commands without a seed, in the order in which they are compiled
_programs: dict[Any, Program] = {}
_lock = threading.Lock()


def command_program(
    command: Command, params: Params, wanted: tuple[int, ...], backend: str, on_device: bool,
    lane: int | None = None,
) -> Program:  # fmt: skip
    """Return the compiled program of a command for inputs of these params, kept by signature.

    ``wanted`` are the outputs that it computes, ``backend`` the device or transformer by name, and
    ``lane`` the number of a CUDA stream.
    """
    key = (command, params, wanted, backend, on_device, lane)
    with _lock:
        found = _programs.get(key)
        if found is None:
            leaves = [None if p is None else leaf_of(p, f"x{k}") for k, p in enumerate(params)]
            outputs = command.apply(leaves, params, random=_RANDOM)
            results = []
            for k in wanted:
                value = outputs[k] if k < len(outputs) else None
                if value is None:
                    raise ArgumentError(
                        f"{command.name} has no output {k}: "
                        + (f"it has {len(outputs)}" if k >= len(outputs) else "it is not computed")
                        + "; give None in its place"
                    )
                results.append(value)
            chosen = transformer_of(backend, lane)
            found = program_of(leaves, results, chosen, command.name, on_device=on_device)
            while len(_programs) >= MAX_PROGRAMS:
                del _programs[next(iter(_programs))]
            _programs[key] = found
    return found


def device_of(command: Command, params: Sequence[TensorParam | None]) -> str:
    """Return the device or backend that runs a command on inputs, then outputs, of these params.

    It is that of the first one, and of the last one for a copy to another device.
    """
    given = [p.device for p in params if p is not None]
    if command.backend or not given:
        return command.backend or "cpu"
    return given[-1] if command.name == "data_transfer" else given[0]


@checked
def cmd_exec(
    command: Command, inputs: Sequence[Any], outputs: Sequence[Any] | None = None,
    stream: Stream | None = None,
) -> list[Tensor | None]:  # fmt: skip
    """Run a command on tensors, and return its outputs: those given, or new ones.

    Inputs are tensors or arrays, None where the command needs none, or a param where a backward
    command needs the shape alone. Outputs are tensors or arrays; None is not computed. On a
    ``stream`` the call returns at once, and on a GPU its CUDA stream computes. Raises ``GeonError``
    that names the command and its inputs where they do not fit.
    """
    tensors = [
        x if x is None or isinstance(x, (Tensor, TensorParam)) else Tensor(x) for x in inputs
    ]
    params = tuple([x.param if isinstance(x, Tensor) else x for x in tensors])
    if outputs is None:
        found = infer_params(command, params)
        outputs = [None if p is None else Tensor.of(p) for p in found]
    else:
        outputs = [y if y is None or isinstance(y, Tensor) else Tensor(y) for y in outputs]
        command = command.filled([None if y is None else y.param for y in outputs])
    wanted = [(k, y) for k, y in enumerate(outputs) if y is not None]
    targets = [y for _, y in wanted]
    numbers = tuple([k for k, _ in wanted])
    backend = device_of(command, [*params, *[y.param for y in targets]])
    program = command_program(
        command, params, numbers, backend, any(y.may_stay for y in targets),
        lane_of(backend, stream),
    )  # fmt: skip
    program.check(tensors, targets)
    run: Callable[[], None] = lambda: program(tensors, targets)  # noqa: E731
    if stream is None:
        run()
    else:
        stream.submit(run)
    return list(outputs)


@checked
def hint_auto(command: Command, given: TensorParam, wanted: TensorParam) -> Command:
    """Return a convolution or pool with the stride and border that give an output's shape."""
    size = command.attributes.get("size")
    if size is None or "stride" not in command.attributes:
        raise ArgumentError(
            f"{command.name} has no windows whose stride and border could be found; give a "
            "convolution or a pool with size="
        )
    if any(len(p.shape) not in (3, 4) or 0 in p.shape for p in (given, wanted)):
        raise AxisError(
            f"{given} and {wanted} are no images; give 3 or 4 dimensions with elements, "
            f"{given.format}"
        )
    at = {"NHWC": (-3, -2), "NCHW": (-2, -1), "CHWN": (1, 2)}[given.format]
    lengths = [(p.shape[at[0]], p.shape[at[1]]) for p in (given, wanted)]
    return command.with_attributes(**solve_hint(size, lengths[0], lengths[1]))


def solve_hint(size: Any, given: tuple[int, int], wanted: tuple[int, int]) -> dict[str, Any]:
    """Return stride and border for which windows over lengths ``given`` give ``wanted``."""
    strides, before, after = [], [], []
    for length, n, m in zip(pair(size), given, wanted, strict=True):
        step = max(1, (n + m // 2) // m)
        missing = max(0, (m - 1) * step + length - n)
        strides.append(step)
        before.append(missing // 2)
        after.append(missing - missing // 2)
    return {"stride": tuple(strides), "border": (tuple(before), tuple(after))}


# Autotune -----------------------------------------------------------------------------------------


def available_backends() -> list[str]:
    """Return the transformers and variants that can be used here, by name."""
    found = []
    for name in ("native", "numpy", "pycuda", *VARIANTS):
        try:
            transformer_of(name)
        except (UnavailableError, DeviceError):
            continue
        found.append(name)
    return found


@checked
def autotune(
    command: Command, inputs: Sequence[Any], outputs: Sequence[Any] | None = None
) -> Command:
    """Return the command for the backend that ran it in the shortest time, of all that can run it.

    These are the transformers, and ``VARIANTS`` of them. Inputs and outputs are copied before, so
    that they stay as they were. Raises the error of the first backend if none can.
    """
    given = [_copied(x) for x in inputs]
    device = device_of(command.on(None), [None if x is None else x.param for x in given])
    number = device.removeprefix("gpu") if device.startswith("gpu") else ""  # such as ":1"
    times: dict[str, float] = {}
    errors: list[GeonError] = []
    for backend in available_backends():
        name = backend + number if backend.startswith("pycuda") else backend
        tried, copies = command.on(name), [_copied(x) for x in given]
        results = None if outputs is None else [_copied(y) for y in outputs]
        try:
            cmd_exec(tried, copies, results)
        except GeonError as error:
            errors.append(error)
            continue
        times[name] = min([_seconds(tried, copies, results) for _ in range(TRIALS)])
    if not times:
        raise errors[0]
    return command.on(min(times, key=lambda name: times[name]))


def _copied(x: Any) -> Tensor | None:
    """Return a tensor with memory of its own and the elements, layout and device of another."""
    if x is None:
        return None
    given = x if isinstance(x, Tensor) else Tensor(x)
    return Tensor(np.array(given), format=given.format, device=given.device)


def _seconds(command: Command, inputs: Any, outputs: Any) -> float:
    start = time.perf_counter()
    cmd_exec(command, inputs, outputs)
    return time.perf_counter() - start
