"""The sources of a written function: its kernels, what all programs share, and what calls them.

Units that native code compiles with other flags are other files, so that they have its bits and its
speed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ....op_graph.axes.affine import Size
from ....op_graph.op_graph import Leaf, Op
from ....op_graph.values.attribute_types import Frozen
from ....op_graph.values.dtypes import kind, name_of
from ...linking import Linking
from ...printing.nests.parameters import Place
from ...printing.scalars.c_types import c_length, comment
from ..emit.module_text import FAILURE_REPORT_WORDS, CModule
from ..emit.one_file import one_file
from ..emit.record import Record, Shown
from ..emit.unit_texts import FLOOR_DIV
from ..names.c_texts import c_text
from ..names.dialect import PRELUDE
from ..toolchain.compilers import Toolchain
from ..toolchain.flags import OF_VECTORS
from .arena_layout import layout_statements
from .failures import Failures
from .header import declaration
from .interface import Interface

# Names of geon's C that a program begins with its own, so that several can be linked together.
OWN_NAMES = re.compile(r"\b(?=geon_|(?:kernel|loop|constant)_\d)")
# Features that choose among the texts for vectors, or whether a product and a sum round once.
FEATURES = ("__AVX2__", "__AVX512F__", "__AVX512DQ__", "__FMA__", "__F16C__")
PROCESSORS = ("__x86_64__", "__aarch64__")
TOP = """\
/* {title}: kernels, and the functions of {name}.h. */
#if {condition}
#error "this text is for other vectors: use the flags in README.md, or write it again with march="
#endif
{pragmas}
"""
# Warnings about GNU C, which the text is in, about helpers and operands that a program does not
# use, and about loops that clang was asked to vectorise and does not.
PRAGMAS = """\
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wunused-function"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-parameter"
#ifdef __clang__
#pragma clang diagnostic ignored "-Wunknown-warning-option"
#pragma clang diagnostic ignored "-Wvariadic-macro-arguments-omitted"
#pragma clang diagnostic ignored "-Wpass-failed"
#endif
"""
INCLUDES = """\
#pragma GCC visibility push(default)
#include "{name}.h"
#pragma GCC visibility pop
"""
NOTHING = """\
/* The array itself, or readable zeros for one without elements. */
static void *{name}_or_zeros(const void *array, int64_t bytes)
{{
    static const uint64_t zeros[8];
    return (void *)(bytes > 0 ? array : zeros);
}}
"""
LAYOUT = """\
/* Set the offset and the end of each buffer in the arena; return the bytes of all. */
static int64_t {name}_layout({lengths}int64_t *at_, int64_t *end_)
{{
    int64_t bytes_ = 64;
    (void)at_, (void)end_;
{statements}
    for (int k_ = 0; k_ < {count}; k_++)
        if (end_[k_] > bytes_)
            bytes_ = end_[k_];
    return bytes_;
}}
"""
FUNCTIONS = """\
/* 0 if the lengths are right, else an error code. */
static int {name}_check({lengths})
{{
{checks}
    return 0;
}}

int64_t {name}_arena_bytes({lengths})
{{
    int64_t at_[{count}], end_[{count}];
    return {name}_check({given}) ? -1 : {name}_layout({before}at_, end_);
}}

const char *{name}_error(int code)
{{
    static const char *const texts[] = {{
{texts}
    }};
    return code >= 0 && code < {codes} ? texts[code] : "no code of {name}_run";
}}

int64_t {name}_geon_run(void *const *p_, const int64_t *n_, int32_t threads, int64_t *report_,
                   void (*show)(int64_t kernel, const void *data));

{declaration}
{{
    int64_t at_[{count}], end_[{count}], report_[{words}] = {{0}};
    const int64_t n_[] = {{{open}}};
    const int wrong_ = {name}_check({given});
    if (wrong_)
        return wrong_;
    if (!arena || (uintptr_t)arena % 64)
        return {arena};
    {name}_layout({before}at_, end_);
    char *const base_ = arena;
    void *const p_[] = {{
{pointers}
    }};
    (void)base_;
{shown}    switch ({name}_geon_run(p_, n_, {threads}, report_, {show})) {{
    case 0:
        return 0;
{cases}    default:
        return {other};
    }}
}}
"""
SHOW = """\
static _Thread_local const int64_t *{name}_lengths; /* the open lengths of the call */

static void {name}_show(int64_t kernel, const void *data)
{{
    const int64_t *n = {name}_lengths;
    (void)n;
    switch (kernel) {{
{cases}    default:
        break;
    }}
}}
"""
SHOWN = """\
    case {number}: {{
        static const {name}_geon_shown shown = {{{label}, '{kind}', {bytes}, {rank}}};
        const int64_t lengths[] = {{{lengths}}};
        {name}_geon_show_array(&shown, lengths, data);
        break;
    }}
"""
NARROW_KINDS = {"float16": "h", "bfloat16": "t", "float8_e4m3fn": "e", "float8_e5m2": "m"}


def renamed(text: str, name: str) -> str:
    """Return a C text of geon in which functions and types of geon begin with ``name``."""
    return OWN_NAMES.sub(f"{name}_", text)


def quoted(text: str) -> str:
    """Return a text as a string literal of C."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


class SourceFile(NamedTuple):
    """A file of C: its name, its text, and the flags that it is compiled with besides the common
    ones.
    """

    name: str
    text: str
    flags: tuple[str, ...]


class SourceText:
    """The source of one function; ``arena_bytes`` is None if they depend on open lengths."""

    def __init__(
        self,
        interface: Interface,
        failures: Failures,
        record: Record,
        module: CModule,
        linking: Linking,
        name: str,
        threads: int,
        alignment: int,
    ) -> None:
        self.interface, self.failures, self.record = interface, failures, record
        self.module, self.linking, self.name, self.threads = module, linking, name, threads
        self.statements, known = layout_statements(
            [self.buffer_size(k) for k in range(len(record.buffers))],
            record.lifetimes,
            tuple(interface.lengths),
            alignment,
            self.length,
        )
        self.arena_bytes = None if known is None else max(known, 64)

    def buffer_size(self, number: int) -> Size:
        """Return the bytes of a buffer: exact if all lengths are known, else an upper bound."""
        buffer, interface = self.record.buffers[number], self.interface
        if not interface.lengths:
            return buffer.bytes(interface.known, self.threads)
        return interface.bound(buffer.most(self.threads))

    def length(self, size: Size) -> str:
        """Return a size as a C expression over the parameters."""
        return renamed(c_length(self.interface.bound(size), self.interface.lengths), self.name)

    def files(self, title: str, toolchain: Toolchain, values: str) -> list[SourceFile]:
        """Return the sources; ``values`` is the definition of the state's values, or empty."""
        name = self.name
        top = TOP.format(
            title=comment(title),
            name=name,
            condition=other_processor(toolchain.macros),
            pragmas=PRAGMAS,
        )

        def file(suffix: str, units: Iterable[str], flags: Sequence[str] = ()) -> SourceFile:
            return SourceFile(f"{name}{suffix}.c", f"{top}\n{one_file(units)}", tuple(flags))

        own = [renamed(unit, name) for unit in self.module.units]
        plain = [unit for unit in own if not unit.startswith(OF_VECTORS)]
        vectors = [unit for unit in own if unit.startswith(OF_VECTORS)]
        units = [*plain, self.driver(), *filter(None, [values])]
        found = [file("", units, toolchain.own_flags(""))]
        if vectors:
            found.append(file("_vectors", vectors, toolchain.own_flags(vectors[0])))
        if self.module.shared:
            found.append(file("_library", [renamed(unit, name) for unit in self.module.shared]))
        if self.threads > 1:
            pool = renamed(c_text("pool.c").replace("geon_", "geon_threads_"), name)
            found.append(SourceFile(f"{name}_threads.c", pool, ("-O1", "-pthread")))
        return found

    def driver(self) -> str:
        """Return the unit of the functions in the header."""
        name, shows = self.name, bool(self.record.shown)
        helpers = [PRELUDE, FLOOR_DIV, c_text("standalone/show.h") if shows else ""]
        lengths = [f"int64_t {each}" for each in self.interface.lengths.values()]
        count = max(len(self.record.buffers), 1)
        given = list(self.interface.lengths.values())
        parts = [
            INCLUDES.format(name=name),
            renamed("\n".join(helpers), name),
            NOTHING.format(name=name),
            LAYOUT.format(
                name=name,
                lengths="".join(f"{each}, " for each in lengths),
                statements=_block([*[f"(void){each};" for each in given], *self.statements]),
                count=len(self.record.buffers),
            ),
            self.show() if shows else "",
            FUNCTIONS.format(
                name=name,
                lengths=", ".join(lengths) or "void",
                given=", ".join(given),
                before="".join(f"{each}, " for each in given),
                count=count,
                checks=_block(
                    f"if ({renamed(condition, name)}) return {code};"
                    for condition, code in self.failures.conditions
                ),
                texts=_block((f"{quoted(text)}," for text in self.failures.texts), 8),
                codes=len(self.failures.texts),
                declaration=declaration(self.interface, name),
                words=FAILURE_REPORT_WORDS,
                open=", ".join(map(self.open_length, self.record.lengths)) or "0",
                arena=self.failures.arena,
                pointers=_block((f"{each}," for each in self.pointers()), 8),
                shown=f"    {name}_lengths = n_;\n" if shows else "",
                threads=self.threads,
                show=f"{name}_show" if shows else "0",
                cases="".join(
                    f"    case {kernel + 1}:\n        return {code};\n"
                    for kernel, code in self.failures.kernels.items()
                ),
                other=self.failures.other,
            ),
        ]
        return "\n".join(filter(None, parts))

    def open_length(self, name: str) -> str:
        """Return the value of an open length that the kernels take."""
        return self.interface.lengths.get(name) or str(self.interface.known[name])

    def pointers(self) -> list[str]:
        """Return the entries of the table of pointers that the kernels take."""
        interface, linking = self.interface, self.linking
        leaves: dict[Op, str] = {}
        for leaf, each in zip(linking.inputs, interface.inputs, strict=True):
            leaves[leaf] = self.whole(f"(void *){each.name}", each.size)
        for leaf, member in zip(linking.variables, interface.variables, strict=True):
            leaves[leaf] = f"(void *)state->{member.name}"
        frozen: dict[Frozen, str] = {
            value: f"(void *)state->{member.name}"
            for value, member in zip(linking.constants, interface.constants, strict=True)
        }
        return [self.pointer(place, leaves, frozen) for place in self.module.pointers] or ["0"]

    def pointer(self, place: Place, leaves: Mapping[Op, str], frozen: Mapping[Frozen, str]) -> str:
        """Return the pointer to one memory location."""
        assert isinstance(place, tuple)
        what, value = place
        if what == "leaf":
            leaf = value.op  # type: ignore[attr-defined]  # ``Same`` of a leaf
            assert isinstance(leaf, Leaf)
            return leaves[leaf]
        if what == "frozen":
            assert isinstance(value, Frozen)
            return frozen[value]
        if what == "kept":
            return "0"  # no packed copies are kept between calls
        assert isinstance(value, int)
        if what == "result":
            each = self.interface.results[value]
            return self.whole(each.name, each.size)
        return f"{self.name}_or_zeros(base_ + at_[{value}], end_[{value}] - at_[{value}])"

    def whole(self, pointer: str, size: Size) -> str:
        """Return the pointer to an array, or to zeros if it may have no element."""
        if isinstance(size, int) and size > 0:
            return pointer
        return f"{self.name}_or_zeros({pointer}, {self.length(size)})"

    def show(self) -> str:
        """Return the function that prints the values of kernels."""
        cases = [self.shown(number, each) for number, each in self.record.shown.items()]
        return SHOW.format(name=self.name, cases="".join(cases))

    def shown(self, number: int, each: Shown) -> str:
        """Return the case that prints the value of one kernel."""
        names = {name: f"n[{k}]" for k, name in enumerate(self.record.lengths)}
        lengths = [
            renamed(c_length(self.interface.bound(length), names), self.name)
            for length in each.lengths
        ]
        dtype = name_of(each.dtype)
        return SHOWN.format(
            name=self.name,
            number=number,
            label=quoted(each.label),
            kind=NARROW_KINDS.get(dtype) or _kind(dtype, kind(each.dtype)),
            bytes=each.dtype.itemsize,
            rank=len(lengths),
            lengths=", ".join(lengths) or "0",
        )


def _kind(dtype: str, of: str) -> str:
    return "u" if dtype.startswith("uint") else of


def _block(lines: Iterable[str], by: int = 4) -> str:
    return "\n".join(" " * by + line for line in lines)


def other_processor(macros: Mapping[str, str]) -> str:
    """Return the preprocessor condition of flags for another processor than that of ``macros``."""
    wrong = [
        f"{'!' if feature in macros else ''}defined({feature})"
        for feature in (*PROCESSORS, *FEATURES)
    ]
    return " || ".join(wrong)
