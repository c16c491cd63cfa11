"""Dimensions of a product as one flat index: merging neighbours, walking runs of the innermost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Dimension:
    """One dimension of a product: a unique name and its extent, a C expression of int64_t."""

    name: str
    extent: str


Monomial = tuple[int, tuple[tuple[str, int], ...]]


def monomial(text: str) -> Monomial | None:
    """A product of integers and names in a form that compares equal whatever its order."""
    number, names = 1, Counter[str]()
    for factor in text.replace("(", " ").replace(")", " ").split("*"):
        factor = factor.strip()
        if re.fullmatch(r"\d+", factor):
            number *= int(factor)
        elif re.fullmatch(r"[A-Za-z_]\w*", factor):
            names[factor] += 1
        else:
            return None
    return number, tuple(sorted(names.items())) if number else ()


def times(a: str, b: str) -> str:
    """The product of two C expressions, computed where both are integers."""
    if a.isdigit() and b.isdigit():
        return str(int(a) * int(b))
    return " * ".join(f"({x})" if re.search(r"\W", x) else x for x in (a, b) if x != "1")


def size(dimensions: Sequence[Dimension]) -> str:
    """How many indices the dimensions have together, as C text."""
    text = "1"
    for dimension in dimensions:
        text = times(text, dimension.extent)
    return text


def merged(
    dimensions: Sequence[Dimension], strides: Mapping[str, str]
) -> tuple[tuple[Dimension, ...], dict[str, str]]:
    """Fewer dimensions, outermost first, that one operand's strides cannot tell from these."""
    found: list[Dimension] = []
    steps = {d.name: strides.get(d.name, "0") for d in dimensions}
    for inner in dimensions:
        if inner.extent == "1":
            continue
        if found:
            outer = found[-1]
            whole = monomial(steps[outer.name])
            if whole is not None and whole == monomial(times(steps[inner.name], inner.extent)):
                extent = times(outer.extent, inner.extent)
                found[-1] = Dimension(inner.name, extent)
                continue
        found.append(inner)
    if not found and dimensions:
        return (dimensions[-1],), {dimensions[-1].name: "0"}
    return tuple(found), {d.name: steps[d.name] for d in found}


def indent(lines: Sequence[str], depth: int = 1) -> list[str]:
    """The lines, indented."""
    return ["  " * depth + line for line in lines]


def at(dimension: str) -> str:
    """The C variable that holds a dimension's index."""
    return f"at_{dimension}"


def decompose(dimensions: Sequence[Dimension], flat: str) -> list[str]:
    """Statements that declare every dimension's index from one flat index, row-major."""
    if len(dimensions) == 1:
        name = at(dimensions[0].name)
        return [f"const int64_t {name} = {flat}; (void){name};"]
    if not dimensions:
        return []
    rest = f"rest_{dimensions[-1].name}"
    lines = [f"int64_t {rest} = {flat};"]
    for dimension in reversed(dimensions[1:]):
        name, extent = at(dimension.name), f"({dimension.extent})"
        lines.append(f"const int64_t {name} = {rest} % {extent}; (void){name};")
        lines.append(f"{rest} /= {extent};")
    name = at(dimensions[0].name)
    return [*lines, f"const int64_t {name} = {rest}; (void){name};"]


def walk(
    dimensions: Sequence[Dimension],
    start: str,
    length: str,
    body: Callable[[str, str], list[str]],
) -> list[str]:
    """Statements that run `body` on runs of the innermost dimension.

    `start` and `length` say which part of the flat index is walked. `body` gets the text of a
    run's offset from `start` and of its length; within it each index is that of the run's start.
    """
    if len(dimensions) <= 1:
        return ["{", *indent([*decompose(dimensions, start), *body("0", length)]), "}"]
    inner = dimensions[-1]
    done, run = f"done_{inner.name}", f"run_{inner.name}"
    extent = f"({inner.extent})"
    return [
        f"for (int64_t {done} = 0, {run}; {done} < {length}; {done} += {run}) {{",
        *indent(
            [
                *decompose(dimensions, f"{start} + {done}"),
                f"{run} = {extent} - {at(inner.name)};",
                f"if ({run} > {length} - {done}) {run} = {length} - {done};",
                *body(done, run),
            ]
        ),
        "}",
    ]


def address(pointer: str, strides: Mapping[str, str], names: Sequence[str]) -> str:
    """The C text of a pointer to an operand's element at the current indices."""
    terms = [
        at(name) if strides[name] == "1" else f"{at(name)} * ({strides[name]})"
        for name in names
        if strides.get(name, "0") != "0"
    ]
    return " + ".join([pointer, *terms])
