"""What geon calls of cuDNN's frontend for Python, on the memory of the host."""

import ctypes
import itertools
import sys
import types

import numpy as np

from geon.op_graph.values.dtypes import named_dtype
from geon.transformers.pycuda.products import nvmath_bindings

DTYPES = {"FLOAT": "float32", "DOUBLE": "float64", "HALF": "float16", "BFLOAT16": "bfloat16"}
NOTES = (
    "TENSOR_CORE DOWN_CONVERT_INPUTS REDUCED_PRECISION_REDUCTION FFT NONDETERMINISTIC WINOGRAD "
    "WINOGRAD_TILE_4x4 WINOGRAD_TILE_6x6 WINOGRAD_TILE_13x13 STRICT_NAN_PROP"
).split()


class NotSupported(Exception):
    """No plan computes a graph."""


class Tensor:
    def __init__(self, dim=(), stride=(), data_type=None, name=""):
        self.dim, self.stride, self.data_type, self.name = dim, stride, data_type, name
        self.output = False

    def set_output(self, value):
        self.output = value
        return self

    def set_data_type(self, value):
        self.data_type = value
        return self

    def set_dim(self, value):
        self.dim = value
        return self

    def set_stride(self, value):
        self.stride = value
        return self

    def at(self, address):
        """The array that lies there."""
        dtype = named_dtype(DTYPES[self.data_type])
        last = sum((n - 1) * step for n, step in zip(self.dim, self.stride, strict=True))
        raw = (ctypes.c_uint8 * ((last + 1) * dtype.itemsize)).from_address(address)
        flat = np.frombuffer(memoryview(raw), np.uint8).view(dtype)
        strides = [step * dtype.itemsize for step in self.stride]
        return np.lib.stride_tricks.as_strided(flat, self.dim, strides)


class Graph:
    """A graph of one convolution, which is planned step by step."""

    stages = ("made", "validated", "lowered", "listed", "supported", "planned")

    def __init__(self, fake, name, io_data_type, intermediate_data_type, compute_data_type, handle):
        assert handle == "a handle" and intermediate_data_type == compute_data_type
        assert compute_data_type == ("DOUBLE" if io_data_type == "DOUBLE" else "FLOAT")
        self.fake, self.io, self.stage = fake, io_data_type, "made"
        self.left_out, self.most = set(), None

    def goes(self, before, after):
        assert self.stage == before, f"{after} follows {before}, not {self.stage}"
        self.stage = after

    def tensor(self, *, name, dim, stride, data_type):
        assert data_type == self.io and all(n > 0 for n in dim)
        assert len(dim) == len(stride) and len(dim) in (4, 5)
        return Tensor(dim, stride, data_type, name)

    def conv_fprop(self, *, image, weight, **along):
        return self.made("response", image=image, filter=weight, **along)

    def conv_wgrad(self, *, image, loss, **along):
        return self.made("filter", image=image, response=loss, **along)

    def conv_dgrad(self, *, loss, filter, **along):
        return self.made("image", response=loss, filter=filter, **along)

    def made(self, part, *, pre_padding, post_padding, stride, dilation, **given):
        self.part, self.tensors = part, {**given, part: Tensor()}
        self.along = list(zip(pre_padding, post_padding, stride, dilation, strict=True))
        return self.tensors[part]

    def validate(self):
        """Lengths belong together as the library's documentation says."""
        self.goes("made", "validated")
        image, window, response = (self.tensors[p].dim for p in ("image", "filter", "response"))
        assert self.tensors[self.part].output and image[0] == response[0]
        assert window[0] == response[1] and image[1] % window[1] == 0
        groups = image[1] // window[1]
        assert window[0] % groups == 0
        for k, (before, after, stride, dilation) in enumerate(self.along, 2):
            assert before >= 0 and after >= 0 and stride > 0 and dilation > 0
            reach = dilation * (window[k] - 1) + 1
            assert response[k] == 1 + (image[k] + before + after - reach) // stride

    def build_operation_graph(self):
        self.goes("validated", "lowered")

    def create_execution_plans(self, modes):
        self.goes("lowered", "listed")
        assert modes == ["A", "FALLBACK"]

    def deselect_numeric_notes(self, notes):
        self.left_out = set(notes)

    def deselect_workspace_greater_than(self, size):
        self.most = size

    def check_support(self):
        self.goes("listed", "supported")
        if self.fake.refuses(self):
            raise NotSupported("no engine")

    def build_plans(self):
        self.goes("supported", "planned")
        self.fake.plans.append(self)

    def get_workspace_size(self):
        return 1024

    def execute(self, pack, workspace, handle):
        assert self.stage == "planned" and handle == "a handle" and workspace % 256 == 0
        self.fake.executed += 1
        by_part = {part: pack[tensor] for part, tensor in self.tensors.items()}
        assert all(address % 16 == 0 for address in by_part.values())
        self.fake.driver.check("execute")
        self.fake.driver.do(lambda: self.compute(by_part))

    def compute(self, addresses):
        """Position by position of the response."""
        image, window, response = (
            self.tensors[part].at(addresses[part]) for part in ("image", "filter", "response")
        )
        wide = np.float64 if self.io == "DOUBLE" else np.float32
        pads = [(0, 0), (0, 0), *((before, after) for before, after, *_ in self.along)]
        padded = np.pad(image.astype(wide), pads)
        groups = image.shape[1] // window.shape[1]
        each, made = window.shape[1], window.shape[0] // groups
        sums = {
            "image": np.zeros_like(padded),
            "filter": np.zeros(window.shape, wide),
            "response": np.zeros(response.shape, wide),
        }
        for place in itertools.product(*map(range, response.shape[2:])):
            where = tuple(
                slice(p * stride, p * stride + dilation * (n - 1) + 1, dilation)
                for p, n, (_, _, stride, dilation) in zip(
                    place, window.shape[2:], self.along, strict=True
                )
            )
            for group in range(groups):
                ins, outs = (slice(group * n, (group + 1) * n) for n in (each, made))
                seen = (slice(None), ins, *where)
                at = (slice(None), outs, *place)
                axes = list(range(1, padded.ndim))
                if self.part == "response":
                    found = np.tensordot(padded[seen], window[outs].astype(wide), (axes, axes))
                    sums["response"][at] = found
                elif self.part == "filter":
                    sums["filter"][outs] += np.tensordot(
                        response[at].astype(wide), padded[seen], (0, 0)
                    )
                else:
                    sums["image"][seen] += np.tensordot(
                        response[at].astype(wide), window[outs].astype(wide), (1, 0)
                    )
        inner = [slice(b, n - a) for (b, a), n in zip(pads, padded.shape, strict=True)]
        sums["image"] = sums["image"][tuple(inner)]
        out = {"image": image, "filter": window, "response": response}[self.part]
        out[...] = sums[self.part].astype(out.dtype)


class Fake:
    """The module, on the device of a ``fake_cuda.Driver``; ``refuses`` says of which graphs."""

    def __init__(self, driver):
        self.driver, self.plans, self.executed = driver, [], 0
        self.refuses = lambda graph: False

    def module(self, starts=True):
        made = types.ModuleType("cudnn")
        made.data_type = types.SimpleNamespace(**{name: name for name in DTYPES})
        made.heur_mode = types.SimpleNamespace(A="A", FALLBACK="FALLBACK")
        made.numerical_note = types.SimpleNamespace(**{name: name for name in NOTES})
        made.cudnnGraphNotSupportedError = NotSupported

        def create_handle():
            if not starts:
                raise RuntimeError("Unable to find symbol cudnnCreate")
            return "a handle"

        def set_stream(handle, stream):
            assert handle == "a handle"
            self.driver.use_stream(stream)

        def pygraph(**options):
            return Graph(self, **options)

        for each in (create_handle, set_stream, pygraph):
            setattr(made, each.__name__, each)
        return made

    def install(self, monkeypatch, starts=True):
        """Be what ``import cudnn`` finds; without ``starts`` its library is missing."""
        monkeypatch.setitem(sys.modules, "cudnn", self.module(starts))
        real = nvmath_bindings.is_installed
        monkeypatch.setattr(
            nvmath_bindings, "is_installed", lambda module: module == "cudnn" or real(module)
        )
        return self
