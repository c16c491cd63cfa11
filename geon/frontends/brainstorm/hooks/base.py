"""Base classes of hooks."""

from __future__ import annotations

from typing import Any, ClassVar

from ..data_iterators import DataIterator
from ..describable import Describable, Members, described, option
from ..errors import ValidationError
from ..utils import PathError, get_by_path

Iterators = dict[str, DataIterator]
Logs = dict[str, Any]


@described
class Hook(Describable):
    """Base of hooks: called after every ``interval`` epochs or updates, by ``timescale``.

    Subclasses take the arguments of this class after their own. ``name``, by default that of the
    class, is the key of its logs. ``verbose`` prints its logs and
    messages; by default the trainer decides. ``__call__`` returns a log, such as a number or nested
    dictionaries of numbers, or None, and raises ``StopIteration`` to stop the training.
    """

    __undescribed__: ClassVar[Members] = {"name", "__name__", "run_verbosity"}  # the trainer names
    name: str | None = option(default=None, kw_only=True)
    timescale: str = option(default="epoch", kw_only=True)
    interval: int = option(default=1, kw_only=True)
    verbose: bool | None = option(default=None, kw_only=True)

    def __complete__(self) -> None:
        if self.timescale not in ("epoch", "update") or self.interval < 1:
            raise ValidationError(
                f"{type(self).__name__}: timescale={self.timescale!r}, interval={self.interval!r}; "
                "give 'epoch' or 'update', and an interval of at least 1"
            )
        self.__name__ = self.name or self.default_name()
        self.priority = vars(self).get("priority", 0)
        self.run_verbosity = self.verbose

    def default_name(self) -> str:
        """Return the name of a hook that is given none."""
        return type(self).__name__

    def start(self, net: Any, stepper: Any, verbose: bool, named_data_iters: Iterators) -> None:
        """Prepare for a training."""
        self.run_verbosity = verbose if self.verbose is None else self.verbose

    def finish(self) -> None:
        """Release what ``start`` took; called when the training ends, also by an error."""

    def message(self, msg: str) -> None:
        """Print a message if the hook is verbose."""
        if self.run_verbosity:
            print(f"{self.__name__} >> {msg}")

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> Any:
        """Do the work of the hook after so many epochs and updates."""


class CriterionHook(Hook):
    """Base of hooks that compare the values of a log: the smallest or largest is the best."""

    log_name: str
    criterion: str

    def __complete__(self) -> None:
        super().__complete__()
        if self.criterion not in ("min", "max"):
            raise ValidationError(
                f"{type(self).__name__}: criterion={self.criterion!r}; give 'min' or 'max'"
            )

    def values(self, logs: Logs, epoch_nr: int) -> list[float]:
        """Return the values of the log so far; before the first epoch there may be none."""
        try:
            return list(get_by_path(logs, self.log_name))
        except PathError as error:
            if epoch_nr == 0:
                return []
            raise PathError(
                f"{self.__name__}: {error}; add the hook that logs it before this one, with the "
                "same timescale and interval"
            ) from None

    def is_at_least_as_good(self, value: float, other: float) -> bool:
        """Return True if a value is not worse than another."""
        return value <= other if self.criterion == "min" else value >= other
