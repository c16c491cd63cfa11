"""``ProgramDesc``: programs as plain data for files, and programs from checked data.

``MESSAGES`` is the schema of both file formats. Data that do not fit it, or that are no program
(cycles, values without a writer, unknown operators), raise ``ProgramFileError``; nothing is
executed and no operator is evaluated.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from ...errors import DumpError, GeonError
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


def refuse(text: str) -> NoReturn:
    """Raise ``ProgramFileError``."""
    raise ProgramFileError(f"this is no program: {text}; save it again")


# Writing ------------------------------------------------------------------------------------------


def describe_program(program: Program) -> Desc:
    """Return a program as a dictionary by ``MESSAGES``, without a digest."""
    return {
        "version": program.version,
        "random_seed": program.random_seed,
        "values": [
            {"name": v.name, "spec": _spec(v.spec), "writer": v.writer} for v in program.values
        ],
        "blocks": [_block(block) for block in program.blocks],
        "sequences": [
            {"rows": rows, "offsets": pair[0], "positions": pair[1]}
            for rows, pair in program.sequences.items()
        ],
        "feeds": [],
        "fetches": [],
        "digest": "",
    }


def _spec(spec: Spec) -> Desc:
    rows = [] if spec.rows is None else [write_length(spec.rows)]
    shape = [write_length(n) for n in spec.shape]
    return {"shape": shape, "dtype": spec.dtype, "kind": spec.kind, "rows": rows}


def _block(block: Block) -> Desc:
    return {
        "parent": block.parent_index,
        "variables": [_var(var) for var in block.variables.values()],
        "names": _names(block.names),
        "parameters": _names(block.parameters),
        "ops": [_op(op) for op in block.ops],
        "results": list(block.results),
    }


def _names(names: Mapping[str, int]) -> list[Desc]:
    return [{"name": name, "value": k} for name, k in names.items()]


def _var(var: Var) -> Desc:
    is_parameter = isinstance(var, Parameter)
    file, line = resolve(var.site)
    return {
        "name": var.name,
        "declared": [] if var.declared is None else [_spec(var.declared)],
        **{name: getattr(var, name) for name in ("persistable", "stop_gradient", "is_data")},
        "is_parameter": is_parameter,
        "trainable": isinstance(var, Parameter) and var.trainable,
        "learning_rate": float(var.learning_rate) if isinstance(var, Parameter) else 1.0,
        "file": file,
        "line": line,
    }


def _op(op: Operator) -> Desc:
    file, line = resolve(op.site)
    return {
        "type": op.type,
        "inputs": _slots(op.inputs),
        "outputs": _slots(op.outputs),
        "attributes": [
            {"name": name, "value": list(v) if isinstance(v, tuple) else v}
            for name, v in op.attributes.items()
        ],
        "file": file,
        "line": line,
    }


def _slots(slots: Mapping[str, Any]) -> list[Desc]:
    return [
        {"slot": name, "values": list(ids or ()), "is_given": ids is not None}
        for name, ids in slots.items()
    ]


def block_attributes(desc: Desc) -> list[Desc]:
    """Return the attributes of a described operator that are numbers of blocks."""
    types = {a.name: a.type for a in operator_info(desc["type"]).proto.attributes}
    return [a for a in desc["attributes"] if types.get(a["name"]) == "block"]


# Reading ------------------------------------------------------------------------------------------


def program_from(desc: Any) -> Program:
    """Return the program that a dictionary describes; raise ``ProgramFileError``."""
    try:
        check_message("ProgramDesc", desc, "program")
        if desc["version"] > VERSION:
            raise ProgramFileError(
                f"the program has the version {desc['version']}, and this geon reads versions up "
                f"to {VERSION}; upgrade geon"
            )
        if desc["version"] < 1 or not 0 <= desc["random_seed"] < 1 << 31:
            refuse(f"its version is {desc['version']} and its seed {desc['random_seed']}")
        return _Reader(desc).program
    except ProgramFileError:
        raise
    except DumpError as error:
        refuse(str(error))
    except GeonError as error:  # an unknown operator, a wrong slot or attribute
        raise ProgramFileError(f"the program cannot be read: {error}") from error


def check_message(message: str, value: Any, where: str) -> None:
    """Raise ``ProgramFileError`` unless a value has all fields of a message and no others."""
    fields = MESSAGES[message]
    if not isinstance(value, dict) or value.keys() != fields.keys():
        refuse(f"{where} has not the fields {', '.join(fields)} alone")
    for name, type in fields.items():
        kind = type.rstrip("*")
        found = value[name] if type != kind else [value[name]]
        if not isinstance(found, list):
            refuse(f"{where}.{name} is {found!r:.40}, no list")
        for each in found:
            if kind in MESSAGES:
                check_message(kind, each, f"{where}.{name}")
            elif not isinstance(each, PLAIN[kind]) or (
                isinstance(each, bool) and kind not in ("bool", "json")
            ):
                refuse(f"{where}.{name} is {each!r:.40}, no {kind}")


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
        if not desc["blocks"]:
            refuse("it has no block")
        self.depths: list[int] = []
        self.written: set[int] = set()
        self.used: set[int] = set()
        program.blocks.clear()
        for index, block in enumerate(desc["blocks"]):
            self._add(index, block)
        for index, block in enumerate(desc["blocks"]):
            self._fill(program.blocks[index], block)
        unused = set(range(1, len(program.blocks))) - self.used
        if unused:
            refuse(f"block {min(unused)} belongs to no operator")

    def _add(self, index: int, desc: Desc) -> None:
        parent = desc["parent"]
        if not (parent == -1 if index == 0 else 0 <= parent < index):
            refuse(f"block {index} lies in block {parent}, which is none before it")
        self.depths.append(0 if index == 0 else self.depths[parent] + 1)
        if self.depths[-1] > MAX_DEPTH:
            refuse(f"more than {MAX_DEPTH} blocks lie inside each other")
        self.program.blocks.append(Block(self.program, index, parent))

    def _fill(self, block: Block, desc: Desc) -> None:
        for each in desc["variables"]:
            block.variables[each["name"]] = _read_var(block, each)
        known: set[int] = set()
        for each in desc["parameters"]:
            self._define(each["value"], known, f"parameter {each['name']!r}")
            block.parameters[each["name"]] = each["value"]
            if block.index == 0 and each["name"] not in block.variables:
                refuse(f"parameter {each['name']!r} is no variable of block 0")
        for each in desc["ops"]:
            block.ops.append(self._op(each, block, known))
        for each in desc["names"]:
            block.names[each["name"]] = self._known(each["value"], known, f"name {each['name']!r}")
            if block.find_var(each["name"]) is None:
                refuse(f"name {each['name']!r} is no variable around block {block.index}")
        block.results += [self._known(k, known, "a result") for k in desc["results"]]
        if not block.parameters.keys() <= block.names.keys():
            refuse(f"a parameter of block {block.index} has no name")

    def _define(self, number: int, known: set[int], what: str) -> None:
        if not 0 <= number < len(self.program.values):
            refuse(f"{what} is value {number}, of {len(self.program.values)}")
        if number in self.written:
            refuse(f"{what} writes value {number} again")
        self.written.add(number)
        known.add(number)

    def _known(self, number: int, known: set[int], what: str) -> int:
        if number not in known:
            refuse(f"{what} reads value {number}, which nothing before it in its block writes")
        return number

    def _op(self, desc: Desc, block: Block, known: set[int]) -> Operator:
        if len(desc["type"]) > MAX_TYPE_CHARACTERS:
            refuse(f"an operator type has {len(desc['type'])} characters")
        what = f"{desc['type']} in block {block.index}"
        proto = operator_info(desc["type"]).proto
        given = {a["name"]: a["value"] for a in desc["attributes"]}
        missing = [a.name for a in proto.attributes if a.name not in given]
        if missing:
            refuse(f"{what} lacks the attribute {missing[0]}")
        attributes = proto.complete(given, what)
        inputs, outputs = _read_slots(desc["inputs"]), _read_slots(desc["outputs"])
        proto.fill("inputs", inputs, what)
        for slots, role in ((inputs, proto.inputs), (outputs, proto.outputs)):
            if set(slots) != {slot.name for slot in role}:
                refuse(f"{what} has the slots {', '.join(slots)}")
        for ids in inputs.values():
            for k in ids or ():
                if k != EMPTY:
                    self._known(k, known, what)
        for each in block_attributes(desc):
            self._claim(each["value"], block, what, desc["type"].endswith(GRAD_OP))
        for slot in proto.outputs:
            ids = outputs[slot.name] or ()
            if len(ids) > 1 and not slot.duplicable:
                refuse(f"{what} writes {len(ids)} values to {slot.name}")
            for k in ids:
                if k != EMPTY:
                    self._define(k, known, what)
        return Operator(desc["type"], inputs, outputs, attributes, _site(desc))

    def _claim(self, index: int, block: Block, what: str, is_shared: bool) -> None:
        blocks = self.program.blocks
        is_own = 0 < index < len(blocks) and blocks[index].parent_index == block.index
        if not is_own or (index in self.used) != is_shared:
            refuse(f"{what} has the block {index}, which is none of its own")
        self.used.add(index)


def _site(desc: Desc) -> tuple[str, int, str]:
    return desc["file"], desc["line"], ""


def _read_slots(slots: Sequence[Desc]) -> dict[str, tuple[int, ...] | None]:
    return {s["slot"]: tuple(s["values"]) if s["is_given"] else None for s in slots}


def _read_spec(desc: Desc) -> Spec:
    if desc["dtype"] not in ALL_DTYPES or desc["kind"] not in KINDS:
        refuse(f"a value has the dtype {desc['dtype']!r} and the kind {desc['kind']!r}")
    if len(desc["shape"]) > MAX_RANK or len(desc["rows"]) > 1:
        refuse(f"a value has {len(desc['shape'])} dimensions")
    lengths = [read_length(n) for n in [*desc["shape"], *desc["rows"]]]
    for n in lengths:
        if not isinstance(n, Length) and not 0 <= n < MAX_LENGTH:
            refuse(f"a length is {n}")
    rows = lengths.pop() if desc["rows"] else None
    return Spec(tuple(lengths), desc["dtype"], desc["kind"], rows)


def _read_var(block: Block, desc: Desc) -> Var:
    if desc["name"] in block.variables:
        refuse(f"variable {desc['name']!r} is declared twice")
    declared = [_read_spec(each) for each in desc["declared"]]
    options = {k: desc[k] for k in ("name", "persistable", "stop_gradient", "is_data")}
    options |= {"declared": declared[0] if declared else None, "site": _site(desc)}
    if not desc["is_parameter"]:
        return Var(block, **options)
    more = {k: desc[k] for k in ("trainable", "learning_rate")}
    return Parameter(block, **options, **more)


def canonical(desc: Desc) -> bytes:
    """Return a description without its digest as bytes, equal for equal programs."""
    return json.dumps({**desc, "digest": ""}, sort_keys=True).encode()
