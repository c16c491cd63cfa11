"""Compile what ``write_c`` writes together with a C program that calls it, and run that."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import numpy as np

WARNINGS = ("-Wall", "-Wextra", "-Werror", "-pedantic")
MAIN = """\
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "{name}.h"

int main(void)
{{
    FILE *in = fopen("in.bin", "rb"), *out = fopen("out.bin", "wb");
    {declarations}
    {arena}
    {state}
    {reads}
    int code = 0;
    if (!in || !out)
        return 100;
    for (int call = 0; call < {calls}; call++) {{
        code = {name}_run({arguments});
        if (code)
            break;
        {writes}
    }}
    {last}
    fclose(out);
    {free}
    if (code)
        puts({name}_error(code));
    return code;
}}
"""


def build(folder: Path, main: str, compiler: str = "") -> Path:
    """Return the executable of a written program and ``main``, compiled without a warning.

    The commands are those of the README, with ``compiler`` instead of its own if given.
    """
    (folder / "main.c").write_text(main)
    lines = re.findall(r"^    (.*)$", (folder / "README.md").read_text(), re.M)
    warnings = shlex.join(WARNINGS)
    lines[1:] = [f"{line} {warnings}" for line in lines[1:]]
    lines += [f"$CC {warnings} -O1 -c main.c", "$CC *.o -o main -lm -pthread"]
    environment = {**os.environ, **({"CC": compiler} if compiler else {})}
    if not compiler:
        environment.pop("CC", None)
    script = "\n".join(["set -e", *lines])
    ran = subprocess.run(
        ["sh", "-c", script], cwd=folder, capture_output=True, text=True, env=environment
    )
    assert ran.returncode == 0 and not ran.stderr, ran.stderr[:3000]
    return folder / "main"


class CProgram:
    """A written program with a ``main`` that calls it with data of files.

    ``lengths`` are values of the open lengths, ``results`` arrays of the results' shapes and
    dtypes. ``compiler`` replaces that of the README.
    """

    def __init__(self, folder, inputs, results, lengths=(), calls=1, name="model", compiler=""):
        self.folder, self.results, self.calls = Path(folder), results, calls
        header = (self.folder / f"{name}.h").read_text()
        self.inputs = [np.ascontiguousarray(each) for each in inputs]
        (found,) = re.findall(rf"int {name}_run\((.*?)\);", header, re.S)
        parameters = [" ".join(each.split()) for each in found.split(",")]
        arrays = [each for each in parameters if "*" in each and each.split()[-1] not in
                  ("*state", "*arena")]  # fmt: skip
        sizes = [max(each.size, 1) for each in (*self.inputs, *results)]
        names = [each.split("*")[1] for each in arrays]
        declared = [
            f"static {each.replace('const ', '').replace('*', '')}[{size}];"
            for each, size in zip(arrays, sizes, strict=True)
        ]
        of_inputs, of_results = names[: len(inputs)], names[len(inputs) :]
        has_state = f"struct {name}_state {{" in header
        in_file = (self.folder / f"{name}.bin").exists()
        state = [f"static struct {name}_state state;"] if has_state else []
        if has_state and not in_file:
            state.append(f"memcpy(&state, &{name}_initial_state, sizeof state);")
        if in_file:
            state.append(f'FILE *values = fopen("{name}.bin", "rb");')
            state.append("if (!values || fread(&state, sizeof state, 1, values) != 1) return 101;")
        given = ", ".join(map(str, lengths))
        numbers = iter(lengths)
        arguments = [
            "&state" if each.endswith("*state") else
            each.split("*")[1] if "*" in each else str(next(numbers))
            for each in parameters
        ]  # fmt: skip
        reads = [
            f"if (fread({n}, 1, {a.nbytes}, in) != {a.nbytes}) return 102;"
            for n, a in zip(of_inputs, self.inputs, strict=True)
        ]
        writes = [
            f"fwrite({n}, 1, {r.nbytes}, out);" for n, r in zip(of_results, results, strict=True)
        ]
        main = MAIN.format(
            name=name,
            declarations="\n    ".join(declared),
            arena=(
                f"static _Alignas(64) unsigned char arena[{name.upper()}_ARENA_BYTES];"
                if "_ARENA_BYTES" in header
                else f"void *arena = aligned_alloc(64, (size_t){name}_arena_bytes({given}));"
            ),
            free="" if "_ARENA_BYTES" in header else "free(arena);",
            state="\n    ".join(state),
            reads="\n    ".join(reads),
            calls=calls,
            arguments=", ".join(arguments),
            writes="\n        ".join(writes),
            last="fwrite(&state, sizeof state, 1, out);" if has_state else "",
        )
        (self.folder / "in.bin").write_bytes(b"".join(each.tobytes() for each in self.inputs))
        self.made = build(self.folder, main, compiler)

    def run(self):
        """Return the code, what was printed, the results of each call, and the state's bytes."""
        ran = subprocess.run([self.made], cwd=self.folder, capture_output=True, text=True)
        raw, at = (self.folder / "out.bin").read_bytes(), 0
        calls = []
        for _ in range(self.calls if not ran.returncode else 0):
            found = []
            for each in self.results:
                found.append(np.frombuffer(raw, each.dtype, each.size, at).reshape(each.shape))
                at += each.nbytes
            calls.append(found)
        return ran.returncode, ran.stdout, calls, raw[at:]


def same_bits(one, other):
    """Return True if two arrays have the same dtype, shape and bits."""
    one, other = np.asarray(one), np.asarray(other)
    return (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
