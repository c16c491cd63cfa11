"""Programs as data: blocks of operators that read and write values.

Operators refer to variables by name when they are added, and hold values: a name that is written
again gets a new value. A block is closed: it reads values of outer blocks by its parameters.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ...errors import ArgumentError
from ...op_graph.core.source_info import Site, describe, user_call, user_site
from . import evaluation
from .registry import OpInfo, ProgramError, operator_info
from .values import ProgramValue, Spec, declared, placeholder_for, spec_of

VERSION = 1  # of the format of programs as data

Ids = tuple[int, ...]
NEW: Any = type("New", (), {"__repr__": lambda self: "NEW"})()  # new variables of an output slot


@dataclass(frozen=True)
class ValueDesc:
    """A value of a program: ``id`` is its number, ``name`` that of the variable that held it.

    ``writer`` says what wrote it, with the user's line.
    """

    id: int
    name: str
    spec: Spec
    writer: str

    def __str__(self) -> str:
        return f"{self.name}: {self.spec}, {self.writer}"


@dataclass(frozen=True, eq=False)
class Operator:
    """An operator of a block: its type, the ids of values by slot, and attributes.

    A slot that was left out is None, and a variable that was left out of a list has the id -1.
    ``site`` is the user's line.
    """

    type: str
    inputs: Mapping[str, Ids | None]
    outputs: Mapping[str, Ids | None]
    attributes: Mapping[str, Any]
    site: Site

    @property
    def info(self) -> OpInfo:
        """The registered operator of this type."""
        return operator_info(self.type)

    @property
    def reads(self) -> Ids:
        """The ids of all inputs."""
        return tuple([k for ids in self.inputs.values() for k in ids or () if k >= 0])

    @property
    def writes(self) -> Ids:
        """The ids of all outputs."""
        return tuple([k for ids in self.outputs.values() for k in ids or () if k >= 0])

    def __str__(self) -> str:
        return f"{self.type} at {describe(self.site)}"


@dataclass(eq=False)
class Var:
    """A declared name of a block. ``persistable`` variables keep their values in a scope.

    Its ``shape`` and ``dtype`` are those of the value that it holds now.
    """

    block: Block
    name: str
    declared: Spec | None = None
    persistable: bool = False
    stop_gradient: bool = False
    is_data: bool = False
    site: Site = field(default_factory=lambda: user_site(2), repr=False)

    @property
    def spec(self) -> Spec:
        """The specification of its value; the declared one before an operator wrote it."""
        number = self.block.names.get(self.name)
        found = self.declared if number is None else self.block.program.values[number].spec
        if found is None:
            raise ProgramError(
                f"variable {self.name!r} (declared at {describe(self.site)}) has no value yet, so "
                "no shape; add the operator that writes it first"
            )
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape, with -1 for an open length."""
        return self.spec.plain_shape

    @property
    def dtype(self) -> str:
        """The name of the dtype."""
        return self.spec.dtype

    def __repr__(self) -> str:
        known = self.declared is not None or self.name in self.block.names
        return f"{self.name}: {self.spec}" if known else self.name


@dataclass(eq=False, repr=False)
class Parameter(Var):
    """A persistable variable that training changes if it is ``trainable``.

    ``learning_rate`` multiplies that of the optimiser; ``regularizer`` and ``gradient_clip`` are
    used in place of the optimiser's.
    """

    trainable: bool = True
    learning_rate: float = 1.0
    regularizer: Any = None
    gradient_clip: Any = None


@dataclass(eq=False)
class Block:
    """Operators in order, the names that they read and write, and the parameters of the block.

    ``names`` maps each name to the value that it holds at this place of the program.
    ``parameters`` are the names from outside with the values that stand for them inside: for the
    global block data and persistable variables, for an inner block variables of outer ones.
    ``results`` are the values that an inner block returns to the operator that has it.
    """

    program: Program
    index: int
    parent_index: int = -1
    variables: dict[str, Var] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    parameters: dict[str, int] = field(default_factory=dict)
    ops: list[Operator] = field(default_factory=list)
    results: list[int] = field(default_factory=list)

    @property
    def parent(self) -> Block | None:
        """The block around it; None for the global block."""
        return None if self.parent_index < 0 else self.program.blocks[self.parent_index]

    @property
    def written(self) -> list[str]:
        """The names of outer variables that the block writes, in the order of first use."""
        return [name for name, k in self.parameters.items() if self.names[name] != k]

    def create_var(
        self, name: str | None = None, shape: Sequence[int | str] | None = None,
        dtype: Any = "float32", *, cls: type[Var] = Var, **options: Any,
    ) -> Any:  # fmt: skip
        """Declare a variable; ``options`` are the fields of ``Var`` or of ``cls``.

        Raises ``ProgramError`` if the block has the name.
        """
        name = self.program.unique_name("tmp") if name is None else name
        what = user_call(f"variable {name!r}")
        if name in self.variables:
            raise ProgramError(
                f"{what}: block {self.index} has it since {describe(self.variables[name].site)}; "
                "choose another name, or use that variable"
            )
        spec = None if shape is None else declared(name, shape, dtype, what)
        self.variables[name] = cls(self, name, spec, **options, site=user_site())
        return self.variables[name]

    def find_var(self, name: str) -> Var | None:
        """Return the variable of this name in this block or the nearest outer one, or None."""
        found = self.variables.get(name)
        return found or (None if self.parent is None else self.parent.find_var(name))

    def var(self, name: str) -> Var:
        """Return the variable of a name; raise ``ProgramError`` if no block around has it."""
        found = self.find_var(name)
        if found is None:
            raise ProgramError(
                f"{user_call(f'variable {name!r}')}: neither block {self.index} nor a block around "
                f"it has the name; it has {', '.join(sorted(self.variables)) or 'none'}"
            )
        return found

    def value_of(self, name: str, what: str) -> int:
        """Return the id of the value that a name holds now; one from outside becomes a parameter.

        ``what`` is the reader in messages.
        """
        if name in self.names:
            return self.names[name]
        var = self.var(name)
        if var.block is not self and self.parent is not None:
            outer = self.program.values[self.parent.value_of(name, what)]
            found = self.program.add_value(name, outer.spec, outer.writer)
        elif self.parent is None and (var.persistable or var.is_data) and var.declared is not None:
            role = "data" if var.is_data else "kept in the scope"
            writer = f"{role}, declared at {describe(var.site)}"
            found = self.program.add_value(name, var.declared, writer)
        else:
            raise ProgramError(
                f"{what}: variable {name!r} (declared at {describe(var.site)}) is read before an "
                "operator writes it; move the reader behind the writer, or declare it as data or "
                "as persistable with a shape"
            )
        self.names[name] = self.parameters[name] = found
        return found

    def append_op(
        self, type: str, inputs: Mapping[str, Any] | None = None,
        outputs: Mapping[str, Any] | None = None, attrs: Mapping[str, Any] | None = None,
    ) -> Operator:  # fmt: skip
        """Add an operator at the end; variables are given by ``Var`` or by name, or in lists.

        Names are resolved, and shapes and dtypes inferred, now. A new output name is declared here,
        and ``NEW`` declares a variable for each value; an output of an outer block gets a new value
        there when the inner block is complete.
        """
        site = user_site()
        what = f"{type} at {describe(site)}"
        proto = operator_info(type).proto
        attributes = proto.complete(attrs or {}, what)
        if attributes.get("seed") == 0:  # draws of their own, which files and clones keep
            attributes["seed"] = (self.program.random_seed << 32) + len(self.program.values) + 1
        results = proto.fill("outputs", outputs or {}, what)
        read = {
            slot: None if names is None else tuple([self._read(n, what) for n in names])
            for slot, names in proto.fill("inputs", inputs or {}, what).items()
        }
        found = evaluation.infer(self.program, Operator(type, read, {}, attributes, site))
        written: dict[str, Ids | None] = {}
        for slot, values in found.items():
            names = results[slot]
            if names == (NEW,) and values is not None:
                names = tuple([self.program.unique_name(f"{type}.{slot}") for _ in values])
            if names is None or names == (NEW,):
                written[slot] = None
                continue
            if len(names) != len(values or ()):
                raise ProgramError(
                    f"{what}: output {slot} has {len(values or ())} variables, and {len(names)} "
                    "names were given; give one for each"
                )
            pairs = zip(names, values, strict=True)
            written[slot] = tuple([self._write(name, value, what) for name, value in pairs])
        self.ops.append(Operator(type, read, written, attributes, site))
        self.program.changes += 1
        return self.ops[-1]

    def _read(self, given: Var | ValueDesc | str | None, what: str) -> int:
        if given is None or isinstance(given, ValueDesc):
            return evaluation.EMPTY if given is None else given.id
        return self.value_of(self._name(given, what), what)

    def _name(self, given: Any, what: str) -> str:
        """Return the name of a variable of the program."""
        if not isinstance(given, (str, Var)):
            raise ArgumentError(f"{what}: {given!r} is no variable; give a variable or its name")
        if isinstance(given, Var) and given.block.program is not self.program:
            raise ProgramError(
                f"{what}: variable {given.name!r} (declared at {describe(given.site)}) belongs to "
                "another program; build both with one program_guard, or declare it here"
            )
        return given if isinstance(given, str) else given.name

    def _write(self, given: Var | str | None, value: ProgramValue | None, what: str) -> int:
        if given is None or value is None:
            return evaluation.EMPTY
        name, spec = self._name(given, what), spec_of(value)
        var = self.find_var(name) or self.create_var(name)
        if var.block is not self:
            self.value_of(name, what)  # a parameter: the value before the block
        expected = var.spec if name in self.names else var.declared
        keeps = var.persistable or var.block is not self
        if keeps and expected is not None and not expected.fits(spec):
            raise ProgramError(
                f"{what}: it writes {spec} to {name!r}, which is {expected} (declared at "
                f"{describe(var.site)}); a variable that outlives the block keeps its shape and "
                "dtype, so write another one"
            )
        self.names[name] = self.program.add_value(name, spec, f"written by {what}")
        return self.names[name]

    def __str__(self) -> str:
        lines = [f"block {self.index} of block {self.parent_index}:"]
        for op in self.ops:
            written, read = map(self._listed, (op.outputs, op.inputs))
            lines.append(f"  {written} = {op.type}({read}) {dict(op.attributes)}")
        return "\n".join(lines)

    def _listed(self, slots: Mapping[str, Ids | None]) -> str:
        def shown(k: int) -> str:
            return f"{self.program.values[k].name}#{k}" if k >= 0 else "none"

        return ", ".join([f"{s}=[{', '.join(map(shown, ids))}]" for s, ids in slots.items() if ids])


class Program:
    """Blocks and values; block 0 is the global block. ``changes`` counts what was added.

    ``sequences`` maps the open length of the rows of data with ``lod_level=1`` to the names of
    their offsets and step numbers.
    """

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self.values: list[ValueDesc] = []
        self.sequences: dict[str, tuple[str, str]] = {}
        self.version = VERSION
        self.changes = self.random_seed = self._current = 0
        self._numbers: dict[str, int] = {}
        self._abstract: dict[int, ProgramValue] = {}
        self.blocks.append(Block(self, 0))

    def global_block(self) -> Block:
        """Return block 0."""
        return self.blocks[0]

    def current_block(self) -> Block:
        """Return the block to which layers add operators."""
        return self.blocks[self._current]

    def create_block(self) -> Block:
        """Begin a block inside the current one, and make it the current one."""
        self.blocks.append(Block(self, len(self.blocks), self._current))
        self._current = len(self.blocks) - 1
        return self.blocks[-1]

    def rollback(self) -> None:
        """End the current block: make the one around it the current one."""
        if self._current == 0:
            raise ProgramError(f"{user_call('rollback')}: the global block has none around it")
        self._current = self.current_block().parent_index

    def unique_name(self, base: str) -> str:
        """Return ``base_0``, ``base_1`` and so on, which no variable of the program has."""
        while True:
            number = self._numbers.get(base, 0)
            self._numbers[base] = number + 1
            if not any(f"{base}_{number}" in block.variables for block in self.blocks):
                return f"{base}_{number}"

    def add_value(self, name: str, spec: Spec, writer: str) -> int:
        """Add a value that a name holds; return its id."""
        self.values.append(ValueDesc(len(self.values), name, spec, writer))
        return len(self.values) - 1

    def abstract(self, number: int) -> ProgramValue:
        """Return placeholders of the specification of a value, for inference."""
        if number not in self._abstract:
            value = self.values[number]
            self._abstract[number] = placeholder_for(value.spec, value.name)
        return self._abstract[number]

    def sequence_of(self, var: Var, what: str) -> tuple[Var, Var]:
        """Return the offsets of the sequences whose rows a variable has, and the step numbers.

        Raises ``ProgramError`` if its first dimension is not that of data with ``lod_level=1``.
        """
        names = self.sequences.get(str(var.spec.shape[0]) if var.spec.shape else "")
        if names is None:
            raise ProgramError(
                f"{what}: {var} has no rows of sequences; its first dimension is not that of data "
                "declared with lod_level=1; give such a variable"
            )
        return self.global_block().var(names[0]), self.global_block().var(names[1])

    def list_vars(self) -> list[Var]:
        """Return the declared variables of all blocks."""
        return [var for block in self.blocks for var in block.variables.values()]

    def all_parameters(self) -> list[Parameter]:
        """Return the parameters in order of declaration; all are in the global block."""
        return [var for var in self.list_vars() if isinstance(var, Parameter)]

    def __str__(self) -> str:
        return "\n".join(map(str, self.blocks))


class _Defaults(threading.local):
    """The default programs of a thread."""

    def __init__(self) -> None:
        self.main, self.startup = Program(), Program()


_defaults = _Defaults()


def default_main_program() -> Program:
    """Return the program to which layers add operators; each thread has its own."""
    return _defaults.main


def default_startup_program() -> Program:
    """Return the program to which layers add the initialisers of parameters."""
    return _defaults.startup


@contextmanager
def program_guard(main: Program, startup: Program | None = None) -> Iterator[None]:
    """Context in which ``main`` and ``startup`` are the default programs of the thread."""
    before = _defaults.main, _defaults.startup
    _defaults.main, _defaults.startup = main, startup or before[1]
    try:
        yield
    finally:
        _defaults.main, _defaults.startup = before
