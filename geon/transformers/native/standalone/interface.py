"""The parameters of a written C function: arrays, state, open lengths and the arena.

The values of its state are a C initialiser, or the bytes of a file.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ....errors import ArgumentError, AxisError, SizeError
from ....lazy_dataclasses import dataclass
from ....op_graph.axes.affine import Size
from ....op_graph.axes.axes import Axes
from ....op_graph.axes.length_defaults import default_lengths
from ....op_graph.axes.lengths import evaluate, names_of, substitute_names
from ....op_graph.op_graph import Op
from ....op_graph.values.dtypes import name_of
from ...base import Transformer
from ...computation import Computation
from ...printing.scalars.c_expressions import literal
from ...printing.scalars.c_types import C_TYPES
from ...runtime.complex_arrays import as_parts
from ...sizes.blocks import CACHE_LINE_BYTES
from ...sizes.limits import MAX_LENGTH
from ...sizes.spaces import walks
from ..emit.record import Record

# C types in the header, which knows no types of its own: a half is its bits.
HEADER_TYPES = {**C_TYPES, "bool": "bool", "float16": "uint16_t", "bfloat16": "uint16_t"}
STATE_ALIGNMENT = CACHE_LINE_BYTES  # bytes
# Bytes of all arrays, and iterations of a kernel: their sums fit into int64.
MAX_TOTAL = sys.maxsize // 2
PARAMETERS = ("state", "arena")  # names that parameters have in every function
# Keywords of C and C++, and macros of their standard headers, that a header must not use as names.
RESERVED_WORDS = frozenset(
    """
    I NULL EOF INFINITY NAN alignas alignof and and_eq asm auto bitand bitor bool break case catch
    char class compl complex concept const constexpr continue decltype default delete do double else
    enum errno explicit export extern false final float for friend fortran goto if imaginary import
    inline int linux long module mutable namespace new noexcept noreturn not not_eq nullptr operator
    or or_eq override private protected public register requires restrict return short signed sizeof
    static static_assert stderr stdin stdout struct switch template this thread_local throw true try
    typedef typeid typename typeof union unix unsigned using virtual void volatile wchar_t while xor
    xor_eq int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t
    """.split()
)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


Array = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class ArrayParameter:
    """An input or a result: a pointer to contiguous elements over ``axes``.

    ``size`` is in bytes, over the open lengths that are parameters.
    """

    name: str
    dtype: str
    axes: Axes
    size: Size

    @property
    def ctype(self) -> str:
        """Return the C type of an element."""
        return HEADER_TYPES[self.dtype]


@dataclass(frozen=True, slots=True)
class StateMember:
    """A variable or a large constant, as a member of the state: its value when it was written.

    ``note`` describes it; ``written`` is True if the function writes it.
    """

    name: str
    dtype: str
    value: Array
    note: str
    written: bool

    @property
    def ctype(self) -> str:
        """Return the C type of an element."""
        return HEADER_TYPES[self.dtype]

    @property
    def count(self) -> int:
        """Return the number of elements; 1 for none, as C has no empty array."""
        return max(self.value.size, 1)


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameters of a function.

    ``known`` are the open lengths that have an integer: by default, by ``lengths=``, or as those of
    a variable. ``lengths`` are the others with their names in C, each at most ``most``.
    """

    inputs: tuple[ArrayParameter, ...]
    results: tuple[ArrayParameter, ...]
    variables: tuple[StateMember, ...]
    constants: tuple[StateMember, ...]
    known: Mapping[str, int]
    lengths: Mapping[str, str]
    most: int

    @property
    def state(self) -> tuple[StateMember, ...]:
        """Return all members of the state."""
        return (*self.variables, *self.constants)

    def bound(self, size: Size) -> Size:
        """Return a size with the known lengths in it as integers."""
        return substitute_names(size, self.known)


def make_interface(
    transformer: Transformer, computation: Computation, record: Record, threads: int
) -> Interface:
    """Return the parameters of the function that runs a computation compiled as ``record``.

    Variables that are not set yet are initialised. Raises ``AxisError`` if a variable's length is
    unknown, or two variables have different ones; ``SizeError`` if nothing fits into 64 bits.
    """
    linking = computation.linking
    owners = linking.stored(linking.variables)
    values, known = stored_values(transformer, computation)
    members, written = Identifiers(), set(linking.written)
    variables = tuple(
        StateMember(
            members.new(owner.name or str(owner).partition("(")[0]),
            name_of(leaf.dtype),
            value,
            str(owner.axes),
            leaf in written,
        )
        for leaf, owner, value in zip(linking.variables, owners, values, strict=True)
    )
    constants = tuple(
        StateMember(members.new("constant"), name_of(c.array.dtype), c.array, "a constant", False)
        for c in linking.constants
    )
    outputs = [each for each in result_names(computation) if each[1] is not None]
    arrays = [*linking.inputs, *[op for _, op in outputs]]
    found = {name for op in arrays for axis in op.axes for name in names_of(axis.expression)}
    parameters = Identifiers(PARAMETERS)
    opened = sorted({*found, *record.lengths} - known.keys())
    lengths = {name: parameters.new(name) for name in opened}
    inputs, results = (
        tuple([_array(parameters.new(name), op, known) for name, op in group])
        for group in ([(leaf.name or "input", leaf) for leaf in linking.inputs], outputs)
    )
    sizes = [each.size for each in (*inputs, *results)]
    sizes += [substitute_names(buffer.most(threads), known) for buffer in record.buffers]
    most = largest_length(opened, sizes, record, known) if opened else 0
    return Interface(inputs, results, variables, constants, known, lengths, most)


def result_names(computation: Computation) -> list[tuple[str, Any]]:
    """Return the name and the final op, None of an effect, of each result and kept value.

    In a dictionary or dataclass a result has the name of its keys or fields, else that of its op.
    """
    wanted = (*computation.results, *computation.keep)
    names = [op.name or "result" for op in wanted]
    if computation.layout is not None:
        paths = ["_".join(map(str, path)) for path in computation.layout.paths()]
        for k, path in enumerate(paths):
            names[k] = names[k] if path.replace("_", "").isdigit() else path
    return list(zip(names, computation.stages().pure.outputs, strict=True))


def _array(name: str, op: Op, known: Mapping[str, int]) -> ArrayParameter:
    size = substitute_names(op.axes.size * op.dtype.itemsize, known)
    return ArrayParameter(name, name_of(op.dtype), op.axes, size)


def stored_values(
    transformer: Transformer, computation: Computation
) -> tuple[list[Array], dict[str, int]]:
    """Return copies of a computation's variables, and the open lengths that have an integer."""
    linking, state = computation.linking, transformer.state
    with transformer.lock:
        owners = linking.stored(linking.variables)
        transformer.variables.add(owners)
        slots = [transformer.variables.slot(owner) for owner in owners]
    used = set(linking.read)
    read = [slot for leaf, slot in zip(linking.variables, slots, strict=True) if leaf in used]
    fixed = {**default_lengths(), **computation.request.lengths}
    state.ensure(slots, read, fixed)
    known, origin = dict(fixed), dict.fromkeys(fixed, "lengths= or the default of the axis")
    for slot in slots:
        for name, size in slot.lengths.items():
            if known.setdefault(name, size) != size:
                raise AxisError(
                    f"axis length {name} is {size} in {slot.label} and {known[name]} in "
                    f"{origin[name]}; a C function has one length for it: set the variable to an "
                    "array of the other length"
                )
            origin.setdefault(name, slot.label)
    zeros = (np.zeros(slot.shape, slot.dtype) for slot in slots)
    return [
        as_parts(state.get(slot) if slot.ready else nothing)
        for slot, nothing in zip(slots, zeros, strict=True)
    ], known


def largest_length(
    names: Iterable[str], sizes: Sequence[Size], record: Record, known: Mapping[str, int]
) -> int:
    """Return the length that all open axes may have without an overflow of 64 bits.

    It bounds the bytes of all arrays and the iterations of each kernel.
    """
    opened = list(names)

    def totals(length: int) -> Iterator[int]:
        lengths = {**known, **dict.fromkeys(opened, length)}
        yield sum(abs(evaluate(size, lengths)) for size in sizes)
        for space, _ in record.work:
            yield 4 * walks(space, lengths)

    low, high = 0, MAX_LENGTH
    while low < high:
        middle = (low + high + 1) // 2
        if max(totals(middle)) < MAX_TOTAL:
            low = middle
        else:
            high = middle - 1
    if low < 1:
        raise SizeError(
            "the arrays of this computation need more bytes than a 64-bit size can say, for any "
            "open length; nothing was written. Use smaller lengths"
        )
    return low


MAX_LINE_CHARACTERS = 100  # of generated text
MAX_ARRAY_BYTES = 1 << 16  # bytes of a state up to which it is an array of C by default


def state_bytes(state: Sequence[StateMember]) -> int:
    """Return the size of the state's structure."""
    return sum(_padded(each.count * each.value.itemsize) for each in state)


def _padded(size: int) -> int:
    return -(-size // STATE_ALIGNMENT) * STATE_ALIGNMENT


def binary(state: Sequence[StateMember]) -> bytes:
    """Return the bytes of the state's structure."""
    found = []
    for each in state:
        raw = np.ascontiguousarray(each.value).tobytes()
        found.append(raw.ljust(_padded(each.count * each.value.itemsize), b"\0"))
    return b"".join(found)


def initialiser(state: Sequence[StateMember], name: str) -> str:
    """Return the definition of the state with its values, which C reads exactly."""
    lines = [f"const struct {name}_state {name}_initial_state = {{\n"]
    for each in state:
        values = [literal(value, each.dtype) for value in each.value.reshape(-1)] or ["0"]
        text = textwrap.fill(", ".join(values), MAX_LINE_CHARACTERS, break_long_words=False)
        lines.append(f"    .{each.name} = {{\n{textwrap.indent(text, ' ' * 8)}}},\n")
    return "".join([*lines, "};\n"])


def require_name(name: object) -> str:
    """Return ``name`` if functions of C can begin with it; raise ``ArgumentError`` if not."""
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED_WORDS:
        raise ArgumentError(
            f"name={name!r} cannot begin the names of C functions: write letters of ASCII, digits "
            "and underscores, with a letter first, and no keyword of C or C++"
        )
    return name


class Identifiers:
    """Distinct C identifiers of one scope."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self.taken = {*taken, *RESERVED_WORDS}

    def new(self, wanted: str) -> str:
        """Return ``wanted`` as an identifier that no other name of the scope has.

        It does not end with an underscore, as local names of the written functions do.
        """
        base = re.sub(r"\W+", "_", wanted, flags=re.ASCII).strip("_") or "value"
        if base[0].isdigit():
            base = f"value_{base}"
        name, number = base, 1
        while name in self.taken:
            number += 1
            name = f"{base}_{number}"
        self.taken.add(name)
        return name
