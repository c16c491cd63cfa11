"""A program that some process compiled is found by its graph, before any stage of it runs."""

import dataclasses
import importlib
import json
import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import geon
from geon.transformers import sizes
from geon.transformers.cache import serialization
from geon.transformers.cache.serialization import from_json, to_json
from geon.transformers.loading.lazy_loading import LaterTarget, outline_of
from geon.transformers.native import sizes as native_sizes
from geon.transformers.native.emit.record import PARTS
from geon.transformers.native.target import TARGET
from geon.transformers.native.toolchain.compilers import find_toolchain
from geon.transformers.printing.scalars import c_expressions

pytestmark = pytest.mark.skipif(find_toolchain() is None, reason="there is no C compiler")
ROOT = Path(__file__).parents[2]
PROGRAM = """
import numpy as np
import geon

N, C = geon.Axis("N"), geon.Axis("C", 5)
{before}
x = geon.placeholder([N, C])
w = geon.variable([C], initial_value=0.5)
y = {result}
with geon.make_transformer("native", threads=2) as transformer:
    f = transformer.computation([y, geon.assign(w, w * 2)], x)
    found = [f(np.arange(5 * n, dtype=np.float32).reshape(n, 5))[0] for n in (3, 4, 3)]
    print("ran the stages" if "plan" in f.stages()._made else "found")
    print(*[each.tobytes().hex() for each in found], transformer.get(w).tobytes().hex())
    {after}
"""


def ran(cache, result="geon.softmax(x * w, C)", before="", after="", debug=""):
    """Whether stages ran, and the bits of what a process of its own computed."""
    program = PROGRAM.format(before=before, result=result, after=after)
    environment = {**os.environ, "GEON_CACHE": str(cache), "GEON_DEBUG": debug}
    environment["PYTHONPATH"] = str(ROOT)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    place = next(k for k, line in enumerate(lines) if line in ("ran the stages", "found"))
    return lines[place], lines[:place] + lines[place + 1 :]


def test_the_second_process_runs_no_stage_and_computes_the_same_bits(tmp_path):
    first, bits = ran(tmp_path)
    assert first == "ran the stages"
    assert ran(tmp_path) == ("found", bits)


def test_another_graph_is_another_program(tmp_path):
    ran(tmp_path)
    assert ran(tmp_path, "geon.softmax(x - w, C)")[0] == "ran the stages"
    assert ran(tmp_path, "geon.softmax(x * w, C) * 2")[0] == "ran the stages"


def test_what_is_asked_of_a_found_program_is_there(tmp_path):
    after = """
    print(f.peak_bytes({N: 3}), len(f.explain("plan")) > 0, "geon_run" in f.source)
    print(f.c_function.lengths, len(f.profile(np.ones((3, 5), np.float32), repeats=1)))
    """
    first, said = ran(tmp_path, after=after)
    assert first == "ran the stages"
    assert ran(tmp_path, after=after) == ("found", said)


def test_a_found_program_prints_and_says_what_fails(tmp_path):
    result = "geon.print(x * w, 'product')"
    checked = """
    places = geon.placeholder([N], dtype="int64")
    g = transformer.computation(geon.gather(w, places, C), places)
    print(g([1, -1]))
    try:
        g([1, 7])
    except geon.IndexRangeError as error:
        print(error)
    print(transformer.get(w), "plan" in g.stages()._made)
    """
    _, said = ran(tmp_path, result, after=checked)
    again, found = ran(tmp_path, result, after=checked)
    assert again == "found"
    assert found == said
    assert any("product = " in line for line in said) and any("7" in line for line in said)


def test_plans_that_are_to_be_checked_are_made(tmp_path):
    ran(tmp_path)
    assert ran(tmp_path, debug="verify")[0] == "ran the stages"


def test_rows_of_the_users_are_compiled_anew(tmp_path):
    """No key knows what they compute."""
    before = """
from geon.op_graph.building.elementwise_build import Elementwise
from geon.transformers.printing.scalars.c_expressions import FLOAT_ROWS
twice = Elementwise("twice", "elementwise", "Twice x.", lambda x: 2 * x, arity=1)
FLOAT_ROWS["twice"] = "{0} + {0}"
"""
    for _ in range(2):
        assert ran(tmp_path, "twice(x * w)", before)[0] == "ran the stages"


def test_another_text_of_a_row_is_another_program(tmp_path):
    _, bits = ran(tmp_path, "geon.square(x * w)")
    before = """
from geon.transformers.printing.scalars.c_expressions import FLOAT_ROWS
FLOAT_ROWS["square"] = "{0} * {0} * {0}"
"""
    first, others = ran(tmp_path, "geon.square(x * w)", before)
    assert first == "ran the stages"
    assert others != bits


def test_a_damaged_or_missing_file_is_made_again(tmp_path):
    _, bits = ran(tmp_path)
    (record,) = tmp_path.glob("program-*")
    record.write_bytes(record.read_bytes()[:-9] + b"something")
    assert ran(tmp_path) == ("ran the stages", bits)
    assert ran(tmp_path) == ("found", bits)
    for shared in tmp_path.glob("geon-*.so"):
        shared.unlink()
    assert ran(tmp_path) == ("ran the stages", bits)


def test_what_is_kept_is_json_and_reads_as_it_was():
    """Of a program with all that records have: copies that are kept, scratch, prints and checks."""
    n, c, d = geon.Axis("N"), geon.Axis("C", 64), geon.Axis("D", 64)
    x, w = geon.placeholder([geon.Axis("R", 40), c]), geon.Variable([c, d], initial_value=1)
    places = geon.placeholder([n], dtype="int64")
    y = geon.print(geon.dot(x, w), "product")
    with geon.make_transformer("native", threads=2) as transformer:
        f = transformer.computation([y, geon.gather(w, places, c)], x, places)
        f(np.zeros((40, 64)), [0, 1])
        record = f.stages().compiled.record
    assert record.kept and record.shown and record.checks and record.buffers
    assert from_json(json.loads(json.dumps(to_json(record, PARTS))), PARTS) == record


def test_all_scratch_memory_can_be_kept():
    """The class of each size that depends on lengths is among the parts of records."""
    kinds = [
        kind
        for package in (sizes, native_sizes)
        for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        for kind in vars(importlib.import_module(found.name)).values()
        if dataclasses.is_dataclass(kind) and kind.__module__ == found.name
    ]
    assert len(kinds) > 10
    # What a call is asked for, what a machine can do, and what decides how a product is computed.
    other = {"Budget", "Ceilings", "WayRule", "ProductSizes", "SizeProblem", "ProductCut"}
    assert {k.__name__ for k in kinds if PARTS.get(k.__name__) != k.__module__} == other
    for name, module in PARTS.items():
        assert dataclasses.is_dataclass(getattr(importlib.import_module(module), name))


def test_the_key_has_the_rows_that_were_changed_alone(monkeypatch):
    """Where the module of the rows is not imported nobody can have changed them: the key is that of
    a process which has imported it and changed none."""
    assert serialization.changed_texts() == ""
    with monkeypatch.context() as patch:
        patch.delitem(sys.modules, c_expressions.__name__)
        assert serialization.changed_texts() == ""
    monkeypatch.setitem(c_expressions.FLOAT_ROWS, "twice", "{0} + {0}")
    added = serialization.changed_texts()
    monkeypatch.setitem(c_expressions.FLOAT_ROWS, "square", "{0} * {0} * {0}")
    changed = serialization.changed_texts()
    monkeypatch.delitem(c_expressions.FLOAT_ROWS, "square")
    assert len({"", added, changed, serialization.changed_texts()}) == 4
    assert c_expressions.__name__ == serialization.EXPRESSIONS


def test_a_target_is_read_on_class_and_instance_and_may_be_stated():
    own = dataclasses.replace(TARGET, name="own")

    class Own(geon.NativeTransformer):
        """A transformer that states its target, as those of other packages do."""

        target = own

    assert isinstance(vars(geon.NativeTransformer)["target"], LaterTarget)
    assert geon.NativeTransformer.target is TARGET
    with geon.NativeTransformer() as transformer, Own() as stated:
        assert transformer.target is TARGET and stated.target is own
        assert (outline_of(transformer).name, outline_of(stated).name) == ("native", "own")
        stated.target = dataclasses.replace(own, name="its own")
        assert outline_of(stated).name == "its own"
        assert "its own" in repr(stated)


def test_sets_of_sets_have_one_text_in_every_process():
    text = (
        "import json\nfrom geon.transformers.cache.serialization import to_json\n"
        "sets = frozenset(frozenset((f'{k}{n}', n) for n in range(5)) for k in 'abcdef')\n"
        "print(json.dumps(to_json(sets, {})))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": str(seed)}, capture_output=True, text=True,
        ).stdout
        for seed in range(3)
    }  # fmt: skip
    assert len(found) == 1 and "a0" in found.pop()
