"""``python -m tests.large.fuzz``: many random programs over large arrays; ``make fuzz-large``.

Programs run in processes that have the sanitizer loaded. One that ends belongs to the program it
was at; what is left goes on in a new one.
"""

import argparse
import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from geon.errors import UnavailableError
from geon.transformers.native.toolchain.compilers import find_toolchain, sanitizer_environment

from .constants import aims
from .planned import plan

FAILURES = Path(__file__).parents[2] / ".hypothesis" / "failed-large"
LONGEST = 180.0  # seconds that one program may be silent


@dataclass
class Outcome:
    """How the programs of a run went."""

    seed: str
    count: int
    passed: list = field(default_factory=list)
    failed: dict = field(default_factory=dict)  # number: what is wrong
    shown: dict = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def uncovered(self):
        """The constants and places of lengths that no program had."""
        used = Counter((aim.constant, aim.near) for n in [*self.passed, *self.failed]
                       for aim in plan(self.seed, self.count)[n])  # fmt: skip
        wanted = {(aim.constant, aim.near) for each in aims().values() for aim in each}
        return sorted(wanted - set(used)), used


def run(seed, numbers, count, jobs=2, sanitize=True, tell=lambda text: None):
    """Check the programs of these numbers in ``jobs`` processes at a time."""
    outcome = Outcome(seed, count)
    waiting = queue.SimpleQueue()
    each = max(1, min(25, len(numbers) // jobs))
    for start in range(0, len(numbers), each):
        waiting.put(numbers[start : start + each])

    def work():
        while True:
            try:
                batch = waiting.get_nowait()
            except queue.Empty:
                return
            while batch:
                batch = one_process(outcome, batch, sanitize, tell)

    threads = [threading.Thread(target=work) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcome


def one_process(outcome, numbers, sanitize, tell):
    """Check programs until the process ends; those that are left."""
    FAILURES.mkdir(parents=True, exist_ok=True)
    given = {"seed": outcome.seed, "numbers": numbers, "count": outcome.count,
             "folder": str(FAILURES), "sanitize": sanitize}  # fmt: skip
    with tempfile.TemporaryFile("w+") as complaints:
        process = subprocess.Popen(
            command(given),
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
            **surroundings(sanitize),
        )
        at, stage, results, done = numbers[0], "start", 0, set()
        watch = Watch(process)
        for line in process.stdout:
            watch.seen()
            said = json.loads(line)
            at, stage = said.get("begin", at), said.get("stage", stage)
            results = said.get("results", results)
            if "begin" in said:
                stage, results = "building", 0
            with outcome.lock:
                if "shown" in said:
                    outcome.shown[at] = said["shown"]
                if "passed" in said:
                    outcome.passed.append(at)
                    done.add(at)
                    tell(f"{at}: passed in {said['seconds']} s")
                if "failed" in said:
                    outcome.failed[at] = f"{said['error']}\n{said['trace']}{said['kept']}"
                    done.add(at)
                    tell(f"{at}: {outcome.failed[at]}")
        process.wait()
        watch.stop()
        complaints.seek(0)
        text = complaints.read()
    if process.returncode != 0 and at not in done:
        with outcome.lock:
            kept = ended(given, at, results)
            outcome.failed[at] = (
                f"ended in: {stage}\n{report(text, process.returncode, watch)}\n{kept}"
            )
            done.add(at)
            tell(f"{at}: {outcome.failed[at]}")
    elif process.returncode != 0:
        raise RuntimeError(f"the process ended after {at}:\n{text[-4000:]}")
    return [n for n in numbers if n not in done]


def ended(given, number, results):
    """The file of a program that ends the process: one result of it, where that is enough."""
    given = {**given, "numbers": [number]}
    for part in range(results if results > 1 else 0):
        if finished({**given, "part": part, "folder": ""}).returncode != 0:
            given["part"] = part
            break
    finished({**given, "write": True})
    return f"{given['folder']}/{given['seed']}-{number}.geon"


def finished(given):
    """A process that was run to its end, or for as long as one may be silent."""
    try:
        return subprocess.run(
            command(given), capture_output=True, timeout=LONGEST, **surroundings(given["sanitize"])
        )
    except subprocess.TimeoutExpired as late:
        return subprocess.CompletedProcess(late.cmd, -1)


def command(given):
    return [sys.executable, "-m", "tests.large.child", json.dumps(given)]


def surroundings(sanitize):
    return {"env": environment(sanitize), "cwd": Path(__file__).parents[2]}


class Watch:
    """Ends a process that says nothing for too long."""

    def __init__(self, process):
        self.process, self.last, self.ended, self.killed = process, time.monotonic(), False, False
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def seen(self):
        self.last = time.monotonic()

    def look(self):
        while not self.ended:
            if time.monotonic() - self.last > LONGEST:
                self.killed = True
                self.process.kill()
                return
            time.sleep(0.2)

    def stop(self):
        self.ended = True
        self.thread.join()


def report(text, status, watch):
    """What is worth reading of what a process said at its end."""
    if watch.killed:
        return f"it said nothing for {LONGEST:g} s"
    lines = text.splitlines()
    signs = ("ERROR: ", "runtime error", "Fatal Python error")
    found = [k for k, line in enumerate(lines) if any(sign in line for sign in signs)]
    start = found[0] if found else max(0, len(lines) - 25)
    return "\n".join([f"status {status}", *lines[start : start + 25]])


def environment(sanitize):
    """The variables of a process that checks."""
    found = {**os.environ, "GEON_DEBUG": "verify", "PYTHONFAULTHANDLER": "1"}
    root = str(Path(__file__).parents[2])
    found["PYTHONPATH"] = os.pathsep.join(filter(None, [root, found.get("PYTHONPATH", "")]))
    if sanitize:
        found |= sanitizer_environment(find_toolchain())
        # NumPy asks for large arrays and uses little of them; pages are given back at once.
        found["ASAN_OPTIONS"] += ":quarantine_size_mb=16:allocator_may_return_null=1"
    return found


def can_sanitize():
    """Whether the compiler comes with the sanitizer."""
    toolchain = find_toolchain()
    try:
        return toolchain is not None and bool(sanitizer_environment(toolchain))
    except UnavailableError:
        return False


def main(arguments=None):
    """Run programs and print failures and which constants were met; the number of failures."""
    parser = argparse.ArgumentParser(prog="python -m tests.large.fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000, help="how many")
    parser.add_argument("--seed", default="", help="what they are made of; else a new one")
    parser.add_argument("--only", default="", help="numbers of single programs, with commas")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    options = parser.parse_args(arguments)
    seed = options.seed or secrets.token_hex(4)
    numbers = [int(n) for n in options.only.split(",") if n] or list(range(options.programs))
    print(f"seed {seed}, {len(numbers)} of {options.programs} programs", flush=True)
    if not can_sanitize():
        print("there is no sanitizer here: programs run without")
    began = time.monotonic()

    def tell(text):
        print(f"{time.monotonic() - began:7.1f} s  {text}", flush=True)

    outcome = run(seed, numbers, options.programs, options.jobs, can_sanitize(), tell)
    missing, used = outcome.uncovered()
    print(f"\n{len(outcome.passed)} passed, {len(outcome.failed)} failed; seed {seed}")
    for number, text in sorted(outcome.failed.items()):
        print(f"\n--- {number}: {outcome.shown.get(number, '')}\n{text}")
    print("\nhow often each constant was met (below, at, above, many times):")
    for name in aims():
        counts = "  ".join(
            f"{near} {used[name, near]}" for near in ("below", "at", "above", "many")
        )
        print(f"  {name:50} {counts}")
    if not options.only and missing:
        print("\nnever met:", *(f"{name} ({near})" for name, near in missing), sep="\n  ")
    whole = not options.only and options.programs >= 1000
    return 1 if outcome.failed or (whole and missing) else 0


if __name__ == "__main__":
    sys.exit(main())
