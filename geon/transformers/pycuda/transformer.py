"""PyCUDA transformer: compiles a computation to CUDA kernels over one planned arena."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from typing import Any

from ...errors import ArgumentError
from ...op_graph.core.primitive import PRIMITIVES
from ...op_graph.op_graph import Op
from ..base import Transformer
from ..compile import CompileStages
from ..computation import Computation
from ..kernels.scans.scalarised_scans import TurnBounds
from ..linking import Linking
from ..lowering.facts.target import Arrangement, Layout, Target
from ..lowering.planning.plan import Plan
from ..lowering.rules.loop_rules import LAST, RULES
from ..lowering.rules.matrix_rules import EACH_SMALL
from ..reports.profiled_calls import profile_calls
from .emit.cuda_module import make_module
from .emit.kernel_parts import lacks
from .emit.record import RECORDS, record_of
from .kernels.sorting import SORTS
from .launches.device import Device
from .launches.memory import ALIGNMENT_BYTES, DeviceMemory
from .products.attention import groups
from .products.form_table import form_table
from .products.scratch import scratch_of
from .reports.profile import DeviceProfile
from .runtime import gpu, host
from .runtime.bound_program import CudaProgram
from .runtime.calls import CudaCall
from .runtime.pinned_buffers import bytes_of_result

# The library that each option selects beside "generated", the kernels of geon.
LIBRARIES = {
    "products": "cublaslt",
    "convolutions": "cudnn",
    "matrices": "cusolver",
    "transforms": "cufft",
}
EXACT = ("products", "convolutions")  # libraries whose float32 tf32=True would round
# Kinds of kernels that may run concurrently if they are independent.
CONCURRENT_KINDS = ("nest", "contraction", "blocked", "call")


def arrange(op: Op, x: Layout, y: Layout) -> Arrangement:
    """Return the arrangement of an op: operands in any order, the result in its axes' order."""
    return Arrangement((None, None), op.axes.names)


# Max. statements of an iteration of a loop whose small tensors are scalarised: as separate kernels,
# each would be launched in each iteration, which takes longer than any text of this size.
MAX_TURN_STATEMENTS = TurnBounds(single=6000, lanes=6000)
TARGET = Target(
    name="pycuda",
    rules=RULES | EACH_SMALL,
    arrange=arrange,
    in_place={
        name: row.in_place
        for name, row in PRIMITIVES.items()
        if row.in_place and name not in SORTS  # sorts read their operand to the end
    },
    hidden={},
    contiguous={
        **{row.name: tuple(range(8)) for row in PRIMITIVES.values() if row.cost == "kernel"},
        "print": (0,),
    },
    group=groups,
    last=LAST,
    forms=form_table,
    scratch=scratch_of,
    lacks=lacks,
    orders=MAX_TURN_STATEMENTS,
    stops=("while",),
    alignment=ALIGNMENT_BYTES,
    result_bytes=bytes_of_result,
    concurrent_kinds=CONCURRENT_KINDS,
    transforms=False,
)


class CudaTransformer(Transformer):
    """Compiles computations to CUDA for a device; variables and the arena lie in its memory.

    ``asked`` selects "generated" kernels, which are the default, or a library by option.
    """

    target = TARGET

    def __init__(self, device: Device, *, tf32: bool = False, **asked: str) -> None:
        for name, given in asked.items():
            if name not in LIBRARIES:
                raise ArgumentError(f"{name}= is none of the options {', '.join(LIBRARIES)}")
            known = ("generated", LIBRARIES[name])
            if given not in known:
                raise ArgumentError(f"{name}={given!r} is none of {', '.join(known)}")
            if tf32 and given != "generated" and name in EXACT:
                raise ArgumentError(
                    f"{name}={given!r} multiplies float32 as it is: leave out that, or tf32=True"
                )
        self.device = device
        self.libraries = frozenset(name for name, by in asked.items() if by != "generated")
        if tf32:
            self.retarget(["tf32"], forms=partial(form_table, tf32=True))
        super().__init__()
        if self.libraries:
            # Library calls fill the device, so they do not run concurrently.
            alone = "contraction" if self.libraries.intersection(EXACT) else None
            self.retarget(
                [f"{name} by {asked[name]}" for name in sorted(self.libraries)],
                forms=partial(form_table, libraries=self.libraries),
                concurrent_kinds=tuple([kind for kind in CONCURRENT_KINDS if kind != alone]),
                lacks=partial(lacks, libraries=self.libraries),
                transforms="transforms" in self.libraries,
            )

    def retarget(self, remarks: Sequence[str], **changes: Any) -> None:
        """Change the target; ``remarks`` are added to its name."""
        name = ", ".join([self.target.name, *remarks])
        self.target = dataclasses.replace(self.target, name=name, **changes)

    def make_memory(self) -> DeviceMemory:
        """Return the memory of the device."""
        return DeviceMemory(self.device)

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """Return the CUDA text of a plan."""
        return make_module(plan, linking, annotate).source.whole

    def compile(self, plan: Plan, linking: Linking) -> CudaProgram:
        """Compile and load the module of a plan."""
        module = make_module(plan, linking, annotate=False)
        return CudaProgram(record_of(plan, module), self.device)

    def recall(self, key: str) -> CudaProgram | None:
        """Return the program from the disk cache, or None."""
        found = RECORDS.load(key)
        return None if found is None else CudaProgram(found, self.device)

    def keep(self, key: str, program: CudaProgram) -> None:
        """Write the compiled program to the disk cache."""
        RECORDS.save(program.record, key)

    def profile(
        self,
        computation: Computation,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        repeats: int,
    ) -> Any:
        """Return the time of each kernel on the device, and how often it runs."""
        made = partial(DeviceProfile, self.state)
        return profile_calls(made, computation, args, keywords, repeats)

    def make_call(self, stages: CompileStages) -> Any:
        """Return a callable from arrays to arrays, which copies them to the device and back."""
        call = self.link(stages.compiled.functions, stages, kind=CudaCall)
        assert isinstance(call, CudaCall)
        call.on_device = stages.request.on_device
        return call


class PyCudaTransformer(CudaTransformer):
    """Runs computations on the NVIDIA GPU number ``device``.

    All work is submitted to one CUDA stream. ``stream`` is any name (or other hashable object) of
    it, made at its first use and kept; None is the stream of transformers that name none.
    Transformers with different streams of one GPU compute side by side. A computation that reads an
    array that was computed on another stream waits on the device until it is written.

    ``products`` selects the implementation of large matrix products: "cublaslt", NVIDIA's library,
    which is the default if its binding is installed, or "generated" kernels. Likewise
    ``convolutions`` selects that of large convolutions and their derivatives ("cudnn"),
    ``matrices`` that of factorisations and solutions ("cusolver"; generated kernels have at most 8
    rows) and ``transforms`` that of Fourier transforms ("cufft"; generated kernels need a known
    length).

    With ``tf32``, tensor cores multiply float32 rounded to 10 bits of mantissa; sums and attention
    stay float32, and no library multiplies. Raises ``DeviceError`` if there is no GPU or a package
    is missing.
    """

    def __init__(
        self,
        device: int = 0,
        products: str | None = None,
        convolutions: str | None = None,
        matrices: str | None = None,
        transforms: str | None = None,
        *,
        tf32: bool = False,
        stream: Hashable = None,
    ) -> None:
        if not isinstance(device, int) or isinstance(device, bool):
            raise ArgumentError(f"device={device!r}: give the number of a GPU, from 0 on")
        used = gpu.device(device, checked_stream(stream))
        asked: dict[str, str] = {}
        for option, given in zip(
            LIBRARIES, (products, convolutions, matrices, transforms), strict=True
        ):
            fits = given is None and not (tf32 and option in EXACT) and used.has_library(option)
            default = LIBRARIES[option] if fits else "generated"
            asked[option] = default if given is None else given
        super().__init__(used, **asked, tf32=tf32)
        for option in self.libraries:
            used.load_library(option)
        if device:
            self.retarget([f"device {device}"])

    @classmethod
    def unavailable(cls) -> str | None:
        """Return None if a GPU is available, else the reason and the command that fixes it."""
        return gpu.missing()


class CudaOnHost(CudaTransformer):
    """Runs CUDA kernels on the CPU, for tests: slow, with the same results as on a GPU.

    ``checks`` are those of ``HostDevice``: "races", "loads" or "memory". With
    ``products="cublaslt"``, ``convolutions="cudnn"``, ``matrices="cusolver"`` and
    ``transforms="cufft"``, NumPy and SciPy replace those libraries; ``tf32`` and ``stream`` are as
    on a GPU, but work of a stream is complete when it is submitted.
    """

    target = dataclasses.replace(TARGET, name="cuda-on-host")

    def __init__(
        self,
        checks: str = "",
        *,
        tf32: bool = False,
        stream: Hashable = None,
        **asked: str,
    ) -> None:
        super().__init__(host.device(checks, checked_stream(stream)), tf32=tf32, **asked)
        if checks:
            self.retarget([checks])

    @classmethod
    def unavailable(cls) -> str | None:
        """Return None if there is a C++ compiler, else how to install one."""
        return None if host.find_compiler() is not None else host.CURE


def checked_stream(stream: Any) -> Hashable:
    """Return the name of a stream; raise ``ArgumentError`` if it is not hashable."""
    try:
        hash(stream)
    except TypeError:
        raise ArgumentError(
            f"stream={stream!r} names no stream, since a {type(stream).__name__} is not hashable: "
            "give a string or a number, the same one for each transformer of that stream"
        ) from None
    found: Hashable = stream
    return found
