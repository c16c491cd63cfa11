"""Trees as text for people: one line for each loop, statement and choice."""

from __future__ import annotations

from collections.abc import Iterator

from ...op_graph.axes.affine import AffineIndex
from ...op_graph.values.dtypes import name_of
from ..kernels.ir.nest import Keep, Store
from .access import used_buffers
from .formulas import guards_text, index_text, value_text
from .tree import (
    Body,
    CachePrefetch,
    Choose,
    Combine,
    Draw,
    Fold,
    Kind,
    LoopNode,
    Role,
    Statement,
    Tree,
    Write,
)


def show(tree: Tree) -> str:
    """Return the buffers, statements and refused transformations of a tree as text."""
    lines = [
        f"buffer b{number}: {buffer.size} {name_of(buffer.dtype)} in {buffer.space.value}"
        for number, buffer in enumerate(tree.buffers)
        if number in used_buffers(tree.body)
    ]
    lines += _lines(tree.body)
    lines += [f"not {refusal}" for refusal in tree.refusals]
    return "\n".join(lines)


def _lines(body: Body) -> Iterator[str]:
    for each in body:
        if isinstance(each, LoopNode):
            yield _head(each)
            yield from ("    " + line for line in _lines(each.body))
        elif isinstance(each, Choose):
            yield f"if {guards_text(each.guards)}:"
            yield from ("    " + line for line in _lines(each.then))
            if each.otherwise:
                yield "else:"
                yield from ("    " + line for line in _lines(each.otherwise))
        else:
            yield from _statement(each)


def _head(loop: LoopNode) -> str:
    role = "for" if loop.role is Role.SERIAL else loop.role.value
    kinds = [loop.kind.value] * (loop.kind is not Kind.MAIN) + [
        "hidden strides"
    ] * loop.hides_strides
    kind = f" ({', '.join(kinds)})" if kinds else ""
    reason = f"  -- {loop.reason}" if loop.reason else ""
    return f"{role} {loop.variable} < {index_text(loop.extent)}{kind}:{reason}"


def _statement(each: Statement) -> Iterator[str]:
    if isinstance(each, Write):
        for store in each.stores:
            past = ", past the caches" if _is_streamed(store, each) else ""
            yield f"{_target(store)} = {value_text(store.value)}{past}"
    elif isinstance(each, Fold):
        values = ", ".join(map(value_text, each.elements))
        yield f"{_places(each.into, each.offset)} {_verb(each)} {values}"
    elif isinstance(each, Combine):
        of = ", ".join(f"b{number}[{index_text(each.start)} ...]" for number in each.of)
        yield f"{_places(each.into, each.offset)} {_verb(each)} {each.count} lanes of {of}"
    elif isinstance(each, CachePrefetch):
        yield f"prefetch x{each.operand}[{index_text(each.offset)}]"
    elif isinstance(each, Draw):
        first = index_text(each.bits.position)
        yield f"b{each.into}[0 ... {index_text(each.count)}] = random bits from {first}"


def _is_streamed(store: Store | Keep, write: Write) -> bool:
    return isinstance(store, Store) and store.operand in write.streamed


def _verb(each: Fold | Combine) -> str:
    folded = each.reducer.folds
    name = "its reducer" if folded is None else folded.name
    return f"with {name} of" if isinstance(each, Fold) else f"with {name} of the"


def _places(numbers: tuple[int, ...], offset: AffineIndex) -> str:
    return ", ".join(f"b{number}[{index_text(offset)}]" for number in numbers)


def _target(store: Store | Keep) -> str:
    memory = f"x{store.operand}" if isinstance(store, Store) else f"b{store.number}"
    return f"{memory}[{index_text(store.offset)}]"
