"""C texts become shared objects once; a damaged one is made again and a failing one explained."""

import ctypes
import errno
import os
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from geon.errors import UnavailableError
from geon.transformers.cache import disk
from geon.transformers.loading import compiling
from geon.transformers.native.names.dialect import FUNCTIONS, declarations
from geon.transformers.native.toolchain import compilers, shared_objects

if compilers.find_toolchain() is None:
    pytest.skip(compilers.missing_compiler(), allow_module_level=True)

pytestmark = pytest.mark.optimized  # looks at the flags of users
TOOLS = compilers.find_toolchain()
assert TOOLS is not None


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv(disk.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "_checked", {})
    monkeypatch.setattr(shared_objects, "compiled", 0)
    return tmp_path / "cache"


def unit(name: str, value: int) -> str:
    return f"int {name}(void) {{ return {value}; }}\n"


def call(path: Path, name: str = "f") -> int:
    return ctypes.CDLL(str(path))[name]()


def no_compiler(monkeypatch) -> None:
    def refuse(*arguments: object) -> None:
        raise AssertionError("a compiler was run")

    monkeypatch.setattr(shared_objects, "run_compiler", refuse)


def test_one_unit(folder):
    path = shared_objects.shared_object(TOOLS, [unit("f", 42)], name="some_name")
    assert call(path) == 42
    assert shared_objects.compiled == 1
    assert path.parent == folder and path.name.startswith("some_name-") and path.suffix == ".so"
    # Nothing else is left.
    assert {p.name for p in folder.iterdir() if p.is_file()} == {path.name, "trimmed"}


def test_what_was_made_is_not_compiled_again(monkeypatch):
    one = shared_objects.shared_object(TOOLS, [unit("f", 1)])
    many = shared_objects.shared_object(TOOLS, [unit("f", 1), unit("g", 2)])
    before = shared_objects.compiled
    no_compiler(monkeypatch)
    assert shared_objects.shared_object(TOOLS, [unit("f", 1)]) == one
    assert shared_objects.shared_object(TOOLS, [unit("f", 1), unit("g", 2)]) == many
    assert shared_objects.compiled == before


def test_several_units_each_made_once():
    units = [unit(f"f{i % 5}", i % 5) for i in range(15)]
    path = shared_objects.shared_object(TOOLS, units)
    assert shared_objects.compiled == 5
    assert [call(path, f"f{i}") for i in range(5)] == [0, 1, 2, 3, 4]
    # Four of these are there; what is new is compiled.
    path = shared_objects.shared_object(TOOLS, [unit("f9", 9), *units[:4]])
    assert shared_objects.compiled == 6
    assert call(path, "f9") == 9 and call(path, "f3") == 3


def test_units_call_each_other():
    units = ["int f(void);\nint g(void) { return f() + 1; }\n", unit("f", 41)]
    assert call(shared_objects.shared_object(TOOLS, units), "g") == 42


def test_units_are_compiled_side_by_side(monkeypatch):
    running, most = [], []
    real = shared_objects.run_compiler

    def slow(*arguments):
        running.append(1)
        most.append(len(running))
        time.sleep(0.2)
        done = real(*arguments)
        running.pop()
        return done

    monkeypatch.setattr(shared_objects, "run_compiler", slow)
    monkeypatch.setattr(compiling, "available", lambda: 3)
    shared_objects.shared_object(TOOLS, [unit(f"f{i}", i) for i in range(6)])
    assert max(most) == 3
    assert shared_objects.compiled == 6


def test_no_unit():
    with pytest.raises(ValueError, match="no unit"):
        shared_objects.shared_object(TOOLS, [])


def test_other_flags_compiler_or_processor_make_another_object():
    text = "#ifndef X\n#define X 0\n#endif\nint f(void) { return X; }\n"
    replace = compilers.dataclasses.replace
    paths = [
        shared_objects.shared_object(TOOLS, [text]),
        shared_objects.shared_object(TOOLS, [text], ("-DX=1",)),
        shared_objects.shared_object(replace(TOOLS, flags=(*TOOLS.flags, "-DX=2")), [text]),
        shared_objects.shared_object(replace(TOOLS, version="another"), [text]),
        shared_objects.shared_object(replace(TOOLS, cpu="another"), [text]),
    ]
    assert len(set(paths)) == 5 and shared_objects.compiled == 5
    assert [call(path) for path in paths] == [0, 1, 2, 0, 0]
    pair = [text, unit("g", 1)]
    many = {
        shared_objects.shared_object(TOOLS, pair),
        shared_objects.shared_object(TOOLS, pair, ("-DX=1",)),
    }
    assert len(many) == 2


@pytest.mark.parametrize("units", [[unit("f", 7)], [unit("f", 7), unit("g", 8)]])
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:4000] + b"\xff" * 8 + content[4008:],
        lambda content: b"not an object" * 1000,
    ],
)
def test_a_damaged_object_is_made_again(units, damage):
    path = shared_objects.shared_object(TOOLS, units)
    whole = path.read_bytes()
    made = shared_objects.compiled
    for entry in [path, *path.parent.glob("*.o")]:
        # As a new file: what another process has loaded does not change.
        content = damage(entry.read_bytes())
        entry.unlink()
        entry.write_bytes(content)
    again = shared_objects.shared_object(TOOLS, units)
    assert shared_objects.compiled == 2 * made
    assert again == path and call(again) == 7
    assert len(path.read_bytes()) == len(whole)


def test_another_object_under_its_name_is_not_loaded():
    right, wrong = (shared_objects.shared_object(TOOLS, [unit("f", i)]) for i in (1, 2))
    os.replace(wrong, right)
    assert call(shared_objects.shared_object(TOOLS, [unit("f", 1)])) == 1
    assert shared_objects.compiled == 3


def test_a_text_that_does_not_compile(folder):
    text = "int f(void) { return nowhere; }\n"
    for units in ([text], [unit("g", 1), text]):
        with pytest.raises(UnavailableError, match="could not compile") as caught:
            shared_objects.shared_object(TOOLS, units)
        message = str(caught.value)
        source = next(folder.glob("*.c"))
        assert source.read_text() == text
        assert f"The source is {source}." in message
        assert f"{source}:1:" in message and "nowhere" in message  # the compiler's own words
        assert "<stdin>" not in message
        assert TOOLS.version in message and TOOLS.command[0] in message
        assert not list(folder.glob("new-*"))


def test_the_command_of_the_message_gives_the_same_failure(folder, tmp_path):
    with pytest.raises(UnavailableError) as caught:
        shared_objects.shared_object(TOOLS, ["int f(void) { return nowhere; }\n"])
    command = str(caught.value).partition("The command was\n")[2].splitlines()[0]
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0 and "nowhere" in done.stderr


def test_texts_that_do_not_link():
    with pytest.raises(UnavailableError, match="could not link"):
        shared_objects.shared_object(TOOLS, [unit("f", 1), unit("f", 2)])


def test_a_compiler_that_is_gone(monkeypatch):
    gone = compilers.dataclasses.replace(TOOLS, command=("/no/such/compiler",))
    with pytest.raises(UnavailableError, match="/no/such/compiler"):
        shared_objects.shared_object(gone, [unit("f", 1)])


def test_a_compiler_that_is_killed(tmp_path):
    script = tmp_path / "killed"
    script.write_text("#!/bin/sh\nkill -9 $$\n")
    script.chmod(0o755)
    killed = compilers.dataclasses.replace(TOOLS, command=(str(script),))
    with pytest.raises(UnavailableError, match=r"was ended by signal 9"):
        shared_objects.shared_object(killed, [unit("f", 1)])


def test_texts_of_any_characters():
    text = 'const char *f(void) { return "\udcff\u00e9\\n\u4e2d"; } /* \u00e9 */\n'
    library = ctypes.CDLL(str(shared_objects.shared_object(TOOLS, [text])))
    library.f.restype = ctypes.c_char_p
    assert library.f() == b"\xff" + "\u00e9\n\u4e2d".encode()


PROCESS = """
import ctypes, sys
from geon.transformers.native.toolchain import compilers as toolchain
from geon.transformers.native.toolchain import shared_objects as objects
from geon.transformers.native.names.dialect import FUNCTIONS, declarations

tools = toolchain.find_toolchain()
units = [f"int f{i}(void) {{ return {i}; }}" for i in range(4)]
for count in (4, 1, 2):
    path = objects.shared_object(tools, units[:count])
    library = ctypes.CDLL(str(path))
    assert [library[f"f{i}"]() for i in range(count)] == list(range(count))
print(objects.compiled)
"""


def test_several_processes_at_once(folder):
    started = [
        subprocess.Popen(
            [sys.executable, "-c", PROCESS],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for process in started:
        _, complaint = process.communicate(timeout=120)
        assert process.returncode == 0, complaint
    last = subprocess.run([sys.executable, "-c", PROCESS], capture_output=True, text=True)
    assert last.stdout == "0\n", last.stderr
    # Whoever made them last, they are whole, and nothing half-made is left.
    names = sorted(path.name for path in folder.iterdir() if path.is_file())
    assert all(disk.find(name) for name in names if name.endswith((".so", ".o")))
    assert not [name for name in names if name.startswith("new-")]
    assert len([name for name in names if name.endswith(".so")]) == 3


def test_two_compilations_of_one_text_are_the_same(folder):
    contents = set()
    for _ in range(2):
        path = shared_objects.shared_object(TOOLS, [unit("f", 1), unit("g", 2)])
        contents.add(path.read_bytes())
        for entry in folder.iterdir():
            if entry.is_file():
                entry.unlink()
    assert len(contents) == 1


def test_a_hit_takes_less_than_a_compiler_needs_to_start():
    # 100 KB; a hit reads it and takes its digest.
    text = "const char f[100000] = {1};\n"
    shared_objects.shared_object(TOOLS, [text])
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        shared_objects.shared_object(TOOLS, [text])
        best = min(best, time.perf_counter() - start)
    assert best < 0.003


def test_a_debugger_finds_the_source(folder):
    path = shared_objects.shared_object(TOOLS, [unit("f", 3)], ("-g",))
    source = next(folder.glob("*.c"))
    assert source.read_text() == unit("f", 3)
    assert str(source).encode() in path.read_bytes() or source.name.encode() in path.read_bytes()


def test_lean_flags_are_for_units_of_one_program_alone():
    """Shared units are compiled with all passes; the flags are part of an object's key."""
    tools = replace(TOOLS, lean=("-DLEAN=1",))
    text = "#ifndef LEAN\n#define LEAN 0\n#endif\n"
    own, shared = (f"{text}int {name}(void) {{ return LEAN; }}\n" for name in "fg")
    path = shared_objects.shared_object(tools, [shared], own=[own])
    assert (call(path, "f"), call(path, "g")) == (1, 0)
    assert call(shared_objects.shared_object(tools, [own])) == 0
    assert call(shared_objects.shared_object(tools, [], own=[own])) == 1


def test_lean_flags_leave_passes_out():
    """They only take away, of gcc; the sanitizers' builds have none."""
    assert all(flag.startswith("-fno-") for flag in TOOLS.lean)
    assert bool(TOOLS.lean) == (TOOLS.family == "gcc")


def test_what_was_begun_is_not_compiled_again():
    shared_objects.begin(TOOLS, unit("f", 1))
    shared_objects.begin(TOOLS, unit("f", 1))
    path = shared_objects.shared_object(TOOLS, [unit("f", 1), unit("g", 2)])
    assert (call(path, "f"), call(path, "g")) == (1, 2)
    assert shared_objects.compiled == 2
    shared_objects.begin(TOOLS, unit("f", 1))  # it is there
    assert shared_objects.compiled == 2 and not shared_objects._begun


def test_what_was_begun_with_flags_is_found_by_them():
    shared_objects.begin(TOOLS, unit("f", 1), TOOLS.lean)
    path = shared_objects.shared_object(TOOLS, [], own=[unit("f", 1), unit("g", 2)])
    assert (call(path, "f"), call(path, "g"), shared_objects.compiled) == (1, 2, 2)


def test_what_was_begun_counts_among_the_compilers_at_work(monkeypatch):
    """It is waited for first, so no more run at a time than there are processors."""
    at_once, most, lock = [0], [0], threading.Lock()
    compile_one = shared_objects._compile

    def compile_slowly(*args):
        with lock:
            at_once[0] += 1
            most[0] = max(most[0], at_once[0])
        time.sleep(0.2)
        compile_one(*args)
        with lock:
            at_once[0] -= 1

    monkeypatch.setattr(shared_objects, "_compile", compile_slowly)
    monkeypatch.setattr(compiling, "available", lambda: 2)
    texts = [unit(name, n) + "//" + "x" * 100 * n for n, name in enumerate("abcd")]
    shared_objects.begin(TOOLS, texts[0])
    shared_objects.shared_object(TOOLS, texts)
    assert (most[0], shared_objects.compiled) == (2, 4)


def test_what_fails_ahead_is_told_where_it_is_needed():
    shared_objects.begin(TOOLS, "int f(void) { return }\n")
    with pytest.raises(UnavailableError, match="could not compile"):
        shared_objects.shared_object(TOOLS, ["int f(void) { return }\n", unit("g", 2)])


HAS_LINKER = pytest.mark.skipif(not TOOLS.linker, reason="the compiler links by itself here")
POWER = "double pow(double, double);\ndouble f(double x) { return pow(x, 1.5); }\n"


def needed(path: Path) -> list[str]:
    """The libraries that a shared object names."""
    done = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True)
    return [line for line in done.stdout.splitlines() if "(NEEDED)" in line]


@HAS_LINKER
def test_the_linker_is_run_by_itself(monkeypatch):
    def run(command, arguments, text=None):
        commands.append(command)
        return compilers.run_compiler(command, arguments, text)

    commands = []
    monkeypatch.setattr(shared_objects, "run_compiler", run)
    assert call(shared_objects.shared_object(TOOLS, [unit("f", 43)])) == 43
    assert commands == [TOOLS.command, (TOOLS.linker,)]


@HAS_LINKER
def test_what_calls_a_library_names_it():
    function = ctypes.CDLL(str(path := shared_objects.shared_object(TOOLS, [POWER]))).f
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    assert function(4.0) == 8.0
    assert any("libm" in line for line in needed(path))
    assert not needed(shared_objects.shared_object(TOOLS, [unit("f", 44)]))


@pytest.mark.parametrize("linker", ["", "/bin/false", "/no/such/linker"])
def test_the_compiler_links_where_the_linker_does_not(linker):
    tools = replace(TOOLS, linker=linker)
    assert call(shared_objects.shared_object(tools, [unit("f", 45)])) == 45
    function = ctypes.CDLL(str(shared_objects.shared_object(tools, [POWER, unit("g", 46)]))).f
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double]
    assert function(4.0) == 8.0


def test_the_declared_functions_are_those_of_the_system():
    """A compiler that reads both finds no difference, and none is missing."""
    names = [name + c for each in FUNCTIONS.values() for name in each.split() for c in ("", "f")]
    asked = f"void *all(int k) {{ void *known[] = {{{', '.join(names)}}}; return known[k]; }}\n"
    for before in ("", "#include <math.h>\n"):
        text = before + declarations() + asked
        assert shared_objects.shared_object(TOOLS, [text], ["-Wall", "-Werror"])


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_is_said_to_be(monkeypatch, folder):
    """With a cure, whoever finds it: what keeps an object, or the compiler itself."""
    text = "int geon_full(void); int geon_full(void) { return 1; }"
    with monkeypatch.context() as now:
        now.setattr(disk, "keep", full)
        with pytest.raises(UnavailableError, match=f"no room .* {folder}: free some .*GEON_CACHE"):
            shared_objects.shared_object(TOOLS, [text])
    monkeypatch.setattr(
        os, "statvfs", lambda path: SimpleNamespace(f_flag=0, f_bavail=0, f_frsize=1)
    )
    monkeypatch.setattr(disk, "folder", lambda: folder)
    monkeypatch.setattr(shared_objects, "_write_source", full)
    with pytest.raises(
        UnavailableError, match=f"The disk of {folder} is full: free some"
    ) as caught:
        shared_objects.shared_object(TOOLS, ["this is no C"])
    assert "defect" not in str(caught.value)
