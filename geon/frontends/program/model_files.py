"""Programs in files, and programs made of others: prune, clone and merge."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ArgumentError, CheckpointError
from ...op_graph.core.source_info import user_call
from ...transformers.runtime.checkpoint_file import Saved, file_pieces, with_file
from ...transformers.runtime.files import path_text, replace, writable
from . import protobuf
from .description import (
    Desc,
    ProgramFileError,
    block_attributes,
    canonical,
    check_message,
    describe_program,
    program_from,
)
from .executor import needed
from .operators.updates import SCHEDULES
from .program import Program, ProgramError, Var, default_main_program
from .registry import GRAD_OP
from .scope import Scope, current_scope

PROGRAM_FILES = {"protobuf": "program.pb", "json": "program.json"}
PARAMETER_FILE = "parameters.safetensors"
Path = str | os.PathLike[str]


# Bytes and files ----------------------------------------------------------------------------------


def serialize(program: Program, form: str = "protobuf") -> bytes:
    """Return a program as bytes, in protobuf or JSON, with a digest that detects damage."""
    return _to_bytes(describe_program(program), form)


def _to_bytes(desc: Desc, form: str) -> bytes:
    if form not in PROGRAM_FILES:
        raise ArgumentError(f"form={form!r} is none of {', '.join(PROGRAM_FILES)}")
    desc["digest"] = hashlib.sha256(canonical(desc)).hexdigest()
    return protobuf.to_bytes(desc) if form == "protobuf" else json.dumps(desc, indent=1).encode()


def deserialize(data: bytes) -> Program:
    """Return the program in bytes of ``serialize``.

    Nothing is executed. Raises ``ProgramFileError`` for data that are damaged, no program, or of a
    newer version. JSON that was edited has an empty digest.
    """
    return program_from(_from_bytes(data))


def _from_bytes(data: bytes) -> Desc:
    is_json = data[:1] == b"{"
    try:
        desc: Desc = json.loads(data) if is_json else protobuf.from_bytes(data)
        check_message("ProgramDesc", desc, "program")
        expected = hashlib.sha256(canonical(desc)).hexdigest()
    except ProgramFileError:
        raise
    except (ValueError, RecursionError) as error:
        raise ProgramFileError(f"this JSON is damaged: {error}; save the program again") from None
    if desc["digest"] != expected and not (is_json and desc["digest"] == ""):
        raise ProgramFileError(
            f"the digest {desc['digest']!r} of the program is not that of its contents: it is "
            'damaged; save it again, or, for JSON edited by hand, set "digest": ""'
        )
    return desc


def save_program(program: Program, path: Path) -> None:
    """Write a program to a file: JSON if its name ends with .json, else protobuf."""
    form = "json" if os.fspath(path).endswith(".json") else "protobuf"
    _write("program", path, [serialize(program, form)])


def load_program(path: Path) -> Program:
    """Return the program in a file; see ``deserialize``."""
    return deserialize(_read(path))


def _write(what: str, path: Path, pieces: Sequence[Any]) -> None:
    """Write a file at once; raise ``CheckpointError``, which calls it ``what``, if that fails."""
    target, mode = writable(what, path_text(path))
    replace(what, target, pieces, mode)


def _read(path: Path) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ProgramFileError(
            f"the program {os.fspath(path)!r} cannot be read: {error.strerror}; give the path that "
            "it was saved to"
        ) from None


# Programs of programs -----------------------------------------------------------------------------


def clone(program: Program, for_test: bool = False) -> Program:
    """Return a copy of a program.

    ``for_test`` leaves out gradient operators and what depends on them, such as optimisers, and
    sets the attribute ``is_test`` where operators have it.
    """
    if not for_test:
        return program_from(describe_program(program))
    trained: set[int] = set()
    kept = []
    for op in program.global_block().ops:
        is_training = op.type.endswith(GRAD_OP) or op.type in SCHEDULES
        if is_training or not trained.isdisjoint(op.reads):
            trained.update(op.writes)
        else:
            kept.append(op)
    return _subset(program, kept, for_test=True)


def prune(program: Program, targets: Sequence[Var | str]) -> Program:
    """Return the program of the operators that the targets depend on; others are left out."""
    what = user_call("prune")
    block = program.global_block()
    wanted = [block.value_of(_name(target), what) for target in targets]
    return _subset(program, needed(block.ops, wanted))


def _name(given: Var | str) -> str:
    return given if isinstance(given, str) else given.name


def _subset(program: Program, ops: Sequence[Any], for_test: bool = False) -> Program:
    """Return the program of some operators of the global block, with their blocks and values."""
    desc = describe_program(program)
    kept = {id(op) for op in ops}
    first = desc["blocks"][0]
    pairs = zip(program.global_block().ops, first["ops"], strict=True)
    first["ops"] = [each for op, each in pairs if id(op) in kept]
    written = [k for each in first["ops"] for s in each["outputs"] for k in s["values"]]
    read = {k for each in first["ops"] for s in each["inputs"] for k in s["values"]}
    first["parameters"] = [p for p in first["parameters"] if p["value"] in read]
    known = [p["value"] for p in first["parameters"]] + [k for k in written if k >= 0]
    names = {desc["values"][k]["name"]: k for k in known}
    first["names"] = [{"name": name, "value": k} for name, k in names.items()]
    first["variables"] = [v for v in first["variables"] if v["name"] in names]
    desc["sequences"] = [s for s in desc["sequences"] if s["offsets"] in names]
    reached = {0}
    for k, block in enumerate(desc["blocks"]):  # a block comes after the one around it
        if k in reached:
            reached |= {a["value"] for op in block["ops"] for a in block_attributes(op)}
    desc["blocks"] = [desc["blocks"][k] for k in sorted(reached)]
    used = _used_values(desc)
    desc["values"] = [desc["values"][k] for k in used]
    _renumber(desc, used, {old: new for new, old in enumerate(sorted(reached))})
    if for_test:
        for block in desc["blocks"]:
            for op in block["ops"]:
                for attribute in op["attributes"]:
                    if attribute["name"] == "is_test":
                        attribute["value"] = True
    return program_from(desc)


def _used_values(desc: Desc) -> dict[int, int]:
    used = set()
    for block in desc["blocks"]:
        used |= {p["value"] for p in block["parameters"]}
        used |= {k for op in block["ops"] for s in op["outputs"] for k in s["values"] if k >= 0}
    return {old: new for new, old in enumerate(sorted(used))}


def _renumber(desc: Desc, values: Mapping[int, int], blocks: Mapping[int, int]) -> None:
    """Replace the ids of values and the numbers of blocks."""
    for block in desc["blocks"]:
        block["parent"] = blocks.get(block["parent"], -1)
        block["results"] = [values[k] for k in block["results"]]
        for each in (*block["names"], *block["parameters"]):
            each["value"] = values[each["value"]]
        for op in block["ops"]:
            for slot in (*op["inputs"], *op["outputs"]):
                slot["values"] = [values.get(k, -1) for k in slot["values"]]
            for attribute in block_attributes(op):
                attribute["value"] = blocks[attribute["value"]]


def merge(*programs: Program) -> Program:
    """Return the program that runs others one after another.

    Each reads the persistable variables and the names of data as those before it left them.
    Raises ``ProgramError`` if a variable that a later program reads has another shape or dtype.
    """
    whole = describe_program(Program())
    first = whole["blocks"][0]
    names: dict[str, int] = {}
    for program in programs:
        desc = describe_program(program)
        shift, blocks = len(whole["values"]), len(whole["blocks"]) - 1
        values = {k: k + shift for k in range(len(desc["values"]))}
        own = desc["blocks"][0]
        for parameter in own["parameters"]:
            before = names.get(parameter["name"])
            if before is not None:
                values[parameter["value"]] = before
                old, new = whole["values"][before], desc["values"][parameter["value"]]
                if old["spec"] != new["spec"]:
                    raise ProgramError(
                        f"{user_call('merge')}: {parameter['name']!r} is {old['spec']} in one "
                        f"program and {new['spec']} in another; rename one of them"
                    )
        whole["values"] += desc["values"]
        added = {k: k + blocks if k else 0 for k in range(len(desc["blocks"]))}
        _renumber(desc, values, added)
        known = {p["name"] for p in first["parameters"]} | set(names)
        first["parameters"] += [p for p in own["parameters"] if p["name"] not in known]
        first["ops"] += own["ops"]
        names |= {n["name"]: n["value"] for n in own["names"]}
        declared = {v["name"]: v for v in (*first["variables"], *own["variables"])}
        first["variables"] = list(declared.values())
        whole["blocks"] += desc["blocks"][1:]
        whole["sequences"] += desc["sequences"]
    first["names"] = [{"name": name, "value": k} for name, k in names.items()]
    return program_from(whole)


# Parameters and inference models ------------------------------------------------------------------


def save_persistables(
    path: Path, program: Program | None = None, scope: Scope | None = None
) -> None:
    """Write the persistable variables of a program to a safetensors file, by name."""
    _, scope = _defaults(program, scope)
    arrays, notes = {}, {}
    for name in _persistable(program):
        variable = scope.find_var(name)
        if variable is None or not variable.is_type("tensor"):
            raise ProgramError(
                f"{user_call('save')}: {name!r} has no value in the scope; run the start-up program"
            )
        array = arrays[name] = np.ascontiguousarray(variable.get().array)
        axes = tuple([(f"d{k}", length) for k, length in enumerate(array.shape)])
        notes[name] = Saved(axes, array.dtype.name, automatic=False)
    _write("parameters", path, file_pieces(arrays, notes))


def load_persistables(
    path: Path, program: Program | None = None, scope: Scope | None = None
) -> None:
    """Set the persistable variables of a program from a file of ``save_persistables``.

    Raises ``CheckpointError`` for a damaged file, and for arrays that are missing or do not fit;
    the scope is as it was then.
    """
    program, scope = _defaults(program, scope)
    what, names = f"parameters {os.fspath(path)!r}", _persistable(program)
    block = program.global_block()
    arrays = with_file(path, lambda file: {n: file.read(n) for n in names if n in file.saved})
    for name in names:
        spec = block.variables[name].spec
        if name not in arrays:
            raise CheckpointError(f"{what} lack {name!r}; save them with this program")
        array = arrays[name]
        if array.shape != spec.shape or array.dtype.name != spec.dtype:
            raise CheckpointError(
                f"{what} have {name!r} as {array.shape} {array.dtype}; the program has {spec}"
            )
    for name in names:
        scope.var(name).get_mutable("tensor").set(arrays[name])


def _defaults(program: Program | None, scope: Scope | None) -> tuple[Program, Scope]:
    return program or default_main_program(), current_scope() if scope is None else scope


def _persistable(program: Program | None) -> list[str]:
    block = (program or default_main_program()).global_block()
    return [name for name, var in block.variables.items() if var.persistable]


def save_inference_model(
    folder: Path,
    feeded_var_names: Sequence[str],
    target_vars: Sequence[Var | str],
    program: Program | None = None,
    scope: Scope | None = None,
    *,
    form: str = "protobuf",
) -> None:
    """Write the part of a program that computes the targets, for test, and its parameters.

    Raises ``ArgumentError`` unless ``feeded_var_names`` are the data that the targets need.
    """
    program, scope = _defaults(program, scope)
    pruned = prune(clone(program, for_test=True), target_vars)
    block = pruned.global_block()
    data = [name for name in block.parameters if block.variables[name].is_data]
    if set(data) != set(feeded_var_names):
        raise ArgumentError(
            f"{user_call('save_inference_model')}: the targets need the data "
            f"{', '.join(data) or 'none'}, and {', '.join(feeded_var_names) or 'none'} are given"
        )
    desc = describe_program(pruned)
    desc["feeds"], desc["fetches"] = list(feeded_var_names), [_name(t) for t in target_vars]
    os.makedirs(folder, exist_ok=True)
    _write("program", os.path.join(folder, PROGRAM_FILES[form]), [_to_bytes(desc, form)])
    save_persistables(os.path.join(folder, PARAMETER_FILE), pruned, scope)


def load_inference_model(
    folder: Path, scope: Scope | None = None
) -> tuple[Program, list[str], list[Var]]:
    """Return the program, the names of its data and its targets, and set its parameters.

    Raises ``ProgramFileError`` and ``CheckpointError`` for damaged files.
    """
    paths = [os.path.join(folder, name) for name in PROGRAM_FILES.values()]
    path = next((each for each in paths if os.path.exists(each)), paths[0])
    desc = _from_bytes(_read(path))
    program = program_from(desc)
    block = program.global_block()
    unknown = {*desc["feeds"], *desc["fetches"]} - block.names.keys()
    if unknown:
        raise ProgramFileError(f"the program {path!r} has no variable {min(unknown)!r}")
    load_persistables(os.path.join(folder, PARAMETER_FILE), program, scope)
    return program, desc["feeds"], [block.var(name) for name in desc["fetches"]]
