"""``Computation``: requested values and effects, and the placeholders that feed them; callable."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterable, Mapping, Sequence
from keyword import iskeyword
from typing import TYPE_CHECKING, Any

from ..errors import (
    ArgumentError,
    AxisError,
    GeonError,
    IndexRangeError,
    NonFiniteError,
    SizeError,
)
from ..op_graph.adopting import adopt, bound, bound_guards, notes_of
from ..op_graph.axes import Axis, default_lengths
from ..op_graph.constants import as_tensor
from ..op_graph.dumps import dumps
from ..op_graph.effects import without_follows
from ..op_graph.functional import Functional, functional, substitute
from ..op_graph.interning import OwnTable, within
from ..op_graph.leaves import placeholder
from ..op_graph.lengths import names_of
from ..op_graph.op_graph import Guard, Leaf, Op, Tensor, among, post_order, storage_leaves
from ..op_graph.pictures import computation_html
from ..op_graph.sites import describe, user_site
from ..op_graph.weak import without_effect
from .cache import program, structure_key
from .calls import arrange, explained
from .destinations import Destinations
from .environment import debugging
from .given import named_lengths, open_names
from .layout import lay_out
from .linking import Linking
from .memory import Plan, plan_memory
from .messages import described, with_largest, with_open_axis, with_placeholders
from .program import Program, build_program
from .schedule import schedule

if TYPE_CHECKING:
    from .base import Transformer

RESERVED = frozenset("allocate initialize save restore get set np rt bfloat16 math types".split())
STAGES = ("build", "functional", "simplify", "schedule", "plan", "emit")


class Computation:
    """A callable made by ``transformer.computation``: data in, results out.

    Call it with one value for each placeholder, by position, or by name where the placeholder has
    one. It returns the value of the one result, or a tuple for a list of results, with None for an
    effect; values are NumPy arrays that belong to the caller.
    """

    def __init__(
        self,
        transformer: Transformer,
        results: Any,
        placeholders: Sequence[Leaf],
        *,
        keep: Iterable[Tensor] = (),
        check: str | None = None,
        plan: bool = True,
        lengths: Mapping[Axis, int] | None = None,
        specialize: Mapping[Axis, int] | None = None,
        name: str | None = None,
    ) -> None:
        self.transformer = transformer
        self.name = _checked_name(name)
        self.single = isinstance(results, Op) or not isinstance(results, (list, tuple))
        listed = [results] if self.single else list(results)
        self.results = tuple(op if isinstance(op, Op) else as_tensor(op) for op in listed)
        self.placeholders = tuple(map(_placeholder, placeholders))
        self.check, self.planned = _checked_option(check), plan
        self.keep = _kept(keep)
        self.kept: dict[Op, Any] = {}
        self.given: dict[Op, Any] = {}
        # What is made of the user's ops is the computation's own: first what has their meaning, in
        # which they stand as they are, then copies, with the names and lines they have now.
        self._own = OwnTable(open=True), OwnTable()
        self._check_placeholders()
        with within(self._own[0]):
            self.pure = functional((*self.results, *self.keep))
        self.names = [leaf.name for leaf in self.placeholders]
        order = post_order(self.pure.roots)
        self._refuse_missing(order)
        self.notes = notes_of([*self.pure.roots, *self.results])
        leaves = storage_leaves(*self.pure.roots, *self.results)
        further = [*post_order(self.results, set(order)), *self.placeholders, *leaves]
        self.open_names = open_names([*order, *further])
        bound_lengths = named_lengths(lengths, self.open_names, "lengths")
        self.specialized = named_lengths(specialize, self.open_names, "specialize")
        self.lengths = {**bound_lengths, **self.specialized}
        for name, length in bound_lengths.items():
            if self.lengths[name] != length:
                raise ArgumentError(
                    f"{name} is {length} in lengths= and {self.lengths[name]} in specialize=; "
                    "give it once"
                )
        effects = [op for op in self.results if op.effectful]
        self.guards = _guards([*order, *post_order(effects, set(order))])
        self.inputs: tuple[Leaf, ...] = self.placeholders
        self.storage: dict[Leaf, Leaf] = {}
        self.specialized_at = describe(user_site()) if self.specialized else ""
        if self.specialized:
            self._specialize()
        self._lock = threading.RLock()
        self._calls: dict[
            tuple[int, ...], Any
        ] = {}  # by the ids of the ops of keep= that are given
        self._plans: dict[Any, Any] = {}

    def _specialize(self) -> None:
        """Make the lengths of ``specialize=`` integers everywhere: in ops, leaves and guards."""
        for guard in self.guards:
            guard.refuse_broken(self.specialized, self._specialization)
        self.guards = bound_guards(self.guards, self.specialized)
        leaves = (*self.pure.updates, *self.placeholders)
        with within(self._own[1]):
            made: Any = adopt([*self.pure.roots, *leaves], self.notes, self.specialized)
        self.storage = {
            made[leaf]: leaf for leaf in made if isinstance(leaf, Leaf) and leaf.info.stored
        }
        self.inputs = tuple([made[leaf] for leaf in self.placeholders])
        self.pure = self.pure.mapped(made.__getitem__, made.__getitem__)
        self.notes.update(notes_of(self.pure.roots))

    @property
    def _specialization(self) -> str:
        """What ``specialize=`` fixed, and the line that did, for messages; empty without."""
        fixed = ", ".join(f"{name} = {length}" for name, length in self.specialized.items())
        return f"{fixed}, specialized at {self.specialized_at}" if fixed else ""

    def _own_graph(self, pure: Functional) -> Functional:
        """A pure graph of the computation's own copies."""
        made: Any = self._copies([*pure.roots, *pure.updates])
        return pure.mapped(made.__getitem__, made.__getitem__)

    def _copies(self, roots: Iterable[Op]) -> dict[Op, Op]:
        """The computation's own copy of each op below ``roots``: names and lines as they were."""
        with within(self._own[1]):
            return adopt(roots, self.notes)

    # Calling ------------------------------------------------------------------------------------

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        """The results for these values of the placeholders.

        ``out=`` is an array that the result is put into and that is returned, of its shape and
        dtype; for a list of results a list of them, with None for effects and for results that are
        to be new arrays. It may be an array that is fed. A call that raises before it computes
        leaves it as it was. Where a placeholder is named out, ``out=`` is its value.
        """
        call = self._calls.get(())
        if call is not None and call.enter is not None and not (keywords or self.given):
            values = call.enter(*args)
            if values is not NotImplemented:
                if self.single and values and not self.keep:
                    return values[0]
                return self._structured(values)
        return self._called(args, keywords)

    def _called(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """The results, where they take more than one look at the values."""
        out = None
        if "out" in keywords and "out" not in self.names:
            given_out = keywords.pop("out")
            if given_out is not None:
                out = Destinations(self.results, self.keep, self.single, given_out)
        if keywords or len(args) != len(self.placeholders):
            args = self.arranged(args, keywords)
        call = self._calls.get(())
        given: tuple[Op, ...] = ()
        if call is None or self.given:
            given = tuple(self.given)
            call = self._call_for(given)
            args = (*args, *self.given.values())
        try:
            values = call(*args) if out is None else call(*args, out=out)
        except (AxisError, IndexRangeError, NonFiniteError, SizeError) as error:
            raise self._explained(error, given) from None
        return self._structured(values)

    def arranged(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call as one value for each placeholder, in order."""
        try:
            return tuple(arrange(self.names, len(self.placeholders), args, keywords))
        except ArgumentError as error:
            raise with_placeholders(error, self.placeholders) from None

    def _structured(self, values: tuple[Any, ...]) -> Any:
        if self.single and not self.keep:
            return values[0] if values else None
        if len(values) == len(self.results) and not self.keep:
            return values
        rest = iter(values)
        results = tuple([next(rest) if isinstance(op, Tensor) else None for op in self.results])
        for op in self.keep:
            self.kept[op] = next(rest)
        return results[0] if self.single else results

    def value(self, op: Tensor) -> Any:
        """The value that the last call computed for an op of ``keep``."""
        if not isinstance(op, Op):
            raise ArgumentError(f"value takes a tensor of keep=[...], not {op!r}")
        if op not in self.kept:
            known = among(op, self.keep)
            raise ArgumentError(
                f"{op} (made at {op.file_info}) "
                + ("has no value yet: call the computation" if known else "is not in keep=[...]")
            )
        return self.kept[op]

    def override(self, op: Tensor, value: Any) -> None:
        """Let calls use ``value`` (over op's axes) where they would compute ``op``; None ends that.

        ``op`` must be in ``keep``.
        """
        if not isinstance(op, Op):
            raise ArgumentError(f"override takes a tensor of keep=[...], not {op!r}")
        if not among(op, self.keep):
            raise ArgumentError(f"{op} (made at {op.file_info}) is not in keep=[...]")
        if value is None:
            self.given.pop(op, None)
            return
        reason = without_effect(op, self.results)
        if reason is not None:
            raise ArgumentError(f"override: {reason}")
        self.given[op] = value

    def _call_for(self, given: tuple[Op, ...]) -> Any:
        # No lock: linking takes the transformer's, which whoever initializes variables holds.
        key = tuple(map(id, given))
        found = self._calls.get(key)
        if found is None:
            pure, leaves = self._overridden(given)
            found = self._calls.setdefault(key, self.transformer.make_call(self, pure, leaves))
        return found

    def _overridden(self, given: tuple[Op, ...]) -> tuple[Functional, tuple[Leaf, ...]]:
        """The pure graph in which placeholders stand for these ops of ``keep``, and all leaves."""
        if not given:
            return self.pure, self.inputs

        def make() -> tuple[Functional, tuple[Leaf, ...]]:
            kept: dict[Op, Any] = dict(
                zip(self.keep, self.pure.outputs[len(self.results) :], strict=True)
            )
            stands = [
                placeholder(bound(op.axes, self.specialized), op.dtype, name=op.name)
                for op in given
            ]
            known: dict[Op, Op] = {}
            for op, stand in zip(given, stands, strict=True):
                known[op if kept[op] is None else kept[op]] = stand
            with within(self._own[0]):
                replaced = self.pure.mapped(lambda op: substitute(op, known), lambda leaf: leaf)
            return replaced, (*self.inputs, *stands)

        made: tuple[Functional, tuple[Leaf, ...]] = self._stage(
            ("overridden", *map(id, given)), make
        )
        return made

    def _explained(self, error: GeonError, given: tuple[Op, ...]) -> Exception:
        """An error of a call, with the op it is about and the user's line."""

        def plan() -> Plan:
            pure, _ = self._overridden(given)
            return self.make_plan(self._make_program(pure))

        if isinstance(error, AxisError) and error.open_name is not None:
            return with_open_axis(error, [*self.results, *self.pure.roots])
        if isinstance(error, SizeError) and error.lengths is not None:
            return with_largest(error, plan())
        return explained(error, lambda kernel: described(plan().schedule.kernels[kernel].op))

    # Checks at the time of making ---------------------------------------------------------------

    def _check_placeholders(self) -> None:
        for number, leaf in enumerate(self.placeholders):
            if among(leaf, self.placeholders[:number]):
                raise ArgumentError(
                    f"computation was given the placeholder {leaf} (made at {leaf.file_info}) "
                    "twice; list it once and feed it once"
                )

    def _refuse_missing(self, order: list[Op]) -> None:
        listed = set(self.placeholders)
        for op in order:
            if isinstance(op, Leaf) and not op.info.stored and op not in listed:
                raise ArgumentError(
                    f"the results depend on the placeholder {op} (made at {op.file_info}), which "
                    "is not among the computation's placeholders: add it to "
                    "transformer.computation(results, ...)"
                )

    # Stages -------------------------------------------------------------------------------------

    @property
    def program(self) -> Program:
        """Stage 3: the simplified graph."""
        return self._stage("simplify", lambda: self._make_program(self.pure))

    @property
    def plan(self) -> Plan:
        """Stage 5: kernels in order and the memory plan."""
        return self._stage("plan", lambda: self.make_plan(self.program))

    def _stage(self, name: Any, make: Any) -> Any:
        with self._lock:
            if name not in self._plans:
                self._plans[name] = make()
            return self._plans[name]

    def _make_program(self, pure: Functional) -> Program:
        """Stage 3 of a pure graph, on copies of its ops."""
        with within(self._own[1]):
            return build_program(self._own_graph(pure), self.transformer.target)

    def make_plan(self, built: Program) -> Plan:
        """Stages 4 and 5 of a program."""
        target = self.transformer.target
        with within(self._own[1]):
            scheduled = schedule(lay_out(built, target), target, self.check)
            made = plan_memory(scheduled, reuse=self.planned)
        if debugging("verify"):
            from .verify import verify_plan

            verify_plan(made)
        return made

    def compiled(self, pure: Functional, leaves: Sequence[Leaf]) -> tuple[Any, Linking]:
        """The compiled program of a pure graph, shared by structure, and what to link it with."""
        linking = self.linking if pure is self.pure else Linking(pure, leaves, self.storage)
        key = structure_key(
            linking.text,
            self.transformer.target.name,
            linking.signature(),
            self.check,
            self.planned,
        )

        def make() -> Any:
            return self.transformer.compile(self.make_plan(self._make_program(pure)), linking)

        return program(key, make), linking

    @property
    def source(self) -> str:
        """The compiled program as text, with the user's names, axes and lines as comments."""
        linking = self.linking
        return self.transformer.emit(self.plan, linking, annotate=True)

    @property
    def linking(self) -> Linking:
        """What the program is linked with: inputs, variables, constants."""

        made: Linking = self._stage(
            "linking", lambda: Linking(self.pure, self.inputs, self.storage)
        )
        return made

    def explain(self, stage: str = "plan") -> str:
        """What a stage made, as text: one of build, functional, simplify, schedule, plan, emit."""
        from .explain import explain

        if stage not in STAGES:
            raise ArgumentError(f"there is no stage {stage!r}; there are {', '.join(STAGES)}")
        return explain(self, stage)

    def peak_bytes(self, lengths: Mapping[Axis, int] | None = None) -> Any:
        """Bytes that a call takes beside its inputs and the variables: arena, results, kept copies.

        Where ``lengths``, defaults or the axes give every length it is what is allocated: the arena
        as it is laid out, with the scratch memory of kernels for all threads of a call, the
        results, and the copies that NumPy is known to make by itself.
        Otherwise it is an expression over the open names: the sum of all buffers and results, as if
        no buffer shared memory with another, without alignment.
        """
        from .memory import peak

        given = named_lengths(lengths, self.open_names, "lengths")
        for name, length in self.specialized.items():
            if given.get(name, length) != length:
                raise ArgumentError(f"lengths: {name} is {given[name]}; {self._specialization}")
        known = {**default_lengths(), **self.lengths, **given}
        return peak(self.plan, known, self.transformer.threads)

    def trace(self, *args: Any, **keywords: Any) -> list[Any]:
        """Every op's value for these inputs, from the naive interpreter: ``TraceEntry`` rows."""
        from .trace import trace

        return trace(self, args, keywords)

    def profile(self, *args: Any, repeats: int = 20, **keywords: Any) -> Any:
        """How long each kernel takes, what it moves and computes, and how near that is to what the
        machine can do: a sequence of rows whose ``str`` is a table.

        Takes what a call takes, computes ``2 * repeats`` times, on copies of the variables, and
        shows nothing that the computation prints; a placeholder named ``repeats`` is given by
        position. Raises what a call raises, and ``UnavailableError`` where the transformer has no
        kernels of its own.
        """
        return self.transformer.profile(self, args, keywords, repeats)

    @property
    def c_function(self) -> Any:
        """The C function that calls run: its address, signature, and what its arguments are.

        Raises ``UnavailableError`` where the transformer does not compile to C.
        """
        return self.transformer.c_function(self)

    def dumps(self, *args: Any, **keywords: Any) -> str:
        """One text with the graph, these inputs, the variables' values and open lengths.

        ``python -m geon replay FILE`` computes it again, ``geon.loads`` reads the graph. Takes what
        a call takes, and raises what a call raises before it computes; changes no variable.
        """
        from .trace import at_entry

        known, lengths = at_entry(self, args, keywords)
        ops = post_order(self.results)
        given = dict(zip(self.inputs, self.placeholders, strict=True)) | self.storage
        fed = {given.get(leaf, leaf): array for leaf, array in known.items()}
        feeds = {leaf: fed[leaf] for leaf in storage_leaves(*self.results) if leaf in fed}
        lengths_used = [axis.expression for op in ops for axis in op.axes]
        lengths_used += [op.attrs[0] for op in ops if op.primitive.name == "length"]
        used = {name for length in lengths_used for name in names_of(length)}
        needed = {name: size for name, size in lengths.items() if name in used}
        return dumps(list(self.results), feeds=feeds, lengths=needed)

    def _repr_html_(self) -> str:
        return computation_html(
            {
                "results": ", ".join(map(str, self.results)),
                "placeholders": ", ".join(map(str, self.placeholders)),
                "variables": ", ".join(map(str, self.linking.variables)),
                "transformer": self.transformer.target.name,
                "peak bytes": str(self.peak_bytes()),
            }
        )

    def __reduce__(self) -> Any:
        raise ArgumentError(
            f"{self!r} cannot be copied or pickled: it is tied to a transformer's memory; call "
            "transformer.computation again, or keep the graph with dumps and geon.loads"
        )

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.results))
        return f"<computation of {shown} by {self.transformer.target.name}>"


def _guards(ops: Iterable[Op]) -> tuple[Guard, ...]:
    """The guards of every op, as written and as made functional; each condition once."""
    seen: dict[tuple[Any, ...], Guard] = {}
    for op in ops:
        for guard in op.guards:
            seen.setdefault((guard.relation, guard.left, guard.right), guard)
    return tuple(seen.values())


def _placeholder(given: Any) -> Leaf:
    leaf = without_follows(given) if isinstance(given, Op) else given
    if not isinstance(leaf, Leaf) or leaf.info.stored:
        raise ArgumentError(
            f"computation takes placeholders after the results, not {leaf!r}; several results are "
            "one list, and variables are read without being listed"
        )
    return leaf


def _checked_name(name: str | None) -> str | None:
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


def _checked_option(check: str | None) -> bool:
    if check not in (None, "nan"):
        raise ArgumentError(f"check={check!r} is neither None nor 'nan'")
    return check == "nan"


def _kept(keep: Any) -> tuple[Tensor, ...]:
    listed = [keep] if isinstance(keep, Op) else keep
    if not isinstance(listed, Iterable) or not all(isinstance(op, Tensor) for op in listed):
        raise ArgumentError(f"keep={keep!r} is no list of tensors; give keep=[tensor, ...]")
    return tuple(listed)
