"""``OnnxRuntime``: a transformer that computes with ONNX Runtime what the exporter writes.

So whatever tests a transformer tests the exporter: samples of all primitives, derivatives, loops.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnxruntime import OrtValue

import geon
from geon.frontends.onnx.writing.model import Port, build_model
from geon.frontends.onnx.writing.target import OnnxExporter
from geon.op_graph.op_graph import deep_order


@dataclass(frozen=True)
class Program:
    functions: Any


def session(model: Any) -> Any:
    """A session on one thread, of a model in memory or of a file."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    given = str(model) if isinstance(model, (str, os.PathLike)) else model.SerializeToString()
    return onnxruntime.InferenceSession(given, options, providers=["CPUExecutionProvider"])


def fed(value: Any) -> Any:
    """An array as ONNX Runtime takes it; of bfloat16, which NumPy lacks, the bits."""
    array = np.array(value)
    if array.dtype.name == "bfloat16":
        bits = array.view(np.uint16)
        return OrtValue.ortvalue_from_numpy_with_onnx_type(bits, onnx.TensorProto.BFLOAT16)
    return OrtValue.ortvalue_from_numpy(array)


def readable(op: geon.Tensor) -> geon.Tensor:
    """The op, in float32 where ONNX Runtime gives no array of its dtype."""
    return geon.cast(op, "float32") if op.dtype.name == "bfloat16" else op


def computed(model: Any, feeds: dict[str, Any]) -> list[Any]:
    """The outputs of a session for these arrays."""
    found = model.run_with_ort_values(None, {name: fed(value) for name, value in feeds.items()})
    return [np.array(value.numpy()) for value in found]


class OnnxRuntime(OnnxExporter):
    """Computes with a session for each program."""

    def compile(self, plan: Any, linking: Any) -> Program:
        program = plan.schedule.program

        def sizes(lengths: dict[str, int]) -> tuple[list[int], list[tuple[int, int]], int]:
            return [], [], 0

        def bind(arena: Any, offsets: Any, variables: Any, constants: Any, lengths: Any) -> Any:
            large = [
                Port(f"large{k}", op, constants[linking.constants[op.attrs.value]])
                for k, op in enumerate(deep_order(program.roots))
                if op.primitive.name == "constant" and op.attrs.value in linking.constants
            ]
            ports = [Port(f"x{k}", leaf) for k, leaf in enumerate(linking.inputs)]
            ports += [Port(f"v{k}", leaf) for k, leaf in enumerate(linking.variables)]
            results = [*program.outputs, *[op for _, op in program.updates]]
            outputs = [Port(f"y{k}", readable(op)) for k, op in enumerate(results)]
            model = build_model(ports, large, outputs, "test", {}, lengths)
            onnx.checker.check_model(model, full_check=True)
            return session(model), [op.dtype for op in results], variables

        def run(bound: Any, *inputs: Any) -> tuple[Any, ...]:
            model, dtypes, variables = bound
            names = [f"x{k}" for k in range(len(inputs))] + [f"v{k}" for k in range(len(variables))]
            values = [*inputs, *variables]
            taken = {each.name for each in model.get_inputs()}
            feeds = {n: v for n, v in zip(names, values, strict=True) if n in taken}
            found = computed(model, feeds)
            found = [each.astype(dtype) for each, dtype in zip(found, dtypes, strict=True)]
            count = len(program.outputs)
            stored = dict(zip(linking.variables, variables, strict=True))
            for (leaf, _), value in zip(program.updates, found[count:], strict=True):
                np.copyto(stored[leaf], value)
            return tuple(found[:count])

        return Program((bind, run, sizes))
