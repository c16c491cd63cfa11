"""What the native transformer learns of the machine that it runs on."""

import pytest

from geon.transformers.native.machine.caches import DEFAULT_CACHE_SIZES, caches_of

# (level, type, size) of each folder, and the bytes that are found.
FOLDERS = {
    "three levels": (
        [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "2048K"),
         ("3", "Unified", "107520K")],
        (48 << 10, 2 << 20, 105 << 20)),
    "two levels, the outer first": (
        [("2", "Unified", "1024K"), ("1", "Data", "64K")], (64 << 10, 1 << 20)),
    "one level": ([("1", "Data", "32K")], DEFAULT_CACHE_SIZES),
    "a size in other words": (
        [("1", "Data", "32K"), ("2", "Unified", "1 MiB")],
        DEFAULT_CACHE_SIZES,
    ),
    "nothing": ([], DEFAULT_CACHE_SIZES),
}  # fmt: skip


@pytest.mark.parametrize("named", FOLDERS)
def test_caches_are_those_that_linux_describes(tmp_path, named):
    folders, found = FOLDERS[named]
    for number, (level, kind, size) in enumerate(folders):
        folder = tmp_path / "cache" / f"index{number}"
        folder.mkdir(parents=True)
        for name, text in (("level", level), ("type", kind), ("size", size)):
            (folder / name).write_text(text + "\n")
    assert caches_of(tmp_path) == found


def test_a_description_without_a_size_is_none(tmp_path):
    (tmp_path / "cache" / "index0").mkdir(parents=True)
    assert caches_of(tmp_path) == DEFAULT_CACHE_SIZES
