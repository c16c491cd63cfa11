"""Start-up time of geon: ``import geon`` beside NumPy's, and the first result of a cached program.

``python -m benchmarks.startup`` prints medians over fresh processes. Programs are in the disk cache
before anything is counted: from the start of ``import geon`` to the first result. ``--bytecode no``
measures where Python compiles each module anew, as with ``PYTHONDONTWRITEBYTECODE``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

PROGRAMS = {
    "import": "import geon",
    "small": "mean of tanh of a product, first result",
    "gpt": "GPT training step, three layers, first result",
}
TRIALS = 7


def child(program: str) -> None:
    """Print what this process takes: seconds of NumPy's import and of geon's work, and modules."""
    start, cpu = time.perf_counter(), time.process_time()
    import numpy as np

    numpy, cpu_numpy = time.perf_counter(), time.process_time()
    import geon

    if program == "small":
        n, c, h = geon.Axis("N"), geon.Axis("C", 4), geon.Axis("H", 3)
        x = geon.placeholder([n, c])
        w = geon.Variable([c, h], initial_value=0.1, name="w")
        y = geon.mean(geon.tanh(geon.dot(x, w)))
        geon.make_transformer("native").computation(y, x)(np.ones((5, 4)))
    elif program == "gpt":
        from benchmarks.compile_times.geon_programs import gpt

        results, placeholders, values = gpt()
        geon.make_transformer("native").computation(results, *placeholders)(*values)
    found = {
        "NumPy": numpy - start,
        "geon": time.perf_counter() - numpy,
        "NumPy, CPU": cpu_numpy - cpu,
        "geon, CPU": time.process_time() - cpu_numpy,
        "modules": sum(name.partition(".")[0] == "geon" for name in sys.modules),
    }
    print(json.dumps(found))


def measured(program: str, environment: dict[str, str]) -> dict[str, float]:
    """What a fresh process prints about a program."""
    command = [sys.executable, "-m", "benchmarks.startup", "--child", program]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup")
    parser.add_argument("--child", choices=PROGRAMS)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--bytecode", choices=("yes", "no"), default="yes")
    chosen = parser.parse_args()
    if chosen.child:
        child(chosen.child)
        return
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        environment = {**os.environ, "GEON_CACHE": f"{folder}/geon"}
        environment["PYTHONPYCACHEPREFIX"] = f"{folder}/bytecode"
        environment["PYTHONDONTWRITEBYTECODE"] = "" if chosen.bytecode == "yes" else "1"
        print("| from `import geon` on | NumPy's import | beyond it | modules of geon |")
        print("|---|---|---|---|")
        for program, title in PROGRAMS.items():
            for _ in range(2):  # the first compiles; the second writes what only a hit imports
                measured(program, environment)
            rows = [measured(program, environment) for _ in range(chosen.trials)]
            middle = {name: statistics.median(row[name] for row in rows) for name in rows[0]}
            cells = [
                f"{middle[who]:.3f} s ({middle[f'{who}, CPU']:.3f} s CPU)"
                for who in ("NumPy", "geon")
            ]
            print(f"| {title} | {' | '.join(cells)} | {middle['modules']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
