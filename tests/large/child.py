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


def main(seed, numbers, count, folder, sanitize):
    """Check the programs of these numbers; a failure is written into the folder."""
    aims = plan(seed, count)
    for number in numbers:
        say(begin=number)
        began = time.monotonic()
        program = None
        try:
            program = grown(seed, number, aims[number])
            say(shown=str(program), built=round(time.monotonic() - began, 2))
            check(program, sanitize, lambda text: say(stage=text))
        except Exception as error:
            kept = ""
            if program is not None and folder:
                kept = f"{folder}/{seed}-{number}.geon"
                with open(kept, "w") as file:
                    file.write(dumped(program))
            trace = "" if isinstance(error, AssertionError) else traceback.format_exc()
            say(failed=number, error=f"{type(error).__name__}: {error}", trace=trace, kept=kept)
        else:
            say(passed=number, seconds=round(time.monotonic() - began, 2))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(**given)
