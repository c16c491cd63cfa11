"""``Computation``: a callable from values of placeholders to requested results and effects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import (
    ArgumentError,
    AxisError,
    DeviceError,
    IndexRangeError,
    LinearAlgebraError,
    NonFiniteError,
    SizeError,
)
from ..op_graph.building.weak import without_effect
from ..op_graph.core.argument_hints import public
from ..op_graph.core.collection import without_collecting
from ..op_graph.op_graph import Leaf, Op, Tensor, among
from ..op_graph.syntax.foreign_names import COMPUTATIONS, missing_member
from .binding.call_values import result_of
from .binding.complex_calls import with_complex
from .binding.coordinate_origins import AssignedCoordinates
from .binding.entry_values import at_entry
from .binding.futures import FinishedCall, Pending, Started
from .compile import CompileStages
from .loading.lazy_loading import LaterModule, outline_of
from .request import Request, checked_name
from .runtime.arguments import arrange
from .runtime.out_arrays import Destinations, ResultDescription

if TYPE_CHECKING:
    from ..op_graph.axes.lengths import Length
    from ..op_graph.building.typing import FeedLike, Lengths, Results
    from ..op_graph.transforms.functionalize import Functional
    from .linking import Linking
    from .lowering.planning.plan import Plan
    from .lowering.rules.program import Program
    from .owner_protocol import Owner
    from .reports import call_errors, dump_and_peak
    from .reports import explain as explaining
    from .reports import trace as tracing
    from .reports.trace import TraceEntry
else:  # loaded at first use: reports and error messages
    explaining = LaterModule(".reports.explain", __package__)
    call_errors = LaterModule(".reports.call_errors", __package__)
    dump_and_peak = LaterModule(".reports.dump_and_peak", __package__)
    tracing = LaterModule(".reports.trace", __package__)

# Errors of a call whose messages are extended with the ops and values concerned.
ABOUT_OPS = (
    AxisError,
    DeviceError,
    IndexRangeError,
    LinearAlgebraError,
    NonFiniteError,
    SizeError,
)


class Computation:
    """A callable made by ``transformer.computation``: data in, results out.

    Call it with one value for each placeholder, by position, or by name if the placeholder has one.
    It returns the value of a single result, or a tuple for a list of results, with None for an
    effect; for another structure of results, such as a dictionary or a dataclass, the same
    structure of values. Values are NumPy arrays that belong to the caller.
    """

    def __init__(
        self,
        transformer: Owner,
        results: Results,
        placeholders: Sequence[Leaf],
        *,
        keep: Iterable[Tensor] = (),
        check: str | None = None,
        plan: bool = True,
        lengths: Lengths | None = None,
        specialize: Lengths | None = None,
        memory: int | str | None = None,
        name: str | None = None,
        on_device: bool = False,
    ) -> None:
        self.transformer = transformer
        self.name = checked_name(name)
        self.request = Request(
            results,
            placeholders,
            keep=keep,
            check=check,
            plan=plan,
            lengths=lengths,
            specialize=specialize,
            memory=memory,
            on_device=on_device,
        )
        self.single, self.results = self.request.single, self.request.results
        self.layout = self.request.layout
        self.placeholders, self.keep = self.request.placeholders, self.request.keep
        self.names = [leaf.name for leaf in self.placeholders]
        self.moved = AssignedCoordinates(self.request, transformer)
        self.kept: dict[Op, Any] = {}
        self.given: dict[Op, Any] = {}
        self._plain_results: list[ResultDescription] = []  # filled at the first use of out=
        # Both are keyed by the ids of the overridden ops of keep=.
        self._calls: dict[tuple[int, ...], Any] = {}
        self._stages: dict[tuple[int, ...], CompileStages] = {}

    # Calling ------------------------------------------------------------------------------------

    def __call__(self, *args: FeedLike, **keywords: FeedLike) -> Any:
        """Return the results for these values of the placeholders.

        ``out=`` is an array that receives the result and is returned; it must have the result's
        shape and dtype. For several results, it is the same structure of arrays, with None for
        effects and for results that are to be new arrays. It may be an array that is fed. Arrays
        that share memory are written one after another, in the order of results. A call that raises
        before it computes leaves them unchanged. If a placeholder is named out, ``out=`` is its
        value.
        """
        call = self._calls.get(())
        if call is not None and call.enter is not None and not (keywords or self.given):
            try:
                values = call.enter(*args)
            except ABOUT_OPS as error:
                raise call_errors.about_ops(error, self.stages(), args) from None
            if values is not NotImplemented:
                if self.moved.values:
                    self.moved.forget()
                if self.single and values and not self.keep:
                    return values[0]
                return self._structured(values)
        return self._called(args, keywords)

    def _called(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Slow path of ``__call__``: keywords, ``out=``, overridden values, or a first call."""
        call, args, out, given = self._prepared(args, keywords)
        with self._about(given, args):
            values = call(*args) if out is None else call(*args, out=out)
        self.moved.forget()
        return self._structured(values)

    def start(self, *args: FeedLike, **keywords: FeedLike) -> Started:
        """Start a call: its ``result()`` returns what the call returns, ``done()`` polls it.

        It takes the arguments of a call, whose arrays may change once it returns; only arrays on a
        device are read until the call is done. Calls take effect in the order in which they were
        started. Invalid arguments raise here; errors that depend on computed values are raised by
        ``result()``. If a transformer runs nothing concurrently with Python (NumPy, native code),
        the call has run when this returns. ``out=`` is filled when ``result()`` returns, at the
        latest.
        """
        pending = self._begun(args, keywords)
        if pending is not NotImplemented:
            self.moved.forget()
            return self._started(pending, ())
        call, args, out, given = self._prepared(args, keywords)
        begin = getattr(call, "start", None)

        def run() -> Any:
            with self._about(given, args):
                return call(*args) if out is None else call(*args, out=out)

        with self._about(given, args):
            pending = FinishedCall(run) if begin is None else begin(*args, out=out)

        self.moved.forget()
        return self._started(pending, given)

    def _begun(self, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Start a call by the fast path; return NotImplemented if that does not apply."""
        call = self._calls.get(())
        if call is None or call.begin is None or keywords or self.given:
            return NotImplemented
        try:
            return call.begin(*args)
        except ABOUT_OPS as error:
            raise call_errors.about_ops(error, self.stages(), args) from None

    def _started(self, pending: Pending, given: tuple[Op, ...]) -> Started:
        waited = partial(self._finished, pending.finish, given)
        return Started(pending.done, waited, partial(self._finished, pending.ahead, given))

    def _finished(self, finish: Callable[[], tuple[Any, ...]], given: tuple[Op, ...]) -> Any:
        """Return the results of a started call; its argument arrays may have changed by now."""
        try:
            values = finish()
        except ABOUT_OPS as error:
            raise call_errors.about_ops(error, self.stages(given), None) from None
        return self._structured(values)

    def _prepared(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Any, tuple[Any, ...], Destinations | None, tuple[Op, ...]]:
        """Return the callable to run, its values, ``out=`` destinations, and overridden ops."""
        out = None
        if "out" in keywords and "out" not in self.names:
            given_out = keywords.pop("out")
            if given_out is not None:
                self._plain_results = self._plain_results or [result_of(op) for op in self.results]
                flat = given_out if self.layout is None else self.layout.flat(given_out, "out=")
                out = Destinations(self._plain_results, len(self.keep), self.single, flat)
        if keywords or len(args) != len(self.placeholders):
            args = self.arranged(args, keywords)
        call = self._calls.get(())
        given: tuple[Op, ...] = ()
        if call is None or self.given:
            given = tuple(self.given)
            call = self._call_for(given)
            args = (*args, *self.given.values())
        return call, args, out, given

    @contextmanager
    def _about(self, given: tuple[Op, ...], args: tuple[Any, ...] | None) -> Iterator[None]:
        """Extend errors of a call with the ops and values that they concern."""
        try:
            yield
        except ABOUT_OPS as error:
            raise call_errors.about_ops(error, self.stages(given), args) from None

    def arranged(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the arguments of a call as one value for each placeholder, in order."""
        try:
            return tuple(arrange(self.names, len(self.placeholders), args, keywords))
        except ArgumentError as error:
            raise call_errors.with_placeholders(error, self.placeholders) from None

    def _structured(self, values: tuple[Any, ...]) -> Any:
        if self.single and not self.keep:
            return values[0] if values else None
        if len(values) == len(self.results) and not self.keep:
            return values if self.layout is None else self.layout.filled(iter(values))
        rest = iter(values)
        results = tuple([next(rest) if isinstance(op, Tensor) else None for op in self.results])
        for op in self.keep:
            self.kept[op] = next(rest)
        if self.layout is not None:
            return self.layout.filled(iter(results))
        return results[0] if self.single else results

    @property
    def asked(self) -> Any:
        """Return the results as requested, in their structure."""
        if self.layout is not None:
            return self.layout.filled(iter(self.results))
        return self.results[0] if self.single else list(self.results)

    @property
    def options(self) -> dict[str, Any]:
        """Return the options that make the same computation of another transformer.

        ``memory`` is not among them: other transformers need other bytes for the same values.
        """
        request = self.request
        return {
            "keep": self.keep,
            "check": "nan" if request.check else None,
            "plan": request.planned,
            "lengths": request.lengths,
            "specialize": request.specialized,
            "name": self.name,
        }

    @property
    def axes(self) -> Any:
        """Return the axes of each result, in the structure of results; None for effects."""
        found = tuple([op.axes if isinstance(op, Tensor) else None for op in self.results])
        if self.layout is not None:
            return self.layout.filled(iter(found))
        return found[0] if self.single else found

    def value(self, op: Tensor) -> Any:
        """Return the value that the last call computed for an op of ``keep``."""
        if not isinstance(op, Op):
            raise ArgumentError(f"value takes a tensor of keep=[...], not {op!r}")
        if op not in self.kept:
            known = among(op, self.keep)
            raise ArgumentError(
                f"{op} (made at {op.line_info}) "
                + ("has no value yet: call the computation" if known else "is not in keep=[...]")
            )
        return self.kept[op]

    def override(self, op: Tensor, value: FeedLike | None) -> None:
        """Use ``value`` (over op's axes) in calls instead of computing ``op``; None ends that.

        ``op`` must be in ``keep``.
        """
        if not isinstance(op, Op):
            raise ArgumentError(f"override takes a tensor of keep=[...], not {op!r}")
        if not among(op, self.keep):
            raise ArgumentError(f"{op} (made at {op.line_info}) is not in keep=[...]")
        if value is None:
            self.given.pop(op, None)
            return
        reason = without_effect(op, self.results)
        if reason is not None:
            raise ArgumentError(f"override: {reason}")
        self.given[op] = value

    def _call_for(self, given: tuple[Op, ...]) -> Any:
        # No lock: linking takes the transformer's lock, which a thread that initializes variables
        # holds.
        key = tuple(map(id, given))
        found = self._calls.get(key)
        if found is None:
            stages = self.stages(given)
            with without_collecting():  # stages make many objects, and hardly any cycles
                made = self.transformer.make_call(stages)
            if stages.complex_leaves is not None:
                made = with_complex(made, stages, self.transformer.memory)
            found = self._calls.setdefault(key, made)
        return found

    # Compilation --------------------------------------------------------------------------------

    def stages(self, given: tuple[Op, ...] = ()) -> CompileStages:
        """Return the stages of the computation, with placeholders for ops ``given`` of ``keep``."""
        key = tuple(map(id, given))
        with self.request.lock:
            found = self._stages.get(key)
            if found is None:
                pure, inputs = self.request.overridden(given)
                found = self._stages[key] = CompileStages(
                    self.request, pure, inputs, self.transformer
                )
            return found

    @property
    def pure(self) -> Functional:
        """Return the graph of the results and of the new value of each variable."""
        return self.request.pure

    @property
    def program(self) -> Program:
        """Stage 3: the simplified graph."""
        return self.stages().program

    @property
    def plan(self) -> Plan:
        """Stage 5: kernels in order and the memory plan."""
        return self.stages().plan

    @property
    def linking(self) -> Linking:
        """Return the inputs, variables and constants that the program is linked with."""
        return self.stages().linking

    @property
    def source(self) -> str:
        """Return the compiled program as text, with the user's names and lines as comments."""
        return self.stages().source

    def explain(self, stage: str = "plan") -> str:
        """Return a stage's result as text: build, functional, simplify, schedule, plan or emit."""
        return explaining.explain(self.stages(), stage, self.transformer.threads)

    def peak_bytes(self, lengths: Lengths | None = None) -> int | Length:
        """Return the bytes that a call needs beside its inputs and the variables.

        These are the arena, results and kept copies. If ``lengths``, defaults or the axes give
        every length, the number is what is allocated: the arena as it is laid out, with the scratch
        memory of kernels for all threads of a call, the results, and the copies that NumPy is known
        to make internally. Otherwise it is an expression over the open names: the sum of all
        buffers and results, as if no buffer shared memory with another, without alignment.
        """
        return dump_and_peak.peak_bytes(self.stages(), lengths, self.transformer.threads)

    @public
    def trace(self, *args: FeedLike, steps: bool = False, **keywords: FeedLike) -> list[TraceEntry]:
        """Return every op's value for these inputs, from the reference interpreter.

        They are ``TraceEntry`` rows. With ``steps``, there is also a row for each op in a loop at
        each of its steps, and for those in the branch that is taken. A placeholder named ``steps``
        is given by position.
        """
        known, lengths = self._at_entry(args, keywords)
        return tracing.trace(self.pure, known, lengths, self.given, steps)

    def profile(self, *args: FeedLike, repeats: int = 20, **keywords: FeedLike) -> Sequence[Any]:
        """Measure each kernel: its time, memory traffic and operations.

        They are compared with the machine's limits. The result is a sequence of rows whose ``str``
        is a table. It takes the arguments of a call, computes ``2 * repeats`` times plus a few
        warm-up calls, on copies of the variables, and shows nothing that the computation prints; a
        placeholder named ``repeats`` is given by position. Raises what a call raises, and
        ``UnavailableError`` if the transformer has no kernels of its own.
        """
        return self.transformer.profile(self, args, keywords, repeats)

    @property
    def c_function(self) -> Any:
        """Return the C function that calls run: address, signature, description of arguments.

        Raises ``UnavailableError`` if the transformer does not compile to C.
        """
        return self.transformer.c_function(self)

    @public
    def write_c(
        self,
        folder: str | os.PathLike[str],
        name: str = "model",
        *,
        threads: int = 1,
        march: str = "native",
        values: str | None = None,
    ) -> None:
        """Write the computation to a folder as C that needs no Python and only libm.

        The files are a header, sources, and a README with the compile command. ``name_run`` takes
        pointers to inputs, results and the state (variables, which it updates), the open lengths,
        and an arena of ``name_arena_bytes(lengths)`` bytes; it returns 0 or a code that
        ``name_error`` explains, and has the bits of native code. ``threads`` is the number of
        threads of a call. ``march`` is the processor, as the compiler calls it: "native" for this
        machine. ``values`` says where the variables' present values are: "array" in the source,
        "file" in ``name.bin``, None by size.

        Raises ``ArgumentError`` for other arguments, ``AxisError`` if a variable's length is
        unknown, and ``UnavailableError`` if the transformer is not native.
        """
        self.transformer.written_program(self, name, threads, march, values).write_c(folder)

    @public
    def write_shared(
        self,
        path: str | os.PathLike[str],
        name: str = "model",
        *,
        threads: int = 1,
        march: str = "native",
        values: str | None = None,
    ) -> None:
        """Write the computation as a shared object with the functions of ``write_c``.

        Their header, ``name.h``, and the file of values, if there is one, are beside it. It takes
        the options of ``write_c`` and raises the same errors.
        """
        self.transformer.written_program(self, name, threads, march, values).write_shared(path)

    def dumps(self, *args: FeedLike, **keywords: FeedLike) -> str:
        """Return one text with the graph, these inputs, the variables' values and open lengths.

        ``python -m geon replay FILE`` computes it again, ``geon.loads`` reads the graph. It takes
        the arguments of a call, raises what a call raises before it computes, and changes no
        variable.
        """
        return dump_and_peak.dump_request(self.request, *self._at_entry(args, keywords))

    def _at_entry(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[dict[Leaf, Any], dict[str, int]]:
        return at_entry(self.transformer, self.stages(), self.arranged(args, keywords))

    def _repr_html_(self) -> str:
        return dump_and_peak.html(
            self.stages(), outline_of(self.transformer).name, self.transformer.threads
        )

    def __reduce__(self) -> Any:
        raise ArgumentError(
            f"{self!r} cannot be copied or pickled: it is tied to a transformer's memory; call "
            "transformer.computation again, or keep the graph with dumps and geon.loads"
        )

    if not TYPE_CHECKING:  # hidden from type checkers, which report missing members themselves

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_member(self, name, COMPUTATIONS)

    def __repr__(self) -> str:
        shown = ", ".join(map(str, self.results))
        return f"<computation of {shown} by {outline_of(self.transformer).name}>"
