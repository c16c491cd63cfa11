"""Hooks that show the progress of a training, and one that schedules a stepper."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from ....errors import UnavailableError
from ..describable import Members, described, hidden
from ..errors import ValidationError
from ..utils import get_by_path
from .base import Hook, Iterators, Logs


@described
class BokehVisualizer(Hook):
    """A live Matplotlib picture of logs, with the name that the hook has in Brainstorm.

    ``log_names`` are dotted paths into the logs. The picture is shown in a window where Matplotlib
    has one, and saved to ``filename``, as PNG unless it has another extension, at each call.
    """

    log_names: str | Sequence[str]
    filename: str | None = None
    figure: Any = hidden(default=None)
    lines: dict[str, Any] = hidden(default={})

    def __complete__(self) -> None:
        super().__complete__()
        names = self.log_names
        self.log_names = [names] if isinstance(names, str) else list(names)

    def start(self, net: Any, stepper: Any, verbose: bool, named_data_iters: Iterators) -> None:
        """Draw the axes; raise ``UnavailableError`` if Matplotlib is not installed."""
        super().start(net, stepper, verbose, named_data_iters)
        try:
            from matplotlib import pyplot
        except ImportError:
            raise UnavailableError(
                f"{self.__name__} draws with Matplotlib, which is not installed: pip install "
                "matplotlib"
            ) from None
        self.figure, axes = pyplot.subplots(num=self.__name__, clear=True)
        self.lines = {log: axes.plot([], [], label=log)[0] for log in self.log_names}
        axes.set(title=self.__name__, xlabel=self.timescale, ylabel="value")
        axes.legend()
        if self._has_window():
            pyplot.show(block=False)

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Draw the values so far."""
        if epoch_nr == 0:
            return
        for log_name, line in self.lines.items():
            values = get_by_path(logs, log_name)
            line.set_data(range(len(values)), values)
        (axes,) = self.figure.axes
        axes.relim()
        axes.autoscale_view()
        if self._has_window():
            self.figure.canvas.draw_idle()
            self.figure.canvas.flush_events()
        if self.filename is not None:
            stem, dot, extension = self.filename.rpartition(".")
            named = dot and extension and "/" not in extension and stem
            self.figure.savefig(self.filename if named else f"{self.filename}.png")

    def finish(self) -> None:
        """Close a picture that has no window."""
        if self.figure is not None and not self._has_window():
            from matplotlib import pyplot

            pyplot.close(self.figure)
            self.figure = None

    def _has_window(self) -> bool:
        return self.figure.canvas.required_interactive_framework is not None


class ProgressBar(Hook):
    """A tqdm progress bar for each epoch."""

    __undescribed__: ClassVar[Members] = {"length": None, "bar": None, "epoch": 0}

    def __init__(self) -> None:
        super().__init__(timescale="update")
        self.length: int | None = None
        self.bar: Any = None
        self.epoch = 0

    def start(self, net: Any, stepper: Any, verbose: bool, named_data_iters: Iterators) -> None:
        """Take the number of updates; raise ``UnavailableError`` if tqdm is not installed."""
        super().start(net, stepper, verbose, named_data_iters)
        try:
            import tqdm  # noqa: F401
        except ImportError:
            raise UnavailableError(
                f"{self.__name__} shows bars of tqdm, which is not installed: pip install tqdm"
            ) from None
        self.length = named_data_iters["training_data_iter"].length
        self.epoch = 0

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Move the bar by an update, or begin that of the next epoch."""
        if epoch_nr == 0:
            return
        if epoch_nr != self.epoch:
            from tqdm import tqdm

            self.finish()
            self.bar, self.epoch = tqdm(total=self.length, desc=f"Epoch {epoch_nr}"), epoch_nr
        self.bar.update()
        if self.bar.n == self.length:
            self.finish()

    def finish(self) -> None:
        """Close the bar."""
        if self.bar is not None:
            self.bar.close()
            self.bar = None


@described
class InfoUpdater(Hook):
    """Write epoch, update, logs and number of parameters to ``run.info``, such as Sacred's."""

    __undescribed__: ClassVar[Members] = {"run"}
    run: Any

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Update the dictionary."""
        info = self.run.info
        info.update(epoch_nr=epoch_nr, update_nr=update_nr, logs=logs)
        info.setdefault("nr_parameters", int(net.buffer.parameters.size))


@described
class ModifyStepperAttribute(Hook):
    """Set an attribute of the stepper to the value of a schedule."""

    schedule: Any
    attr_name: str = "learning_rate"

    def start(self, net: Any, stepper: Any, verbose: bool, named_data_iters: Iterators) -> None:
        """Raise ``ValidationError`` unless the stepper has the attribute."""
        super().start(net, stepper, verbose, named_data_iters)
        if not hasattr(stepper, self.attr_name):
            named = [*getattr(stepper, "numbers", ()), *getattr(stepper, "constants", ())]
            raise ValidationError(
                f"{self.__name__}: {type(stepper).__name__} has no attribute {self.attr_name!r}; "
                f"it has {', '.join(map(repr, named))}"
            )

    def __call__(self, epoch_nr: int, update_nr: int, net: Any, stepper: Any, logs: Logs) -> None:
        """Set the attribute."""
        value = self.schedule(
            epoch_nr, update_nr, self.timescale, self.interval, net, stepper, logs
        )
        setattr(stepper, self.attr_name, value)
