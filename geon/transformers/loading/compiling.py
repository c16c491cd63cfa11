"""Find and run compilers, and compile several texts in parallel, for all targets that compile."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TypeVar

from .environment import environment_of_child
from .progress import CompileProgress

T = TypeVar("T")


def find_program(name: str) -> str | None:
    """Return the path of the program ``name``, as a shell finds it, or None.

    It replaces ``shutil.which``, whose import takes longer than all else on a cache hit.
    """
    folders = [""] if os.path.dirname(name) else os.get_exec_path()
    for path in (os.path.join(folder, name) for folder in folders):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    return None


def run_program(
    command: Sequence[str], text: str | None = None, **environment: str
) -> tuple[int, str, str]:
    """Run a program and return its exit status, output and messages, which are in English.

    ``text`` is its standard input; ``environment`` are further variables, unless they are set.
    """
    import subprocess  # slow to import, and not needed if all is in the cache

    variables = {**environment, **environment_of_child(LC_ALL="C")}
    if "asan" in variables.get("LD_PRELOAD", ""):
        del variables["LD_PRELOAD"]  # the sanitizer would make a compiler three times as slow
    done = subprocess.run(
        command,
        input=(text or "").encode("utf-8", "surrogateescape"),
        capture_output=True,
        env=variables,
    )
    output, messages = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
    return done.returncode, output, messages


def available() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_parallel(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Return the results of tasks that each compile a text; the first ones begin first.

    After two seconds the progress is displayed. If one fails, those that have not begun are not
    run, and its error is raised.
    """
    from concurrent.futures import ThreadPoolExecutor  # not needed if all is in the cache

    if not tasks:
        return []
    with CompileProgress(len(tasks)) as progress:
        if len(tasks) == 1:
            return [tasks[0]()]

        def one(task: Callable[[], T]) -> T:
            found = task()
            progress.done()
            return found

        with ThreadPoolExecutor(min(len(tasks), available())) as pool:
            begun = [pool.submit(one, task) for task in tasks]
            try:
                return [each.result() for each in begun]
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
