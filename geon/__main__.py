"""``python -m geon``: the commands ``doctor``, ``replay`` and ``onnx``."""

import argparse
import sys
from collections.abc import Iterator, Sequence

from .errors import UnavailableError
from .version import __version__


def transformers() -> Iterator[tuple[str, bool, str]]:
    """Yield each transformer's name, whether it is usable here, and a cure or "usable"."""
    from .transformers.loading import registry

    names = registry.transformer_names()
    for name in names:
        try:
            cure = registry.transformer_class(name).unavailable()
        except Exception as error:  # third-party code, which may raise anything
            cure = f"does not load: {error}"
        yield name, cure is None, cure or "usable"


def compilers() -> Iterator[tuple[bool, str, str]]:
    """Yield rows for compilers that were rejected, with reasons, and for the C compiler in use.

    ``CC`` is among the candidates.
    """
    from .transformers.native.toolchain import compilers

    found = compilers.find_toolchain()
    for reason in compilers.passed_over():
        yield False, "C compiler", f"not {reason}"
    if found is None:
        yield False, "C compiler", f"none: {compilers.CURE}"
    else:
        yield True, "C compiler", f"{' '.join(found.command)}: {found.version}"


def longer_calls() -> str | None:
    """Return how to enable the fast calls of native code; None if they are enabled."""
    from .transformers.native.runtime.fast_call import CURE, extension

    return CURE if extension() is None else None


def print_checks(rows: Sequence[tuple[bool, str, str]]) -> None:
    """Print rows of (is available, name, status), one below another."""
    width = max(len(name) for _, name, _ in rows)
    for there, name, status in rows:
        print(f"{'ok' if there else '--'}  {name:{width}}  {status}")


def doctor() -> int:
    """Print the status of transformers, of compilers of native code, and of GPU support.

    Returns 0 if at least one transformer is usable, else 1.
    """
    from .transformers.pycuda.reports.doctor import findings

    print(f"geon {__version__}")
    rows = list(transformers())
    print_checks([(usable, name, status) for name, usable, status in rows])
    print("compilers of native code:")
    print_checks(list(compilers()))
    print("for NVIDIA GPUs:")
    print_checks(list(findings()))
    missing = longer_calls()
    if missing is not None:
        print(f"calls of native code take some microseconds more: {missing}")
    return 0 if any(usable for _, usable, _ in rows) else 1


def main(argv: Sequence[str] | None = None) -> int:
    """Return the exit status of one command; unknown commands print the usage and exit with 2."""
    parser = argparse.ArgumentParser(prog="python -m geon", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("doctor", help="which transformers are usable, and how to get the others")
    replay = commands.add_parser("replay", help="compute a dump again, beside the interpreter")
    replay.add_argument("file", help="what geon.dumps or computation.dumps wrote")
    replay.add_argument("--transformer", default="numpy", metavar="NAME", help="what computes it")
    model = commands.add_parser("onnx", help="what an ONNX model has, needs and takes")
    model.add_argument("file", help="the model")
    model.add_argument(
        "--lengths", nargs="*", default=[], metavar="NAME=LENGTH",
        help="lengths of open axes, 1 by default: N=8 T=128",
    )  # fmt: skip
    model.add_argument("--transformer", default="native", metavar="NAME", help="what runs it")
    model.add_argument("--threads", type=int, help="of geon, and of ONNX Runtime")
    model.add_argument("--bench", action="store_true", help="time it beside ONNX Runtime")
    options = parser.parse_args(argv)
    if options.command == "doctor":
        return doctor()
    if options.command == "onnx":
        try:
            from .frontends.onnx import command
        except UnavailableError as error:
            print(error)
            return 1
        return command.main(options)
    from . import replay as replaying

    return replaying.main(options.file, options.transformer)


if __name__ == "__main__":
    sys.exit(main())
