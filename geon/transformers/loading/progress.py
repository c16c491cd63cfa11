"""Progress of long compilations: a bar in terminals and notebooks, log lines elsewhere."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
import time
from typing import Any, Protocol

REPORT_INTERVAL_SECONDS = (
    2.0  # seconds of compiling before the first message, and between two log lines
)

log = logging.getLogger("geon")


class Display(Protocol):
    """Shows the progress of compiling."""

    def show(self, done: int) -> None:
        """Show that ``done`` units are compiled."""

    def close(self) -> None:
        """End the display, after success or failure."""


class CompileProgress:
    """A context manager that counts compiled units out of ``total`` and displays them.

    A compilation of less than ``REPORT_INTERVAL_SECONDS`` seconds shows nothing. Nothing is written
    to standard
    output.
    """

    def __init__(self, total: int) -> None:
        self.total, self.count = total, 0
        self.lock = threading.Lock()
        self.display: Display | None = None
        self.ended = False
        self.timer = threading.Timer(REPORT_INTERVAL_SECONDS, self._begin)
        self.timer.name, self.timer.daemon = "geon says that it compiles", True

    def __enter__(self) -> CompileProgress:
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
    """Suppress errors of the display, so that compiling continues."""
    return contextlib.suppress(OSError, ValueError)


def make_display(total: int) -> Display:
    """Return a bar if standard error is visible to a user, else log lines."""
    if not (in_notebook() or in_terminal()):
        return Logged(total)
    try:
        return Bar(total)
    except ImportError:
        return StatusLine(total)


def in_terminal() -> bool:
    """Return True if standard error is a terminal."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def in_notebook() -> bool:
    """Return True if this process runs the cells of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


class Bar:
    """tqdm's progress bar, removed at the end; ``ImportError`` without tqdm."""

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


class StatusLine:
    """One line of standard error that is overwritten, and removed at the end."""

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
    """Lines of geon's log at level INFO: one at once, others at least ``REPORT_INTERVAL_SECONDS``
    seconds apart.
    """

    def __init__(self, total: int) -> None:
        self.total, self.last = total, -REPORT_INTERVAL_SECONDS

    def show(self, done: int) -> None:
        now = time.monotonic()
        if now - self.last >= REPORT_INTERVAL_SECONDS:
            self.last = now
            log.info("compiling: %d of %d units", done, self.total)

    def close(self) -> None:
        pass
