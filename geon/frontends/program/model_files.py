"""Programs in files, and programs made of others: prune, clone and merge."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ArgumentError, CheckpointError
from ...op_graph.core.source_info import user_call
from ...transformers.runtime import files
from ...transformers.runtime.checkpoint_file import Saved, file_pieces, with_file
from . import protobuf
from .description import (
    Desc,
    ProgramFileError,
    canonical,
    check_message,
    describe_program,
    program_from,
)
from .evaluation import EMPTY
from .executor import needed
from .operators.updates import SCHEDULES
from .program import Block, Ids, Operator, Program, ProgramError, Var, default_main_program
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
    target, mode = files.writable(what, files.path_text(path))
    files.replace(what, target, pieces, mode)


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
        made = merge(program)
        made.random_seed = program.random_seed
        return made
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
    names = [target if isinstance(target, str) else target.name for target in targets]
    return _subset(program, needed(block.ops, [block.value_of(name, what) for name in names]))


def merge(*programs: Program) -> Program:
    """Return the program that runs others one after another.

    Each reads the persistable variables and the names of data as those before it left them.
    Raises ``ProgramError`` if a variable that a later program reads has another shape or dtype.
    """
    whole = Program()
    first = whole.global_block()
    for program in programs:
        copy, own = _Copy(program, whole), program.global_block()
        for name, k in own.parameters.items():
            if name in first.names:
                copy.values[k] = first.names[name]
                old, new = whole.values[copy.values[k]].spec, program.values[k].spec
                if old != new:
                    raise ProgramError(
                        f"{user_call('merge')}: {name!r} is {old} in one program and {new} in "
                        "another; rename one of them"
                    )
            else:
                first.parameters[name] = copy.value(k)
        copy.fill(own, first, own.ops, own.names)
        whole.sequences |= program.sequences
    return whole


def _subset(program: Program, ops: Sequence[Operator], for_test: bool = False) -> Program:
    """Return the program of some operators of the global block, with their blocks and values."""
    own, made = program.global_block(), Program()
    made.random_seed = program.random_seed
    read = {k for op in ops for k in op.reads}
    parameters = {name: k for name, k in own.parameters.items() if k in read}
    written = [k for op in ops for k in op.writes]
    names = {program.values[k].name: k for k in (*parameters.values(), *written)}
    copy, block = _Copy(program, made, for_test), made.global_block()
    block.parameters = copy.named(parameters)
    copy.fill(own, block, ops, names)
    block.variables = {name: var for name, var in block.variables.items() if name in names}
    made.sequences = {k: pair for k, pair in program.sequences.items() if pair[0] in names}
    return made


class _Copy:
    """A copy of operators of a program in another one; ``values`` maps the ids of values."""

    def __init__(self, source: Program, target: Program, for_test: bool = False) -> None:
        self.source, self.target, self.for_test = source, target, for_test
        self.values: dict[int, int] = {EMPTY: EMPTY}
        self.blocks = {0: 0}

    def value(self, k: int) -> int:
        """Return the id of the copy of a value."""
        if k not in self.values:
            old = self.source.values[k]
            self.values[k] = self.target.add_value(old.name, old.spec, old.writer)
        return self.values[k]

    def named(self, names: Mapping[str, int]) -> dict[str, int]:
        """Return names with the copies of their values."""
        return {name: self.value(k) for name, k in names.items()}

    def fill(
        self, old: Block, new: Block, ops: Iterable[Operator], names: Mapping[str, int]
    ) -> None:
        """Add operators, names and variables of a block to another one."""
        new.variables |= {name: replace(var, block=new) for name, var in old.variables.items()}
        new.ops += map(self._operator, ops)
        new.names |= self.named(names)
        new.results += map(self.value, old.results)

    def _operator(self, op: Operator) -> Operator:
        attributes = dict(op.attributes)
        for each in op.info.proto.attributes:
            if each.type == "block":
                attributes[each.name] = self._block(attributes[each.name])
        if self.for_test and "is_test" in attributes:
            attributes["is_test"] = True
        slots = self._slots(op.inputs), self._slots(op.outputs)
        return Operator(op.type, *slots, attributes, op.site)

    def _slots(self, slots: Mapping[str, Ids | None]) -> dict[str, Ids | None]:
        return {name: ids and tuple(map(self.value, ids)) for name, ids in slots.items()}

    def _block(self, index: int) -> int:
        """Return the index of the copy of an inner block."""
        if index not in self.blocks:
            old = self.source.blocks[index]
            new = Block(self.target, len(self.target.blocks), self.blocks[old.parent_index])
            self.target.blocks.append(new)
            self.blocks[index] = new.index
            new.parameters = self.named(old.parameters)
            self.fill(old, new, old.ops, old.names)
        return self.blocks[index]


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
    desc["feeds"], desc["fetches"] = (
        list(feeded_var_names),
        [t if isinstance(t, str) else t.name for t in target_vars],
    )
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
