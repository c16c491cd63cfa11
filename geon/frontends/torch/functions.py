"""``function``: a geon computation as a differentiable function of PyTorch tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ...errors import FeedError
from ...op_graph.core.argument_hints import public
from ...op_graph.op_graph import Leaf
from ...op_graph.values.dtypes import is_continuous
from ...transformers.base import Transformer
from ..base.graph_function import FunctionDescription, GraphFunction
from .numbers import shared_array, shared_tensor, torch_dtype


@public
def function(results: Any, *inputs: Leaf, transformer: Transformer | None = None) -> FunctionModule:
    """Return a PyTorch module that computes ``results`` from tensors, one for each of ``inputs``.

    ``results`` is a tensor of geon or a structure of these, or a computation of a transformer,
    whose placeholders are the first inputs. Inputs are placeholders, and variables that are to be
    given at each call. All other trainable variables become parameters of the module. Variables
    that are not trainable, or have no derivative, become its buffers. Both begin with the values of
    ``transformer``. Dimensions are in the order of axes; open axes have any length.

    Calls have derivatives of any order, by PyTorch's autograd, and ``torch.vmap`` adds an axis.
    Tensors are in CPU memory, which neither direction copies. Raises ``ArgumentError`` for results
    with effects or random draws and for missing inputs.
    """
    return FunctionModule(FunctionDescription(results, inputs, transformer))


class FunctionModule(torch.nn.Module):
    """A geon graph as a module: the result of ``function``.

    ``variables`` maps the name of each parameter and buffer to the variable of geon that it came
    from. The module has its own values: ``store()`` writes them into the transformer.
    """

    def __init__(self, described: FunctionDescription) -> None:
        super().__init__()
        self.transformer = described.transformer
        self.variables: dict[str, Leaf] = {}
        self._described = described
        if described.variables:
            self.transformer.computation(described.variables)  # which makes them known to it
        for number, leaf in enumerate(described.variables):
            name = (leaf.name or f"variable_{number}").replace(".", "_")
            if hasattr(self, name):
                name = f"{name}_{number}"
            self.variables[name] = leaf
            self._add(name, leaf)

    def _add(self, name: str, leaf: Leaf) -> None:
        value = shared_tensor(np.array(self.transformer.get(leaf)))
        if leaf.trainable and value.is_floating_point() and is_continuous(leaf.dtype):
            self.register_parameter(name, torch.nn.Parameter(value))
        else:
            self.register_buffer(name, value)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Return the results for tensors, by position or by the name of the placeholder."""
        described = self._described
        values = described.arranged(inputs, named, "tensors")
        values += [getattr(self, name) for name in self.variables]
        graph = described.graph
        tensors = [
            _fitting(value, leaf, described)
            for value, leaf in zip(values, graph.inputs, strict=True)
        ]
        return described.structure.filled(iter(_AutogradCall.apply(graph, *tensors)))

    def store(self) -> None:
        """Write the parameters and buffers into the variables of the transformer."""
        for name, leaf in self.variables.items():
            self.transformer.set(leaf, shared_array(getattr(self, name)))

    def load(self) -> None:
        """Read the parameters and buffers from the variables of the transformer."""
        with torch.no_grad():
            for name, leaf in self.variables.items():
                getattr(self, name).copy_(shared_tensor(np.array(self.transformer.get(leaf))))


def _fitting(value: Any, leaf: Leaf, described: FunctionDescription) -> torch.Tensor:
    """Return a value as a tensor of the dtype of ``leaf``, in CPU memory; numbers are converted."""
    wanted = torch_dtype(leaf.dtype)
    if not isinstance(value, torch.Tensor):
        return torch.as_tensor(value, dtype=wanted)
    if value.dtype != wanted:
        name = str(wanted)
        raise described.dtype_error(leaf, value.dtype, f"convert it with .to({name})")
    if value.device.type != "cpu":
        raise FeedError(
            f"{leaf} (made at {leaf.line_info}) was given a tensor on {value.device}; the function "
            "computes in CPU memory, so give tensor.cpu()"
        )
    return value


class _AutogradCall(torch.autograd.Function):
    """A call of a graph; its backward pass is a call of the derived graph."""

    @staticmethod
    def forward(graph: GraphFunction, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the results, on memory that NumPy allocated."""
        return tuple(map(shared_tensor, graph([shared_array(tensor) for tensor in tensors])))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, ...]) -> None:
        """Keep the inputs, of which the backward pass makes what it needs."""
        graph, *tensors = inputs
        ctx.graph = graph
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        floats = graph.differentiable_results
        ctx.mark_non_differentiable(*[t for k, t in enumerate(output) if k not in floats])

    @staticmethod
    def backward(ctx: Any, *cotangents: torch.Tensor | None) -> Any:
        """Return the cotangents of the inputs that need one, None for the others."""
        graph: GraphFunction = ctx.graph
        wanted = tuple(k for k in graph.differentiable_inputs if ctx.needs_input_grad[k + 1])
        floats = graph.differentiable_results
        given = tuple(k for k in floats if cotangents[k] is not None)
        found: list[torch.Tensor | None] = [None] * (1 + len(graph.inputs))
        if wanted and given:
            seeds = [cotangents[k] for k in given]
            derived = graph.vjp(wanted, given)
            values = _AutogradCall.apply(derived, *ctx.saved_tensors, *seeds)
            for k, value in zip(wanted, values, strict=True):
                found[k + 1] = value
        return tuple(found)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[Any, ...], graph: GraphFunction, *tensors: Any) -> Any:
        """Return the results for tensors with a further dimension, and its places in them."""
        dims = in_dims[1:]
        batched, mapped = graph.batched(tuple(dim is not None for dim in dims))
        moved = [t if d is None else t.movedim(d, 0) for t, d in zip(tensors, dims, strict=True)]
        found = _AutogradCall.apply(batched, *moved)
        return found, tuple(0 if has else None for has in mapped)
