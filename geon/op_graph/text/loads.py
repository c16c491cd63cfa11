"""Strict reader of dumped graphs; ``text/dumps.py`` defines the format."""

from __future__ import annotations

import json
from dataclasses import field
from typing import Any

import numpy as np

from ...errors import DumpError, GeonError
from ...lazy_dataclasses import dataclass
from ..autodiff.custom_deriv import DumpedRule
from ..axes.axes import Axes
from ..building.validate import check
from ..core.argument_hints import public
from ..core.primitive import Primitive
from ..core.region_body import Body
from ..core.source_info import Site, building, current
from ..op_graph import (
    VOID_DTYPE,
    Guard,
    Leaf,
    LeafInfo,
    Op,
    RegionOp,
    Tensor,
    class_of,
    intern,
    make_leaf,
    post_order,
)
from ..rows.effects import assignment
from ..rows.leaves import PLACEHOLDER, VARIABLE
from ..values.dtypes import DType
from .encoding import (
    FORMAT,
    integer,
    read_array,
    read_axes,
    read_dtype,
    read_length,
    read_list,
    read_primitive,
    read_value,
    refuse,
    string,
)

Array = np.ndarray[Any, Any]


HEADER_KEYS = {"geon", "version"}
LEAF_KEYS = {"trainable", "persistent", "initial", "initializers"}
EXTRA_KEYS = {"attrs", "weak", "guards", "name", "names", "tags", "at"} | LEAF_KEYS


@dataclass(frozen=True, eq=False)
class Case:
    """A dump read back: the results, the arrays fed to leaves, and lengths of open names."""

    results: list[Op]
    feeds: dict[Leaf, Array] = field(default_factory=dict)
    lengths: dict[str, int] = field(default_factory=dict)


@public
def loads(text: str) -> list[Op]:
    """Return the results of the graph that ``dumps`` wrote, over new placeholders and variables.

    Dumping them again gives the same text. Nothing in the text is executed, and every op is checked
    against the inference of its primitive. Raises ``DumpError``, naming the line, for a text that
    ``dumps`` cannot have written.
    """
    return loads_case(text).results


def loads_case(text: str) -> Case:
    """Return the results, fed arrays and lengths of a dump; errors are those of ``loads``."""
    if not isinstance(text, str):
        raise DumpError(f"a dump is a string, not {type(text).__name__}")
    lines = text.split("\n")
    if lines[-1] == "":
        del lines[-1]
    reader = _DumpReader()
    try:
        with building():
            for line in lines:
                reader.read(line)
    except (GeonError, ValueError, OverflowError, RecursionError) as error:
        raise DumpError(
            f"line {len(reader.ops) + 1} of the dump: {error}; give loads a text that dumps made"
        ) from error
    if reader.results is None:
        raise DumpError(f"the dump ends after line {len(lines)}, before the line of its results")
    return Case(reader.results, reader.feeds, reader.lengths or {})


def _no_float(text: str) -> Any:
    refuse("an integer", text)


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    return table if len(table) == len(pairs) else refuse("each key once", [k for k, _ in pairs])


class _DumpReader:
    """The state after the lines read so far.

    ``ops`` has one entry for each line, None if it is no op.
    """

    def __init__(self) -> None:
        self.ops: list[Op | None] = []
        self.feeds: dict[Leaf, Array] = {}
        self.lengths: dict[str, int] | None = None
        self.results: list[Op] | None = None
        self.inside: set[Op] = set()  # ops of bodies: parameters and ops that depend on them
        self._decode = json.JSONDecoder(
            object_pairs_hook=_distinct, parse_float=_no_float, parse_constant=_no_float
        ).decode

    def read(self, text: str) -> None:
        """Read the next line."""
        if self.results is not None:
            refuse("the end, after the line of results", text)
        line = self._decode(text)
        if not self.ops:
            self._header(line)
            self.ops.append(None)
        elif type(line) is list and not self.feeds and self.lengths is None:
            self.ops.append(self._op(line))
        else:
            self._setting(line)
            self.ops.append(None)

    def _header(self, line: Any) -> None:
        if type(line) is not dict or line.get("geon") != "graph" or line.keys() != HEADER_KEYS:
            refuse("the first line of a dump", line)
        if integer(line["version"]) != FORMAT:
            raise DumpError(
                f"the dump has version {line['version']}, this geon reads version {FORMAT}; "
                "use the geon that wrote it"
            )

    def _setting(self, line: Any) -> None:
        keys = tuple(line) if type(line) is dict else None
        if keys == ("feed", "array") and self.lengths is None:
            leaf = self._at(line["feed"])
            if not isinstance(leaf, Leaf) or leaf in self.feeds:
                refuse("the line of a leaf that has no feed yet", line["feed"])
            self.feeds[leaf] = read_array(line["array"])
        elif keys == ("lengths",) and self.lengths is None and type(line["lengths"]) is dict:
            self.lengths = {name: integer(n, 0) for name, n in line["lengths"].items()}
        elif keys == ("results",):
            self.results = [self._whole(number) for number in read_list(line["results"])]
        else:
            refuse("an op, a feed, lengths or results", line)

    def _at(self, number: Any) -> Op:
        """Return the op of an earlier line."""
        if type(number) is int and 0 < number <= len(self.ops):
            op = self.ops[number - 1]
            if op is not None:
                return op
        refuse("the number of a line before that has an op", number)

    def _tensor(self, number: Any) -> Tensor:
        op = self._at(number)
        return op if isinstance(op, Tensor) else refuse("the line of a tensor", number)

    def _whole(self, number: Any) -> Op:
        """Return the op of an earlier line as a result: a tensor or effect outside of bodies."""
        op = self._at(number)
        if isinstance(op, RegionOp):
            refuse("the line of a tensor or effect, such as a region_result", f"{number}, {op}")
        if op in self.inside:
            refuse("the line of an op outside of bodies", f"{number}, {op}")
        return op

    def _op(self, line: Any) -> Op:
        name, arguments, written_axes, written_dtype, extra = read_list(line, 5)
        if type(extra) is not dict or not extra.keys() <= EXTRA_KEYS:
            refuse("what is known of an op", extra)
        primitive = read_primitive(name)
        args = tuple([self._at(number) for number in read_list(arguments)])
        axes = read_axes(written_axes)
        dtype = VOID_DTYPE if written_dtype == VOID_DTYPE.name else read_dtype(written_dtype)
        attrs = tuple([self._attribute(value) for value in read_list(extra.get("attrs", []))])
        guards = tuple([_read_guard(guard) for guard in read_list(extra.get("guards", []))])
        weak = _flag(extra, "weak")
        current.site = _read_site(extra.get("at"))
        if primitive in (PLACEHOLDER, VARIABLE):
            if args or attrs or guards or weak or dtype is VOID_DTYPE:
                refuse("a leaf", line)
            op: Op = self._new_leaf(primitive is VARIABLE, axes, dtype, extra)
        else:
            if extra.keys() & LEAF_KEYS:
                refuse(f"no keys of a leaf in {name}", sorted(extra.keys() & LEAF_KEYS))
            op = _computed(primitive, args, attrs, axes, dtype, weak, guards)
            if primitive.name == "parameter" or not self.inside.isdisjoint(args):
                self.inside.add(op)
        _read_notes(op, extra)
        return op

    def _attribute(self, value: Any) -> Any:
        """Return an attribute; a body refers to parameters and results on earlier lines."""
        if type(value) is list and value[:1] == ["bodies"]:
            return tuple([self._attribute(part) for part in value[1:]])
        if type(value) is list and value[:1] == ["rule"]:
            return self._rule(value)
        if type(value) is not list or value[:1] != ["body"]:
            return read_value(value)
        _, *written = read_list(value, 3)
        given, result = (tuple([self._tensor(number) for number in read_list(w)]) for w in written)
        for k, parameter in enumerate(given):
            if parameter.primitive.name != "parameter" or parameter.attrs.number != k:
                refuse(f"parameter {k} of a body", str(parameter))
        known: set[Op] = set(given)
        for op in post_order(result, known):
            if op._unique or op.primitive.name == "parameter":
                refuse("a body with nothing free in it", str(op))
        return Body(given, result)

    def _rule(self, value: list[Any]) -> DumpedRule:
        """Return a derivative rule, whose body is on earlier lines."""
        if len(value) == 3:
            return DumpedRule(string(value[1]), None, reason=string(value[2]))
        _, name, body, places = read_list(value, 4)
        result = self._attribute(body)
        if not isinstance(result, Body):
            refuse("the body of a rule", body)
        return DumpedRule(string(name), result, [integer(k, 0) for k in read_list(places)])

    def _new_leaf(self, stored: bool, axes: Axes, dtype: DType, extra: dict[str, Any]) -> Leaf:
        trainable, persistent = _flag(extra, "trainable"), _flag(extra, "persistent")
        first = self._whole(extra["initial"]) if "initial" in extra else None
        if not stored and (trainable or persistent or first is not None):
            refuse("a placeholder", sorted(extra.keys() & LEAF_KEYS))
        info = LeafInfo(stored, trainable, persistent, first)
        leaf = make_leaf(VARIABLE if stored else PLACEHOLDER, axes, dtype, info)
        own: tuple[Op, ...] = ()
        if first is not None:
            if not isinstance(first, Tensor) or first.axes is not axes or first.dtype is not dtype:
                refuse(f"an initial value over {axes} of {dtype.name}", str(first))
            own = (assignment(leaf, first),)
        initializers = [self._whole(number) for number in read_list(extra.get("initializers", []))]
        info.initializers = (*own, *initializers)
        return leaf


def _computed(
    primitive: Primitive,
    args: tuple[Op, ...],
    attrs: tuple[Any, ...],
    axes: Axes,
    dtype: DType,
    weak: bool,
    guards: tuple[Guard, ...],
) -> Op:
    given = check(primitive, args, attrs, axes, dtype, weak, guards)
    op: Op = intern(
        class_of(primitive, dtype),
        primitive,
        args,
        attrs,
        axes,
        dtype,
        weak=weak,
        effect=primitive.kind == "effect",
        guards=guards,
        arranged=given is not axes,
    )
    if op.axes is not axes or op.dtype is not dtype:
        refuse(f"{primitive.name} over {op.axes} of {op.dtype.name}", f"{axes} of {dtype.name}")
    return op


def _flag(extra: dict[str, Any], key: str) -> bool:
    return extra.get(key, False) is True or (key in extra and refuse("true", extra[key]))


def _read_guard(value: Any) -> Guard:
    relation, left, right, meaning = read_list(value, 4)
    if relation not in ("==", "<="):
        refuse("== or <=", relation)
    return Guard(relation, read_length(left), read_length(right), string(meaning))


def _read_site(value: Any) -> Site | None:
    if value is None:  # the op gets the line that loads the dump
        return None
    filename, line, remark = read_list(value, 3)
    return string(filename), integer(line), string(remark)


def _read_notes(op: Op, extra: dict[str, Any]) -> None:
    for name in read_list(extra.get("names", [])):
        op.name = string(name)
    if "name" in extra or "names" in extra:
        op.name = string(extra["name"]) if "name" in extra else None
    tags = [string(tag) for tag in read_list(extra.get("tags", []))]
    if tags:
        op.add_tags(tags)
