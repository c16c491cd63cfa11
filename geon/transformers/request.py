"""``Request``: the checked arguments of a computation, and its pure graph."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterable, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from ..op_graph.axes.length_defaults import default_lengths
from ..op_graph.building.unused_effects import take
from ..op_graph.core.interning import OwnTable
from ..op_graph.core.source_info import describe, user_site
from ..op_graph.op_graph import Guard, Leaf, Op, Tensor, among, post_order, storage_leaves
from ..op_graph.rows.effects import without_follows
from ..op_graph.rows.leaves import placeholder
from ..op_graph.transforms.clone import adopt, bind_lengths, bound_guards, notes_of
from ..op_graph.transforms.functionalize import functional
from ..op_graph.values.dtypes import EXTENSIONS
from .binding.memory_option import bytes_given, refuse_open
from .binding.open_lengths import named_lengths, open_names, refuse_ungiven
from .binding.result_tree import flatten_results
from .sizes.budget import Budget

if TYPE_CHECKING:
    from ..op_graph.building.typing import Lengths
    from ..op_graph.transforms.functionalize import Functional

RESERVED = frozenset(
    [*"allocate initialize save restore get set np rt math types".split(), *EXTENSIONS]
)


class Request:
    """Results and the placeholders that feed them, as a pure graph with its guards and lengths.

    Ops derived from the user's live in the request's own tables: first functionalised ones, which
    refer to the user's ops, then copies in ``own`` with the present names and lines. ``lengths``
    are those of every call. ``specialized`` are those among them that the program is compiled for;
    then ``inputs`` are the leaves that replace the placeholders, and ``storage`` maps leaves to
    variables.
    """

    def __init__(
        self,
        results: Any,
        placeholders: Sequence[Leaf],
        *,
        keep: Iterable[Tensor] = (),
        check: str | None = None,
        plan: bool = True,
        lengths: Lengths | None = None,
        specialize: Lengths | None = None,
        memory: int | str | None = None,
        on_device: bool = False,
    ) -> None:
        listed, self.single, self.layout = flatten_results(results)
        self.results = tuple(listed)
        self.placeholders = tuple(map(_placeholder, placeholders))
        self.check, self.planned = _checked_option(check), plan
        self.on_device = on_device
        self.keep = _kept(keep)
        self.lock = threading.RLock()
        self.open_table, self.own = OwnTable(open=True), OwnTable()
        self._check_placeholders()
        take(post_order([*self.results, *self.keep]))
        self.pure = functional((*self.results, *self.keep), self.open_table)
        order = post_order(self.pure.roots)
        self._refuse_missing(order)
        self.notes = notes_of([*self.pure.roots, *self.results])
        leaves = storage_leaves(*self.pure.roots, *self.results)
        further = [*post_order(self.results, set(order)), *self.placeholders, *leaves]
        self.open_names = open_names([*order, *further])
        self._take_lengths(lengths, specialize)
        self.memory = None if memory is None else bytes_given(memory)
        if self.memory is not None:
            refuse_open([*order, *further], self.lengths)
        refuse_ungiven(order, [*self.placeholders, *leaves], self.lengths)
        effects = [op for op in self.results if op.effectful]
        self.guards = _guards([*order, *post_order(effects, set(order))])
        self.inputs: tuple[Leaf, ...] = self.placeholders
        self.storage: dict[Leaf, Leaf] = {}
        self.specialized_at = describe(user_site()) if self.specialized else ""
        if self.specialized:
            self._specialize()

    # Lengths ------------------------------------------------------------------------------------

    def _take_lengths(self, lengths: Lengths | None, specialize: Lengths | None) -> None:
        requested = named_lengths(lengths, self.open_names, "lengths")
        self.specialized = named_lengths(specialize, self.open_names, "specialize")
        self.lengths = {**requested, **self.specialized}
        for name, length in requested.items():
            if self.lengths[name] != length:
                raise ArgumentError(
                    f"{name} is {length} in lengths= and {self.lengths[name]} in specialize=; "
                    "give it once"
                )

    def _specialize(self) -> None:
        """Replace lengths of ``specialize=`` by integers everywhere: in ops, leaves, guards."""
        for guard in self.guards:
            guard.refuse_broken(self.specialized, self.specialization)
        self.guards = bound_guards(self.guards, self.specialized)
        leaves = (*self.pure.updates, *self.placeholders)
        made: Any = adopt([*self.pure.roots, *leaves], self.notes, self.own, self.specialized)
        self.storage = {
            made[leaf]: leaf for leaf in made if isinstance(leaf, Leaf) and leaf.info.stored
        }
        self.inputs = tuple([made[leaf] for leaf in self.placeholders])
        self.pure = self.pure.mapped(made.__getitem__, made.__getitem__)
        self.notes.update(notes_of(self.pure.roots))

    def budget(self, threads: int) -> Budget | None:
        """Return the memory budget of a call on ``threads`` threads, for the lengths known now."""
        if self.memory is None:
            return None
        known = {**default_lengths(), **self.lengths}
        lengths = tuple([(name, known[name]) for name in self.open_names])
        return Budget(self.memory, lengths, threads)

    @property
    def specialization(self) -> str:
        """Return text for messages: what ``specialize=`` fixed, and its line; empty without."""
        fixed = ", ".join(f"{name} = {length}" for name, length in self.specialized.items())
        return f"{fixed}, specialized at {self.specialized_at}" if fixed else ""

    # Graphs of its own --------------------------------------------------------------------------

    def copied(self, pure: Functional) -> Functional:
        """Return a pure graph of the request's own copies."""
        made: Any = self.copies([*pure.roots, *pure.updates])
        return pure.mapped(made.__getitem__, made.__getitem__)

    def copies(self, roots: Iterable[Op]) -> dict[Op, Op]:
        """Return the request's copy of each op below ``roots``, with original names and lines."""
        return adopt(roots, self.notes, self.own)

    def overridden(self, given: tuple[Op, ...]) -> tuple[Functional, tuple[Leaf, ...]]:
        """Return the pure graph with placeholders for these ops of ``keep``, and all inputs."""
        if not given:
            return self.pure, self.inputs
        kept: dict[Op, Any] = dict(
            zip(self.keep, self.pure.outputs[len(self.results) :], strict=True)
        )
        leaves = [
            placeholder(bind_lengths(op.axes, self.specialized), op.dtype, name=op.name)
            for op in given
        ]
        known: dict[Op, Op] = {}
        for op, leaf in zip(given, leaves, strict=True):
            known[op if kept[op] is None else kept[op]] = leaf
        return self.pure.with_values(known, self.open_table), (*self.inputs, *leaves)

    # Checks -------------------------------------------------------------------------------------

    def _check_placeholders(self) -> None:
        for number, leaf in enumerate(self.placeholders):
            if among(leaf, self.placeholders[:number]):
                raise ArgumentError(
                    f"computation was given the placeholder {leaf} (made at {leaf.line_info}) "
                    "twice; list it once and feed it once"
                )

    def _refuse_missing(self, order: list[Op]) -> None:
        listed = set(self.placeholders)
        for op in order:
            if isinstance(op, Leaf) and not op.info.stored and op not in listed:
                if op.info.inside:
                    raise ArgumentError(
                        f"the results depend on {op} (made at {op.line_info}), which has a value "
                        f"in the steps of the {op.info.inside} alone: let the step return what is "
                        "needed outside of it, as a carry or among its values"
                    )
                raise ArgumentError(
                    f"the results depend on the placeholder {op} (made at {op.line_info}), which "
                    "is not among the computation's placeholders: add it to "
                    "transformer.computation(results, ...)"
                )


def _guards(ops: Iterable[Op]) -> tuple[Guard, ...]:
    """Return the guards of all ops, before and after functionalisation; each condition once."""
    seen: dict[tuple[Any, ...], Guard] = {}
    for op in ops:
        for guard in op.guards:
            seen.setdefault((guard.relation, guard.left, guard.right), guard)
    return tuple(seen.values())


def _placeholder(given: Any) -> Leaf:
    leaf = without_follows(given) if isinstance(given, Op) else given
    if not isinstance(leaf, Leaf) or leaf.info.stored:
        raise ArgumentError(
            f"computation takes placeholders after the results, not {leaf!r}; give one after "
            "another, computation(results, x, y): several results are one list, and variables are "
            "read without being listed"
        )
    return leaf


def checked_name(name: str | None) -> str | None:
    """Return ``name`` if a written module's function can have it; else raise ``ArgumentError``."""
    if name is None:
        return None
    if not isinstance(name, str):
        raise ArgumentError(f"name={name!r} is no text; give the name of a function, or None")
    if not name.isidentifier() or iskeyword(name) or name[0] == "_":
        raise ArgumentError(
            f"name={name!r} is no name of a public function: write letters, digits and "
            "underscores, with a letter first"
        )
    if name in RESERVED or hasattr(builtins, name):
        raise ArgumentError(
            f"name={name!r} is taken by another function of written modules; choose another"
        )
    return name


CHECKS = 'check="nan" stops at the first value that is infinite or not a number'


def _checked_option(check: str | None) -> bool:
    if check not in (None, "nan"):
        raise ArgumentError(f"check={check!r} is neither None nor 'nan'; {CHECKS}")
    return check == "nan"


def _kept(keep: Any) -> tuple[Tensor, ...]:
    listed = [keep] if isinstance(keep, Op) else keep
    if not isinstance(listed, Iterable) or not all(isinstance(op, Tensor) for op in listed):
        raise ArgumentError(f"keep={keep!r} is no list of tensors; give keep=[tensor, ...]")
    return tuple(listed)
