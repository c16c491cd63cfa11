"""Programs measured in processes of their own, so that one that ends or hangs stops no run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BATCH = 10  # programs of one process


def run(
    given: dict[str, Any],
    numbers: list[int],
    limit: float,
    keep: Callable[[dict[str, Any]], None],
    until: float = float("inf"),
) -> None:
    """Measure programs, one after another; each outcome is given to ``keep`` as it is known.

    A program may take ``limit`` seconds; none begins after the moment ``until``.
    """
    left = list(numbers)
    while left and time.monotonic() < until:
        batch, left = left[:BATCH], left[BATCH:]
        done = one_process({**given, "numbers": batch}, limit, keep, until)
        left = [n for n in batch if n not in done] + left


def one_process(
    given: dict[str, Any], limit: float, keep: Callable[[dict[str, Any]], None], until: float
) -> set[int]:
    """Measure programs until the process ends; the numbers of those that were."""
    command = [sys.executable, "-m", f"{__package__}.child", json.dumps(given)]
    done: set[int] = set()
    at, shown, killed = given["numbers"][0], "", threading.Event()
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=complaints, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip

        def end() -> None:
            killed.set()
            process.kill()

        assert process.stdout is not None
        watch = threading.Timer(limit, end)
        watch.start()
        for line in process.stdout:
            watch.cancel()
            said = json.loads(line)
            if "begin" in said:
                at, shown = said["begin"], ""
                if time.monotonic() > until:
                    process.kill()
                    process.wait()
                    return done
            watch = threading.Timer(limit, end)
            watch.start()
            shown = said.get("shown", shown)
            if "done" in said:
                done.add(at)
                keep({"number": at, **said["found"]})
            if "failed" in said:
                done.add(at)
                text = f"{said['error']}\n" + "\n".join(said["trace"])
                keep({"number": at, "shown": shown, "failed": text})
        watch.cancel()
        code = process.wait()
        complaints.seek(0)
        text = complaints.read()[-2000:]
    if code != 0 and at not in done:
        why = f"took longer than {limit:.0f} s" if killed.is_set() else f"ended with {code}: {text}"
        done.add(at)
        keep({"number": at, "shown": shown, "failed": why})
    elif code != 0 and not done:
        raise RuntimeError(f"a process ended with {code}:\n{text}")
    return done
