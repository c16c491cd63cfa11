"""Error codes of a written function: the conditions that it checks, and a text for each code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from ....lazy_dataclasses import dataclass
from ....op_graph.axes.lengths import names_of
from ....op_graph.op_graph import Guard
from ...lowering.planning.plan import Plan
from ...printing.scalars.c_types import c_length
from ...reports.call_errors import describe_kernel
from ...runtime.value_errors import UNCONVERGED, convergence_error
from ..emit.record import Record
from .interface import Interface

OPPOSITES = {"==": "!=", "<=": ">"}


@dataclass
class Failures:
    """The texts of error codes, by code, and C conditions of codes about lengths.

    ``kernels`` has the code of each kernel that can fail, by its number. ``arena`` is the code of
    an invalid arena, ``other`` that of a failure without a number.
    """

    texts: list[str] = field(default_factory=lambda: ["no error"])
    conditions: list[tuple[str, int]] = field(default_factory=list)
    kernels: dict[int, int] = field(default_factory=dict)
    arena: int = 0
    other: int = 0

    def new(self, text: str) -> int:
        """Return a new code with this text."""
        self.texts.append(" ".join(text.split()))
        return len(self.texts) - 1


def find_failures(
    interface: Interface, guards: Sequence[Guard], plan: Plan, record: Record
) -> Failures:
    """Return the error codes of a function; raise ``GuardError`` if its known lengths are wrong."""
    found = Failures()
    for name, parameter in interface.lengths.items():
        text = f"the length {name} of a call must lie in 1 to {interface.most}"
        condition = f"{parameter} < 1 || {parameter} > INT64_C({interface.most})"
        found.conditions.append((condition, found.new(text)))
    for guard in guards:
        opened = names_of(guard.left) | names_of(guard.right)
        if opened <= interface.known.keys():
            given = ", ".join(f"{name} = {interface.known[name]}" for name in sorted(opened))
            guard.refuse_broken(interface.known, given)
        elif opened <= interface.known.keys() | interface.lengths.keys():
            left, right = (
                c_length(interface.bound(side), interface.lengths)
                for side in (guard.left, guard.right)
            )
            text = f"{guard.meaning}: {guard.left} {guard.relation} {guard.right} is needed"
            condition = f"{left} {OPPOSITES[guard.relation]} {right}"
            found.conditions.append((condition, found.new(text)))
    found.arena = found.new("the arena must begin at a multiple of 64 bytes, and not be NULL")
    for number, check in record.checks.items():
        if number in record.shown:
            continue  # what prints does not fail here
        shown = describe_kernel(plan.kernel_at(number).op)
        if shown.endswith(UNCONVERGED):
            text = str(convergence_error(shown))
        elif check is None:
            text = f"{shown}: a value is not finite; variables are as they were"
        else:
            length, counts_from_end = interface.bound(check[0]), check[1]
            first = f"-({length})" if counts_from_end else "0"
            text = (
                f"{shown}: a position lies outside of {first} to {length - 1}; variables are as "
                "they were"
            )
        found.kernels[number] = found.new(text)
    found.other = found.new("a kernel failed")
    return found
