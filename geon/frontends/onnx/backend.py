"""The interface of ``onnx.backend.base`` for geon's transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

import geon

from ...op_graph.values.dtypes import DTYPES
from ..positional.imported_model import ImportedModel
from ..positional.small_dtypes import held_dtype, is_small
from ..positional.values import UnknownValueError
from .model import load

TRANSFORMERS = {"CPU": "native", "CUDA": "pycuda"}


class GeonBackendRep(BackendRep):
    """A model that is ready to run; inputs that shapes depend on are read from each run's data."""

    def __init__(self, model: onnx.ModelProto, transformer: Any) -> None:
        self.proto = model
        self.transformer = transformer
        stored = {each.name for each in model.graph.initializer}
        self.infos = [each for each in model.graph.input if each.name not in stored]
        self._fixed: tuple[str, ...] = tuple(
            [info.name for info in self.infos if not _may_be_placeholder(info)]
        )
        self._model: ImportedModel | None = None
        self._run: Any = None

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Return the outputs for inputs: a sequence in the file's order, or a dictionary."""
        del kwargs
        names = [info.name for info in self.infos]
        given = dict(inputs) if isinstance(inputs, dict) else dict(zip(names, inputs, strict=False))
        model, call = self._computation(given)
        arrays = [np.asarray(given[name]) for name in model.inputs]
        found = call(*[array.astype(held_dtype(array.dtype), copy=False) for array in arrays])
        infos = self.proto.graph.output
        results = [
            model.texts[info.name]
            if info.name in model.texts
            else _in_dtype(info.type, found[info.name])
            for info in infos
        ]
        named: Any = namedtupledict("Outputs", [info.name for info in infos])
        return named(*results)

    def _computation(self, given: dict[str, Any]) -> tuple[ImportedModel, Any]:
        if self._model is not None and not self._fixed:
            return self._model, self._run
        while True:
            values = {name: given.get(name) for name in self._fixed}
            axes = {
                info.name: [f"{info.name}_{k}" for k in range(np.ndim(given[info.name]))]
                for info in self.infos
                if info.name not in values and not info.type.tensor_type.HasField("shape")
            }
            try:
                self._model = load(self.proto, axes, values=values)
                break
            except UnknownValueError as error:
                new = [n for n in error.inputs if n not in values and n in given]
                if not new:
                    raise
                self._fixed += tuple(new)
        self._run = self._model.computation(self.transformer)
        return self._model, self._run


def _may_be_placeholder(info: onnx.ValueInfoProto) -> bool:
    kind = info.type.tensor_type
    if info.type.WhichOneof("value") != "tensor_type":
        return False
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    return held_dtype(np.dtype(dtype)).name in DTYPES


def _in_dtype(kind: onnx.TypeProto, found: Any) -> Any:
    """Return an output, held in a wider dtype, in the small one that the file declares."""
    if kind.WhichOneof("value") == "sequence_type":
        return [_in_dtype(kind.sequence_type.elem_type, each) for each in found]
    if not kind.tensor_type.elem_type:
        return found
    dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
    return found.astype(dtype) if is_small(dtype) else found


class GeonBackend(Backend):
    """Runs models with geon: on native code for "CPU", on CUDA kernels for "CUDA".

    ``transformer`` among the options of a call is a transformer or its name instead.
    """

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> GeonBackendRep:
        """Return a handle that runs the model."""
        chosen = kwargs.get("transformer") or TRANSFORMERS[device.partition(":")[0]]
        made = geon.make_transformer(chosen) if isinstance(chosen, str) else chosen
        return GeonBackendRep(model, made)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[Any] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Return the outputs of one node for its inputs."""
        del outputs_info
        arrays = [np.asarray(value) for value in inputs]
        infos = [
            onnx.helper.make_tensor_value_info(
                name, onnx.helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip([n for n in node.input if n], arrays, strict=True)
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        graph = onnx.helper.make_graph([node], "node", infos, outputs)
        version = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        opset = onnx.helper.make_opsetid(node.domain, version)
        model = onnx.helper.make_model(graph, opset_imports=[opset])
        return cls.prepare(model, device, **kwargs).run(arrays)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return True if a transformer for the device works here."""
        name = TRANSFORMERS.get(device.partition(":")[0])
        if name is None:
            return False
        try:
            geon.make_transformer(name)
        except geon.GeonError:
            return False
        return True


prepare = GeonBackend.prepare
run_node = GeonBackend.run_node
run_model = GeonBackend.run_model
supports_device = GeonBackend.supports_device
is_compatible = GeonBackend.is_compatible
