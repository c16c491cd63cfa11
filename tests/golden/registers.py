"""What nvcc says of the golden programs' kernels: that they compile, and what they take."""

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

from geon.transformers.pycuda.runtime.nvrtc import FLAGS, find_nvcc

from .emitting import FOLDER

ARCHITECTURES = ("sm_80", "sm_90")
FILE = FOLDER / "registers.txt"
HEAD = "Registers of each thread and bytes spilled, by program, architecture and kernel, of {}.\n"
_USED = re.compile(r"Used (\d+) registers")
_SPILLED = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
# What is named for a person to read, or for one of several stores, need not be used by all.
UNUSED = "177"


@cache
def version():
    """What nvcc calls itself."""
    done = subprocess.run([find_nvcc(), "--version"], capture_output=True, text=True, check=True)
    return "nvcc " + re.search(r"V([\d.]+)\n", done.stdout)[1]


def compiled(text, architecture):
    """What ptxas says of a module's kernels, by name: registers, and bytes of spills.

    Warnings are errors.
    """
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "module.cu")
        source.write_text(text, encoding="utf-8")
        options = ["-Werror", "all-warnings", "-diag-suppress", UNUSED, "-Xptxas", "-v", *FLAGS]
        command = [find_nvcc(), "-cubin", f"-arch={architecture}", *options, "-o", folder + "/made"]
        done = subprocess.run([*command, source], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found, name, spills = {}, "", 0
    for line in done.stderr.splitlines():
        if "Compiling entry function" in line:
            name = line.split("'")[1]
        if spilled := _SPILLED.search(line):
            spills = int(spilled[1]) + int(spilled[2])
        if used := _USED.search(line):
            found[name] = int(used[1]), spills
    return found


def table(sources):
    """The text of the file, from the programs' CUDA by name."""
    lines = [HEAD.format(version())]
    for name, source in sources.items():
        for architecture in ARCHITECTURES:
            lines.append(line(name, architecture, compiled(source, architecture)) + "\n")
    return "".join(lines)


def line(name, architecture, found):
    """The line of a program for one architecture."""
    shown = [f"{k} {used}{f' +{spills}' if spills else ''}" for k, (used, spills) in found.items()]
    return f"{name} {architecture}: {', '.join(sorted(shown))}"
