"""``load``: the model of an ONNX file as tensors, variables and computations."""

from __future__ import annotations

import fnmatch
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

import geon

from ...errors import ArgumentError
from ...op_graph.axes.lengths import may_equal
from ...op_graph.core.collection import without_collecting
from ...op_graph.op_graph import Leaf
from ...op_graph.values.dtypes import DTYPES, FLOATS, name_of
from ...op_graph.values.tree import is_mapping
from ..positional.imported_model import ImportedModel, refuse_other_inputs
from ..positional.small_dtypes import FORMATS, SmallArray, held_dtype, is_small, wide
from ..positional.values import (
    HostArray,
    PositionalArray,
    Weight,
    full_tensor,
    host,
    input_array,
    weight,
)
from .builder import Builder, Scope, check_operators
from .errors import ModelError
from .naming import inferred_names, input_axes, stated_names
from .reading import Source, read
from .stacks import PartialStack
from .tensors import dtype_of

MAX_LISTED = 8  # names in an error
MAX_HOST_ELEMENTS = 1024  # of an initializer of integers that is a constant, not a variable


def load(
    path_or_model: Any,
    axes: Mapping[str, Sequence[Any]] | None = None,
    *,
    values: Mapping[str, Any] | None = None,
    frozen: bool | str | Sequence[str] = False,
) -> ImportedModel:
    """Return the model in an ONNX file, in bytes or in an ``onnx.ModelProto``.

    ``axes`` names the axes of inputs: ``{"image": ["N", "C", "H", "W"]}``; else they have the names
    of the file's ``dim_param``, and without these N, C, H and W where an operator on images reads
    them, and N as a first axis. Dimensions without a length in the file are open axes, so one
    compiled program serves all their lengths.

    ``values`` are arrays of inputs that are known now: such an input is no input of the model any
    more. Shapes, axes and texts that a model takes as inputs must be known.

    Initializers of floats become trainable variables with the names of the file. ``frozen`` makes
    all of them constant (True), or those whose names match a pattern, such as ``"encoder.*"``.

    Inputs and outputs of dtypes of less than 8 bits, and of floats of 8 bits, have the values of
    these dtypes in wider ones: int8, uint8 or float32.

    Raises ``ModelError``, which names the node and the reason, for a damaged file, for shapes that
    do not fit and for what the standard does not allow; ``UnsupportedError`` with the names of all
    operators that geon does not have; ``UnknownValueError`` with the names of inputs whose values
    must be known.
    """
    source = read(path_or_model)
    check_operators(source)
    patterns = frozen_patterns(frozen, source)
    for kind, given in (("axes", axes), ("values", values)):
        if given is not None and not is_mapping(given):
            raise ArgumentError(
                f"{kind}={given!r} is no dictionary; give one from names of inputs, such as "
                f"{kind}={{'x': ...}}"
            )
    for name, names in (axes or {}).items():
        listed = isinstance(names, (list, tuple, geon.Axes))
        if not listed or not all(isinstance(each, (str, geon.Axis)) and each for each in names):
            raise ArgumentError(f"axes of {name!r}: {names!r}; give a list of names or axes")
        shown = [str(each.name if isinstance(each, geon.Axis) else each) for each in names]
        if len({*shown}) < len(shown):
            raise ArgumentError(f"axes of {name!r}: {names!r} has one name twice; name each apart")
    with without_collecting():
        parts = _OnnxLoader(source, dict(axes or {}), dict(values or {}), patterns)
    return ImportedModel(source.name, parts.inputs, parts.outputs, parts.variables, parts.texts)


def frozen_patterns(frozen: Any, source: Source) -> list[str]:
    """Return the patterns of names of constant initializers.

    Raises ``ArgumentError`` for other types, and for a pattern that no initializer matches.
    """
    if isinstance(frozen, bool):
        return ["*"] if frozen else []
    patterns = [frozen] if isinstance(frozen, str) else frozen
    if not isinstance(patterns, (list, tuple, set)) or not all(
        isinstance(pattern, str) for pattern in patterns
    ):
        raise ArgumentError(
            f"frozen={frozen!r}: give True, or patterns of names, such as 'encoder.*'"
        )
    names = [each.name for each in source.model.graph.initializer]
    for pattern in patterns:
        if not fnmatch.filter(names, pattern):
            raise ArgumentError(
                f"frozen={pattern!r} matches no initializer of {source.name}; it has "
                f"{', '.join(names[:MAX_LISTED]) or 'none'}{', ...' if names[MAX_LISTED:] else ''}"
            )
    return list(patterns)


class _OnnxLoader:
    """The parts of a model while it is loaded."""

    def __init__(
        self,
        source: Source,
        axes: dict[str, Sequence[Any]],
        values: dict[str, Any],
        frozen: Sequence[str],
    ) -> None:
        self.name = source.name
        self.inputs: dict[str, Leaf] = {}
        self.outputs: dict[str, Any] = {}
        self.variables: dict[str, Leaf] = {}
        self.texts: dict[str, Any] = {}
        self._frozen = frozen
        graph = source.model.graph
        stored = {each.name for each in graph.initializer}
        stored |= {each.values.name for each in graph.sparse_initializer}
        given = [each for each in graph.input if each.name not in stored or each.name in values]
        own = [each.name for each in given]
        refuse_other_inputs("axes", axes, source.name, own)
        refuse_other_inputs("values", values, source.name, own)
        self._inferred = inferred_names(graph)
        self._taken = stated_names(given, axes.values())
        scope = Scope({}, source.opsets)
        for info in given:
            if info.name in values:
                scope.values[info.name] = known_input(values[info.name])
            else:
                scope.values[info.name] = self._placeholder(info, axes.get(info.name))
        results = Builder(source, self._parameter).graph(graph, scope)
        for info, result in zip(graph.output, results, strict=True):
            self._output(info, result)

    def _placeholder(
        self, info: onnx.ValueInfoProto, axes: Sequence[Any] | None
    ) -> PositionalArray | SmallArray:
        if info.type.WhichOneof("value") != "tensor_type":
            raise ModelError(
                f"the input {info.name!r} is no tensor; give load its value: "
                f"values={{{info.name!r}: ...}}"
            )
        dtype = dtype_of(info.type.tensor_type.elem_type, f"the input {info.name!r}")
        if held_dtype(dtype).name not in DTYPES:
            raise ModelError(
                f"the input {info.name!r} has the dtype {dtype.name}, and geon has no tensors of "
                f"it; give load its value: values={{{info.name!r}: ...}}"
            )
        named = input_axes(info, axes, self._inferred[info.name], self._taken)
        self._taken.update([axis.name for axis in named])
        leaf = geon.placeholder(named, held_dtype(dtype), name=info.name)
        self.inputs[info.name] = leaf
        return SmallArray(input_array(leaf), dtype) if is_small(dtype) else input_array(leaf)

    def _parameter(self, name: str, value: np.ndarray[Any, Any]) -> HostArray | Weight:
        name_of_dtype = name_of(value.dtype)
        is_float = name_of_dtype in FLOATS
        if name_of_dtype not in DTYPES or not (is_float or value.size > MAX_HOST_ELEMENTS):
            return host(value)
        trainable = is_float and not any(fnmatch.fnmatchcase(name, p) for p in self._frozen)
        return weight(value, name, self.variables, trainable)

    def _output(self, info: onnx.ValueInfoProto, result: Any) -> None:
        if isinstance(result, HostArray) and result.dtype.name not in (*DTYPES, *FORMATS):
            self.texts[info.name] = result.array
            return
        if isinstance(result, PartialStack):
            raise ModelError(f"the output {info.name!r} of {self.name}: {result.refused('it')}")
        if isinstance(result, (list, tuple)):
            self.outputs[info.name] = [full_tensor(wide(each)) for each in result]
            return
        if result is None:
            raise ModelError(
                f"the output {info.name!r} of {self.name} is an optional without value"
            )
        tensor = full_tensor(wide(result))
        declared = info.type.tensor_type
        if declared.elem_type:
            dtype = dtype_of(declared.elem_type, f"the output {info.name!r}")
            if dtype != result.dtype:
                raise ModelError(
                    f"the output {info.name!r} of {self.name} is {result.dtype}; the file says "
                    f"{dtype}"
                )
        if declared.HasField("shape"):
            lengths = [d.dim_value if d.HasField("dim_value") else None for d in declared.shape.dim]
            fits = len(lengths) == len(tensor.axes) and all(
                n is None or may_equal(n, axis.expression)
                for n, axis in zip(lengths, tensor.axes, strict=False)
            )
            if not fits:
                shown = ", ".join(["?" if n is None else str(n) for n in lengths])
                raise ModelError(
                    f"the output {info.name!r} of {self.name} is {tensor.axes}; the file says "
                    f"({shown})"
                )
        self.outputs[info.name] = tensor


def known_input(value: Any) -> Any:
    """Return an input that is known: an array, a list of them for a sequence, a map, or None."""
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return [known_input(each) for each in value]
    return host(np.asarray(value))
