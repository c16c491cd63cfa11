"""The header of a written function."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from ....version import __version__
from ...printing.scalars.c_types import comment
from .interface import MAX_LINE_CHARACTERS, STATE_ALIGNMENT, ArrayParameter, Interface, StateMember

HEAD = """\
/* {title}
 *
 * Written by geon {version}. Arrays are contiguous, in the order of their axes, the last one the
 * fastest. Halves and float8 are their bits, of the dtype that the comment says.
 */
#ifndef {guard}_H
#define {guard}_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
#define {guard}_ALIGNED alignas({alignment})
extern "C" {{
#else
#define {guard}_ALIGNED _Alignas({alignment})
#endif

"""
TAIL = """\

#ifdef __cplusplus
}}
#endif
#endif
"""
ARENA = """\
/* Bytes of the arena of a call; -1 for a length that {name}_run refuses. */
int64_t {name}_arena_bytes({lengths});

"""
STATIC_ARENA = """\
/* Bytes of the arena of a call. */
#define {guard}_ARENA_BYTES {bytes}

"""
INITIAL = """\
/* The state as it was when this file was written. */
extern const struct {name}_state {name}_initial_state;

"""
FILE = """\
/* {name}.bin has these bytes as they were when this file was written. */

"""
RUN = """\
/* Compute; return 0, or a code that {name}_error explains, and then variables are unchanged.
 *
{lines}
 * Results may not overlap other arrays. Calls on different states, arenas and results may run at
 * the same time{threads}.
 */
{declaration};

/* A text for what {name}_run returned. */
const char *{name}_error(int code);
"""


def header_text(
    interface: Interface,
    name: str,
    title: str,
    arena_bytes: int | None,
    in_file: bool,
    threads: int,
) -> str:
    """Return the header; ``arena_bytes`` is None if they depend on open lengths.

    ``in_file`` is True if the state's values are a file beside the source.
    """
    guard = name.upper()
    parts = [
        HEAD.format(
            title=comment(title), version=__version__, guard=guard, alignment=STATE_ALIGNMENT
        )
    ]
    if interface.state:
        parts += [f"struct {name}_state {{\n", *members(interface.state, guard), "};\n"]
        parts.append((FILE if in_file else INITIAL).format(name=name))
    if arena_bytes is not None:
        parts.append(STATIC_ARENA.format(guard=guard, bytes=arena_bytes))
    lengths = ", ".join(f"int64_t {each}" for each in interface.lengths.values())
    parts.append(ARENA.format(name=name, lengths=lengths or "void"))
    shared = "" if threads == 1 else ", and one of them uses the threads"
    parts.append(
        RUN.format(
            name=name,
            lines="\n".join(f" * {line}" for line in described(interface)),
            declaration=declaration(interface, name),
            threads=shared,
        )
    )
    return "".join([*parts, TAIL.format()])


def members(state: Iterable[StateMember], guard: str) -> list[str]:
    """Return the lines of the state's members."""
    return [
        f"    {guard}_ALIGNED {each.ctype} {each.name}[{each.count}]; "
        f"/* {comment(each.note)} {each.dtype}{', written' if each.written else ''} */\n"
        for each in state
    ]


def described(interface: Interface) -> list[str]:
    """Return a line for each parameter."""

    def line(each: ArrayParameter, use: str) -> str:
        return comment(f"{each.name}: {each.axes} {each.dtype}, {use}")

    lines = [line(each, "read") for each in interface.inputs]
    lines += [line(each, "written") for each in interface.results]
    if interface.state:
        lines.append("state: the variables and constants of the computation")
    most = interface.most
    lines += [
        comment(f"{each}: the length {axis}, 1 to {most}")
        for axis, each in interface.lengths.items()
    ]
    return [*lines, "arena: memory to work in, at a multiple of 64 bytes"]


def declaration(interface: Interface, name: str) -> str:
    """Return the declaration of the function that computes, without a semicolon."""
    writes = any(each.written for each in interface.variables)
    const = "" if writes else "const "
    found = [f"const {each.ctype} *{each.name}" for each in interface.inputs]
    found += [f"{each.ctype} *{each.name}" for each in interface.results]
    found += [f"{const}struct {name}_state *state"] if interface.state else []
    found += [f"int64_t {each}" for each in interface.lengths.values()]
    head = f"int {name}_run("
    # A parameter is not broken: its spaces are put in again afterwards.
    text = ", ".join([each.replace(" ", "\0") for each in (*found, "void *arena")])
    indent = " " * len(head)
    lines = textwrap.fill(
        f"{head}{text})", MAX_LINE_CHARACTERS, subsequent_indent=indent, break_long_words=False
    )
    return lines.replace("\0", " ")
