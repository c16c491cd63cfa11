"""``Run`` and ``Callback``: the state of a training for callbacks, and their interface."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from signal import SIG_DFL, SIGINT, default_int_handler, raise_signal
from typing import TYPE_CHECKING, Any

from ....errors import ArgumentError
from ....op_graph.core.source_info import user_call

try:  # the functions of signal take as long as all else at an epoch's end, for their enumerations
    # A module of CPython without type stubs, hence the ignored error of the checker.
    from _signal import signal  # type: ignore[import-not-found]
except ImportError:
    from signal import signal

if TYPE_CHECKING:
    from .model import Model


@dataclass
class Run:
    """The state of a training in progress.

    ``epoch`` counts finished epochs, ``batch`` the batches of the current one, ``steps`` the
    batches of this call of ``fit``. ``cost`` is that of the last batch, ``figures`` are those of
    the last epoch. A callback sets ``stop``, to the reason, to end training after the epoch.
    """

    model: Model
    epochs: int
    batches: int | None  # batches of an epoch, None if unknown
    epoch: int = 0
    batch: int = 0
    steps: int = 0
    cost: float = float("nan")
    figures: Mapping[str, float] = field(default_factory=dict)
    stop: str | None = None
    interrupted: bool = False
    error: BaseException | None = None


class Callback:
    """Base of callbacks, which are called while a model is trained; subclasses override methods.

    ``numbers`` are initial values of numbers that it keeps in checkpoints, by name; it reads and
    sets them with ``run.model.number`` and ``run.model.set_number``.
    """

    numbers: Mapping[str, float] = {}
    checked = False  # True if training must check each value, with ``check="nan"``
    saves = False  # True if it writes the state of other callbacks, and so is called last

    def begin(self, run: Run) -> None:
        """Called before the first batch."""

    def after_batch(self, run: Run) -> None:
        """Called after each batch."""

    def after_epoch(self, run: Run) -> None:
        """Called after each epoch, when its figures are known."""

    def end(self, run: Run) -> None:
        """Called after the last batch, however training ended."""


def in_order(callbacks: Sequence[Callback]) -> list[Callback]:
    """Return the callbacks in calling order, those that save last.

    Raises ``ArgumentError`` for other objects, and for two that keep one number.
    """
    listed = list(callbacks) if isinstance(callbacks, (list, tuple, Iterable)) else [callbacks]
    if listed == [callbacks] or not all(isinstance(each, Callback) for each in listed):
        raise ArgumentError(
            f"{user_call('fit')}: callbacks={callbacks!r} is no list of callbacks; give callbacks="
            "[neon.History()], or objects of your own subclass of neon.Callback"
        )
    owners: dict[str, Callback] = {}
    for callback in listed:
        for name in callback.numbers:
            other = owners.setdefault(name, callback)
            if other is not callback:
                raise ArgumentError(
                    f"{user_call('fit')}: the callbacks {other!r} and {callback!r} keep one "
                    f"number, {name!r}, in "
                    "checkpoints; give one of them, or have them watch other figures"
                )
    return sorted(listed, key=lambda callback: callback.saves)


class HeldInterrupts:
    """A ``with`` block that defers Ctrl-C to its end, where the original handler gets it.

    If the block fails, its error is raised instead.
    """

    __slots__ = ("before", "caught", "held")

    def __enter__(self) -> None:
        self.caught = False
        # Signals go to the main thread.
        self.held = threading.current_thread() is threading.main_thread()
        if self.held:
            self.before = signal(SIGINT, self._note)

    def _note(self, *_: Any) -> None:
        self.caught = True

    def __exit__(self, failed: object, *_: object) -> None:
        if self.held:
            signal(SIGINT, SIG_DFL if self.before is None else self.before)
        if not self.caught or (failed is not None and self.before is default_int_handler):
            return
        if self.before is None:  # the handler was not installed from Python
            raise KeyboardInterrupt
        raise_signal(SIGINT)
