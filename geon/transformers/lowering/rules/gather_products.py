"""Products of gathered rows, computed once per table entry (word) instead of once per row.

A batch of text looks up more words than a table has, so the product of all gathered rows and a
weight computes that of each word many times. A gather is linear, so it commutes with a product, and
so does scatter-add, its derivative. With ``i`` the index, ``dot(gather(t, i), w)`` is
``gather(dot(t, w), i)``. ``dot(gather(t, i), g)`` over the index's axes is ``dot(t, s)`` with ``s``
the scatter-add of ``g`` by word. The scatter-add of ``dot(g, w)`` is ``dot(s, w)``. Words that are
not looked up are masked, so their values that are not finite do not propagate. With open lengths, a
call selects the cheaper form at run time, if the memory of the alternative is small.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from ....op_graph.axes.axes import Axes
from ....op_graph.axes.lengths import Length
from ....op_graph.building.constants import as_tensor
from ....op_graph.building.rebuild import rebuild, with_args
from ....op_graph.core.interning import OwnTable
from ....op_graph.core.source_info import building
from ....op_graph.op_graph import Op, Tensor, post_order
from ....op_graph.regions.cases import make_case
from ....op_graph.rewriting.matching import is_of, over_axes, tensor
from ....op_graph.rows.contraction import contract_two
from ....op_graph.rows.elementwise import add, cast, less, where
from ....op_graph.rows.indexing import _gather, _scatter, gather_plan, gathered_axes
from ....op_graph.rows.leaves import length_value
from ....op_graph.rows.movement import broadcast
from ....op_graph.values.dtypes import INT64
from ...sizes.limits import MIN_LAST_CACHE_BYTES

# Maximum bytes that a plan reserves for the alternative by word.
MAX_EXTRA_TABLE_BYTES = 4 * MIN_LAST_CACHE_BYTES


class Form(NamedTuple):
    """An op computed by word: ``value``, which does not depend on its operand ``factor``.

    It multiplies ``words`` by ``terms``, where the op multiplies all ``rows``. ``of_each`` is an
    intermediate with an element per word.
    """

    value: Tensor
    factor: Op
    of_each: Tensor
    rows: int | Length
    words: int | Length
    terms: int | Length


def by_words(roots: Sequence[Op], own: OwnTable, scattered: int) -> list[Op]:
    """Return the roots, with products computed once per word where that is cheaper.

    ``scattered`` is the cost of a scatter-add of one element, in multiply-adds. Bodies of regions
    are not changed. New ops are in ``own``.
    """
    order = post_order(roots)
    if not any(is_of(op, "gather") or is_of(op, "scatter") for op in order):
        return list(roots)
    uses = Counter([*roots, *(arg for op in order for arg in op.args)])
    known: set[Op] = set()

    def replaced(op: Op, args: tuple[Op, ...]) -> Op:
        made = with_args(op, args)
        known.add(made)
        form = _product_of_rows(made)
        if form is None and is_of(op, "scatter") and _read_once(op.args[2], uses):
            form = _sum_of_products(made)
        if form is not None:
            made = _cheaper(made, form, scattered, known)
            known.add(made)
        return made

    with building(own):
        return rebuild(roots, replaced)


def _product_of_rows(op: Op) -> Form | None:
    """Return the form by word of a product with gathered rows as a factor, or None."""
    if not is_of(op, "dot"):
        return None
    for k, factor in enumerate(op.args):
        rows, other = _beneath(factor), tensor(op.args[1 - k])
        if not is_of(rows, "gather") or not _plain(rows) or rows.attrs.axis in other.axes:
            continue
        x, index = (tensor(arg) for arg in rows.args)
        summed, own = op.attrs.over, index.axes.names
        size, words = index.axes.size, x.axes[rows.attrs.axis]
        if not any(name in other.axes for name in own):
            both = (x, other) if k == 0 else (other, x)
            of_each = contract_two(*both, summed)
            value = _gather(of_each, index, words.name)
            terms = x.axes.only(summed).size
        elif all(name in summed for name in own):
            of_each = _total(other, index, words.name, x)
            rest = tuple([name for name in summed if name not in own])
            seen = where.apply(_seen(index, x, words.name), x, 0)
            both = (seen, of_each) if k == 0 else (of_each, seen)
            value = contract_two(*both, (words.name, *rest))
            terms = x.axes.without((words.name, *other.axes.names)).size
        else:
            continue
        return Form(over_axes(value, op), rows, of_each, size, words.expression, terms)
    return None


def _sum_of_products(op: Op) -> Form | None:
    """Return the form by word of a scatter-add of products, or None."""
    if not is_of(op, "scatter") or op.attrs.mode != "add" or not _plain(op):
        return None
    x, index = (tensor(arg) for arg in op.args[:2])
    added, words = _beneath(op.args[2]), x.axes[op.attrs.axis]
    if not is_of(added, "dot"):
        return None
    summed, own = added.attrs.over, index.axes.names
    for k, factor in enumerate(added.args):
        g, w = tensor(factor), tensor(added.args[1 - k])
        alone = all(name in g.axes and name not in w.axes for name in own)
        if not alone or any(words.name in each.axes for each in (g, w)):
            continue
        total = _total(g, index, words.name, x)
        both = (total, w) if k == 0 else (w, total)
        sums = where.apply(_seen(index, x, words.name), contract_two(*both, summed), 0)
        terms = w.axes.without(g.axes.names).size
        value = over_axes(add.apply(x, sums), op)
        return Form(value, added, total, index.axes.size, words.expression, terms)
    return None


def _plain(op: Op) -> bool:
    """Return True if an index shares no axis with the table, nor the name of its indexed axis."""
    batch, own, _ = gather_plan(op, op.args[0].axes, op.args[1].axes)
    return not batch and op.attrs.axis not in own and len(own) > 0


def _read_once(op: Op, uses: Mapping[Op, int]) -> bool:
    """Return True if an op, below reorders, has one reader."""
    while is_of(op, "reorder") and uses[op] == 1:
        op = op.args[0]
    return uses[op] == 1


def _beneath(op: Op) -> Op:
    """Return the op below reorders."""
    while is_of(op, "reorder"):
        op = op.args[0]
    return op


def _total(g: Tensor, index: Tensor, axis: str, table: Tensor) -> Tensor:
    """Return the scatter-add of ``g`` by word; its other axes keep their memory order."""
    g = tensor(_beneath(g))
    axes = Axes(table.axes[axis], *g.axes.without(index.axes.names))
    index = broadcast(index, g.axes.only(index.axes.names))
    nothing = broadcast(cast(as_tensor(0), g.dtype), axes)
    return _scatter(
        nothing, index, broadcast(g, gathered_axes(axes, index.axes, axis)), axis, "add"
    )


def _seen(index: Tensor, table: Tensor, axis: str) -> Tensor:
    """Return a mask of the words that are looked up."""
    no, yes = as_tensor(False), as_tensor(True)
    nobody = broadcast(no, Axes(table.axes[axis]))
    return _scatter(nobody, index, broadcast(yes, index.axes), axis, "set")


def _cheaper(op: Op, form: Form, scattered: int, known: Set[Op]) -> Op:
    """Return ``op`` or its form, whichever is cheaper; with open lengths, a choice at run time.

    Ops in ``known`` are computed outside of both alternatives.
    """
    rows, words, terms = form.rows, form.words, form.terms
    if isinstance(terms, int) and terms <= scattered:
        return op
    by_row, by_word = rows * terms, words * terms + scattered * rows
    if isinstance(by_row, int) and isinstance(by_word, int):
        return form.value if by_word < by_row else op
    spare = form.of_each.axes.size * form.of_each.dtype.itemsize
    if not isinstance(spare, int) or spare > MAX_EXTRA_TABLE_BYTES:
        return op
    cheaper = cast(less.apply(length_value(by_word), length_value(by_row)), INT64)
    inside = {op, form.factor, *post_order([form.value], known)}
    return make_case(cheaper, [[tensor(op)], [form.value]], True, inside=inside)[0]
