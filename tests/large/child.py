"""A process that checks programs and says how each went, a line of JSON for each step.

It is started with the sanitizer loaded: an error of memory ends it, and whoever reads its lines
knows the program by the last one.
"""

import json
import sys
import time
import traceback

from .checking import check, dumped
from .planned import plan
from .programs import grown


def say(**words):
    """One line for the parent."""
    print(json.dumps(words), file=SAID, flush=True)


SAID = sys.stdout


def main(seed, numbers, count, folder, sanitize, part=None, write=False):
    """Check the programs of these numbers; a failure is written into the folder.

    Of a program only the result ``part`` is computed, where that is given; ``write`` writes it and
    checks nothing: what ends a process is written by another.
    """
    aims = plan(seed, count)
    for number in numbers:
        say(begin=number)
        began = time.monotonic()
        program = None
        try:
            program = grown(seed, number, aims[number])
            say(shown=str(program), results=len(program.results))
            program = program if part is None else program.alone(part)
            if write:
                say(kept=keep(f"{folder}/{seed}-{number}.geon", program))
                continue
            check(program, sanitize, lambda text: say(stage=text))
        except Exception as error:
            trace = "" if isinstance(error, AssertionError) else traceback.format_exc()
            kept = ""
            if program is not None and folder:
                kept = keep(f"{folder}/{seed}-{number}.geon", *smallest(program, sanitize, error))
            say(failed=number, error=f"{type(error).__name__}: {error}", trace=trace, kept=kept)
        else:
            say(passed=number, seconds=round(time.monotonic() - began, 2))


def smallest(program, sanitize, error):
    """One result of a program that is wrong by itself, else all; and the call in which it is."""
    for k in range(len(program.results) if len(program.results) > 1 else 0):
        try:
            check(program.alone(k), sanitize)
        except Exception as same:
            return program.alone(k), getattr(same, "call", 0)
    return program, getattr(error, "call", 0)


def keep(path, program, call=0):
    """Write a program with the data of a call."""
    with open(path, "w") as file:
        file.write(dumped(program, call))
    return path


if __name__ == "__main__":
    main(**json.loads(sys.argv[1]))
