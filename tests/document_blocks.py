"""Run the ``python`` blocks of a Markdown file and hold its ``text`` blocks to what they print.

The blocks of one file run in order in one namespace. Where a ``text`` block is the next block after
a ``python`` block, it is that block's standard output, character for character; a ``python`` block
that prints must be followed by one. Line numbers in messages are those of the Markdown file.

    python -m tests.document_blocks README.md            # exit 1 and a diff where they differ
    python -m tests.document_blocks --write README.md    # put the real output in place
"""

import argparse
import contextlib
import difflib
import io
import multiprocessing
import os
import re
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import geon  # noqa: F401  # before the first fork

FENCE = re.compile(
    r"^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL
)

# Forks a process that has imported geon for each page, which takes less than starting Python.
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload([__name__])


@dataclass(frozen=True)
class Block:
    """One fenced block: where its body lies in the text, and the line its body starts at."""

    language: str
    body: str
    start: int
    end: int
    line: int


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a Markdown text, in order."""
    return [
        Block(
            match["language"],
            match["body"],
            match.start("body"),
            match.end("body"),
            text.count("\n", 0, match.start("body")) + 1,
        )
        for match in FENCE.finditer(text)
    ]


def run(block: Block, name: str, namespace: dict[str, object]) -> str:
    """What the block prints when it runs as lines of the file ``name``."""
    printed = io.StringIO()
    code = compile("\n" * (block.line - 1) + block.body, name, "exec")
    with contextlib.redirect_stdout(printed):
        exec(code, namespace)
    return printed.getvalue()


def with_real_output(text: str, name: str) -> str:
    """The text with every output block replaced by what its program prints now.

    Raises ``ValueError`` where a program prints and no ``text`` block follows it.
    """
    namespace: dict[str, object] = {"__name__": "__main__"}
    found = blocks(text)
    pieces, copied = [], 0
    for block, after in zip_longest(found, found[1:]):
        if block.language != "python":
            continue
        output = run(block, name, namespace)
        if after is not None and after.language == "text":
            pieces += [text[copied : after.start], output]
            copied = after.end
        elif output:
            raise ValueError(
                f"{name}:{block.line}: this block prints, but no text block follows it"
            )
    return "".join([*pieces, text[copied:]])


def settled(text: str, name: str) -> str:
    """The text with real outputs that also name the lines where the programs then are.

    Each run has a process of its own, so that none finds what another one has defined. Raises
    ``ValueError`` where the outputs differ from run to run.
    """
    with ProcessPoolExecutor(1, FORKING, max_tasks_per_child=1) as processes:
        for _ in range(4):
            before, text = text, processes.submit(with_real_output, text, name).result()
            if text == before:
                return text
    raise ValueError(f"{name}: the outputs are not the same in each run")


def check_alone(page: Path, said: Path) -> int:
    """Return the status of ``main`` for a page, in a process of its own.

    The file ``said`` gets what the process prints.
    """
    process = FORKING.Process(target=_main_to_file, args=(page, said))
    process.start()
    try:
        process.join()
    finally:
        process.kill()  # where the time of a test is up
    assert process.exitcode is not None
    return process.exitcode


def _main_to_file(page: Path, said: Path) -> None:
    with said.open("wb") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.chdir(Path(__file__).parent.parent)
    os.chdir(page.parent)
    sys.exit(main([str(page)]))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.document_blocks")
    parser.add_argument("--write", action="store_true", help="replace the outputs")
    parser.add_argument("file", type=Path)
    options = parser.parse_args(argv)
    path: Path = options.file
    text = path.read_text()
    if options.write:
        path.write_text(settled(text, path.name))
        return 0
    real = with_real_output(text, path.name)
    sys.stdout.writelines(
        difflib.unified_diff(
            text.splitlines(True), real.splitlines(True), f"{path.name} as written", "as it runs"
        )
    )
    return int(text != real)


if __name__ == "__main__":
    sys.exit(main())
