"""The NumPy transformer: emits a readable Python module and runs it."""

from __future__ import annotations

import linecache
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ...op_graph.axes import default_lengths
from ...op_graph.functional import Functional
from ...op_graph.op_graph import Leaf, Op
from .. import lowering
from ..base import Transformer
from ..computation import Computation, Linking
from ..memory import Plan
from ..storage import dim_of, dims_of
from ..target import Target
from .calls import Call
from .contract import arrange
from .emit import emit
from .table import HIDDEN, IN_PLACE

TARGET = Target(
    name="numpy",
    rules=lowering.RULES,
    arrange=arrange,
    in_place=IN_PLACE,
    hidden=HIDDEN,
    contiguous={"gather": (0, 1), "scatter": (1,)},
)


@dataclass(frozen=True, eq=False)
class NumPyProgram:
    """An emitted module that was compiled by Python."""

    functions: tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
    source: str


class NumPyTransformer(Transformer):
    """Runs computations as NumPy code: ``out=`` on every call, into a planned arena."""

    target = TARGET

    def emit(self, plan: Plan, linking: Linking, annotate: bool) -> str:
        """The module of a plan."""
        return emit(plan, linking.names, linking.constants, annotate)

    def compile(self, plan: Plan, linking: Linking) -> NumPyProgram:
        """The module of a plan, executed."""
        source = self.emit(plan, linking, annotate=False)
        name = f"<geon numpy program {len(source)}:{hash(source) & 0xFFFFFFFF:08x}>"
        space: dict[str, Any] = {"__name__": name}
        exec(compile(source, name, "exec", dont_inherit=True), space)
        linecache.cache[name] = (len(source), None, source.splitlines(True), name)
        return NumPyProgram((space["bind"], space["run"], space["sizes"]), source)

    def make_call(self, computation: Computation, pure: Functional, leaves: Sequence[Leaf]) -> Call:
        """The program linked with this transformer's variables."""
        program, linking = computation.compiled(pure, leaves)
        with self.lock:
            self.variables.add(linking.variables)
            slots = [self.variables.slot(leaf) for leaf in linking.variables]
        needed, read = list(linking.variables), list(linking.read)

        def ensure(lengths: dict[str, int]) -> None:
            self.ensure(needed, read, lengths)

        call = Call(
            program.functions,
            [(_label(leaf), leaf.dtype, dims_of(leaf.axes)) for leaf in linking.inputs],
            slots,
            [value.array for value in linking.constants],
            [
                (guard.relation, dim_of(guard.left), dim_of(guard.right), guard.meaning)
                for guard in computation.guards
            ],
            self.variables.state,
            [self.variables.slot(leaf) for leaf in linking.written],
            computation.lengths,
            default_lengths,
            ensure,
        )
        return call

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write one Python file that needs only NumPy and safetensors; see ``Transformer.write``."""
        from .module import write_module

        write_module(self, path)


def _label(leaf: Op) -> str:
    return f"placeholder {leaf} (made at {leaf.file_info})"
