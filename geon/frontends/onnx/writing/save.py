"""``save`` and ``save_training``: ONNX files of computations and of training steps."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx

from ....errors import ArgumentError
from ....op_graph.axes.length_defaults import default_lengths
from ....op_graph.core.argument_hints import public
from ....op_graph.nodes import made_at
from ....op_graph.op_graph import Leaf, Op, Tensor, VoidOp, deep_order
from ....op_graph.values.dtypes import FLOAT8S
from ....op_graph.values.tree import SINGLE, Structure, is_mapping, structure_of
from ....transformers.base import Transformer, make_transformer
from ....transformers.runtime.files import path_text
from .model import Port, build_model
from .target import OnnxExporter

if TYPE_CHECKING:
    from ....op_graph.building.typing import Lengths, Results
    from ....transformers.computation import Computation

Array = np.ndarray[Any, Any]
STATE_KEY, STATE_FIELDS = "geon.state", ("input", "output", "trainable", "persistent")
# Bytes of initializers above which they go to a file of their own: protobuf ends at 2 GiB.
MAX_INTERNAL_BYTES = 1 << 30
MIN_EXTERNAL_BYTES = 1024  # smaller initializers stay in the model


@public
def save(
    path: str | os.PathLike[str],
    results: Results,
    inputs: Leaf | Sequence[Leaf] = (),
    *,
    transformer: Transformer | None = None,
    specialize: Lengths | None = None,
    external_data: bool | None = None,
    name: str = "geon",
) -> None:
    """Write an ONNX model that computes ``results`` from ``inputs``.

    Inputs and outputs have the names of the placeholders and of the results; those of a dictionary
    have its keys. Open lengths are named dimensions. Variables are initializers with their values
    in ``transformer``, or their first values. ``specialize`` fixes open lengths. With
    ``external_data`` the initializers are in ``path`` with ``.data`` behind, by default if they
    have more than a gibibyte. The model is checked by ``onnx.checker`` before it has its name.

    Raises ``ArgumentError`` for results with effects, among them the counters of random streams,
    for float8 values, and for a placeholder that is not among ``inputs``, ``AxisError`` for a
    length that nothing gives, and ``IncompleteError`` for a primitive without a row in the
    exporter's table.
    """
    f, values = _lowered("save", results, inputs, transformer, specialize, name)
    draws = [op for op in deep_order(f.program.roots) if op.primitive.name == "random_bits"]
    for changed, _ in f.program.updates:
        raise ArgumentError(
            f"save: the results draw random numbers, which advances the counter {changed} (made at "
            f"{made_at(draws[0])}), and a model has no state between calls; write it with "
            "save_training, which has the counter as an input and an output, or leave the draw out"
        )
    constants = [Port(leaf.name or "variable", leaf, array) for leaf, array in values.items()]
    proto = build_model(_data(f), constants, _outputs(f, results), name, {}, default_lengths())
    _write(path, proto, external_data)


@public
def save_training(
    path: str | os.PathLike[str],
    results: Results,
    inputs: Leaf | Sequence[Leaf] = (),
    *,
    transformer: Transformer | None = None,
    specialize: Lengths | None = None,
    external_data: bool | None = None,
    name: str = "geon",
) -> None:
    """Write an ONNX model of a step: its outputs are the results and the new state.

    ``results`` are as in ``save``, with effects, which have no output. Each variable ``w`` that
    they assign to is an input ``w``, whose default is the present value, and an output ``w_new``;
    so are the counters of random streams. The metadata ``geon.state`` lists them in JSON, each with
    ``input``, ``output``, ``trainable`` and ``persistent``. Variables that are only read are
    initializers. The other arguments, and the errors, are those of ``save``.
    """
    f, values = _lowered("save_training", results, inputs, transformer, specialize, name)
    updates = dict(f.program.updates)
    if not updates:
        raise ArgumentError(
            "save_training: the results assign to no variable; list the step among them, such as "
            "optimiser(loss), or write them with save"
        )
    state, taken = [], {port.name for port in _data(f)}
    for leaf in updates:
        own = _unique(leaf.name or "state", taken)
        state.append(Port(own, leaf, values.pop(leaf)))
    constants = [Port(leaf.name or "variable", leaf, array) for leaf, array in values.items()]
    outputs = _outputs(f, results)
    taken |= {port.name for port in outputs}
    new = [
        Port(_unique(f"{port.name}_new", taken), updates[leaf])
        for leaf, port in zip(updates, state, strict=True)
    ]
    entries = [
        dict(zip(STATE_FIELDS, (x.name, y.name, v.trainable, v.persistent), strict=True))
        for v, x, y in zip(updates, state, new, strict=True)
    ]
    ports = [*_data(f), *state], constants, [*outputs, *new]
    metadata = {STATE_KEY: json.dumps(entries)}
    _write(path, build_model(*ports, name, metadata, default_lengths()), external_data)


# The computation ----------------------------------------------------------------------------------


def _lowered(
    what: str,
    results: Any,
    inputs: Leaf | Sequence[Leaf],
    transformer: Transformer | None,
    specialize: Lengths | None,
    name: object,
) -> tuple[Computation, dict[Leaf, Array]]:
    """Return the computation of the exporter, and the values of the variables of its program.

    Open lengths of variables are those of their values.
    """
    if not isinstance(name, str):
        raise ArgumentError(f"{what}: name={name!r} is no text; give the name of the graph")
    listed = [inputs] if isinstance(inputs, Leaf) else inputs
    if not isinstance(listed, (list, tuple)) or not all(isinstance(x, Leaf) for x in listed):
        raise ArgumentError(f"{what}: inputs={inputs!r}; give placeholders, in a list")
    if not (transformer is None or isinstance(transformer, Transformer)):
        raise ArgumentError(
            f"{what}: transformer={transformer!r} is no transformer; give the one that has the "
            "values of the variables"
        )
    given = tuple(listed)
    _refuse(what, [op for _, op in _places(results) if isinstance(op, Op)], given)
    if transformer is None:
        with make_transformer("numpy") as owner:
            return _lowered(what, results, given, owner, specialize, name)
    f = OnnxExporter().computation(results, *given, specialize=specialize)
    linking = f.linking
    values = {leaf: transformer.get(linking.storage.get(leaf, leaf)) for leaf in linking.variables}
    lengths: dict[Any, int] = {
        axis.open_name: length
        for leaf, array in values.items()
        for axis, length in zip(leaf.axes, array.shape, strict=True)
        if axis.open_name is not None
    }
    if lengths:
        known = {**lengths, **(specialize or {})}
        return _lowered(what, results, given, transformer, known, name)
    return f, {leaf: values[leaf] for leaf in f.program.leaves if leaf.info.stored}


def _places(results: Any) -> list[tuple[str, Any]]:
    """Return the results in order, each with its place in the structure."""
    found: list[tuple[str, Any]] = []

    def leaf(value: Any, where: str) -> Structure:
        found.append((where, value))
        return SINGLE

    structure_of(results, "", leaf, plain=True)
    return found


def _refuse(what: str, results: list[Op], inputs: tuple[Any, ...]) -> None:
    """Raise ``ArgumentError`` for effects and dtypes that no model has, and for missing inputs."""
    fed = set(map(id, inputs))
    for op in deep_order(results):
        place = f"{op} (made at {made_at(op)})"
        name = op.primitive.name
        if name == "print":
            raise ArgumentError(
                f"{what}: the results depend on {place}, and ONNX has no operator that prints; "
                "leave it out, or save the value that is printed as a result"
            )
        if isinstance(op, Tensor) and op.dtype.name in FLOAT8S:
            raise ArgumentError(
                f"{what}: {place} is {op.dtype.name}, and most operators of ONNX take no float8; "
                'write the values that geon.cast(x, "float32") has, or their bytes, '
                'geon.bitcast(x, "uint8")'
            )
        if name == "assign" and what == "save":
            raise ArgumentError(
                f"save: the results run {place}, an effect, and a model only computes values; "
                "write the step with save_training, whose outputs include the new state"
            )
        if op.is_input and id(op) not in fed and isinstance(op, Leaf) and not op.info.inside:
            raise ArgumentError(
                f"{what}: the results depend on the placeholder {place}, which is not among the "
                f"inputs: add it, {what}(path, results, [..., {op.name or 'x'}])"
            )


# Names --------------------------------------------------------------------------------------------


def _unique(wanted: str, taken: set[str]) -> str:
    """Return ``wanted``, with a number behind it if it is taken, and add it to ``taken``."""
    name, count = wanted, 1
    while name in taken:
        name, count = f"{wanted}_{count}", count + 1
    taken.add(name)
    return name


def _data(f: Computation) -> list[Port]:
    taken: set[str] = set()
    return [Port(_unique(leaf.name or "input", taken), leaf) for leaf in f.stages().inputs]


def _outputs(f: Computation, results: Any) -> list[Port]:
    """Return the outputs: under the keys of a dictionary, else under the names of the results."""
    taken = {port.name for port in _data(f)}
    taken |= {leaf.name or "state" for leaf, _ in f.program.updates}
    tensors = [(where, op) for where, op in _places(results) if not isinstance(op, VoidOp)]
    found = []
    for (where, op), value in zip(tensors, f.program.outputs, strict=True):
        words = "_".join([part.strip("'\"") for part in where.strip("[]").split("][")])
        keyed = words if is_mapping(results) else ""
        wanted = keyed or getattr(op, "name", None) or "output"
        found.append(Port(_unique(wanted, taken), value))
    return found


# Files --------------------------------------------------------------------------------------------


def _write(path: str | os.PathLike[str], proto: Any, external: bool | None) -> None:
    """Check a model, write it beside its place, and give it its name at last."""
    target = Path(path_text(path))
    if not proto.graph.output:
        raise ArgumentError(f"{str(target)!r} was not written: there is no result; give one")
    size = sum(tensor.ByteSize() for tensor in proto.graph.initializer)
    external = size > MAX_INTERNAL_BYTES if external is None else external
    data = f"{target.name}.data"
    try:
        _replace(target, data, proto, external)
    except OSError as error:
        raise ArgumentError(
            f"{str(target)!r} cannot be written: {error.strerror or error}; give the path of a "
            "file in a folder that can be written"
        ) from error


def _replace(target: Path, data: str, proto: Any, external: bool) -> None:
    """Write and check a model in a temporary folder beside its place, then rename it."""
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as folder:
        made = Path(folder) / target.name
        options: Any = {"location": data, "size_threshold": MIN_EXTERNAL_BYTES} if external else {}
        onnx.save_model(proto, made, save_as_external_data=external, **options)
        onnx.checker.check_model(made, full_check=True)
        if (Path(folder) / data).exists():
            os.replace(Path(folder) / data, target.parent / data)
        os.replace(made, target)
