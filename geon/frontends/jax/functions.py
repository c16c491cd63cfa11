"""``function``: a geon computation as a differentiable function of JAX arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from jax import numpy as jnp
from jax.custom_derivatives import SymbolicZero
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir

from ...errors import ArgumentError
from ...op_graph.core.argument_hints import public
from ...op_graph.core.source_info import user_call
from ...op_graph.op_graph import Leaf
from ...op_graph.values.dtypes import EXTENSIONS
from ...transformers.base import Transformer
from ..base.graph_function import FunctionDescription, GraphFunction


@public
def function(
    results: Any, *inputs: Leaf, transformer: Transformer | None = None
) -> Callable[..., Any]:
    """Return a function of JAX arrays, one for each of ``inputs``, that computes ``results``.

    ``results`` is a tensor of geon or a structure of these, or a computation of a transformer,
    whose placeholders are the first inputs. Inputs are placeholders and all variables that the
    results read, since functions of JAX have no state. Dimensions are in the order of axes; open
    axes have any length.

    The function may be under ``jax.jit``, has reverse-mode derivatives of any order, and
    ``jax.vmap`` adds an axis. Outside of ``jit``, arrays in CPU memory are read and results
    returned without copies; a program of ``jit`` copies the results. Raises ``ArgumentError`` for
    results with effects or random draws, for missing inputs and for variables that are none.
    """
    described = FunctionDescription(results, inputs, transformer)
    if described.variables:
        names = ", ".join(map(str, described.variables))
        raise ArgumentError(
            f"{user_call('function')}: the results read {names}, and a function of JAX has no "
            "state; give variables as further inputs, and their values, such as "
            "transformer.get(variable), at each call"
        )

    def call(*arrays: Any) -> Any:
        graph = described.graph
        given = described.arranged(arrays, {}, "arrays")
        values = [
            _fitting(value, leaf, described)
            for value, leaf in zip(given, graph.inputs, strict=True)
        ]
        return described.structure.filled(iter(_call(graph, *values)))

    return call


def _fitting(value: Any, leaf: Leaf, described: FunctionDescription) -> Any:
    """Return a value as an array of the dtype of ``leaf``; Python numbers are converted."""
    if isinstance(value, (bool, int, float, list, tuple)):
        value = jnp.asarray(value, leaf.dtype)
    dtype = jnp.result_type(value)
    if dtype != leaf.dtype:
        cure = f"convert it with .astype({leaf.dtype.name!r})"
        if leaf.dtype.itemsize == 8:
            cure += ', after jax.config.update("jax_enable_x64", True)'
        raise described.dtype_error(leaf, dtype.name, cure)
    return value


# The call of a graph as a primitive of JAX: its parameter ``graph`` is compared by identity.
call_p = Primitive("geon_call")
call_p.multiple_results = True


@call_p.def_impl
def _run(*arrays: Any, graph: GraphFunction) -> list[Any]:
    """Compute at once, on memory that is shared in both directions."""
    shapes = graph.result_shapes([array.shape for array in arrays])
    pairs = zip(shapes, graph.results, strict=True)
    out = [_aligned(shape, op.dtype) for shape, op in pairs]
    return [_shared(value) for value in graph([np.asarray(x) for x in arrays], out)]


ALIGNMENT = 64  # bytes; JAX copies host memory with less


def _aligned(shape: tuple[int, ...], dtype: Any) -> np.ndarray[Any, Any]:
    """Return a new array whose memory begins at a multiple of ``ALIGNMENT``."""
    count = math.prod(shape) * dtype.itemsize
    memory = np.empty(count + ALIGNMENT, np.uint8)
    skipped = -memory.ctypes.data % ALIGNMENT
    return memory[skipped : skipped + count].view(dtype).reshape(shape)


def _shared(array: np.ndarray[Any, Any]) -> Any:
    """Return an array of JAX on the same memory; dtypes of ml_dtypes are copied."""
    known = array.dtype.kind != "V" and array.dtype.name not in EXTENSIONS
    return jnp.from_dlpack(array) if known else jnp.asarray(array)


@call_p.def_abstract_eval
def _shapes(*avals: Any, graph: GraphFunction) -> list[Any]:
    shapes = graph.result_shapes([aval.shape for aval in avals])
    return [
        jax.core.ShapedArray(shape, op.dtype)
        for shape, op in zip(shapes, graph.results, strict=True)
    ]


def _callback(*arrays: Any, graph: GraphFunction) -> Any:
    """Compute inside of a compiled program, by a call back to Python."""
    shapes = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in _shapes(*arrays, graph=graph)
    ]

    def host(*values: Any) -> Any:
        return tuple(graph([np.asarray(value) for value in values]))

    return jax.pure_callback(host, tuple(shapes), *arrays)


mlir.register_lowering(call_p, mlir.lower_fun(_callback, multiple_results=True))


def _batch(arrays: Sequence[Any], dims: Sequence[Any], graph: GraphFunction) -> Any:
    """Return the results for arrays with a further axis, and the places of it in them."""
    which = tuple(dim is not None for dim in dims)
    batched, mapped = graph.batched(which)
    moved = [
        jnp.moveaxis(x, dim, 0) if many else x
        for x, dim, many in zip(arrays, dims, which, strict=True)
    ]
    found = call_p.bind(*moved, graph=batched)
    return found, [0 if has else None for has in mapped]


batching.primitive_batchers[call_p] = _batch


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def _call(graph: GraphFunction, *arrays: Any) -> Any:
    return tuple(call_p.bind(*arrays, graph=graph))


def _forward(graph: GraphFunction, *arrays: Any) -> Any:
    values = tuple(array.value for array in arrays)
    # Flags are part of the structure: leaves of a tree would become arrays.
    perturbed = tuple(() if array.perturbed else None for array in arrays)
    return _call(graph, *values), (values, perturbed)


def _backward(graph: GraphFunction, saved: Any, cotangents: Any) -> Any:
    values, perturbed = saved
    floats = graph.differentiable_results
    wanted = tuple(k for k in graph.differentiable_inputs if perturbed[k] is not None)
    given = tuple(k for k in floats if not isinstance(cotangents[k], SymbolicZero))
    found: list[Any] = [None] * len(values)
    if wanted and given:
        seeds = [cotangents[k] for k in given]
        results = _call(graph.vjp(wanted, given), *values, *seeds)
        for k, value in zip(wanted, results, strict=True):
            found[k] = value
    return tuple(found)


_call.defvjp(_forward, _backward, symbolic_zeros=True)
