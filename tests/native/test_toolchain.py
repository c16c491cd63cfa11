"""Finding a compiler: in what order, what it must manage, what is remembered."""

import ctypes
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from geon.errors import UnavailableError
from geon.transformers.cache import disk
from geon.transformers.native.toolchain import compilers, shared_objects

REAL = compilers.find_toolchain()
if REAL is None:
    pytest.skip(compilers.missing_compiler(), allow_module_level=True)


@pytest.fixture(autouse=True)
def bare(tmp_path, monkeypatch) -> Path:
    """An empty PATH, an empty cache, no ziglang, and nothing remembered."""
    monkeypatch.setenv(disk.CACHE, str(tmp_path / "cache"))
    monkeypatch.setattr(disk, "_checked", {})
    monkeypatch.setattr(compilers, "_found", {})
    monkeypatch.setattr(compilers, "_refused", {})
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: None)
    (tmp_path / "bin").mkdir()
    # The compilers run the assembler and the linker of the same machine.
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    return tmp_path / "bin"


def script(place: Path, name: str, body: str = "", status: int | None = None) -> str:
    """A compiler that is the machine's real one, after these lines of shell."""
    path = place / name
    end = f"exit {status}" if status is not None else f'exec {" ".join(REAL.command)} "$@"'
    path.write_text(f"#!/bin/sh\nPATH={os.defpath}\nexport PATH\n{body}\n{end}\n")
    path.chmod(0o755)
    return str(path)


def forget(monkeypatch) -> None:
    """As in a new process."""
    monkeypatch.setattr(compilers, "_found", {})
    monkeypatch.setattr(compilers, "_refused", {})


def test_none(bare):
    assert compilers.find_toolchain() is None
    message = compilers.missing_compiler()
    assert "install gcc (apt install gcc) or pip install 'geon[native]'" in message
    assert "no cc, gcc or clang on the PATH" in message


def test_the_order(bare, monkeypatch):
    for name in ("clang", "gcc", "cc"):
        expected = script(bare, name)
        forget(monkeypatch)
        found = compilers.find_toolchain()
        assert found is not None and found.command == (expected,)
    other = script(bare, "mine")
    monkeypatch.setenv("CC", "mine -DANY=1")
    found = compilers.find_toolchain()
    assert found is not None and found.command == (other, "-DANY=1")


def test_cc_may_be_a_path_with_spaces(bare, monkeypatch):
    (bare / "a folder").mkdir()
    path = script(bare / "a folder", "cc")
    for given in (path, f"'{path}' -DANY"):
        monkeypatch.setenv("CC", given)
        found = compilers.find_toolchain()
        assert found is not None and found.command[0] == path


def test_what_was_found():
    assert REAL.version and "\n" not in REAL.version
    assert set(compilers.NEEDED) <= set(REAL.flags)
    assert "-ffast-math" not in REAL.flags and "-ffinite-math-only" not in REAL.flags
    assert REAL.vector_bytes in (16, 32, 64)
    assert REAL.cpu == compilers.processor()
    assert "machine: " in REAL.cpu
    if "avx512f" in REAL.cpu:
        assert REAL.vector_bytes == 64 and compilers.WIDE in REAL.flags
    if "x86_64" in REAL.cpu:
        assert "__SSE2__" in REAL.macros
    assert hash(REAL) == hash(compilers.dataclasses.replace(REAL))


@pytest.mark.parametrize(
    ("macros", "expected"),
    [({"__AVX512F__": "1", "__AVX2__": "1"}, 64), ({"__AVX2__": "1"}, 32), ({}, 16)],
)
def test_the_width_of_vectors(macros, expected):
    assert compilers.dataclasses.replace(REAL, macros=macros).vector_bytes == expected


@pytest.mark.parametrize(
    ("command", "family"),
    [
        (("/usr/bin/zig", "cc"), "zig"),
        (("python", "-m", "ziglang", "cc"), "zig"),
        (("/usr/bin/ccache", "cc"), "gcc"),
        (("cc",), "gcc"),
    ],
)
def test_the_family(command, family):
    known = compilers.dataclasses.replace(REAL, command=command, macros={"__GNUC__": "12"})
    assert known.family == family


def test_one_that_does_not_work_is_passed_over(bare, monkeypatch):
    script(bare, "cc", "echo this is broken >&2", status=1)
    # Says what it is, and cannot compile.
    script(bare, "gcc", 'case "$*" in *trial*) echo "error: no headers" >&2; exit 1;; esac')
    good = script(bare, "clang")
    monkeypatch.setenv("CC", "nowhere --flag")
    found = compilers.find_toolchain()
    assert found is not None and found.command == (good,)
    Path(good).unlink()
    forget(monkeypatch)
    assert compilers.find_toolchain() is None
    message = compilers.missing_compiler()
    assert "nowhere --flag: no such program" in message
    assert f"{bare}/cc: this is broken" in message
    assert f"{bare}/gcc: error: no headers" in message


@pytest.mark.parametrize("given", ["gcc 'x", '"', "gcc \\"])
def test_what_is_no_command_is_passed_over(bare, monkeypatch, given):
    good = script(bare, "clang")
    monkeypatch.setenv("CC", given)
    found = compilers.find_toolchain()
    assert found is not None and found.command == (good,)
    (message,) = compilers.passed_over()
    assert message.startswith(f"CC={given!r}: no ") and "close the quotes" in message


def test_a_long_message_is_cut_short(bare):
    script(bare, "cc", f"echo {'x' * 5000} >&2", status=1)
    assert compilers.find_toolchain() is None
    assert len(compilers.missing_compiler()) < 1000


def test_one_for_another_machine_is_passed_over(bare):
    body = """case "$*" in *trial*)
while [ "$1" != -o ]; do shift; done
echo "not for this machine" > "$2"; exit 0;; esac"""
    script(bare, "cc", body)
    assert compilers.find_toolchain() is None
    assert f"{bare}/cc: " in compilers.missing_compiler()


def test_flags_it_does_not_know_are_left_out(bare):
    body = """for a in "$@"; do case "$a" in -march=native|-mcpu=native|-fopenmp-simd|-mprefer*)
echo "error: unknown option $a" >&2; exit 1;; esac; done"""
    script(bare, "cc", body)
    found = compilers.find_toolchain()
    assert found is not None
    gone = {"-march=native", "-fopenmp-simd"}
    assert found.flags == tuple(flag for flag in compilers.FLAGS if flag not in gone)
    assert found.vector_bytes == 16


@pytest.mark.skipif(
    "__AVX512F__" not in REAL.macros or "__clang__" in REAL.macros, reason="gcc with AVX-512"
)
def test_a_processor_that_gcc_does_not_know_is_tuned_for(bare, monkeypatch):
    """A loop with a gather is one of vectors, which it is not where gcc tunes for any processor."""
    unknown = 'case "$*" in *-dM*) echo "cc1 -mtune=generic -dumpbase" >&2;; esac\n'
    script(bare, "cc", unknown)
    found = compilers.find_toolchain()
    assert found is not None and found.flags == (*compilers.FLAGS, compilers.WIDE, compilers.TUNED)
    text = "void take(float *restrict y, const float *restrict x, const int64_t *restrict k) {\n"
    text += "    for (int64_t i = 0; i < 1024; i++) y[i] = x[k[i]] * 2.0f;\n}\n"
    arguments = ["-S", "-x", "c", "-", "-o", "-", *found.flags]
    made = compilers.run_compiler(found.command, arguments, "#include <stdint.h>\n" + text)
    assert made[0] == 0 and "gather" in made[1]
    older = """for a in "$@"; do case "$a" in -mtune=sapphirerapids)
echo "error: bad value" >&2; exit 1;; esac; done\n"""
    forget(monkeypatch)
    script(bare, "cc", older + unknown)
    found = compilers.find_toolchain()
    assert found is not None and found.flags[-1] == "-mtune=skylake-avx512"
    forget(monkeypatch)
    known = 'case "$*" in *-dM*) echo "cc1 -mtune=znver4" >&2;; esac'
    script(bare, "cc", f"{known}\nexec 3>&2 2>/dev/null")
    found = compilers.find_toolchain()
    assert found is not None and found.flags == (*compilers.FLAGS, compilers.WIDE)


def test_a_flag_that_goes_by_another_name(bare, monkeypatch):
    monkeypatch.setattr(compilers, "INSTEAD", {"-march=native": "-DINSTEAD"})
    script(bare, "cc", 'case "$*" in *-march=native*) echo "error: unknown" >&2; exit 1;; esac')
    found = compilers.find_toolchain()
    assert found is not None and "-DINSTEAD" in found.flags


def test_without_a_needed_flag_it_is_passed_over(bare):
    script(bare, "cc", 'case "$*" in *-fwrapv*) echo "error: no -fwrapv" >&2; exit 1;; esac')
    assert compilers.find_toolchain() is None
    assert "no -fwrapv" in compilers.missing_compiler()


def test_it_is_remembered(bare, monkeypatch):
    log = bare.parent / "log"
    path = script(bare, "cc", f"echo run >> {log}")
    first = compilers.find_toolchain()
    runs = len(log.read_text().splitlines())
    assert runs >= 3
    assert compilers.find_toolchain() is first
    forget(monkeypatch)
    again = compilers.find_toolchain()
    assert again == first and again is not first
    assert len(log.read_text().splitlines()) == runs
    # Another compiler under the same name, other processor features, or a damaged note: again.
    for change in (
        lambda: script(bare, "cc", f"echo run >> {log} # changed"),
        lambda: monkeypatch.setattr(compilers, "processor", lambda: "another"),
        lambda: os.utime(path, (1, 1)),
        lambda: (
            next(disk.folder().glob("toolchain-*")).write_bytes(b"{}")
            and [p.write_bytes(b"{}") for p in disk.folder().glob("toolchain-*")]
        ),
    ):
        change()
        forget(monkeypatch)
        assert compilers.find_toolchain() is not None
        now = len(log.read_text().splitlines())
        assert now > runs
        runs = now


def test_finding_what_is_known_is_quick(bare, monkeypatch):
    script(bare, "cc")
    compilers.find_toolchain()
    best = 1.0
    for _ in range(20):
        forget(monkeypatch)
        start = time.perf_counter()
        compilers.find_toolchain()
        best = min(best, time.perf_counter() - start)
    assert best < 0.006  # starting a compiler takes longer


def test_the_processor_is_said_alike_each_time():
    assert compilers.processor() == compilers.processor()
    assert "\n" not in compilers.processor()


def test_sanitized():
    made = compilers.with_sanitizers(REAL)
    assert made.command == REAL.command
    assert "-O2" not in made.flags and "-O1" in made.flags
    assert "-fsanitize=address,undefined" in made.flags
    assert made != REAL


def test_sanitized_with_zig():
    zig = compilers.dataclasses.replace(REAL, command=("/usr/bin/zig", "cc"))
    with pytest.raises(UnavailableError, match="without the address sanitizer: install gcc"):
        compilers.with_sanitizers(zig)


BUGGY = """
#include <stdint.h>
static int table[4];
int overrun(int n) { int sum = 0; for (int i = 0; i <= n; i++) sum += table[i]; return sum; }
int shift(int n) { return 1 << n; }
"""


@pytest.mark.parametrize(
    ("call", "complaint"),
    [("overrun(3)", ""), ("overrun(4)", "out of bounds|overflow"), ("shift(40)", "shift exponent")],
)
def test_what_the_sanitizers_find(monkeypatch, tmp_path, call, complaint):
    monkeypatch.setenv("PATH", os.defpath)
    made = compilers.with_sanitizers(REAL)
    try:
        environment = compilers.sanitizer_environment(made)
    except UnavailableError as error:
        pytest.skip(str(error))
    path = shared_objects.shared_object(made, [BUGGY])
    program = f"import ctypes; print(ctypes.CDLL({str(path)!r}).{call})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    if complaint:
        assert done.returncode != 0
        assert any(words in done.stderr for words in complaint.split("|")), done.stderr
    else:
        assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr


def test_zig_is_the_last(bare, monkeypatch, tmp_path):
    """A package with a file named zig, as ziglang has it, is used where no compiler is."""
    package = tmp_path / "ziglang"
    package.mkdir()
    (package / "__init__.py").touch()
    body = '[ "$1" = cc ] || exit 1\nshift'
    binary = script(package, "zig", body)

    class Spec:
        origin = str(package / "__init__.py")

    monkeypatch.setattr(compilers.importlib.util, "find_spec", lambda name: Spec)
    found = compilers.find_toolchain()
    assert found is not None and found.command == (binary, "cc") and found.family == "zig"
    path = shared_objects.shared_object(found, ["int f(void) { return 5; }\n"])
    assert ctypes.CDLL(str(path)).f() == 5
    first = script(bare, "clang")
    forget(monkeypatch)
    found = compilers.find_toolchain()
    assert found is not None and found.command == (first,)
