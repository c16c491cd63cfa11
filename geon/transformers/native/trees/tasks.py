"""Emit tasks: their argument structs, functions and launches."""

from __future__ import annotations

from ...printing.nests.loop_lines import indent
from ...printing.nests.parameters import Parameter
from ..names.naming import KernelNames


class Tasks:
    """The tasks of one kernel; ``name`` is the function that divides the work."""

    def __init__(self, names: KernelNames, name: str) -> None:
        self.names, self.name = names, name

    def function(self, name: str, body: list[str], extra: list[Parameter]) -> list[str]:
        """Return a task function that unpacks the kernel's and ``extra`` parameters."""
        unpacked = []
        for p in [*self.names.parameters, *extra]:
            const = "" if p.pointer else "const "
            unpacked.append(f"{const}{p.declared()} = a->{p.name};")
        return [
            f"static void {name}(void *argument, int64_t task)",
            "{",
            *indent([f"const struct {name} *a = argument;", *unpacked, *body]),
            "}",
        ]

    def structure(self, name: str, extra: list[Parameter]) -> list[str]:
        fields = [f"{p.declared(restrict='')};" for p in [*self.names.parameters, *extra]]
        return [f"struct {name} {{", *indent(fields), "};"]

    def launch(self, name: str, extra: dict[str, str]) -> list[str]:
        """Return the statements that run a task function on the thread pool."""
        values = [p.name for p in self.names.parameters]
        fields = [f".{v} = {v}" for v in values] + [f".{k} = {v}" for k, v in extra.items()]
        return [
            f"struct {name} a = {{{', '.join(fields)}}};",
            f"geon_pool_run({name}, &a, parts, threads);",
        ]

    def head(self) -> str:
        declared = self.names.declared()
        return f"static void {self.name}(int32_t threads{', ' if declared else ''}{declared})"

    def whole(self, parts: list[list[str]]) -> str:
        return "\n".join(line.rstrip() for part in parts for line in part) + "\n"
