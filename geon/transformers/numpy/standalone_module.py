"""``Transformer.write``: one Python file with all computations and variables, without geon.

The file has the emitted programs, tables that link them with variables, and then the text of geon's
own modules for feeding, calls, state and checkpoints; so it runs the same code as the transformer.
"""

from __future__ import annotations

import ast
import base64
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError
from ...op_graph.axes.axes import Axes
from ...op_graph.axes.length_defaults import default_lengths
from ...op_graph.axes.lengths import Length
from ...op_graph.op_graph import Leaf, Tensor
from ...op_graph.syntax.operators import is_function
from ...op_graph.values.attribute_types import Frozen
from ...op_graph.values.dtypes import EXTENSIONS
from ...op_graph.values.tree import SINGLE, Structure
from ...version import __version__
from ..base import Transformer
from ..binding.call_values import input_label
from ..computation import Computation
from ..lowering.planning.plan import kernels_of
from ..reports.call_errors import describe_kernel
from ..request import RESERVED
from ..runtime import dims, feeding
from ..runtime.files import path_text, replace, writable
from .arrays import dtype_text, length_text
from .split_functions import comment
from .standalone_source import MAX_LINE_CHARACTERS, indented, library, section, trimmed

HEADER = '''"""Computations and variables, written by geon {version}; needs {needs} alone.

    allocate(**lengths)    give every variable memory
    initialize()           set variables to their first values
    save(path)             write the variables to a safetensors file
    restore(path)          read them from such a file, also one that geon wrote
    get(name)              a copy of a variable's value
    set(name, value)       set a variable

Computations, called with arrays by position or by name:

{computations}

What is not set is initialized when it is first needed, and lengths are taken from the data. Below
are the programs, then the variables, then the part that is the same in every such file.
"""

import types

import numpy as np
'''

PROCEDURES = '''
def allocate(**lengths):
    """Give every variable memory; ``lengths`` are those of open axes that nothing else gives."""
    _state.allocate_all(lengths)


def initialize(force=False, **lengths):
    """Set each variable that is not set to its first value; with ``force`` set all of them."""
    _state.initialize(lengths, force)


def save(path):
    """Write all persistent variables to the safetensors file ``path``, atomically."""
    rt.save_state(_state, path)


def restore(path, strict=True, only=None, rename=None):
    """Read all persistent variables from a file; it is checked before anything changes.

    With ``strict`` False those that fit, with ``only`` those of these names; ``rename`` has names
    in the file with the names here; ``*`` is any text. What is returned says what was taken.
    """
    return rt.restore_state(_state, path, rt.Choice(strict, only, rename))


def get(name):
    """A copy of the value of the variable of this name."""
    return _state.get(rt.slot_named(_state, name))


def set(name, value):
    """Set the variable of this name; ``value`` is an array over its axes."""
    _state.put(rt.slot_named(_state, name), value)
'''

FOOTER = """
rt = _library()
_state = rt.State(lambda: {defaults})
_state.slots.extend(_variables())
_constants = _constants()
_first_values(_state.slots)
_functions = {{
{functions}
}}
"""


def write_module(transformer: Transformer, path: str | os.PathLike[str]) -> None:
    """Write the module of a transformer to ``path``; see ``Transformer.write``.

    Callable initial values are called now, and their arrays become part of the file. Raises
    ``AxisError`` for one whose open lengths are not known, ``ArgumentError`` for two computations
    of one name; ``CheckpointError``, with the old file unchanged, for a path that cannot be
    written.
    """
    shown = path_text(path)
    target, mode = writable(f"module {shown!r}", shown)
    with transformer.lock:
        transformer.variables.state.usable()
        transformer.variables.rename()
        text = _StandaloneWriter(transformer).text()
    replace(f"module {shown!r}", target, [text.encode()], mode)


class _StandaloneWriter:
    """Builder of the file."""

    def __init__(self, transformer: Transformer) -> None:
        self.transformer, self.variables = transformer, transformer.variables
        self.named = _named(transformer.computations)
        firsts = {leaf: self.variables.first(leaf) for leaf in self.variables.leaves}
        self.firsts = {leaf: first for leaf, first in firsts.items() if first is not None}
        for computation in [*self.named.values(), *self.firsts.values()]:
            linking = computation.linking
            self.variables.add(linking.stored(linking.variables))
        self.slots = {leaf: number for number, leaf in enumerate(self.variables.leaves)}
        self.constants: dict[Frozen, int] = {}
        self.programs: dict[str, int] = {}
        self.lines: list[str] = []

    def text(self) -> str:
        """Return the whole file."""
        for number, (name, computation) in enumerate(self.named.items()):
            self.function(number, name, computation)
        self.variable_table()
        self.first_values()
        self.constant_table()
        body = "\n".join(self.lines)
        extensions = [name for name in EXTENSIONS if name in body]
        needs = "NumPy, safetensors and ml_dtypes" if extensions else "NumPy and safetensors"
        listed = "\n".join(f"    {name}" for name in self.named) or "    none"
        header = HEADER.format(version=__version__, needs=needs, computations=listed)
        if extensions:
            header += f"from ml_dtypes import {', '.join(extensions)}\n"
        lengths = {name: n for name, n in default_lengths().items() if repr(name) in body}
        functions = "\n".join(
            f"    {name!r}: _function_{k}()," for k, name in enumerate(self.named)
        )
        footer = FOOTER.format(defaults=repr(lengths), functions=functions)
        parts = [header, PROCEDURES, body, *section("The same in every written file"), library()]
        return "\n".join([*parts, footer])

    # Computations -------------------------------------------------------------------------------

    def function(self, number: int, name: str, computation: Computation) -> None:
        """Write the section of one computation: its program, its linking, and its function."""
        shown = ", ".join(map(str, computation.placeholders))
        results = [str(op) if isinstance(op, Tensor) else "None" for op in computation.results]
        self.lines += section(name)
        self.lines += [comment(f"# takes ({shown}), gives ({', '.join(results)})"), ""]
        program = self.program(computation.source)
        kernels = kernels_of(computation.plan)
        raising = [
            f"{k}: {describe_kernel(kernel.op)!r}," for k, kernel in kernels if kernel.raises
        ]
        values = [isinstance(op, Tensor) for op in computation.results]
        self.lines += [
            "",
            f"def _function_{number}():",
            "    return rt.Function(",
            *indented(self.call(program, computation), 2),
            f"        {computation.names!r},",
            f"        {values!r},",
            f"        {computation.single!r},",
            "        {  # kernels that can raise",
            *indented(raising, 3),
            "        },",
            *([] if computation.layout is None else [f"        {_layout(computation.layout)},"]),
            "    )",
            "",
            "",
            f"def {name}(*args, **keywords):",
            '    """The results for these values of the placeholders."""',
            f"    return _functions[{name!r}](*args, **keywords)",
        ]

    def program(self, source: str) -> int:
        """Return the number of the program with this source, writing it at its first use."""
        found = self.programs.get(source)
        if found is None:
            found = self.programs[source] = len(self.programs)
            code = [
                comment(line)
                for line in source.split("\n")
                if not line.startswith(("import ", "from "))
            ]
            self.lines += [f"def _program_{found}():", *indented(trimmed(code), 1)]
            self.lines += ["", "    return bind, run, sizes", ""]
        return found

    def call(self, program: int, computation: Computation) -> list[str]:
        """Return the text that links a program with its inputs, variables and constants."""
        linking, request = computation.linking, computation.request
        stages = computation.stages()
        constants = [f"_constants[{self.constant(value)}]" for value in linking.constants]
        guards = [
            f"({guard.relation!r}, {_dim(guard.left)}, {_dim(guard.right)}, {guard.meaning!r}),"
            for guard in request.guards
        ]
        inputs = [
            f"({input_label(stages.stands_for(leaf))!r}, {dtype_text(leaf.dtype)}, "
            f"{leaf.axes.names!r}, {_dims(leaf.axes)}),"
            for leaf in linking.inputs
        ]
        return self.with_complex(
            computation,
            [
                "rt.CompiledCall(",
                f"    _program_{program}(),",
                *_listed(inputs, "inputs: label, dtype, axes, lengths"),
                f"    {self.chosen(linking.stored(linking.variables))},  # variables",
                f"    {self.chosen(linking.stored(linking.read))},  # those that are read",
                f"    {self.chosen(linking.stored(linking.written))},  # those that are written",
                f"    [{', '.join(constants)}],",
                *_listed(guards, "guards"),
                f"    {dict(request.lengths)!r},",
                "    _state,",
                f"    {self.transformer.target.alignment},",
                *([f"    {request.specialization!r},"] if request.specialized else []),
                "),",
            ],
        )

    def with_complex(self, computation: Computation, call: list[str]) -> list[str]:
        """Return the text of a call, which takes and returns complex arrays if there are some."""
        stages = computation.stages()
        if stages.complex_leaves is None:
            return call
        feeds = []
        for leaf in stages.inputs:
            z = stages.stands_for(leaf)
            feeds.append(
                "None,"
                if z is leaf
                else f"rt.make_feed(np.dtype({z.dtype.name!r}), {z.axes.names!r}, {_dims(z.axes)}, "
                f"{input_label(z)!r}),"
            )
        return [
            "rt.ComplexCall(",
            *indented(call, 1),
            *_listed(feeds, "conversions of complex inputs"),
            f"    {stages.is_complex!r},",
            "),",
        ]

    def chosen(self, leaves: Iterable[Leaf]) -> str:
        """Return the text of a list of these variables' slots."""
        return f"[{', '.join(f'_state.slots[{self.slots[leaf]}]' for leaf in leaves)}]"

    # Variables ----------------------------------------------------------------------------------

    def variable_table(self) -> None:
        """Write the function that makes the slots."""
        self.lines += [*section("Variables"), "def _variables():", "    return ["]
        for leaf in self.variables.leaves:
            slot = self.variables.slot(leaf)
            learned = dict(slot.learned)
            if is_function(leaf.initial_value):
                shape = self.transformer.state.shape(slot, {})
                learned.update(dims.open_sizes(slot.dims, shape))
            self.lines += [
                comment(f"        # {leaf} {leaf.file_info}"),
                "        rt.Slot(",
                f"            {slot.label!r},",
                f"            {slot.name!r},",
                f"            {dtype_text(leaf.dtype)},",
                f"            {leaf.axes.names!r},",
                f"            {_dims(leaf.axes)},",
                f"            {leaf.persistent!r},",
                f"            {learned!r},",
                *([] if slot.kind == "variable" else [f"            {slot.kind!r},"]),
                "        ),",
            ]
        self.lines += ["    ]", ""]

    def first_values(self) -> None:
        """Write the programs of initial values, and the function that assigns them to the slots."""
        starts: list[str] = []
        numbers = {self.variables.slot(leaf): k for leaf, k in self.slots.items()}
        for slot, number in numbers.items():
            if slot.start is not None:
                reads = "".join(f"slots[{numbers[other]}], " for other in slot.reads).rstrip()
                leaf = self.variables.leaves[number]
                starts += [
                    comment(f"# {leaf}"),
                    f"slots[{number}].reads = ({reads})",
                    f"slots[{number}].start = rt.starter(",
                    "    _state,",
                    f"    slots[{number}],",
                    *indented(self.first_value(leaf), 1),
                    ")",
                ]
        self.lines += ["", "def _first_values(slots):", *indented(starts or ["pass"], 1), ""]

    def first_value(self, leaf: Leaf) -> list[str]:
        """Return the text of the array and of the call that set a variable's initial value."""
        slot, array, call = self.variables.slot(leaf), "None,", ["None,"]
        if is_function(leaf.initial_value):
            value = self.variables.called(leaf, self.transformer.state.shape(slot, {}))
            kept = feeding.make_feed(slot.dtype, slot.axes, value.shape, slot.label)(value)
            array = f"_constants[{self.constant(Frozen(kept))}],"
        first = self.firsts.get(leaf)
        if first is not None:
            source = self.transformer.emit(first.plan, first.linking, annotate=False)
            call = self.call(self.program(source), first)
        return [array, *call]

    # Constants ----------------------------------------------------------------------------------

    def constant(self, value: Frozen) -> int:
        """Return the number of a large constant."""
        return self.constants.setdefault(value, len(self.constants))

    def constant_table(self) -> None:
        """Write the function that makes the large constants."""
        self.lines += ["", "def _constants():", "    return ["]
        for array in (value.array for value in self.constants):
            text = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
            step = MAX_LINE_CHARACTERS - 14
            pieces = [text[at : at + step] for at in range(0, len(text), step)] or [""]
            self.lines += [
                f"        rt.decoded({dtype_text(array.dtype)}, {array.shape},",
                *(f"            {piece!r}" for piece in pieces),
                "        ),",
            ]
        self.lines += ["    ]", ""]


def _named(computations: Sequence[Computation]) -> dict[str, Computation]:
    """Return the computations by the name of their function."""
    named: dict[str, Computation] = {}
    for number, computation in enumerate(computations):
        name = computation.name or f"computation_{number}"
        if name in named:
            raise ArgumentError(
                f"two computations have the name {name!r}: {named[name]!r} and {computation!r}; "
                "give one of them another name="
            )
        assert name not in RESERVED
        named[name] = computation
    return named


# Texts ------------------------------------------------------------------------------------------


def _listed(items: Sequence[str], what: str) -> list[str]:
    if not items:
        return [f"    [],  # {what}"]
    return [f"    [  # {what}", *indented(items, 2), "    ],"]


def _layout(layout: Structure) -> str:
    """Return the structure of results as text; users' classes become plain namespaces."""
    if layout is SINGLE:
        return "rt.SINGLE"
    names = getattr(type(layout.like), "_fields", ())  # of a named tuple
    form = "Fields" if names else type(layout).__name__
    return f"rt.{form}({_keys(names or layout.keys)}, [{', '.join(map(_layout, layout.parts))}])"


def _keys(keys: Sequence[Any]) -> str:
    text = repr(list(keys))
    try:
        same = ast.literal_eval(text) == list(keys)
    except (ValueError, SyntaxError):
        same = False
    if not same:
        raise ArgumentError(
            f"the keys {text} of results cannot be written to a file; give texts or numbers"
        )
    return text


def _dim(length: int | Length) -> str:
    if isinstance(length, int):
        return str(length)
    names = sorted(length.names())
    return f"rt.Dim({str(length)!r}, {names!r}, lambda L: {length_text(length)})"


def _dims(axes: Axes) -> str:
    inner = "".join(f"{_dim(axis.expression)}, " for axis in axes)
    return f"({inner.rstrip(' ' if len(axes) == 1 else ', ')})"
