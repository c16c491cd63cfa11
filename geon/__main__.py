"""``python -m geon``: say what can run on this machine, or run a dumped graph again."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import entry_points

KNOWN = ("numpy", "native", "pycuda")


def transformers() -> Iterator[tuple[str, bool, str]]:
    """Each transformer's name, whether it is usable here, and if not what would make it so."""
    found = {entry.name: entry for entry in entry_points(group="geon.transformers")}
    for name in (*KNOWN, *sorted(found.keys() - set(KNOWN))):
        if name not in found:
            yield name, False, "planned: not part of this version of geon"
            continue
        try:
            cure = found[name].load().unavailable()
        except (ImportError, AttributeError) as error:
            cure = f"its package does not load: {error}"
        yield name, cure is None, cure or "usable"


def doctor() -> int:
    """Print a line for each transformer; 0 where at least one is usable, else 1."""
    rows = list(transformers())
    width = max(len(name) for name, _, _ in rows)
    for name, usable, status in rows:
        print(f"{'ok' if usable else '--'}  {name:{width}}  {status}")
    return 0 if any(usable for _, usable, _ in rows) else 1


def main(argv: Sequence[str] | None = None) -> int:
    """The exit status of one command; unknown commands print the usage and exit with 2."""
    parser = argparse.ArgumentParser(prog="python -m geon", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="which transformers are usable, and how to get the others")
    replay = commands.add_parser("replay", help="compile and run the graph in a dump")
    replay.add_argument("file", help="a file that geon.dumps made, or that a failed test left")
    replay.add_argument("--transformer", default="numpy", metavar="NAME", help="what runs it")
    options = parser.parse_args(argv)
    if options.command == "doctor":
        return doctor()
    from geon import replay as replaying

    return replaying.main(options.file, options.transformer)


if __name__ == "__main__":
    sys.exit(main())
