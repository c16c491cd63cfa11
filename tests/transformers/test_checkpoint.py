"""Checkpoint files: keys, and what comes back."""

import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from geon.errors import CheckpointError
from geon.op_graph.values import arrays as arrays_file
from geon.op_graph.values import labels
from geon.transformers.runtime import (
    checkpoint,
    checkpoint_file,
    checkpoint_selection,
    complex_arrays,
    dims,
    feeding,
    files,
    memory,
)
from geon.transformers.runtime.checkpoint import keys_for, save

from .checkpoint_files import (
    DTYPES,
    as_dtype,
    entry,
    header_of,
    load,
    refused,
    same,
    values,
    written,
)

# Keys --------------------------------------------------------------------------------------------


def test_automatic_keys_count_per_kind_and_axes_among_the_unnamed():
    made = keys_for(
        [
            (None, "variable", ("C", "N"), "a"),
            ("w", "variable", ("C", "N"), "b"),
            (None, "variable", ("C", "N"), "c"),
            (None, "variable", (), "d"),
            (None, "counter", ("C", "N"), "e"),
            (None, "variable", ("N", "C"), "f"),
        ]
    )
    assert made == [
        "variable(C,N).0",
        "w",
        "variable(C,N).1",
        "variable().0",
        "counter(C,N).0",
        "variable(N,C).0",
    ]


def test_odd_axis_names_never_share_an_automatic_key():
    made = keys_for([(None, "variable", ("A,B",), "a"), (None, "variable", ("A", "B"), "b")])
    assert len(set(made)) == 2


@pytest.mark.parametrize("second", ["w", None])
def test_two_variables_of_one_name_are_refused(second):
    first = "w" if second else "variable().0"
    with pytest.raises(CheckpointError) as caught:
        keys_for([(first, "variable", (), "at a.py:1"), (second, "variable", (), "at b.py:2")])
    for word in (first, "a.py:1", "b.py:2", "name="):
        assert word in str(caught.value)


def test_the_name_of_the_metadata_is_refused():
    with pytest.raises(CheckpointError, match="__metadata__.*w at a.py:1"):
        keys_for([("__metadata__", "variable", (), "w at a.py:1")])


def test_equal_states_are_equal_files(tmp_path):
    """In any order of variables, in any process."""
    entries = [entry(f"v{k}", (("C", 2),)) for k in range(9)]
    arrays = [values((2,), first=k) for k in range(9)]
    save(tmp_path / "one", entries, arrays)
    save(tmp_path / "two", entries[::-1], arrays[::-1])
    source = (
        "import sys\nfrom tests.transformers.checkpoint_files import *\n"
        "entries = [entry(f'v{k}', (('C', 2),)) for k in range(9)]\n"
        "save(sys.argv[1], entries, [values((2,), first=k) for k in range(9)])\n"
    )
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", source, str(tmp_path / seed)]
        subprocess.run(command, check=True, env=environment)
    contents = {path.read_bytes() for path in tmp_path.iterdir()}
    assert len(list(tmp_path.iterdir())) == 4 and len(contents) == 1


# Round trips -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (3,), (0,), (2, 0, 3), (2, 3, 4)], ids=str)
def test_round_trip(tmp_path, dtype, shape):
    entries = [entry("v", [(f"A{n}", size) for n, size in enumerate(shape)], dtype)]
    array = np.frombuffer(
        np.random.default_rng(1).bytes(int(np.prod(shape)) * as_dtype(dtype).itemsize), np.uint8
    )
    array = (array & 1 if dtype == "bool" else array).view(as_dtype(dtype)).reshape(shape)
    save(tmp_path / "run", entries, [array])
    (found,) = load(tmp_path / "run", entries)
    assert same(found, array) and found.base.flags.owndata and found.flags.writeable
    found[...] = 1
    assert same(load(tmp_path / "run", entries)[0], array)


def test_arrays_come_in_the_order_of_the_entries(tmp_path):
    entries, arrays = written(tmp_path / "run")
    found = load(tmp_path / "run", entries[::-1])
    assert all(map(same, found, arrays[::-1]))


@pytest.mark.parametrize(
    "array",
    [
        values().astype(">f4"),
        np.asfortranarray(values()),
        values((3, 2)).T,
        values((4, 6))[::2, ::-2],
        np.broadcast_to(np.float32(2), (2, 3)),
        values()[:].astype(">f4").T.copy().T,
    ],
    ids=["big-endian", "fortran", "transposed", "steps", "broadcast", "big-endian fortran"],
)
def test_any_layout_is_saved_by_value(tmp_path, array):
    save(tmp_path / "run", [entry()], [array])
    assert same(load(tmp_path / "run", [entry()])[0], array)


def test_nan_payloads_and_signed_zeros_keep_their_bits(tmp_path):
    array = np.array([0x7FC00001, 0xFFC00123, 0x80000000], np.uint32).view(np.float32)
    form = [entry(axes=[("C", 3)])]
    save(tmp_path / "run", form, [array])
    assert same(load(tmp_path / "run", form)[0], array)


def test_no_variables_and_odd_names(tmp_path):
    written(tmp_path / "none", [], [])
    save(tmp_path / "empty", [], [])
    assert load(tmp_path / "empty", []) == []
    entries = [entry("", ()), entry("weights of 'ß'\n\"x\"", ()), entry("format", ())]
    arrays = [values((), first=n) for n in range(3)]
    save(tmp_path / "run é", entries, arrays)
    assert all(map(same, load(tmp_path / "run é", entries), arrays))


def test_an_open_length_takes_that_of_the_file(tmp_path):
    save(tmp_path / "run", [entry(axes=[("C", None), ("N", 3)])], [values()])
    for lengths in [(None, None), (2, None), (2, 3)]:
        form = entry(axes=list(zip("CN", lengths, strict=True)))
        assert same(load(tmp_path / "run", [form])[0], values())
    refused(tmp_path / "run", [entry(axes=[("C", 4), ("N", None)])], "length 2 along C", "but 4 is")


def test_metadata_hold_format_version_axes_and_automatic(tmp_path):
    forms = [entry(axes=[("C", None), ("N", 3)]), entry("variable().0", (), automatic=True)]
    save(tmp_path / "run", forms, [values(), values(())])
    metadata = header_of(tmp_path / "run")[0]["__metadata__"]
    assert (metadata["format"], metadata["version"]) == ("geon", "2")
    assert list(metadata) == ["format", "version", "entries", "digest"]
    assert json.loads(metadata["entries"]) == {
        "w": {"axes": [["C", 2], ["N", 3]], "automatic": False},
        "variable().0": {"axes": [], "automatic": True},
    }


def test_a_path_may_be_text_or_path_like_and_relative(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in ["run", tmp_path / "run"]:
        save(path, [entry()], [values()])
        assert same(load(path, [entry()])[0], values())


@pytest.mark.parametrize(
    "array", [values((3, 2)), values((6,)), values(dtype="float64")], ids=["axes", "rank", "dtype"]
)
def test_a_value_that_does_not_fit_is_never_written(tmp_path, array):
    with pytest.raises(CheckpointError, match=r"'w' \(w made at model.py:7\)"):
        save(tmp_path / "run", [entry()], [array])
    assert not list(tmp_path.iterdir())


# Standing alone ----------------------------------------------------------------------------------


def test_the_text_runs_without_geon(tmp_path):
    """What written modules embed: the files without their imports of geon."""
    alone = "from __future__ import annotations\n"
    names = ("Argument", "Axis", "Checkpoint", "DType", "Feed", "Size")
    for error in (f"{name}Error" for name in names):
        alone += f"class {error}(ValueError):\n    pass\n"
    others = (
        dims,
        memory,
        arrays_file,
        labels,
        feeding,
        complex_arrays,
        files,
        checkpoint_file,
        checkpoint_selection,
    )
    for module in (*others, checkpoint):
        with open(module.__file__, encoding="utf-8") as file:
            text = file.read().replace("from __future__ import annotations\n", "")
        alone += re.sub(r"^from \.\S* import (\([^)]*\)|.*)$", "", text, flags=re.MULTILINE)
    alone += """
form = CheckpointEntry("w", False, "variable", (("C", 2),), "bfloat16", "w")
save("run", [form], [np.array([1, 2], _dtype("bfloat16"))])
assert load("run", [form], Choice())[0][0].astype(float).tolist() == [1, 2]
import sys
assert not any(name.split(".")[0] == "geon" for name in sys.modules)
"""
    (tmp_path / "alone.py").write_text(alone)
    done = subprocess.run(
        [sys.executable, "alone.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
