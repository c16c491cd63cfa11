"""What geon makes of the golden programs, as the text of the golden files."""

import dataclasses
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import geon
from geon.transformers.base import Transformer
from geon.transformers.linking import Linking
from geon.transformers.lowering.planning.plan import Plan
from geon.transformers.native.emit.form_table import form_table
from geon.transformers.native.emit.module_text import make_module
from geon.transformers.native.target import TARGET
from geon.transformers.pycuda.emit.cuda_module import make_module as make_cuda_module
from geon.transformers.pycuda.transformer import CudaTransformer

from .chunks import is_own, is_repeated, top_level
from .programs import NUMPY_ONLY, PROGRAMS, TEXT_ONLY, WITH_NUMPY_TEXT, WITH_TEXT
from .table import table

FOLDER = Path(__file__).parent
VECTOR_BYTES = 64
# A place in the programs' own files: their lines move whenever a program is changed.
PLACE = re.compile(r"[\w./-]*\b((?:programs|digits)\.py):\d+")
# A kernel of ``explain("schedule")``: its first lines and number, and the lines of its loops.
KERNEL = re.compile(r"^((\d+): .*\n(?: +not with .*\n)*)((?: +.*\n)+)", re.MULTILINE)


class Native(Transformer):
    """The native transformer without a compiler, for a machine with two threads and 64 bytes."""

    # without numbers of one machine
    target = dataclasses.replace(TARGET, machine=None, forms=partial(form_table, VECTOR_BYTES))

    @property
    def threads(self) -> int:
        """How many threads a call may use."""
        return 2

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The C text of a plan, its kernels in one unit, without the units that are files."""
        return "\n".join(make_module(plan, linking, annotate).units)


class Cuda(CudaTransformer):
    """The PyCUDA transformer without a device, which shows all of a module or its ``own`` part."""

    def __init__(self, own: bool = True, tf32: bool = False) -> None:
        super().__init__(None, tf32=tf32)
        self.own = own

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The kernels of a plan and how they are launched, or all of the module."""
        module = make_cuda_module(plan, linking, annotate)
        return module.source.own if self.own else module.source.whole


def cuda(name: str, own: bool = True) -> Any:
    """The computation of a program, for a GPU."""
    results, placeholders = {**PROGRAMS, **TEXT_ONLY}[name]()
    return Cuda(own).computation(results, *placeholders)


def whole_cuda() -> dict[str, str]:
    """Return the whole CUDA module of each program."""
    return {name: cuda(name, own=False).source for name in PROGRAMS}


def native(name: str) -> Any:
    """The computation of a program, for the machine of the golden files."""
    results, placeholders = {**PROGRAMS, **TEXT_ONLY}[name]()
    return Native().computation(results, *placeholders)


def numpy_source(name: str) -> str:
    """The NumPy program of a program, without the lines of its own file."""
    results, placeholders = {**PROGRAMS, **NUMPY_ONLY}[name]()
    with geon.NumPyTransformer() as transformer:
        return without_lines(transformer.computation(results, *placeholders).source)


def without_lines(text: str) -> str:
    """A text that names the programs' files without folders and lines, ended by one newline."""
    return PLACE.sub(r"\1", text).rstrip("\n") + "\n"


def with_loops_once(name: str, text: str, known: dict[str, str]) -> str:
    """The kernels of a program, without loops that an earlier kernel has in the same words.

    ``known`` are the program and the number of the first kernel with some loops.
    """

    def written(kernel: re.Match[str]) -> str:
        head, number, loops = kernel.groups()
        first = known.setdefault(loops, f"{name} {number}")
        return kernel[0] if first == f"{name} {number}" else f"{head}    loops of {first}\n"

    return KERNEL.sub(written, text)


def golden_texts() -> dict[str, str]:
    """The text of every golden file, by the file's name."""
    # All are kept until the end: an op that two programs have in common shows the first one's line.
    computations = {name: native(name) for name in {**PROGRAMS, **TEXT_ONLY}}
    texts = {"KERNELS.md": table({name: computations[name] for name in PROGRAMS})}
    shared: dict[str, None] = {}
    loops: dict[str, str] = {}
    for name, f in computations.items():
        if name in PROGRAMS:
            kernels = without_lines(f.explain("schedule"))
            texts[f"{name}.kernels.txt"] = with_loops_once(name, kernels, loops)
            texts[f"{name}.plan.txt"] = without_lines(f.explain("plan"))
        if name in WITH_TEXT:
            every = top_level(without_lines(f.source))
            chunks = [chunk for chunk in every if not is_repeated(chunk)]
            texts[f"{name}.c.txt"] = "\n".join(chunk for chunk in chunks if is_own(chunk))
            shared.update(dict.fromkeys(chunk for chunk in chunks if not is_own(chunk)))
    for name in WITH_TEXT:
        on_gpu = cuda(name)
        texts[f"{name}.cu.txt"] = without_lines(on_gpu.source)
        texts[f"{name}.cu.kernels.txt"] = without_lines(on_gpu.explain("schedule"))
    texts["shared.c.txt"] = "\n".join(shared)
    for name in WITH_NUMPY_TEXT:
        texts[f"{name}.py.txt"] = numpy_source(name)
    return texts


def golden_files() -> Iterator[Path]:
    """The golden files that are there, but for signatures and registers: these have own tests."""
    for path in sorted([*FOLDER.glob("*.txt"), *FOLDER.glob("*.md")]):
        if path.name not in ("signatures.txt", "registers.txt"):
            yield path
