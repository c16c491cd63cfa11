"""NumPy transformer: emits a readable Python module and runs it."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from typing import Any

from ...lazy_dataclasses import dataclass
from ...op_graph.rewriting.window_rules import STORED_WINDOW_RULES
from ..base import Transformer
from ..linking import Linking
from ..lowering.facts.target import Target
from ..lowering.planning.plan import Plan
from ..lowering.rules.lowering_rules import RULES, weighted_product
from .completeness import lacks
from .emit import emit
from .matmul import arrange
from .split_functions import functions
from .table import HIDDEN, IN_PLACE

TARGET = Target(
    name="numpy",
    rules=RULES.without(weighted_product) | STORED_WINDOW_RULES,
    arrange=arrange,
    in_place=IN_PLACE,
    hidden=HIDDEN,
    contiguous={
        "gather": (0, 1),
        "scatter": (1,),
        "argmax": (0,),
        "argmin": (0,),
        "fourier_parts": (0,),
    },
    lacks=lacks,
    stops=("scan", "while"),
)


@dataclass(frozen=True, eq=False)
class NumPyProgram:
    """An emitted module, compiled by Python."""

    functions: tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
    source: str


class _SourceLoader:
    """Loader that gives tracebacks the lines of an emitted module."""

    def __init__(self, source: str) -> None:
        self.source = source

    def get_source(self, name: str) -> str:
        """Return the text of the module."""
        return self.source


class NumPyTransformer(Transformer):
    """Runs computations as NumPy code, whose calls write to a planned arena by ``out=``."""

    target = TARGET

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """Return the module of a plan."""
        return emit(plan, linking.names, linking.constants, annotate)

    def compile(self, plan: Plan, linking: Linking) -> NumPyProgram:
        """Return the module of a plan, executed."""
        source = self.emit(plan, linking, annotate=False)
        name = f"<geon numpy program {zlib.crc32(source.encode()):08x}>"
        space: dict[str, Any] = {"__name__": name, "__loader__": _SourceLoader(source)}
        for piece in functions(source):
            exec(compile(piece, name, "exec", dont_inherit=True), space)
        return NumPyProgram((space["bind"], space["run"], space["sizes"]), source)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a Python file that needs only NumPy and safetensors."""
        from .standalone_module import (
            # loaded here: it imports the code that reads geon's own text, which is slow
            write_module,
        )

        write_module(self, path)
