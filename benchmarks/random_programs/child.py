"""A process that measures programs and says how each went, a line of JSON for each step.

Whoever reads its lines knows by the last one which program ended it.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

from benchmarks.peers.processes import pin

SAID = sys.stdout


def say(**words: Any) -> None:
    """One line for the parent."""
    print(json.dumps(words), file=SAID, flush=True)


def main(what: str, seed: str, numbers: list[int], threads: int, small: bool, **more: Any) -> None:
    """Measure the programs of these numbers; ``what`` is ``measured`` or ``raced``, a module."""
    pin(threads)  # JAX has as many threads as there are processors to run on
    if what == "raced":
        from .raced import raced as measure  # here because it needs JAX
    else:
        from .measured import measured as measure
    from .programs import grown

    for number in numbers:
        say(begin=number)
        try:
            program = grown(seed, number, derivatives=what != "raced", small=small)
            say(shown=str(program))
            say(done=number, found=measure(program, threads, **more))
        except Exception as error:
            text = str(error).splitlines() or [""]
            found = traceback.extract_tb(error.__traceback__)
            trace = [f"{at.filename}:{at.lineno}" for at in found[-3:]]
            say(failed=number, error=f"{type(error).__name__}: {text[0]}"[:400], trace=trace)


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
