"""The cache folder: whose it is, what in it is whole, and how large it grows."""

import logging
import os
import re
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from geon.errors import ArgumentError, UnavailableError
from geon.transformers.cache import disk


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(disk.CACHE, str(tmp_path / "cache"))
    monkeypatch.delenv(disk.CACHE_BYTES, raising=False)
    monkeypatch.setattr(disk, "_checked", {})
    return tmp_path / "cache"


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    ("geon", "xdg", "expected"),
    [
        ("/a/b", "/c", "/a/b"),
        (None, "/c", "/c/geon"),
        ("", "/c", "/c/geon"),
        (None, "relative", "/home/me/.cache/geon"),
        (None, "", "/home/me/.cache/geon"),
        (None, None, "/home/me/.cache/geon"),
    ],
)
def test_where_it_is(monkeypatch, geon, xdg, expected):
    monkeypatch.setenv("HOME", "/home/me")
    for name, value in ((disk.CACHE, geon), ("XDG_CACHE_HOME", xdg)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    assert disk.cache_path() == Path(expected)


def test_it_is_made_for_its_owner_alone(folder):
    before = os.umask(0)
    try:
        assert disk.folder() == folder
        assert mode(folder) == 0o700
        assert mode(disk.keep_bytes("a", b"x")) == 0o600
        assert mode(disk.keep_bytes("a.so", b"x")) == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize("bits", [0o770, 0o702, 0o777])
def test_one_that_others_could_write_to_is_refused(folder, bits):
    folder.mkdir()
    folder.chmod(bits)
    with pytest.raises(UnavailableError, match=f"mode 0{bits:o}.*chmod 700 .* or set GEON_CACHE"):
        disk.folder()
    folder.chmod(0o700)
    assert disk.folder() == folder


def test_one_that_others_could_only_read_is_used(folder):
    folder.mkdir()
    folder.chmod(0o755)
    assert disk.folder() == folder
    assert mode(folder) == 0o755


def test_one_of_another_user_is_refused(folder, monkeypatch):
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(UnavailableError, match="not to user 12345.* set GEON_CACHE to a folder"):
        disk.folder()


@pytest.mark.parametrize("given", ["/proc/no/cache", "/dev/null/cache", "/dev/null"])
def test_one_that_cannot_be_made_is_replaced_for_this_process(monkeypatch, caplog, given):
    monkeypatch.setenv(disk.CACHE, given)
    monkeypatch.setattr(disk, "_private", {})
    with caplog.at_level(logging.WARNING, "geon"):
        path = disk.folder()
    assert path.is_dir() and mode(path) == 0o700 and disk.folder() == path
    assert f"not in {given}" in caplog.text and "set GEON_CACHE" in caplog.text
    disk.keep_bytes("a", b"content")
    assert disk.load("a") == b"content"
    disk._remove_private(os.getpid(), path)
    assert not path.exists()


@pytest.mark.parametrize("left, used", [(0, False), (1000, False), (disk.MIN_FREE_BYTES, True)])
def test_one_without_room_is_replaced_for_this_process(folder, monkeypatch, caplog, left, used):
    asked = os.statvfs

    def nearly_full(path):
        found = asked(path)
        if Path(path) != folder:
            return found
        return SimpleNamespace(f_flag=found.f_flag, f_bavail=left, f_frsize=1)

    monkeypatch.setattr(os, "statvfs", nearly_full)
    monkeypatch.setattr(disk, "_private", {})
    with caplog.at_level(logging.WARNING, "geon"):
        found = disk.folder()
    assert (found == folder) is used
    assert (f"{folder} has {left:,} bytes left" in caplog.text) is not used
    if not used:
        disk._remove_private(os.getpid(), found)


def test_the_folder_of_a_process_ends_with_it_and_not_with_its_child(monkeypatch):
    program = (
        "import os, sys\n"
        "from geon.transformers.cache import disk as disk_cache\n"
        "path = disk_cache.folder()\n"
        "print(path, flush=True)\n"
        "if os.fork() == 0:\n"
        "    sys.exit(0)\n"
        "os.wait()\n"
        "assert path.is_dir()\n"
    )
    monkeypatch.setenv(disk.CACHE, "/proc/no/cache")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_one_that_was_removed_is_made_again(folder):
    disk.keep_bytes("a", b"content")
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert disk.load("a") is None
    disk.keep_bytes("a", b"content")
    assert disk.load("a") == b"content"


@pytest.mark.parametrize("content", [b"", b"x", bytes(range(256)) * 1000, disk.MARK])
def test_what_was_kept_is_found(folder, content):
    assert disk.load("name") is None and disk.find("name") is None
    path = disk.keep_bytes("name", content)
    assert path == folder / "name" == disk.find("name")
    assert disk.load("name") == content
    assert path.read_bytes().startswith(content)
    assert sorted(p.name for p in folder.iterdir()) == ["name", "trimmed"]


def flip(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


@pytest.mark.parametrize(
    "damage",
    [
        lambda sealed: b"",
        lambda sealed: sealed[:-1],
        lambda sealed: sealed[: len(sealed) // 2],
        lambda sealed: sealed[: -disk.SEAL_BYTES],
        lambda sealed: sealed + b"\0",
        lambda sealed: flip(sealed, 0),
        lambda sealed: flip(sealed, 50),
        lambda sealed: flip(sealed, len(sealed) - 1),
        lambda sealed: flip(sealed, len(sealed) - disk.SEAL_BYTES),
        lambda sealed: b"\x7fELF something else",
    ],
)
def test_what_was_damaged_is_taken_away(damage):
    path = disk.keep_bytes("name", b"content" * 20)
    path.write_bytes(damage(path.read_bytes()))
    assert disk.find("name") is None
    assert not path.exists()
    disk.keep_bytes("name", b"new")
    assert disk.load("name") == b"new"


def test_an_entry_under_another_name_is_foreign(folder):
    disk.keep_bytes("one", b"content").rename(folder / "two")
    assert disk.load("two") is None
    assert not (folder / "two").exists()


def test_an_entry_that_others_own_or_could_write_to_is_foreign(folder, monkeypatch):
    path = disk.keep_bytes("name", b"content")
    path.chmod(0o666)
    assert disk.load("name") is None and not path.exists()
    path = disk.keep_bytes("name", b"content")
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert disk.load("name") is None and not path.exists()


def test_what_is_no_file_is_foreign(folder):
    whole = disk.keep_bytes("name", b"content")
    elsewhere = folder.parent / "elsewhere"
    whole.rename(elsewhere)

    def link() -> None:
        whole.symlink_to(elsewhere)

    def directory() -> None:
        (whole / "inside").mkdir(parents=True)

    for make in (link, directory, lambda: os.mkfifo(whole), whole.touch):
        make()
        assert disk.load("name") is None
        assert not os.path.lexists(whole)
    assert elsewhere.exists()
    directory()
    assert disk.load("name") is None
    directory()
    assert disk.keep_bytes("name", b"content") == whole
    assert disk.load("name") == b"content"


def test_names_come_from_every_part_of_what_they_are_for(monkeypatch):
    names = {
        disk.digest(*parts)
        for parts in ([], [""], ["", ""], ["ab"], ["a", "b"], ["1:a"], ["a", "1:b"], ["é"])
    }
    names.add(disk.digest("\udcff"))
    assert len(names) == 9
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
    before = disk.digest("a")
    assert disk.digest("a") == before
    monkeypatch.setattr(disk, "FORMAT_VERSION", disk.FORMAT_VERSION + 1)
    assert disk.digest("a") != before


def test_a_failed_write_leaves_nothing(folder):
    with pytest.raises(ZeroDivisionError), disk.scratch_file(".o") as made:
        made.write_bytes(b"half")
        raise ZeroDivisionError
    assert list(folder.iterdir()) == []


def fill(count: int, size: int, age: float = 3600.0) -> list[Path]:
    """Entries of this size, the first used ``age`` seconds ago, the others a second later each."""
    paths = [disk.keep_bytes(f"entry-{i:03}", bytes(size)) for i in range(count)]
    for i, path in enumerate(paths):
        when = time.time() - age + i
        os.utime(path, (when, when))
    return paths


def test_what_was_used_least_recently_goes_first():
    paths = fill(10, 1000)
    each = paths[0].stat().st_size
    assert disk.load("entry-000") is not None  # used now
    disk.trim(each * 4)
    assert [path for path in paths if path.exists()] == [paths[0], *paths[7:]]
    disk.trim(each * 4)
    assert sum(path.exists() for path in paths) == 4


def test_what_was_just_used_stays_whatever_the_limit():
    paths = fill(3, 1000, age=disk.GRACE_SECONDS / 2)
    disk.trim(0)
    assert all(path.exists() for path in paths)


def test_the_folder_stays_below_its_limit(folder, monkeypatch):
    monkeypatch.setenv(disk.CACHE_BYTES, "100000")
    monkeypatch.setattr(disk, "GRACE_SECONDS", -1.0)
    monkeypatch.setattr(disk, "_written", 0)
    for i in range(200):
        disk.keep_bytes(f"entry-{i}", bytes(2000))
        total = sum(path.stat().st_size for path in folder.iterdir())
        assert total <= 100000 + 100000 // 32 + 2100
    assert total > 80000


def test_small_writes_are_looked_at_after_a_time(folder, monkeypatch):
    looked = []
    monkeypatch.setattr(disk, "trim", lambda: looked.append(1))
    disk.keep_bytes("first", b"")
    assert looked == [1]  # nobody has looked yet
    (folder / disk.TRIM_STAMP).touch()
    disk.keep_bytes("second", b"")
    assert looked == [1]
    old = time.time() - disk.TRIM_INTERVAL_SECONDS - 1
    os.utime(folder / disk.TRIM_STAMP, (old, old))
    disk.keep_bytes("third", b"")
    assert looked == [1, 1]


def test_folders_inside_are_left_alone(folder):
    (disk.folder() / "zig").mkdir()
    (folder / "zig" / "file").write_bytes(bytes(1000))
    os.utime(folder / "zig", (0, 0))
    disk.trim(0)
    assert (folder / "zig" / "file").exists()


@pytest.mark.parametrize("given", ["-1", "1.5", "1G", "many", " 7"])
def test_a_bad_limit_is_an_error(monkeypatch, given):
    monkeypatch.setenv(disk.CACHE_BYTES, given)
    with pytest.raises(ArgumentError, match="GEON_CACHE_BYTES='.*' is no number of bytes: set it"):
        disk.cache_bytes()


def test_the_limit(monkeypatch):
    assert disk.cache_bytes() == 1 << 30
    monkeypatch.setenv(disk.CACHE_BYTES, "12345")
    assert disk.cache_bytes() == 12345


def test_readers_and_writers_at_once_see_whole_files(folder):
    content = {name: os.urandom(20000) for name in ("a", "b")}
    wrong: list[str] = []
    end = time.monotonic() + 1

    def use(name: str) -> None:
        while time.monotonic() < end:
            disk.keep_bytes(name, content[name])
            if disk.load(name) != content[name]:
                wrong.append(name)

    users = [threading.Thread(target=use, args=(name,)) for name in ("a", "b", "a", "b")]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong
    assert sorted(path.name for path in folder.iterdir()) == ["a", "b", "trimmed"]


def test_a_forked_child_finds_the_lock_free():
    program = (
        "import os, signal, threading\n"
        "from geon.transformers.cache import disk as disk_cache\n"
        "lock = disk_cache.fork_safe_lock()\n"
        "end = False\n"
        "def hold():\n"
        "    while not end:\n"
        "        with lock:\n"
        "            sum(range(2000))\n"
        "other = threading.Thread(target=hold)\n"
        "other.start()\n"
        "for _ in range(50):\n"
        "    child = os.fork()\n"
        "    if child == 0:\n"
        "        signal.alarm(20)\n"
        "        thread = threading.Thread(target=lock.acquire)\n"
        "        thread.start()\n"
        "        thread.join()\n"
        "        os._exit(0)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "end = True\n"
        "other.join()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
