"""C text in its top-level parts: which are one program's own, and which all programs share."""

import re
from collections.abc import Iterator

# What a module calls the functions, types and arrays that it has for its own kernels.
OWN = re.compile(r"\b(?:kernel_\d|constant_\d|geon_run\b)")
# Every module declares this before it defines it.
DECLARED = re.compile(r"int64_t geon_run\([^{}]*\);\s*")
# What units have for each other is declared before it is defined, in the same words.
EXPORTED = re.compile(r"__attribute__\(\(visibility\(\"hidden\"\)\)\) [^{}]*;\s*")


def is_repeated(chunk: str) -> bool:
    """Whether a part of a module says no more than a later one."""
    return EXPORTED.fullmatch(chunk) is not None


def is_own(chunk: str) -> bool:
    """Whether a part of a module is there for its own kernels."""
    return OWN.search(chunk) is not None and DECLARED.fullmatch(chunk) is None


def top_level(text: str) -> Iterator[str]:
    """The definitions, declarations and groups of directives of a C text, each with its comments.

    The text is geon's: at the top level every statement ends where a line does.
    """
    lines: list[str] = []
    braces = groups = 0
    comment = False
    for line in text.splitlines():
        if not line.strip() and not lines:
            continue
        lines.append(line)
        if line.startswith("#"):
            groups += line.startswith("#if") - line.startswith("#endif")
        code, comment = without_comments(line, comment)
        braces += code.count("{") - code.count("}")
        ends = line.startswith("#") or code.rstrip().endswith((";", "}"))
        if ends and not (braces or groups or comment or line.endswith("\\")):
            yield "\n".join([*lines, ""])
            lines = []
    assert not lines, f"the C text ends inside of\n{lines[0]}"


def without_comments(line: str, inside: bool) -> tuple[str, bool]:
    """The code of a line that begins ``inside`` a comment or not, and whether it ends in one."""
    code = ""
    while line:
        before, mark, line = line.partition("*/" if inside else "/*")
        code += "" if inside else before
        inside ^= bool(mark)
    return code, inside
