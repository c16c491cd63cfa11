"""Compile CUDA text to cubins, by NVRTC, or by nvcc if that is missing."""

from __future__ import annotations

import site
import tempfile
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from ....errors import DeviceError
from ...loading.compiling import find_program, in_parallel, run_program

# No contraction to FMA, as on every other target: so random numbers have the same bits.
FLAGS = ("--fmad=false", "--std=c++17")
# 128-bit integers, which nvcc enables by default, and no warnings of unused helpers before errors.
NVRTC_FLAGS = ("--device-int128", "--disable-warnings")
CURE = "pip install 'geon[cuda]', or install the CUDA toolkit"


@cache
def find_nvrtc() -> tuple[Any, str] | None:
    """Return cuda-bindings' NVRTC module and version; None if it or its library is missing."""
    try:
        from cuda.bindings import nvrtc

        status, *version = nvrtc.nvrtcVersion()
    except Exception:  # the bindings do not document what they raise without the library
        return None
    return (nvrtc, ".".join(map(str, version))) if int(status) == 0 else None


@cache
def compiler() -> str:
    """Return the name and version of the compiler; empty if there is none."""
    found, nvcc = find_nvrtc(), find_nvcc()
    if found is not None:
        return f"NVRTC {found[1]}"
    if nvcc is None:
        return ""
    _, told, _ = run_program([nvcc, "--version"])
    lines = [line for line in told.splitlines() if "release" in line]
    return f"{nvcc}: {lines[0] if lines else told}"


def identity(architecture: str) -> tuple[str, ...]:
    """Return all that a cubin depends on, except its text."""
    return architecture, compiler(), *FLAGS, *NVRTC_FLAGS


def compile_cubin(source: str, architecture: str) -> bytes:
    """Compile a module to a cubin; raise ``DeviceError`` for errors, or without a compiler."""
    found = find_nvrtc()
    if found is None:
        return by_nvcc(source, architecture)
    return by_nvrtc(found[0], source, architecture)


def compiled_together(sources: Sequence[str], architecture: str) -> list[bytes]:
    """Compile several texts in parallel; raise as ``compile_cubin`` does."""
    return in_parallel([partial(compile_cubin, source, architecture) for source in sources])


def find_nvcc() -> str | None:
    """Return the path of nvcc, from PATH or NVIDIA's wheels; None if there is none."""
    found = find_program("nvcc")
    if found is None:
        for folder in map(Path, site.getsitepackages()):
            for path in sorted(folder.glob("nvidia/*/bin/nvcc")):
                return str(path)
    return found


def by_nvrtc(nvrtc: Any, source: str, architecture: str) -> bytes:
    """Compile by NVRTC."""

    def done(answer: Any) -> Any:
        status, *values = answer
        if int(status) != 0:
            raise DeviceError(f"NVRTC failed: {status}")
        return values[0] if values else None

    program = done(nvrtc.nvrtcCreateProgram(source.encode(), b"geon.cu", 0, [], []))
    flags = (*FLAGS, *NVRTC_FLAGS, f"--gpu-architecture={architecture}")
    options = [flag.encode() for flag in flags]
    (status, *_) = nvrtc.nvrtcCompileProgram(program, len(options), options)
    if int(status) != 0:
        log = b" " * done(nvrtc.nvrtcGetProgramLogSize(program))
        done(nvrtc.nvrtcGetProgramLog(program, log))
        known = done(nvrtc.nvrtcGetSupportedArchs())
        if architecture.rstrip("a") not in [f"sm_{number}" for number in known]:
            raise DeviceError(
                f"NVRTC does not compile for {architecture}, it knows "
                f"{', '.join(f'sm_{number}' for number in known)}: pip install -U 'geon[cuda]', or "
                "choose another device"
            )
        raise DeviceError(f"NVRTC does not compile for {architecture}:\n{log.decode()[:4000]}")
    binary = b" " * done(nvrtc.nvrtcGetCUBINSize(program))
    done(nvrtc.nvrtcGetCUBIN(program, binary))
    done(nvrtc.nvrtcDestroyProgram(program))
    return binary


def by_nvcc(source: str, architecture: str, *flags: str) -> bytes:
    """Compile by nvcc."""
    nvcc = find_nvcc()
    if nvcc is None:
        raise DeviceError(f"there is no compiler for CUDA, neither NVRTC nor nvcc: {CURE}")
    with tempfile.TemporaryDirectory(prefix="geon-") as folder:
        text, made = Path(folder, "geon.cu"), Path(folder, "geon.cubin")
        text.write_text(source, "utf-8")
        number = architecture.removeprefix("sm_")
        # the short form adds other targets
        target = f"-gencode=arch=compute_{number},code={architecture}"
        command = [nvcc, "-cubin", target, *FLAGS, *flags]
        command += ["-o", str(made), str(text)]
        status, _, said = run_program(command)
        if status != 0:
            raise DeviceError(f"nvcc does not compile for {architecture}:\n{said[:4000]}")
        return made.read_bytes()
