"""Convolutions by cuDNN, through its Python frontend, on PyCUDA's context.

A convolution is a graph of one operation. Plans that round more than float32 sums, or that are not
deterministic, are excluded. Graphs are cached by lengths and strides, so a repeated convolution is
one library call; convolutions without a plan are cached too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ....errors import DeviceError
from ...kernels.products.convolutions import PARTS
from ..launches.library_requests import WORKSPACE_BYTES, Convolving
from .nvmath_bindings import PlanCache, starting

DATA = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF", "bfloat16": "BFLOAT16"}
# Numerical notes of plans that are excluded: they round more, or are not deterministic.
ROUNDING = (
    "DOWN_CONVERT_INPUTS", "REDUCED_PRECISION_REDUCTION", "FFT", "NONDETERMINISTIC", "WINOGRAD",
    "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13",
)  # fmt: skip
TF32 = "TENSOR_CORE"  # excluded for float32: it rounds to 10 bits of mantissa


class Planned(NamedTuple):
    """A graph with its plan, and its tensors: image, filter, response."""

    graph: Any
    tensors: tuple[Any, Any, Any]


class CuDnn:
    """cuDNN on one device; callers must have entered the device's context."""

    title = "cuDNN"
    calling = 'cuDNN computes a convolution (convolutions="generated" does without it)'

    def __init__(self, device: str) -> None:
        with starting("convolutions", self.title, device, "cudnn", "nvidia-cudnn-frontend"):
            import cudnn

            self.cudnn = cudnn
            self.handle = cudnn.create_handle()
        self.device = device
        self.errors = cudnn.cudnnGraphNotSupportedError, RuntimeError
        self.known = PlanCache(self.plan)

    def takes(self, convolution: Convolving) -> bool:
        """Return True if the library has a plan for a convolution."""
        return self.known.plan(convolution) is not None

    def call(
        self, convolution: Convolving, addresses: Sequence[int], works: int, stream: int
    ) -> None:
        """Submit a convolution to a stream."""
        c = convolution
        planned = self.known.plan(c)
        if planned is None:
            raise DeviceError(f"cuDNN on {self.device} has no plan for {c}")
        self.cudnn.set_stream(handle=self.handle, stream=stream)
        pack = dict(zip(planned.tensors, addresses, strict=True))
        planned.graph.execute(pack, works, handle=self.handle)

    def plan(self, convolution: Convolving) -> Planned | None:
        """Build a graph with a plan that fits the workspace; None if there is none."""
        c, cudnn = convolution, self.cudnn
        planned = graph_of(cudnn, c, self.handle)
        graph = planned.graph
        names = ROUNDING if c.dtype in ("float16", "bfloat16") else (*ROUNDING, TF32)
        try:
            graph.validate()
            graph.build_operation_graph()
            graph.create_execution_plans([cudnn.heur_mode.A, cudnn.heur_mode.FALLBACK])
            graph.deselect_numeric_notes([getattr(cudnn.numerical_note, n) for n in names])
            graph.deselect_workspace_greater_than(WORKSPACE_BYTES)
            graph.check_support()
            graph.build_plans()
        except (cudnn.cudnnGraphNotSupportedError, RuntimeError):
            return None  # which error is raised depends on the library's version
        return planned if graph.get_workspace_size() <= WORKSPACE_BYTES else None


def graph_of(cudnn: Any, convolution: Convolving, handle: Any = None) -> Planned:
    """Return the graph of a convolution, without a plan.

    The library needs two or three spatial axes, so a single one is preceded by an axis of length 1.
    """
    c, data = convolution, cudnn.data_type
    sums = data.DOUBLE if c.dtype == "float64" else data.FLOAT
    dtype, result = getattr(data, DATA[c.dtype]), getattr(data, DATA[c.result])
    graph = cudnn.pygraph(
        name=f"geon {c.made}", io_data_type=dtype, intermediate_data_type=sums,
        compute_data_type=sums, handle=handle,
    )  # fmt: skip
    lone = len(c.strides) == 1
    given = {}
    shapes = {}
    for part, shape, steps in zip(PARTS, c.shapes, c.steps, strict=True):
        dim, stride = list(shape), list(steps)
        if lone:
            stride.insert(2, max(step * n for step, n in zip(steps, shape, strict=True)))
            dim.insert(2, 1)
        shapes[part] = dim, stride
        if part != c.made:
            given[part] = graph.tensor(name=part, dim=dim, stride=stride, data_type=dtype)
    along = {
        "pre_padding": [0] * lone + list(c.before), "post_padding": [0] * lone + list(c.after),
        "stride": [1] * lone + list(c.strides), "dilation": [1] * lone + list(c.dilations),
    }  # fmt: skip
    if c.made == "response":
        made = graph.conv_fprop(image=given["image"], weight=given["filter"], **along)
    elif c.made == "filter":
        made = graph.conv_wgrad(image=given["image"], loss=given["response"], **along)
    else:
        made = graph.conv_dgrad(loss=given["response"], filter=given["filter"], **along)
    dim, stride = shapes[c.made]
    made.set_output(True).set_data_type(result).set_dim(dim).set_stride(stride)
    image, window, response = ({**given, c.made: made}[part] for part in PARTS)
    return Planned(graph, (image, window, response))
