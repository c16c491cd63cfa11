"""PyCUDA and cuda-bindings as far as geon uses them, over a device of the tests.

Names, arguments and results are those that the documents of both packages give; what a driver would
not allow fails here too. ``fails`` has errors that calls raise next, by the name of the function.
"""

import contextlib
import ctypes
import enum
import functools
import importlib.machinery
import itertools
import re
import sys
import threading
import types

import numpy as np

from geon.op_graph.values.dtypes import named_dtype
from geon.transformers.pycuda.launches.device import CudaSource, Signature
from geon.transformers.pycuda.runtime import graph_replay, host, host_library, nvrtc

from .devices import LateDevice
from .queues import Capture

HEAD = re.compile(r'extern "C" __global__ void __launch_bounds__\([\d, ]+\) (\w+)\(([^)]*)\)')
DATA = {0: "float32", 1: "float64", 2: "float16", 14: "bfloat16"}  # cudaDataType
current = threading.local()


class Error(Exception):
    """The root of the driver's errors."""


class LogicError(Error):
    pass


class LaunchError(Error):
    pass


class RuntimeError(Error):
    pass


class MemoryError(Error):
    pass


class Driver:
    """All that one fake driver has: memory, streams, and what is to fail.

    ``seed`` is that of the order in which work of several streams is done.
    """

    def __init__(self, total=1 << 30, capability=(9, 0), count=2, seed=0):
        self.device = LateDevice(seed)
        self.total, self.capability, self.count = total, capability, count
        self.taken, self.fails, self.sticky = {}, {}, None
        self.shared = {"block": 99 << 10, "processor": 100 << 10, "processors": 3}
        self.stranded = 0  # events that were dropped outside of the context
        self.initialized, self.captured_graphs = False, 0
        self.streams = []
        self.graphs, self.wrong, self.context = {}, [], None

    def check(self, name, needs_context=True):
        if self.sticky is not None and name != "init":
            raise self.sticky
        if needs_context:
            assert getattr(current, "stack", []), f"{name} without a context"
        error = self.fails.pop(name, None)
        if error is not None:
            if getattr(error, "stays", False):
                self.sticky = error
            raise error

    def answered(self, name):
        assert getattr(current, "stack", []), f"{name} without a context"
        return self.fails.pop(name, 0)

    # Streams ------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def on(self, stream):
        """What the device begins meanwhile is begun on a stream."""
        with self.device.lock:
            before, self.device.queue = self.device.queue, stream.line
            try:
                yield
            finally:
                self.device.queue = before

    def stream_of(self, handle):
        (found,) = [stream for stream in self.streams if stream.handle == handle]
        return found

    def use_stream(self, handle):
        """Let libraries begin what they are asked for next in this thread on a stream."""
        current.of_libraries = self.stream_of(handle)

    def do(self, begun):
        with self.on(current.of_libraries):
            self.device.do(begun)

    @property
    def unjoined(self):
        """Streams whose work does not come before what the first one begins next."""
        first = self.streams[0].queue
        return [each for each in self.streams if not first.follows(each.queue.place())]

    def launch_graph(self, number, handle):
        self.graphs[number].launch(self.device.scheduler, self.stream_of(handle).queue)
        return self.answered("cuGraphLaunch")

    # libcuda ------------------------------------------------------------------------------------

    @functools.cached_property
    def functions(self):
        """Functions of C in the order of ``steady.FUNCTIONS``, and what they note of themselves."""
        events = {}

        def push(context):
            assert context == self.context.handle
            self.context.push()
            return 0

        def pop(popped):
            popped[0] = self.context.handle
            self.context.pop()
            return 0

        def launch(graph, stream):
            return self.launch_graph(graph, stream)

        def record(event, stream):
            assert getattr(current, "stack", [])
            events[event] = self.stream_of(stream).queue.place()
            return 0

        def query(event):
            try:
                self.check("query", needs_context=False)
            except Error:
                return 700
            self.device.scheduler.step()
            place = events[event]
            return 0 if place.queue.done >= place.number else 600

        def create(event, flags):
            assert flags == 2 and getattr(current, "stack", [])
            event[0] = 9000 + len(events)
            events[event[0]] = None
            return 0

        def noted(function):
            """The status that it gives; what it asserts is told when the test ends."""

            def called(*given):
                try:
                    return function(*given)
                except BaseException as error:
                    self.wrong.append(error)
                    return 999

            return called

        pointer, out = ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p)
        kinds = {push: [pointer], pop: [out], launch: [pointer] * 2, record: [pointer] * 2,
                 query: [pointer], create: [out, ctypes.c_uint]}  # fmt: skip
        self.held = [
            ctypes.CFUNCTYPE(ctypes.c_int, *kind)(noted(each)) for each, kind in kinds.items()
        ]
        return tuple([ctypes.cast(each, ctypes.c_void_p).value for each in self.held])

    # pycuda.driver ------------------------------------------------------------------------------

    def module(self):
        fake = self
        made = types.ModuleType("pycuda.driver")
        for error in (Error, LogicError, LaunchError, RuntimeError, MemoryError):
            setattr(made, error.__name__, error)

        def init():
            fake.initialized = True

        class Context:
            handle = 815

            def push(self):
                current.stack = [*getattr(current, "stack", []), self]

            @staticmethod
            def pop():
                current.stack = current.stack[:-1]

            @staticmethod
            def synchronize():
                fake.check("synchronize")
                assert not any(stream.capture for stream in fake.streams), "a graph is captured"
                fake.device.scheduler.run_all()

        fake.context = Context()

        class Device:
            def __init__(self, number):
                assert fake.initialized
                self.number = number

            @staticmethod
            def count():
                return fake.count

            def get_attribute(self, attribute):
                return fake.shared[attribute]

            def compute_capability(self):
                return fake.capability

            def name(self):
                return "a fake GPU"

            def total_memory(self):
                return fake.total

            def retain_primary_context(self):
                return fake.context

        class Stream:
            """A queue of the device, and while a graph is captured one of the graph."""

            def __init__(self, flags=0):
                fake.check("Stream")
                self.handle = 4711 + len(fake.streams)
                self.queue, self.capture = fake.device.scheduler.queue(), None
                fake.streams.append(self)

            @property
            def line(self):
                """The queue of what is begun now."""
                return self.queue if self.capture is None else self.capture.queue(self)

            def synchronize(self):
                fake.check("synchronize")
                assert self.capture is None, "a graph is captured"
                fake.device.scheduler.run_until(lambda: not self.queue.waiting)

            def wait_for_event(self, event):
                fake.check("wait_for_event")
                if event.place.queue.capture is not None:
                    self.capture = event.place.queue.capture
                assert self.capture is event.place.queue.capture, "an event of before the capture"
                self.line.follow(event.place)

        class Event:
            def __init__(self, flags=0):
                fake.check("Event")
                self.timed, self.time = not flags & 2, []

            def __del__(self):
                if not getattr(current, "stack", []):
                    fake.stranded += 1  # as PyCUDA cannot give it back then

            def record(self, stream=None):
                fake.check("record")
                if self.timed:
                    with fake.on(stream):
                        self.time = fake.device.clock()
                self.place = stream.line.place()
                return self

            def time_till(self, event):
                fake.check("time_till")
                assert self.timed and event.timed, "an event without a time"
                assert self.time and event.time, "an event that was not waited for"
                return 1e3 * (event.time[0] - self.time[0])

            def query(self):
                fake.check("query", needs_context=False)
                assert self.place.queue.capture is None, "an event of a graph"
                fake.device.scheduler.step()
                return self.place.queue.done >= self.place.number

        class Allocation:
            def __init__(self, size):
                self.size, self.address = size, fake.device.allocate(size)
                fake.taken[self.address] = size

            def __int__(self):
                return self.address

            def __del__(self):
                if fake.taken.pop(self.address, None) is not None:
                    fake.device.scheduler.run_all()
                    host.HostDevice.free(fake.device, self.address)

        def mem_alloc(size):
            fake.check("mem_alloc")
            if sum(fake.taken.values()) + size > fake.total:
                raise MemoryError("cuMemAlloc failed: out of memory")
            return Allocation(size)

        def mem_get_info():
            fake.check("mem_get_info")
            return fake.total - sum(fake.taken.values()), fake.total

        def pagelocked_empty(shape, dtype, order="C", mem_flags=0):
            fake.check("pagelocked_empty")
            made = np.empty(shape, dtype)
            fake.device.pinned[made.ctypes.data] = made
            return made

        def memcpy_htod_async(dest, src, stream=None):
            fake.check("memcpy_htod_async")
            with fake.on(stream):
                fake.device.copy_in(dest, src)

        def memcpy_dtoh_async(dest, src, stream=None):
            fake.check("memcpy_dtoh_async")
            with fake.on(stream):
                fake.device.copy_out(dest, src)

        def memcpy_dtod_async(dest, src, size, stream=None):
            fake.check("memcpy_dtod_async")
            with fake.on(stream):
                fake.device.copy(dest, src, size)

        def memset_d8_async(dest, data, count, stream=None):
            fake.check("memset_d8_async")
            assert data == 0
            with fake.on(stream):
                fake.device.clear(dest, count)

        class Function:
            def __init__(self, kernel, count):
                self.kernel, self.count = kernel, count

            shared_size_bytes = 1024

            def prepare(self, arg_types):
                assert arg_types == "q" * self.count

            def set_attribute(self, attribute, value):
                assert attribute == "most shared memory"
                self.allowed = fake.allowed = value

            def prepared_async_call(self, grid, block, stream, *words, shared_size=0):
                fake.check("prepared_async_call")
                assert grid[1:] == (1,) and block[1:] == (1, 1) and len(words) == self.count
                assert shared_size <= getattr(self, "allowed", 48 << 10)
                with fake.on(stream):
                    fake.device.launch(self.kernel, grid[0], block[0], words)

        class Module:
            def __init__(self, binary):
                text = bytes(binary).decode()
                self.counts, signatures = {}, []
                for name, parameters in HEAD.findall(text):
                    kinds = [each.rpartition(" ")[0] for each in parameters.split(", ")]
                    stars = ["*" * each.count("*") for each in parameters.split(", ")]
                    kinds = [
                        f"{kind.replace('__restrict__', '').replace('*', '')} {star}"
                        for kind, star in zip(kinds, stars, strict=True)
                    ]
                    signatures.append(Signature(name, tuple(kinds), True))
                    self.counts[name] = len(kinds)
                self.kernels = fake.device.load(CudaSource(text), signatures)

            def get_function(self, name):
                return Function(self.kernels[name], self.counts[name])

        def module_from_buffer(binary):
            fake.check("module_from_buffer")
            return Module(binary)

        made.device_attribute = types.SimpleNamespace(
            MAX_SHARED_MEMORY_PER_BLOCK_OPTIN="block",
            MAX_SHARED_MEMORY_PER_MULTIPROCESSOR="processor",
            MULTIPROCESSOR_COUNT="processors",
        )
        made.function_attribute = types.SimpleNamespace(
            MAX_DYNAMIC_SHARED_SIZE_BYTES="most shared memory"
        )
        made.event_flags = types.SimpleNamespace(DISABLE_TIMING=2)
        named = [init, mem_alloc, mem_get_info, pagelocked_empty, memcpy_htod_async]
        named += [memcpy_dtoh_async, memcpy_dtod_async, memset_d8_async, module_from_buffer]
        for each in (*named, Context, Device, Stream, Event):
            setattr(made, each.__name__, each)
        return made

    # cuda.bindings ------------------------------------------------------------------------------

    def bindings(self):
        fake = self
        made = types.ModuleType("cuda.bindings.driver")
        made.CUstreamCaptureMode = types.SimpleNamespace(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL=1)
        made.CUresult = enum.IntEnum("CUresult", {"CUDA_ERROR_ILLEGAL_ADDRESS": 700})

        class Executable:
            def __init__(self, graph):
                self.graph = graph

            def __int__(self):
                return id(self.graph)

        answered = fake.answered

        def cuStreamBeginCapture(stream, mode):
            assert mode == 1
            begun = fake.stream_of(stream)
            assert begun.capture is None
            begun.capture = Capture()
            begun.capture.queue(begun)
            return (answered("cuStreamBeginCapture"),)

        def cuStreamEndCapture(stream):
            captured = fake.stream_of(stream).capture
            for each in captured.queues:
                each.capture = None
            captured.check()
            return answered("cuStreamEndCapture"), captured

        def cuGraphInstantiate(graph, flags):
            assert flags == 0
            made = Executable(graph)
            fake.graphs[int(made)] = made.graph
            fake.captured_graphs += 1
            return answered("cuGraphInstantiate"), made

        def cuGraphDestroy(graph):
            return (answered("cuGraphDestroy"),)

        def cuGraphLaunch(made, stream):
            return (fake.launch_graph(int(made), stream),)

        def cuGraphExecDestroy(made):
            del fake.graphs[int(made)]
            fake.captured_graphs -= 1
            return (answered("cuGraphExecDestroy"),)

        for each in (cuStreamBeginCapture, cuStreamEndCapture, cuGraphInstantiate, cuGraphDestroy,
                     cuGraphLaunch, cuGraphExecDestroy):  # fmt: skip
            setattr(made, each.__name__, each)
        return made

    def nvrtc(self):
        """A compiler whose binaries are the text."""
        fake = self
        made = types.ModuleType("cuda.bindings.nvrtc")
        made.compiled, made.log = [], b"geon.cu(1): error: no such type"

        def nvrtcVersion():
            return 0, 13, 0

        def nvrtcGetSupportedArchs():
            return 0, [80, 86, 90]

        def nvrtcCreateProgram(source, name, count, headers, names):
            return 0, {"source": source}

        def nvrtcCompileProgram(program, count, options):
            assert count == len(options)
            made.compiled.append([each.decode() for each in options])
            return (fake.fails.pop("nvrtcCompileProgram", 0),)

        def nvrtcGetProgramLogSize(program):
            return 0, len(made.log)

        def nvrtcGetProgramLog(program, log):
            filled(log, made.log)
            return (0,)

        def nvrtcGetCUBINSize(program):
            return 0, len(program["source"])

        def nvrtcGetCUBIN(program, binary):
            filled(binary, program["source"])
            return (0,)

        def nvrtcDestroyProgram(program):
            return (0,)

        for each in (nvrtcVersion, nvrtcGetSupportedArchs, nvrtcCreateProgram,
                     nvrtcCompileProgram, nvrtcGetProgramLogSize, nvrtcGetProgramLog,
                     nvrtcGetCUBINSize, nvrtcGetCUBIN, nvrtcDestroyProgram):  # fmt: skip
            setattr(made, each.__name__, each)
        return made

    def cublas_lt(self):
        """cuBLASLt, whose matrices lie by columns."""
        fake = self
        fake.descriptions, fake.multiplied = 0, 0
        made = types.ModuleType("nvmath.bindings.cublasLt")
        known, numbers = {}, itertools.count(1)

        class cuBLASLtError(Exception):
            pass

        names = ["TRANSA", "TRANSB", "EPILOGUE", "BIAS_POINTER"]
        made.MatmulDescAttribute = enum.IntEnum("MatmulDescAttribute", names)
        names = ["BATCH_COUNT", "STRIDED_BATCH_OFFSET"]
        made.MatrixLayoutAttribute = enum.IntEnum("MatrixLayoutAttribute", names)
        made.MatmulPreferenceAttribute = enum.IntEnum(
            "Preference", ["MAX_WORKSPACE_BYTES", "REDUCTION_SCHEME_MASK"]
        )
        made.ReductionScheme = enum.IntEnum(
            "ReductionScheme", {"NONE": 0, "INPLACE": 1, "COMPUTE_TYPE": 2, "OUTPUT_TYPE": 4}
        )
        made.Epilogue = types.SimpleNamespace(DEFAULT=1, BIAS=4)

        def put(**facts):
            number = next(numbers)
            known[number] = facts
            fake.descriptions += 1
            return number

        def drop(number):
            del known[number]
            fake.descriptions -= 1

        def create():
            assert current.stack
            return 99

        def matmul_desc_create(compute, scale):
            assert (compute, scale) in ((68, 0), (70, 1))
            return put(scale=scale, TRANSA=0, TRANSB=0, EPILOGUE=1)

        def set_in(enumeration, dtypes):
            def set_attribute(number, attribute, buffer, size):
                name = enumeration(attribute).name
                dtype = np.dtype(dtypes(attribute))
                assert size == dtype.itemsize
                content = (ctypes.c_uint8 * size).from_address(buffer)
                known[number][name] = int(np.frombuffer(content, dtype)[0])

            return set_attribute

        def get_matmul_desc_attribute_dtype(attribute):
            return [np.int32, np.int32, np.uint32, np.intp][attribute - 1]

        def get_matrix_layout_attribute_dtype(attribute):
            return [np.int32, np.int64][attribute - 1]

        def get_matmul_preference_attribute_dtype(attribute):
            return [np.uint64, np.uint32][attribute - 1]

        def matrix_layout_create(dtype, rows, columns, step):
            assert step >= rows > 0 and columns > 0
            return put(
                dtype=dtype, rows=rows, columns=columns, step=step, BATCH_COUNT=1,
                STRIDED_BATCH_OFFSET=0,
            )  # fmt: skip

        def matmul_algo_get_heuristic(handle, desc, a, b, c, d, preference, wanted, results, count):
            assert handle == 99 and wanted == 1 and c == d
            assert known[preference]["REDUCTION_SCHEME_MASK"] == 3  # never that of halves
            found = fake.fails.pop("matmul_algo_get_heuristic", 1)
            if isinstance(found, str):
                raise cuBLASLtError(found)
            (ctypes.c_int32 * 1).from_address(count)[0] = found

        def matrix(number, address):
            facts = known[number]
            dtype = named_dtype(DATA[facts["dtype"]])
            batch, rows, columns, step = (
                facts[name] for name in ("BATCH_COUNT", "rows", "columns", "step")
            )
            apart = facts["STRIDED_BATCH_OFFSET"]
            count = (batch - 1) * apart + (columns - 1) * step + rows
            raw = (ctypes.c_uint8 * (count * dtype.itemsize)).from_address(address)
            flat = np.frombuffer(memoryview(raw), np.uint8).view(dtype)
            strides = [n * dtype.itemsize for n in (apart, 1, step)]
            return np.lib.stride_tricks.as_strided(flat, (batch, rows, columns), strides)

        def matmul(
            handle, desc, alpha, a, a_layout, b, b_layout, beta, c, c_layout, d, d_layout,
            algo, works, size, stream,
        ):  # fmt: skip
            fake.check("matmul")
            assert handle == 99 and c == d and c_layout == d_layout
            fake.use_stream(stream)
            assert works % 256 == 0 and size and algo
            facts = dict(known[desc])
            layouts = {k: dict(known[k]) for k in (a_layout, b_layout, d_layout)}
            scalar = np.float64 if facts["scale"] else np.float32
            for place, value in ((alpha, 1), (beta, 0)):
                content = (ctypes.c_uint8 * np.dtype(scalar).itemsize).from_address(place)
                assert np.frombuffer(content, scalar)[0] == value
            fake.multiplied += 1

            def multiply():
                saved = {k: known.get(k) for k in layouts}
                known.update(layouts)
                left, right, out = matrix(a_layout, a), matrix(b_layout, b), matrix(d_layout, d)
                known.update({k: v for k, v in saved.items() if v is not None})
                left = left.astype(scalar)
                right = right.astype(scalar)
                left = left.swapaxes(1, 2) if facts["TRANSA"] else left
                right = right.swapaxes(1, 2) if facts["TRANSB"] else right
                sums = left @ right
                if facts["EPILOGUE"] == 4:
                    rows = sums.shape[1]
                    raw = (ctypes.c_uint8 * (rows * out.dtype.itemsize)).from_address(
                        facts["BIAS_POINTER"]
                    )
                    line = np.frombuffer(memoryview(raw), np.uint8).view(out.dtype)
                    sums = sums + line[:, None].astype(scalar)
                out[...] = sums.astype(out.dtype)

            fake.do(multiply)

        made.matmul_desc_set_attribute = set_in(
            made.MatmulDescAttribute, get_matmul_desc_attribute_dtype
        )
        made.matrix_layout_set_attribute = set_in(
            made.MatrixLayoutAttribute, get_matrix_layout_attribute_dtype
        )
        made.matmul_preference_create = lambda: put()
        made.matmul_preference_set_attribute = set_in(
            made.MatmulPreferenceAttribute, get_matmul_preference_attribute_dtype
        )
        made.matmul_preference_destroy = drop
        made.matrix_layout_destroy = made.matmul_desc_destroy = drop
        for each in (cuBLASLtError, create, matmul_desc_create, get_matmul_desc_attribute_dtype,
                     get_matrix_layout_attribute_dtype, get_matmul_preference_attribute_dtype,
                     matrix_layout_create, matmul_algo_get_heuristic, matmul):  # fmt: skip
            setattr(made, each.__name__, each)
        return made

    def late(self, name, emulated):
        """A binding whose calls are done on the device: where it is emulated, they are at once."""
        fake, made = self, types.ModuleType(f"nvmath.bindings.{name}")

        def find(function):
            found = getattr(emulated, function)
            if function == "set_stream":

                def set_stream(handle, stream):
                    fake.use_stream(stream)
                    found(handle, stream)

                return set_stream
            if function in ("Type", "cuFFTError") or function.endswith(("_size", "_plan_many64")):
                return found

            def call(*given):
                fake.check(function)
                if function.startswith(("create", "set_", "get_", "destroy")):
                    return found(*given)
                fake.called.append(function)
                return fake.do(lambda: found(*given))

            return call

        made.__getattr__ = find
        return made

    def install(self, monkeypatch, short=True):
        """Be what ``import pycuda.driver`` and ``from cuda.bindings import ...`` find.

        With ``short`` it has functions of C too, for the shorter way into graphs.
        """
        names = ("pycuda", "cuda", "cuda.bindings")
        pycuda, cuda, bindings = (types.ModuleType(name) for name in names)
        pycuda.driver, cuda.bindings = self.module(), bindings
        bindings.driver, bindings.nvrtc = self.bindings(), self.nvrtc()
        found = {
            "pycuda": pycuda,
            "pycuda.driver": pycuda.driver,
            "cuda": cuda,
            "cuda.bindings": bindings,
            "cuda.bindings.driver": bindings.driver,
            "cuda.bindings.nvrtc": bindings.nvrtc,
        }
        nvmath, of_nvmath = types.ModuleType("nvmath"), types.ModuleType("nvmath.bindings")
        self.called = []  # names of functions of cuSOLVER, cuBLAS and cuFFT, in their order
        cublas = self.late("cublas", host_library.HostBlas())
        cublas.cuBLASError = host_library.HostLibraryError
        of_nvmath.cusolverDn = self.late("cusolverDn", host_library.HostSolver())
        of_nvmath.cufft = self.late("cufft", host_library.HostFourier())
        of_nvmath.cusolver = types.ModuleType("nvmath.bindings.cusolver")
        of_nvmath.cusolver.cuSOLVERError = host_library.HostLibraryError
        of_nvmath.cusolver.get_version = lambda: 12000
        cublas.ComputeType = types.SimpleNamespace(COMPUTE_32F=68, COMPUTE_64F=70)
        cublas.Operation = types.SimpleNamespace(N=0, T=1)
        nvmath.bindings, of_nvmath.cublas, of_nvmath.cublasLt = of_nvmath, cublas, self.cublas_lt()
        nvmath.__spec__ = importlib.machinery.ModuleSpec("nvmath", None)
        found |= {
            "nvmath": nvmath,
            "nvmath.bindings": of_nvmath,
            "nvmath.bindings.cublas": cublas,
            "nvmath.bindings.cublasLt": of_nvmath.cublasLt,
            "nvmath.bindings.cusolver": of_nvmath.cusolver,
            "nvmath.bindings.cusolverDn": of_nvmath.cusolverDn,
            "nvmath.bindings.cufft": of_nvmath.cufft,
        }
        for name, module in found.items():
            monkeypatch.setitem(sys.modules, name, module)
        monkeypatch.setattr(graph_replay, "addresses", lambda: self.functions if short else None)
        for name in ("find_nvrtc", "compiler"):  # which remember what they found
            function = getattr(nvrtc, name).__wrapped__
            monkeypatch.setattr(nvrtc, name, functools.cache(function))
        return self


def filled(buffer, content):
    """Put content into a ``bytes``, as the bindings do with those that they are given."""
    assert len(buffer) == len(content)
    ctypes.memmove(id(buffer) + bytes.__basicsize__ - 1, content, len(content))
