"""What a kernel does, in one line: loops, reductions, stores, and how it reads its operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from geon.op_graph.axes.affine import Quotient, Remainder
from geon.op_graph.axes.lengths import evaluate
from geon.op_graph.op_graph import Op
from geon.op_graph.values.dtypes import name_of
from geon.transformers.kernels.analysis.footprint import FAR, Reaches
from geon.transformers.kernels.ir.nest import Nest
from geon.transformers.kernels.ir.scalar_code import NODES, Apply, Clamped, Load, Select, walk
from geon.transformers.kernels.products.contraction import Contraction
from geon.transformers.kernels.products.row_blocking import Blocked

ROWS_SHOWN = 6  # rows of scalar code that are named


def structure_text(work: Any, lengths: Mapping[str, int]) -> str:
    """The structure of a kernel's work where the open lengths are known."""
    if isinstance(work, Nest):
        return _nest(work, lengths)
    if isinstance(work, Contraction):
        return _contraction(work, lengths)
    if isinstance(work, Blocked):
        return "blocks: " + " | ".join(structure_text(step, lengths) for step in work.whole)
    op = work.op
    attrs = ", ".join(str(each) for each in op.attrs)
    return f"{op.primitive.name}({', '.join(_value(arg, lengths) for arg in op.args)}; {attrs})"


def _value(op: Op, lengths: Mapping[str, int]) -> str:
    sizes = "x".join(str(evaluate(axis.expression, lengths)) for axis in op.axes)
    return f"{name_of(op.dtype)}[{sizes}]"


def _loops(loops: Any, lengths: Mapping[str, int]) -> str:
    return "x".join(str(evaluate(loop.extent, lengths)) for loop in loops) or "1"


def _nest(nest: Nest, lengths: Mapping[str, int]) -> str:
    shown = [f"rows {_loops(nest.rows, lengths)}"] if nest.rows else []
    if nest.across is not None:
        shown.append(f"across {_loops([nest.across], lengths)}")
    outer = [*nest.rows, *([nest.across] if nest.across is not None else [])]
    for step in (*nest.steps, *nest.ending):
        if hasattr(step, "loops"):
            values = [store.value for store in step.stores] + [keep.value for keep in step.keeps]
            values += [each for one in step.reductions for each in one.elements]
            parts = [one.reducer.folds.name if one.reducer.folds else "state"
                     for one in step.reductions]  # fmt: skip
            parts += ["store"] * len(step.stores) + ["keep"] * len(step.keeps)
            loops = [*outer, *step.loops]
            inner = nest.across or (step.loops[-1] if step.loops else None)
            body = _body(values, step.stores, loops, inner, nest.operands, lengths)
            shown.append(f"pass {_loops(step.loops, lengths)} [{', '.join(parts)}: {body}]")
        else:
            body = _body([step.value], [step], outer, nest.across, nest.operands, lengths)
            shown.append(f"store of the row [{body}]")
    if nest.fill is not None:
        shown.append("fill")
    return "nest: " + "; ".join(shown)


def _body(
    values: Any, stores: Any, loops: Any, inner: Any, operands: Any, lengths: Mapping[str, int]
) -> str:
    """Rows by how often they stand there, and loads and stores by how neighbours lie."""
    nodes = list(walk(*values))
    rows = Counter(node.row.name for node in nodes if isinstance(node, Apply))
    named = [f"{name} {count}" for name, count in rows.most_common(ROWS_SHOWN)]
    more = sum(rows.values()) - sum(count for _, count in rows.most_common(ROWS_SHOWN))
    named += [f"{more} others"] if more else []
    choices = sum(isinstance(node, Select) for node in nodes)
    named += [f"{choices} choices"] if choices else []
    reaches = Reaches(loops, lengths)
    name = inner.name if inner is not None else None
    for what, accesses in (("load", [n for n in nodes if isinstance(n, Load)]), ("store", stores)):
        steps = Counter(
            f"{name_of(operands[each.operand].dtype)} "
            + reaches.step(each.offset, name, operands[each.operand].dtype.itemsize)
            for each in accesses
        )
        named += [f"{count} {what} {step}" for step, count in steps.most_common()]
    return ", ".join(named)


def _contraction(made: Contraction, lengths: Mapping[str, int]) -> str:
    batch, rows, columns, depth = (
        _loops(loops, lengths) for loops in (made.batch, made.rows, made.columns, made.summed)
    )
    computed = [side for side, value in (("left", made.left), ("right", made.right))
                if not isinstance(value, Load)]  # fmt: skip
    parts = [f"batch {batch}, rows {rows}, columns {columns}, depth {depth}"]
    parts += [f"{side} computed" for side in computed]
    parts.append(f"{len(made.stores)} stores")
    return f"contraction {name_of(made.dtype)}: {', '.join(parts)}"


# What is special about a kernel -----------------------------------------------------------------

SHORT = 16  # turns of an innermost loop, or a side of a product


def trait(work: Any, lengths: Mapping[str, int]) -> str:
    """What a kernel's speed depends on most, in a few words, for a table of many kernels."""
    if isinstance(work, Contraction):
        sides = [_extent(loops, lengths) for loops in (work.rows, work.columns, work.summed)]
        return "product with a short side" if min(sides) < SHORT else "product"
    if isinstance(work, Blocked):
        return "chain by blocks"
    if not isinstance(work, Nest):
        return str(work.op.primitive.name)
    passes = work.passes
    inner = work.across or next((each.loops[-1] for each in reversed(passes) if each.loops), None)
    found = _reducing(work)
    if inner is not None and _extent([inner], lengths) < SHORT:
        found.append("short inner loop")
    found += _reading(work, inner, lengths)
    return ", ".join(found) or "elementwise"


def _reducing(nest: Nest) -> list[str]:
    """The kind of reductions that a nest has."""
    reductions = [each for one in nest.passes for each in one.reductions]
    if any(each.reducer.folds is None for each in reductions):
        return ["reduction with a state"]
    if not reductions:
        return []
    if nest.across is not None:
        return ["reduction of columns"]
    return ["reduction of rows" if nest.rows else "reduction of all"]


def _reading(nest: Nest, inner: Any, lengths: Mapping[str, int]) -> list[str]:
    """How a nest gets at its elements, where that is not one after another."""
    reductions = [each for one in nest.passes for each in one.reductions]
    stores = [each for one in nest.passes for each in one.stores]
    values = [each.value for one in nest.passes for each in (*one.stores, *one.keeps)]
    values += [each for one in reductions for each in one.elements]
    nodes = list(walk(*values))
    found = ["pieces"] if any(isinstance(node, Select) for node in nodes) else []
    accesses = [*[node for node in nodes if isinstance(node, Load)], *stores]
    atoms = [atom for each in accesses for atom in each.offset.terms]
    atoms += [part for atom in atoms if isinstance(atom, Clamped) for part in atom.of.terms]
    loops = [*nest.rows, *([nest.across] if nest.across is not None else [])]
    reaches = Reaches([*loops, *[loop for one in nest.passes for loop in one.loops]], lengths)
    name = inner.name if inner is not None else None
    # What is held inside where a piece ends counts as far, whatever way its neighbours lie.
    ways = {
        reaches.step(each.offset, name, nest.operands[each.operand].dtype.itemsize)
        for each in accesses
        if not any(isinstance(atom, Clamped) for atom in each.offset.terms)
    }
    if any(isinstance(atom, NODES) for atom in atoms):
        found.append("positions")
    elif any(isinstance(atom, (Quotient, Remainder)) for atom in atoms):
        found.append("divided indices")
    elif FAR in ways:
        found.append("across memory")
    return found


def _extent(loops: Any, lengths: Mapping[str, int]) -> int:
    total = 1
    for loop in loops:
        total *= int(evaluate(loop.extent, lengths))
    return total
