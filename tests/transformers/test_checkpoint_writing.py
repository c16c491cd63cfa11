"""Checkpoint files: what a kill, a full disk or a second writer leaves."""

import fcntl
import os
import random
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

from geon.errors import CheckpointError
from geon.transformers.runtime import files
from geon.transformers.runtime.checkpoint import save

from .checkpoint_files import (
    entry,
    load,
    only_file,
    refused,
    same,
    values,
)


@pytest.mark.parametrize("call", ["fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("first", [True, False], ids=["no file before", "a file before"])
def test_a_failing_write_leaves_what_was_there(tmp_path, monkeypatch, call, error, first):
    def fail(*arguments):
        raise error

    if not first:
        save(tmp_path / "run", [entry()], [values()])
    with monkeypatch.context() as patch:
        patch.setattr(os, call, fail)
        with pytest.raises((CheckpointError, KeyboardInterrupt)) as caught:
            save(tmp_path / "run", [entry()], [values(first=9)])
    if isinstance(error, OSError):
        assert caught.type is CheckpointError and caught.value.__cause__ is error
        assert "unchanged" in str(caught.value) and str(tmp_path / "run") in str(caught.value)
    if first:
        assert not list(tmp_path.iterdir())
    else:
        assert only_file(tmp_path) == "run"
        assert same(load(tmp_path / "run", [entry()])[0], values())


FULL_DISK = """
import resource, signal, sys
import numpy as np
from geon.errors import CheckpointError
from geon.transformers.runtime.checkpoint import CheckpointEntry, save

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
large = CheckpointEntry("w", False, "variable", (("C", 100_000),), "float32", "w")
try:
    save(sys.argv[1], [large], [np.ones(100_000, np.float32)])
except CheckpointError as error:
    print(error)
"""


def test_a_write_that_the_disk_cannot_hold(tmp_path):
    save(tmp_path / "run", [entry()], [values()])
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, tmp_path / "run"], capture_output=True, text=True
    )
    assert "free space there" in done.stdout, done
    assert only_file(tmp_path) == "run"
    assert same(load(tmp_path / "run", [entry()])[0], values())


def test_file_and_folder_are_flushed_in_order(tmp_path, monkeypatch):
    done = []
    flush, replace = os.fsync, os.replace

    def fsync(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        flush(descriptor)

    def rename(*names):
        done.append("rename")
        assert os.path.dirname(names[0]) == os.path.dirname(names[1])
        replace(*names)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    save(tmp_path / "run", [entry()], [values()])
    assert done == ["file", "rename", "folder"]


@pytest.mark.parametrize(("number", "raises"), [(5, True), (22, False)])
def test_a_folder_that_cannot_be_flushed(tmp_path, monkeypatch, number, raises):
    flush = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, "refused")
        flush(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        if raises:
            with pytest.raises(CheckpointError, match="was written, but a power cut"):
                save(tmp_path / "run", [entry()], [values()])
        else:
            save(tmp_path / "run", [entry()], [values()])
    assert same(load(tmp_path / "run", [entry()])[0], values())
    assert only_file(tmp_path) == "run"


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(CheckpointError, match="make the folder") as caught:
        save(tmp_path / "no" / "run", [entry()], [values()])
    assert isinstance(caught.value.__cause__, FileNotFoundError)


@pytest.mark.skipif(os.geteuid() == 0, reason="the superuser may write everywhere")
def test_read_only_files_and_folders(tmp_path):
    save(tmp_path / "run", [entry()], [values()])
    os.chmod(tmp_path / "run", 0o400)
    with pytest.raises(CheckpointError, match="read-only"):
        save(tmp_path / "run", [entry()], [values()])
    os.chmod(tmp_path / "run", 0o200)
    refused(tmp_path / "run", [entry()], "make it readable")
    os.chmod(tmp_path, 0o500)
    try:
        with pytest.raises(CheckpointError, match="folder that can be written"):
            save(tmp_path / "other", [entry()], [values()])
    finally:
        os.chmod(tmp_path, 0o700)


def test_permission_bits(tmp_path):
    before = os.umask(0o027)
    try:
        save(tmp_path / "run", [entry()], [values()])
        assert stat.S_IMODE(os.stat(tmp_path / "run").st_mode) == 0o640
        os.chmod(tmp_path / "run", 0o604)
        save(tmp_path / "run", [entry()], [values()])
        assert stat.S_IMODE(os.stat(tmp_path / "run").st_mode) == 0o604
    finally:
        os.umask(before)


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "disk").mkdir()
    (tmp_path / "latest").symlink_to(tmp_path / "disk" / "run")
    for first in (0, 5):
        save(tmp_path / "latest", [entry()], [values(first=first)])
        assert (tmp_path / "latest").is_symlink() and only_file(tmp_path / "disk") == "run"
        assert same(load(tmp_path / "latest", [entry()])[0], values(first=first))


SAVE_IN_A_LOOP = """
import sys
import numpy as np
from geon.transformers.runtime.checkpoint import CheckpointEntry, save

form = CheckpointEntry("w", False, "variable", (("C", 50_000),), "float32", "w")
ends, first = int(sys.argv[3]), int(sys.argv[2])
print("ready", flush=True)
turn = 0
while not ends or turn < ends:
    save(sys.argv[1], [form], [np.full(50_000, first + turn % 2, np.float32)])
    turn += 1
"""
LARGE = [entry(axes=[("C", 50_000)])]


def saver(path, first, turns=0):
    """A process that saves in a loop, alternating ``first`` and the next number."""
    command = [sys.executable, "-c", SAVE_IN_A_LOOP, path, str(first), str(turns)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    return process


def assert_whole(path, allowed):
    (found,) = load(path, LARGE)
    assert (found == found[0]).all() and found[0] in allowed


def test_what_a_killed_writer_left_is_removed_by_the_next_save(tmp_path):
    left = tmp_path / f".geon-{'0a' * 8}.tmp"
    others = [tmp_path / name for name in (".geon-0a.tmp", f"geon-{'0a' * 8}.tmp", "run.tmp")]
    for path in [left, *others]:
        path.write_bytes(b"of whoever it is")
    save(tmp_path / "run", [entry()], [values()])
    assert not left.exists() and all(path.exists() for path in others)


def test_what_is_still_written_stays(tmp_path):
    """A file is taken for one that was left where nobody holds its lock."""
    with open(tmp_path / f".geon-{'0a' * 8}.tmp", "xb") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        save(tmp_path / "run", [entry()], [values()])
        assert len(list(tmp_path.iterdir())) == 2
    save(tmp_path / "run", [entry()], [values()])
    assert only_file(tmp_path) == "run"


def test_a_writer_whose_new_file_was_taken_for_one_that_was_left(tmp_path, monkeypatch):
    """Between making a file and locking it another writer may remove it: it makes a new one."""
    lock, taken = fcntl.flock, []

    def flock(descriptor, how):
        if not taken:
            taken.extend(tmp_path.glob(".geon-*.tmp"))
            taken[0].unlink()
        lock(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    save(tmp_path / "run", [entry()], [values()])
    assert taken and only_file(tmp_path) == "run"
    assert same(load(tmp_path / "run", [entry()])[0], values())


@pytest.mark.parametrize("number", [37, 95])
def test_a_file_system_without_locks(tmp_path, monkeypatch, number):
    def flock(descriptor, how):
        raise OSError(number, "no locks here")

    monkeypatch.setattr(fcntl, "flock", flock)
    left = tmp_path / f".geon-{'0a' * 8}.tmp"
    left.write_bytes(b"")
    save(tmp_path / "run", [entry()], [values()])
    assert left.exists() and same(load(tmp_path / "run", [entry()])[0], values())


def test_a_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "fcntl", None)
    for first in (0, 5):
        save(tmp_path / "run", [entry()], [values(first=first)])
        assert same(load(tmp_path / "run", [entry()])[0], values(first=first))
    assert only_file(tmp_path) == "run"


def test_killed_at_any_instant_the_file_is_whole(tmp_path):
    path = tmp_path / "run"
    source = random.Random(3)
    save(path, LARGE, [np.zeros(50_000, np.float32)])
    for _ in range(20):
        process = saver(path, 0)
        time.sleep(source.uniform(0, 0.02))
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        assert_whole(path, (0, 1))
        assert len(list(tmp_path.glob(".geon-*.tmp"))) <= 1
    save(path, LARGE, [np.zeros(50_000, np.float32)])
    assert only_file(tmp_path) == "run"


def test_two_processes_that_save_at_once(tmp_path):
    path = tmp_path / "run"
    save(path, LARGE, [np.zeros(50_000, np.float32)])
    processes = [saver(path, first, 40) for first in (0, 2)]
    while any(process.poll() is None for process in processes):
        assert_whole(path, (0, 1, 2, 3))
    for process in processes:
        process.stdout.close()
        assert process.returncode == 0
    assert_whole(path, (1, 3))
    assert only_file(tmp_path) == "run"
