"""Write a computation as C files, or as a shared object with a header."""

from __future__ import annotations

import dataclasses
import os
import shlex
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ....errors import ArgumentError, CheckpointError, UnavailableError
from ....version import __version__
from ...base import Transformer
from ...computation import Computation
from ...loading.lazy_loading import outline_of
from ...runtime.files import path_text
from ..emit.compiler import record_of
from ..emit.form_table import for_vectors
from ..emit.module_text import make_module
from ..machine.caches import past_bytes, reread_bytes
from ..machine.threads import MAX_THREADS
from ..names.c_texts import c_text
from ..toolchain.compilers import (
    Toolchain,
    UnusableError,
    find_toolchain,
    instruction_macros,
    missing_compiler,
    run_compiler,
)
from ..toolchain.flags import INSTEAD, TUNED, WIDE
from .failures import find_failures
from .header import header_text
from .interface import (
    MAX_ARRAY_BYTES,
    binary,
    initialiser,
    make_interface,
    require_name,
    state_bytes,
)
from .source import SourceFile, SourceText

OWN = "native"  # name that compilers have for the processor of this machine
# Flags that choose the processor, one of which each toolchain has.
CHOICES = ("-march=native", INSTEAD["-march=native"])
FORMS = (None, "array", "file")
# Flags of geon's own runs of the compiler that a reader of the README does not need.
INNER_FLAGS = ("-fPIC", "-pipe", "-Werror=implicit-function-declaration")
OBJECT_FLAGS = ("-fPIC", "-fvisibility=hidden", "-c")
README = """\
# {title}

Written by geon {version}. `{name}.h` says what the function `{name}_run` takes and returns.
{values}
Compile, and link with {libraries}:

{commands}

The text is for {processor}. With these flags, results have
the bits of geon's native code; other flags for floating point or vectors change them. The code
allocates nothing, and uses {threads}.
"""


class WrittenProgram:
    """The C files of a computation, with names that begin with ``name``.

    ``threads`` is the number of threads of a call, ``march`` the processor as compilers call it.
    ``values`` is ``"array"`` or ``"file"``: the place of the state's values; None chooses by size.
    """

    def __init__(
        self,
        transformer: Transformer,
        computation: Computation,
        name: str,
        threads: int,
        march: str,
        values: str | None,
        flushes: bool,
    ) -> None:
        self.name, self.threads, self.march = require_name(name), threads, march
        if isinstance(threads, bool) or not (
            isinstance(threads, int) and 1 <= threads <= MAX_THREADS
        ):
            raise ArgumentError(
                f"threads={threads!r}: give the number of threads of a call, 1 to {MAX_THREADS}"
            )
        if values not in FORMS:
            raise ArgumentError(
                f'values={values!r}: give "array" for an array in the source, "file" for a binary '
                "file, or None to choose by size"
            )
        compiler = find_toolchain()
        if compiler is None:
            raise UnavailableError(missing_compiler())
        self.toolchain: Toolchain = for_processor(compiler, march)
        stages = computation.stages()
        plan = for_vectors(stages.plan, self.toolchain.vector_bytes)
        module = make_module(
            plan,
            stages.linking,
            annotate=True,
            flushes=flushes,
            link=c_text(f"standalone/{'serial' if threads == 1 else 'threaded'}.h")
            + f"int64_t geon_past_bytes = INT64_C({past_bytes()});\n"
            + f"int64_t geon_reread_bytes = INT64_C({reread_bytes()});\n",
        )
        if module.external:
            raise UnavailableError(
                f"the program calls {', '.join(module.external)}, which only a Python process can "
                "look up, so it cannot be written as C or as a shared object: leave the ops out "
                "that need them, or compute them in Python and feed their results"
            )
        record = record_of(plan, module, Path(name))
        self.interface = make_interface(transformer, computation, record, threads)
        failures = find_failures(self.interface, computation.request.guards, plan, record)
        alignment = outline_of(transformer).alignment
        self.source = SourceText(
            self.interface, failures, record, module, stages.linking, name, threads, alignment
        )
        size = state_bytes(self.interface.state)
        self.in_file = bool(size) and (values or _form(size)) == "file"
        inputs = ", ".join(map(str, computation.placeholders))
        results = ", ".join(map(str, computation.results))
        self.title = f"{name}: {results} of ({inputs})" if inputs else f"{name}: {results}"

    def sources(self) -> list[SourceFile]:
        """Return the sources."""
        name, state = self.name, self.interface.state
        values = ""
        if state:
            values = (
                f'_Static_assert(sizeof(struct {name}_state) == {state_bytes(state)}, "size");\n'
            )
            values += "" if self.in_file else initialiser(state, name)
        return self.source.files(self.title, self.toolchain, values)

    def header(self) -> str:
        """Return the text of the header."""
        return header_text(
            self.interface,
            self.name,
            self.title,
            self.source.arena_bytes,
            self.in_file,
            self.threads,
        )

    def readme(self) -> str:
        """Return the text of the README, with the commands that compile."""
        compiler = "zig cc" if self.toolchain.family == "zig" else self.toolchain.family
        flags = [flag for flag in self.toolchain.flags if flag not in INNER_FLAGS]
        lines = [f"CC=${{CC:-{compiler}}} FLAGS={shlex.quote(shlex.join(flags))}"]
        lines += [
            f"$CC $FLAGS {shlex.join([*source.flags, '-c', source.name])}"
            for source in self.sources()
        ]
        if not self.interface.state:
            values = "It has no state."
        elif self.in_file:
            values = f"Read `{self.name}.bin` into a `struct {self.name}_state` to begin with."
        else:
            values = f"Copy `{self.name}_initial_state` to begin with."
        return README.format(
            title=self.title,
            version=__version__,
            name=self.name,
            values=values,
            libraries="`-lm`" if self.threads == 1 else "`-lm -pthread`",
            commands="\n".join(f"    {line}" for line in lines),
            processor=(
                "processors with the vectors of the one where it was written"
                if self.march == OWN
                else f"the processor `{self.march}`"
            ),
            threads="one thread" if self.threads == 1 else f"at most {self.threads} threads",
        )

    def write_c(self, folder: Any) -> None:
        """Write header, sources, README and the file of values, if there is one, to a folder."""
        texts = {
            **{source.name: source.text for source in self.sources()},
            f"{self.name}.h": self.header(),
            "README.md": self.readme(),
        }
        contents = {name: text.encode() for name, text in texts.items()}
        if self.in_file:
            contents[f"{self.name}.bin"] = binary(self.interface.state)
        _write_all(Path(path_text(folder)), contents)

    def write_shared(self, path: Any) -> None:
        """Compile to a shared object, and write the header, and the file of values, beside it.

        Raises ``UnavailableError`` with the compiler's messages if it does not compile.
        """
        target = Path(path_text(path))
        beside = {f"{self.name}.h": self.header().encode()}
        if self.in_file:
            beside[f"{self.name}.bin"] = binary(self.interface.state)
        if target.name in beside:
            raise ArgumentError(
                f"{str(target)!r} is the name of a file beside the shared object: give another "
                "path, or another name="
            )
        with tempfile.TemporaryDirectory(prefix="geon-") as made:
            folder = Path(made)
            sources = self.sources()
            _write_all(folder, {**{s.name: s.text.encode() for s in sources}, **beside})
            for source in sources:
                flags = [*self.toolchain.flags, *source.flags, *OBJECT_FLAGS]
                self.compile([*flags, str(folder / source.name), "-o", f"{folder / source.name}.o"])
            objects = [f"{folder / source.name}.o" for source in sources]
            libraries = ["-lm"] if self.threads == 1 else ["-lm", "-pthread", "-Wl,-z,nodelete"]
            self.compile(["-shared", *objects, "-o", str(folder / "made.so"), *libraries])
            _write_all(target.parent, {target.name: (folder / "made.so").read_bytes(), **beside})
        target.chmod(0o755)

    def compile(self, arguments: Sequence[str]) -> None:
        """Run the compiler; raise ``UnavailableError`` with its messages if it fails."""
        status, _, complaint = run_compiler(self.toolchain.command, arguments)
        if status != 0:
            raise UnavailableError(
                f"{shlex.join(self.toolchain.command)} does not compile the program:\n{complaint}"
            )


def _form(size: int) -> str:
    return "array" if size <= MAX_ARRAY_BYTES else "file"


def _write_all(folder: Path, contents: dict[str, bytes]) -> None:
    """Write files to a folder, which is made if it does not exist."""
    try:
        os.makedirs(folder, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    except OSError as error:
        raise CheckpointError(
            f"{str(folder)!r} cannot be written: {error.strerror}; give a folder that can"
        ) from error


def for_processor(toolchain: Toolchain, march: str) -> Toolchain:
    """Return the toolchain with flags for the processor that its compiler calls ``march``.

    Raises ``ArgumentError`` with the compiler's message if it has no processor of that name.
    """
    if march == OWN:
        return toolchain
    chosen = [
        flag.replace(OWN, str(march)) if flag in CHOICES else flag for flag in toolchain.flags
    ]
    tuned = (WIDE, TUNED, INSTEAD[TUNED])
    flags = tuple(flag for flag in chosen if flag not in tuned)
    try:
        macros, _ = instruction_macros(toolchain.command, flags)
    except UnusableError as error:
        raise ArgumentError(
            f"march={march!r} is no processor that {shlex.join(toolchain.command)} knows; give "
            f'"{OWN}" for this machine, or a name such as "x86-64-v3"'
        ) from error
    if "__AVX512F__" in macros and WIDE in toolchain.flags:
        flags = (*flags, WIDE)
    return dataclasses.replace(toolchain, flags=flags, macros=macros, cpu=str(march), linker="")
