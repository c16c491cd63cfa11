"""``ProgramDesc``: programs as plain data for files, and programs from checked data.

``MESSAGES`` is the schema of both file formats. Data that do not fit it, or that are no program
(cycles, values without a writer, unknown operators), raise ``ProgramFileError``; nothing is
executed and no operator is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ...errors import GeonError
from ...op_graph.axes.lengths import Length
from ...op_graph.core.source_info import resolve
from ...op_graph.text.encoding import read_length, write_length
from ...op_graph.values.dtypes import ALL_DTYPES
from .evaluation import EMPTY
from .program import VERSION, Block, Operator, Parameter, Program, ValueDesc, Var
from .registry import GRAD_OP, operator_info
from .values import KINDS, Spec

MAX_LENGTH = 1 << 48  # elements along a dimension
MAX_RANK = 32
MAX_DEPTH = 50  # blocks inside each other
MAX_TYPE_CHARACTERS = 200
Desc = dict[str, Any]


class ProgramFileError(GeonError, ValueError):
    """Data that are no program: a damaged, hostile or too new file."""


# The fields of each message: name and type, with * for a list. ``json`` is a value of JSON, such as
# an attribute, or a length: an integer or an expression over open names. Protobuf has its text.
MESSAGES: dict[str, dict[str, str]] = {
    message: dict([each.split(":") for each in fields.split()])
    for message, fields in {
        "ProgramDesc": "version:int random_seed:int values:ValueDesc* blocks:BlockDesc*"
        " sequences:SequenceDesc* feeds:string* fetches:string* digest:string",
        "ValueDesc": "name:string spec:SpecDesc writer:string",
        "SpecDesc": "shape:json* dtype:string kind:string rows:json*",
        "BlockDesc": "parent:int variables:VarDesc* names:NameDesc* parameters:NameDesc*"
        " ops:OpDesc* results:int*",
        "VarDesc": "name:string declared:SpecDesc* persistable:bool stop_gradient:bool is_data:bool"
        " is_parameter:bool trainable:bool learning_rate:float file:string line:int",
        "NameDesc": "name:string value:int",
        "OpDesc": "type:string inputs:SlotDesc* outputs:SlotDesc* attributes:AttrDesc*"
        " file:string line:int",
        "SlotDesc": "slot:string values:int* is_given:bool",
        "AttrDesc": "name:string value:json",
        "SequenceDesc": "rows:string offsets:string positions:string",
    }.items()
}
PLAIN: dict[str, tuple[type, ...]] = {
    "int": (int,), "float": (float, int), "bool": (bool,), "string": (str,), "json": (object,),
}  # fmt: skip


def need(holds: object, text: str) -> None:
    """Raise ``ProgramFileError`` with a text unless a condition holds."""
    if not holds:
        raise ProgramFileError(f"this is no program: {text}; save it again")


def converted(
    message: str, value: Any, get: Callable[[Any, str], Any], plain: Callable[[Any, str], Any]
) -> Desc:
    """Return a message as a dictionary: ``get(value, field)`` of each field, and inside of them.

    ``plain(value, type)`` is applied to what is no message. Each format of files is one such walk.
    """
    found: Desc = {}
    for name, type in MESSAGES[message].items():
        kind, held = type.rstrip("*"), get(value, name)
        parts = [
            converted(kind, each, get, plain) if kind in MESSAGES else plain(each, kind)
            for each in (held if type != kind else [held])
        ]
        found[name] = parts if type != kind else parts[0]
    return found


# Writing ------------------------------------------------------------------------------------------

PLACE: dict[str, Callable[[Any], Any]] = {
    "file": lambda made: resolve(made.site)[0],
    "line": lambda made: resolve(made.site)[1],
}
# The fields of messages that are no attributes of the objects that they describe.
FIELDS: dict[type, dict[str, Callable[[Any], Any]]] = {
    Program: {
        "sequences": lambda program: program.sequences.items(),
        **dict.fromkeys(("feeds", "fetches"), lambda program: []),
        "digest": lambda program: "",
    },
    Spec: {"rows": lambda spec: [] if spec.rows is None else [spec.rows]},
    Block: {
        "parent": lambda block: block.parent_index,
        "variables": lambda block: block.variables.values(),
        "names": lambda block: block.names.items(),
        "parameters": lambda block: block.parameters.items(),
    },
    Var: {
        "declared": lambda var: [] if var.declared is None else [var.declared],
        "is_parameter": lambda var: isinstance(var, Parameter),
        "trainable": lambda var: isinstance(var, Parameter) and var.trainable,
        "learning_rate": lambda var: getattr(var, "learning_rate", 1.0),
        **PLACE,
    },
    Operator: {
        "inputs": lambda op: op.inputs.items(),
        "outputs": lambda op: op.outputs.items(),
        "attributes": lambda op: op.attributes.items(),
        **PLACE,
    },
    # A name or a slot with what belongs to it.
    tuple: {
        **dict.fromkeys(("name", "slot", "rows"), lambda pair: pair[0]),
        "value": lambda pair: pair[1],
        "values": lambda pair: pair[1] or (),
        "is_given": lambda pair: pair[1] is not None,
        "offsets": lambda pair: pair[1][0],
        "positions": lambda pair: pair[1][1],
    },
}
FIELDS[Parameter] = FIELDS[Var]


def describe_program(program: Program) -> Desc:
    """Return a program as a dictionary by ``MESSAGES``, without a digest."""

    def field(value: Any, name: str) -> Any:
        own = FIELDS.get(type(value), {}).get(name)
        return getattr(value, name) if own is None else own(value)

    def plain(value: Any, type: str) -> Any:
        if isinstance(value, Length):
            return write_length(value)
        if type == "float":
            return float(value)
        return list(value) if isinstance(value, tuple) else value

    return converted("ProgramDesc", program, field, plain)


# Reading ------------------------------------------------------------------------------------------


def program_from(desc: Any) -> Program:
    """Return the program that a dictionary describes; raise ``ProgramFileError``."""
    try:
        check_message("ProgramDesc", desc, "program")
        version, seed = desc["version"], desc["random_seed"]
        if version > VERSION:
            raise ProgramFileError(
                f"the program has the version {version}, and this geon reads versions up to "
                f"{VERSION}; upgrade geon"
            )
        need(version > 0 and 0 <= seed < 1 << 31, f"its version is {version} and its seed {seed}")
        return _Reader(desc).program
    except ProgramFileError:
        raise
    except (GeonError, RecursionError) as error:  # an unknown operator, a wrong slot or attribute
        raise ProgramFileError(f"the program cannot be read: {error}") from error


def check_message(message: str, value: Any, where: str) -> None:
    """Raise ``ProgramFileError`` unless a value has all fields of a message and no others."""
    fields = MESSAGES[message]
    has_all = isinstance(value, dict) and value.keys() == fields.keys()
    need(has_all, f"{where} has not the fields {', '.join(fields)} alone")
    for name, type in fields.items():
        kind, place = type.rstrip("*"), f"{where}.{name}"
        found = value[name] if type != kind else [value[name]]
        need(isinstance(found, list), f"{place} is {found!r:.40}, no list")
        for each in found:
            if kind in MESSAGES:
                check_message(kind, each, place)
            else:
                fits = kind in ("bool", "json") or not isinstance(each, bool)
                need(fits and isinstance(each, PLAIN[kind]), f"{place} is {each!r:.40}, no {kind}")


class _Reader:
    """The program of a checked description."""

    def __init__(self, desc: Desc) -> None:
        self.program = program = Program()
        program.version, program.random_seed = desc["version"], desc["random_seed"]
        program.values += [
            ValueDesc(k, v["name"], _read_spec(v["spec"]), v["writer"])
            for k, v in enumerate(desc["values"])
        ]
        program.sequences = {s["rows"]: (s["offsets"], s["positions"]) for s in desc["sequences"]}
        need(desc["blocks"], "it has no block")
        self.written: set[int] = set()  # values with a writer
        self.used: set[int] = {0}  # blocks of operators
        depths: list[int] = []
        program.blocks.clear()
        for index, each in enumerate(desc["blocks"]):
            parent = each["parent"]
            fits = parent == -1 if index == 0 else 0 <= parent < index
            need(fits, f"block {index} lies in block {parent}, which is none before it")
            depths.append(0 if index == 0 else depths[parent] + 1)
            need(depths[-1] <= MAX_DEPTH, f"more than {MAX_DEPTH} blocks lie inside each other")
            program.blocks.append(Block(program, index, parent))
        for block, each in zip(program.blocks, desc["blocks"], strict=True):
            self._fill(block, each)
        unused = set(range(len(program.blocks))) - self.used
        need(not unused, f"block {min(unused, default=0)} belongs to no operator")

    def _fill(self, block: Block, desc: Desc) -> None:
        for each in desc["variables"]:
            need(each["name"] not in block.variables, f"{each['name']!r} is declared twice")
            block.variables[each["name"]] = _read_var(block, each)
        known: set[int] = set()
        for name, k in _named(desc["parameters"]):
            self._define([k], known, f"parameter {name!r}")
            block.parameters[name] = k
            declared = block.index or name in block.variables
            need(declared, f"parameter {name!r} is no variable of block 0")
        block.ops += [self._op(each, block, known) for each in desc["ops"]]
        for name, k in _named(desc["names"]):
            _check_known([k], known, f"name {name!r}")
            block.names[name] = k
            need(block.find_var(name), f"name {name!r} is no variable around block {block.index}")
        _check_known(desc["results"], known, "a result")
        block.results += desc["results"]
        need(block.parameters.keys() <= block.names.keys(), "a parameter has no name")

    def _define(self, numbers: Iterable[int], known: set[int], what: str) -> None:
        count = len(self.program.values)
        for k in numbers:
            need(0 <= k < count, f"{what} is value {k}, of {count}")
            need(k not in self.written, f"{what} writes value {k} again")
            self.written.add(k)
            known.add(k)

    def _op(self, desc: Desc, block: Block, known: set[int]) -> Operator:
        count = len(desc["type"])
        need(count <= MAX_TYPE_CHARACTERS, f"an operator type has {count} characters")
        what = f"{desc['type']} in block {block.index}"
        proto = operator_info(desc["type"]).proto
        given = {a["name"]: a["value"] for a in desc["attributes"]}
        missing = [a.name for a in proto.attributes if a.name not in given]
        need(not missing, f"{what} lacks the attributes {', '.join(missing)}")
        attributes = proto.complete(given, what)
        inputs, outputs = _read_slots(desc["inputs"]), _read_slots(desc["outputs"])
        proto.fill("inputs", inputs, what)
        for slots, role in ((inputs, proto.inputs), (outputs, proto.outputs)):
            fits = set(slots) == {slot.name for slot in role}
            need(fits, f"{what} has the slots {', '.join(slots)}")
        for ids in inputs.values():
            _check_known([k for k in ids or () if k != EMPTY], known, what)
        for index in [attributes[a.name] for a in proto.attributes if a.type == "block"]:
            blocks = self.program.blocks
            is_own = 0 < index < len(blocks) and blocks[index].parent_index == block.index
            is_shared = desc["type"].endswith(GRAD_OP)  # with the forward operator
            fits = is_own and (index in self.used) == is_shared
            need(fits, f"{what} has the block {index}, which is none of its own")
            self.used.add(index)
        for slot in proto.outputs:
            ids = outputs[slot.name] or ()
            need(len(ids) < 2 or slot.duplicable, f"{what} writes {len(ids)} values to {slot.name}")
            self._define([k for k in ids if k != EMPTY], known, what)
        return Operator(desc["type"], inputs, outputs, attributes, _site(desc))


def _check_known(numbers: Iterable[int], known: set[int], what: str) -> None:
    for k in numbers:
        need(k in known, f"{what} reads value {k}, which nothing before it in its block writes")


def _named(descs: Sequence[Desc]) -> list[tuple[str, int]]:
    return [(each["name"], each["value"]) for each in descs]


def _site(desc: Desc) -> tuple[str, int, str]:
    return desc["file"], desc["line"], ""


def _read_slots(slots: Sequence[Desc]) -> dict[str, tuple[int, ...] | None]:
    return {s["slot"]: tuple(s["values"]) if s["is_given"] else None for s in slots}


def _read_spec(desc: Desc) -> Spec:
    dtype, kind, rank = desc["dtype"], desc["kind"], len(desc["shape"])
    need(dtype in ALL_DTYPES and kind in KINDS, f"a value has the dtype {dtype!r}, kind {kind!r}")
    need(rank <= MAX_RANK and len(desc["rows"]) < 2, f"a value has {rank} dimensions")
    lengths = [read_length(n) for n in [*desc["shape"], *desc["rows"]]]
    for n in lengths:
        need(isinstance(n, Length) or 0 <= n < MAX_LENGTH, f"a length is {n}")
    return Spec(tuple(lengths[:rank]), dtype, kind, lengths[rank] if desc["rows"] else None)


def _read_var(block: Block, desc: Desc) -> Var:
    declared = [_read_spec(each) for each in desc["declared"]]
    kept = ["name", "persistable", "stop_gradient", "is_data"]
    kept += ["trainable", "learning_rate"] if desc["is_parameter"] else []
    options = {k: desc[k] for k in kept}
    cls = Parameter if desc["is_parameter"] else Var
    return cls(block, **options, declared=declared[0] if declared else None, site=_site(desc))


def canonical(desc: Desc) -> bytes:
    """Return a description without its digest as bytes, equal for equal programs."""
    return json.dumps({**desc, "digest": ""}, sort_keys=True).encode()
