"""Says that compiling takes long: a bar in terminals and notebooks, lines of the log elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from typing import Any, Protocol

LONG = 2.0  # seconds of compiling from which something is said, and between two lines of the log

log = logging.getLogger("geon")


class Display(Protocol):
    """What shows how far compiling is."""

    def show(self, done: int) -> None:
        """Show that so many units are done."""

    def close(self) -> None:
        """Compiling has ended, well or not."""


class Progress:
    """How many of ``total`` units are compiled: a context that lasts as long as compiling does.

    What takes less than ``LONG`` seconds shows nothing. Nothing is written to standard output.
    """

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0
        self.lock = threading.Lock()
        self.display: Display | None = None
        self.ended = False
        self.timer = threading.Timer(LONG, self._begin)
        self.timer.name, self.timer.daemon = "geon says that it compiles", True

    def __enter__(self) -> Progress:
        self.timer.start()
        return self

    def done(self) -> None:
        """Count a unit."""
        with self.lock:
            self.count += 1
            self._show()

    def __exit__(self, *_: object) -> None:
        self.timer.cancel()
        with self.lock, quiet():
            self.ended = True
            if self.display is not None:
                self.display.close()

    def _begin(self) -> None:
        with self.lock:
            if not self.ended:
                self.display = make_display(self.total)
                self._show()

    def _show(self) -> None:
        if self.display is not None:
            with quiet():
                self.display.show(self.count)


def quiet() -> contextlib.AbstractContextManager[None]:
    """Where there is nobody to read any more, compiling goes on."""
    return contextlib.suppress(OSError, ValueError)


def make_display(total: int) -> Display:
    """A bar where somebody looks at standard error, else lines of the log."""
    if not (in_notebook() or in_terminal()):
        return Logged(total)
    try:
        return Bar(total)
    except ImportError:
        return Line(total)


def in_terminal() -> bool:
    """Whether standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def in_notebook() -> bool:
    """Whether this process computes the cells of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


class Bar:
    """tqdm's bar, which goes when all is done; ``ImportError`` where tqdm is not installed."""

    def __init__(self, total: int) -> None:
        from tqdm.auto import tqdm

        self.bar: Any = tqdm(
            total=total,
            file=sys.stderr,
            leave=False,
            bar_format="compiling: {n_fmt} of {total_fmt} units |{bar}|",
        )

    def show(self, done: int) -> None:
        self.bar.n = done
        self.bar.refresh()

    def close(self) -> None:
        self.bar.close()


class Line:
    """A line of standard error that is written again and again, and goes when all is done."""

    def __init__(self, total: int) -> None:
        self.total, self.width = total, 0

    def show(self, done: int) -> None:
        self._write(f"compiling: {done} of {self.total} units")

    def close(self) -> None:
        self._write("")
        self._write("")

    def _write(self, text: str) -> None:
        sys.stderr.write(f"\r{text:{self.width}}")
        sys.stderr.flush()
        self.width = len(text)


class Logged:
    """Lines of geon's log, at level INFO: one now, others ``LONG`` seconds apart at least."""

    def __init__(self, total: int) -> None:
        self.total, self.last = total, -LONG

    def show(self, done: int) -> None:
        now = time.monotonic()
        if now - self.last >= LONG:
            self.last = now
            log.info("compiling: %d of %d units", done, self.total)

    def close(self) -> None:
        pass
