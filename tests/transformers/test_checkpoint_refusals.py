"""Checkpoint files: what is refused, naming the entry, and damage that is never believed."""

import json
import os
import random
import stat
import struct

import numpy as np
import pytest
from safetensors.numpy import save as serialized

from geon.errors import CheckpointError
from geon.transformers.runtime.checkpoint import save

from .checkpoint_files import (
    entry,
    header_of,
    load,
    refused,
    same,
    unnamed,
    values,
    write_header,
    write_metadata,
    written,
)

# Refusals ----------------------------------------------------------------------------------------


def test_missing_file(tmp_path):
    refused(tmp_path / "run", [], "does not exist")
    (tmp_path / "file").write_text("")
    refused(tmp_path / "file" / "run", [], "cannot be read")


@pytest.mark.parametrize("content", [b"", b"PK\3\4 some archive", b"\0" * 64, b"\xff" * 64])
def test_not_a_safetensors_file(tmp_path, content):
    (tmp_path / "run").write_bytes(content)
    refused(tmp_path / "run", [entry()], "no safetensors file")


def test_folders_and_devices_are_refused(tmp_path):
    with pytest.raises(CheckpointError, match="not a file"):
        save(tmp_path, [], [])
    refused(tmp_path, [], "not a file")
    os.mkfifo(tmp_path / "pipe")
    refused(tmp_path / "pipe", [], "not a file")
    with pytest.raises(CheckpointError, match="not a file"):
        save(tmp_path / "pipe", [], [])
    assert stat.S_ISFIFO(os.stat(tmp_path / "pipe").st_mode)


@pytest.mark.parametrize("metadata", [None, {}, {"format": "pt"}, {"format": "geo"}])
def test_a_file_of_another_program_goes_by_name_and_shape(tmp_path, metadata):
    (tmp_path / "run").write_bytes(serialized({"w": values()}, metadata))
    assert same(load(tmp_path / "run", [entry()])[0], values())
    assert same(load(tmp_path / "run", [entry(axes=[("X", None), ("Y", 3)])])[0], values())
    assert same(load(tmp_path / "run", [entry(dtype="float16")])[0], values(dtype="float16"))
    turned = entry(axes=[("N", 3), ("C", 2)])
    refused(tmp_path / "run", [turned], "shape (2, 3)", "(N=3, C=2)", "w made at", "no names")
    refused(tmp_path / "run", [entry(dtype="int32")], "'w'", "float32", "int32")
    refused(tmp_path / "run", [entry("u")], "no entry 'u'", "of no variable: 'w'")
    refused(tmp_path / "run", [], "extra entry 'w'")


@pytest.mark.parametrize("lost", ["format", "digest", "version", "entries"])
def test_a_file_of_ours_that_lost_metadata_is_no_other_programs(tmp_path, lost):
    entries, _ = written(tmp_path / "run")
    write_metadata(tmp_path / "run", **{lost: None})
    refused(tmp_path / "run", entries, "damaged")


@pytest.mark.parametrize("version", ["3", "10", "9" * 5000])
def test_a_newer_version(tmp_path, version):
    entries, _ = written(tmp_path / "run")
    write_metadata(tmp_path / "run", version=version)
    refused(tmp_path / "run", entries, f"format version {version}", "up to 2", "upgrade geon")


@pytest.mark.parametrize("version", [None, "", "0", "1", "-1", "one", "1.0", "²"])
def test_a_version_that_never_was(tmp_path, version):
    entries, _ = written(tmp_path / "run")
    write_metadata(tmp_path / "run", version=version)
    refused(tmp_path / "run", entries, "damaged", "version")


AXES = [["C", 2], ["N", 3]]


@pytest.mark.parametrize(
    "notes",
    [
        None,
        "",
        "{",
        "[]",
        "null",
        "[" * 100_000,
        {},
        {"v": {"axes": AXES, "automatic": False}},
        {"w": None},
        {"w": {"axes": AXES}},
        {"w": {"axes": AXES, "automatic": 0}},
        {"w": {"axes": AXES[:1], "automatic": False}},
        {"w": {"axes": AXES[::-1], "automatic": False}},
        {"w": {"axes": {"C": 2, "N": 3}, "automatic": False}},
        {"w": {"axes": [["C", 2], ["N", "3"]], "automatic": False}},
        {"w": {"axes": [["C", 2], ["N", 3.0]], "automatic": False}},
        {"w": {"axes": [["C", 2], "N3"], "automatic": False}},
        {"w": {"axes": [["C", 2], ["N", True]], "automatic": False}},
    ],
    ids=lambda notes: str(notes)[:50],
)
def test_a_malformed_list_of_entries(tmp_path, notes):
    save(tmp_path / "run", [entry()], [values()])
    text = notes if notes is None or isinstance(notes, str) else json.dumps(notes)
    write_metadata(tmp_path / "run", entries=text)
    refused(tmp_path / "run", [entry()], "damaged", "another one")


def test_a_missing_entry(tmp_path):
    entries, _ = written(tmp_path / "run")
    message = refused(
        tmp_path / "run", [*entries, entry("u"), entry("t")], "'u'", "u made at model.py:7"
    )
    assert "also missing: 't'" in message and "name=" in message


def test_an_extra_entry(tmp_path):
    entries, _ = written(tmp_path / "run")
    refused(
        tmp_path / "run", entries[:1], "extra entry 'b'", "int64 over (C=2)", "before restoring"
    )
    save(tmp_path / "auto", [entry("variable(C,N).0", automatic=True)], [values()])
    refused(tmp_path / "auto", [], "'variable(C,N).0', a name made by counting")


def test_a_renamed_variable_is_shown_both_names(tmp_path):
    entries, _ = written(tmp_path / "run")
    refused(tmp_path / "run", [entry("weight"), entries[1]], "'weight'", "of no variable: 'w'")


def test_many_entries_make_no_endless_message(tmp_path):
    entries = [entry(f"w{n}", ()) for n in range(1000)]
    save(tmp_path / "run", entries, [values(())] * 1000)
    assert len(refused(tmp_path / "run", [], "'w0'", "and 991 more")) < 700


@pytest.mark.parametrize("length", [2, None])
def test_an_ambiguous_entry(tmp_path, length):
    saved = [unnamed(0), unnamed(1)]
    save(tmp_path / "run", saved, [values(), values(first=6)])
    expected = [unnamed(0, [("C", length), ("N", 3)]), unnamed(1)]
    words = ["'variable(C,N).0'", "ambiguous", *(f"variable(C,N).{n} made at" for n in (0, 1))]
    refused(tmp_path / "run", expected, *words, "name the variables")


def test_naming_the_variables_resolves_an_ambiguous_file(tmp_path):
    arrays = [values(), values(first=6)]
    save(tmp_path / "run", [unnamed(0), unnamed(1)], arrays)
    found = load(tmp_path / "run", [entry("variable(C,N).0"), entry("variable(C,N).1")])
    assert all(map(same, found, arrays))


@pytest.mark.parametrize(
    ("change", "array"),
    [
        ({"dtype": "float64"}, values(dtype="float64")),
        ({"axes": [("C", 4), ("N", 3)]}, values((4, 3))),
        ({"kind": "counter"}, values()),
    ],
    ids=["dtype", "length", "kind"],
)
def test_unnamed_variables_of_two_forms_are_not_ambiguous(tmp_path, change, array):
    entries = [unnamed(0), unnamed(1, **change)]
    save(tmp_path / "run", entries, [values(), array])
    assert same(load(tmp_path / "run", entries)[1], array)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"axes": [("N", 3), ("C", 2)]},
            ["the axes (C=2, N=3)", "but (N=3, C=2)", "build the variable over"],
        ),
        ({"axes": [("C", 2), ("M", None)]}, ["(C=2, N=3)", "(C=2, M)"]),
        ({"axes": [("C", 2)]}, ["(C=2, N=3)", "(C=2)"]),
        ({"axes": ()}, ["(C=2, N=3)", "()"]),
        ({"axes": [("C", 2), ("N", 5)]}, ["length 3 along N", "but 5 is", "give N the length 3"]),
        ({"dtype": "int32"}, ["dtype float32", "int32", "dtype='float32'"]),
        ({"dtype": "bfloat16"}, ["dtype float32", "bfloat16"]),
    ],
    ids=["order", "names", "fewer", "scalar", "length", "dtype", "bfloat16"],
)
def test_another_form(tmp_path, change, words):
    entries, _ = written(tmp_path / "run")
    changed = [entry(**change), entries[1]]
    refused(tmp_path / "run", changed, "entry 'w'", "w made at model.py:7", *words)


def test_a_dtype_that_geon_does_not_have(tmp_path):
    save(tmp_path / "run", [entry(dtype="int8")], [values(dtype="int8")])
    header, data = header_of(tmp_path / "run")
    header["w"]["dtype"] = "F8_E8M0"
    write_header(tmp_path / "run", header, data)
    refused(tmp_path / "run", [entry(dtype="int8")], "damaged", "'w'", "F8_E8M0")
    del header["__metadata__"]
    write_header(tmp_path / "run", header, data)
    refused(tmp_path / "run", [entry(dtype="int8")], "'w'", "dtype F8_E8M0", "int8")


# Damage ------------------------------------------------------------------------------------------


def test_cut_off_anywhere(tmp_path):
    entries, _ = written(tmp_path / "run")
    content = (tmp_path / "run").read_bytes()
    for size in range(len(content)):
        (tmp_path / "cut").write_bytes(content[:size])
        refused(tmp_path / "cut", entries, "cut off or damaged")
    (tmp_path / "cut").write_bytes(content + b"\0")
    refused(tmp_path / "cut", entries, "damaged")


def test_a_damaged_header_is_never_believed(tmp_path):
    """Refused, or as it was: one kind of white space for another changes nothing."""
    shape = [("C", 2), ("N", 3)]
    entries = [entry(), entry("b", [("C", 0), ("N", 3)], "int8"), unnamed(0, shape, dtype="bool")]
    arrays = [values(), values((0, 3), "int8"), values(dtype="bool")]
    save(tmp_path / "run", entries, arrays)
    opened = [entry(axes=[("C", None), ("N", None)]), *entries[1:]]
    content = (tmp_path / "run").read_bytes()
    size = 8 + struct.unpack("<Q", content[:8])[0]
    source = random.Random(5)
    accepted = 0
    for trial in range(2000):
        damaged = bytearray(content)
        for _ in range(1 if trial < 1000 else source.randint(2, 6)):
            damaged[source.randrange(size)] = source.randrange(256)
        if source.random() < 0.1:
            start = source.randrange(size)
            del damaged[start : start + source.randint(1, 20)]
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            found = load(tmp_path / "damaged", opened)
        except CheckpointError as error:
            assert str(tmp_path) in str(error)
        else:
            accepted += 1
            assert all(map(same, found, arrays))
    assert accepted < 100


def test_bytes_that_are_no_bool_are_read_as_true(tmp_path):
    form = [entry(axes=[("C", 3)], dtype="bool")]
    content = bytearray(serialized({"w": np.array([True, False, True])}))
    content[-3] = 7
    (tmp_path / "run").write_bytes(content)
    assert load(tmp_path / "run", form)[0].tobytes() == b"\1\0\1"


def test_damage_anywhere_is_found(tmp_path):
    """Of data too: numbers are those that were saved, or the file is refused."""
    shape = [("C", 2), ("N", 3)]
    entries = [entry(), entry("b", [("C", 2)], "int8"), unnamed(0, shape, dtype="bool")]
    arrays = [values(), values((2,), "int8"), values(dtype="bool")]
    save(tmp_path / "run", entries, arrays)
    opened = [entry(axes=[("C", None), ("N", None)]), *entries[1:]]
    content = (tmp_path / "run").read_bytes()
    source = random.Random(7)
    accepted = 0
    for trial in range(2500):
        damaged = bytearray(content)
        for _ in range(1 if trial < 1500 else source.randint(2, 8)):
            at = source.randrange(len(content))
            damaged[at] ^= 1 << source.randrange(8)
        (tmp_path / "damaged").write_bytes(damaged)
        try:
            found = load(tmp_path / "damaged", opened)
        except CheckpointError:
            continue
        accepted += 1
        assert all(map(same, found, arrays))
    assert accepted < 25


@pytest.mark.parametrize("change", ["key", "axis", "automatic", "dtype", "order"])
def test_the_digest_covers_all_that_is_said(tmp_path, change):
    entries = [entry(), entry("v")]
    save(tmp_path / "run", entries, [values(), values(first=6)])
    header, data = header_of(tmp_path / "run")
    notes = json.loads(header["__metadata__"]["entries"])
    if change == "key":
        notes["w"], notes["v"] = notes["v"], notes["w"]
        header["w"], header["v"] = header["v"], header["w"]
    elif change == "axis":
        notes["w"]["axes"][0][0] = "K"
    elif change == "automatic":
        notes["w"]["automatic"] = True
    elif change == "dtype":
        header["w"]["dtype"] = "I32"
    else:
        offsets = header["w"]["data_offsets"]
        header["w"]["data_offsets"] = header["v"]["data_offsets"]
        header["v"]["data_offsets"] = offsets
    header["__metadata__"]["entries"] = json.dumps(notes)
    write_header(tmp_path / "run", header, data)
    refused(tmp_path / "run", entries, "its digest is not that of what it holds")


def test_files_from_before_there_was_a_digest_are_read(tmp_path):
    entries, arrays = written(tmp_path / "run")
    write_metadata(tmp_path / "run", version="1", digest=None)
    assert all(map(same, load(tmp_path / "run", entries), arrays))
    write_metadata(tmp_path / "run", version="1", digest="sha256:0")
    refused(tmp_path / "run", entries, "damaged: its digest")
