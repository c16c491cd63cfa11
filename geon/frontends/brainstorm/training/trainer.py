"""``Trainer``: epochs of updates, hooks between them, and logs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, ClassVar

from ..data_iterators import DataIterator
from ..describable import Describable, Members
from ..errors import IteratorValidationError, ValidationError
from ..scorers import Scorer, Scores, aggregate_losses_and_scores, gather_losses_and_scores
from .steppers import TrainingStepper
from .utils import run_network

Logs = dict[str, Any]


class Trainer(Describable):
    """Trains a network: ``stepper`` updates it, and hooks watch, save and stop.

    ``train_scorers`` are scored on the batches of the training. Logs of hooks are in ``logs`` by
    their names, and the losses and scores of each epoch of training under ``rolling_training``.
    With ``carry_context``, recurrent layers begin each batch of an epoch, but the first, where they
    ended the one before. With ``compiled``, the forward pass, the backward pass and the stepper are
    one compiled computation. Then only parameters, losses, outputs that scorers read and buffers
    that ``keep`` names can be looked at.
    """

    __undescribed__: ClassVar[Members] = {
        "current_epoch_nr": 0,
        "current_update_nr": 0,
        "logs": {},
        "results": {},
    }
    __default_values__ = {
        "verbose": True,
        "compiled": False,
        "keep": [],
        "carry_context": False,
    }

    def __init__(
        self,
        stepper: TrainingStepper,
        verbose: bool = True,
        compiled: bool = False,
        keep: Sequence[str] = (),
        carry_context: bool = False,
    ) -> None:
        self.stepper = stepper
        self.verbose = verbose
        self.compiled = compiled
        self.keep = list(keep)
        self.carry_context = carry_context
        self.hooks: dict[str, Any] = {}
        self.train_scorers: list[Scorer] = []
        self.current_epoch_nr = 0
        self.current_update_nr = 0
        self.logs: Logs = {}
        self.results: Logs = {}

    def __init_from_description__(self, description: dict[str, Any]) -> None:
        """Order the hooks by priority and name them."""
        self.hooks = dict(sorted(self.hooks.items(), key=lambda item: item[1].priority))
        for name, hook in self.hooks.items():
            hook.__name__ = name

    def add_hook(self, hook: Any) -> None:
        """Add a hook; hooks are called in the order in which they were added.

        Raises ``ValidationError``, a ``ValueError``, if there is a hook of its name.
        """
        if hook.__name__ in self.hooks:
            raise ValidationError(
                f"there is a hook {hook.__name__!r} already, a "
                f"{type(self.hooks[hook.__name__]).__name__}; give this one another name="
            )
        self.hooks[hook.__name__] = hook
        hook.priority = max(h.priority for h in self.hooks.values()) + 1

    def train(
        self, net: Any, training_data_iter: DataIterator, **named_data_iters: DataIterator
    ) -> None:
        """Train until a hook raises ``StopIteration``.

        Each update gives a batch to the network, runs the stepper, scores the batch, applies the
        weight modifiers and calls the hooks of updates. Hooks are also called once before all
        updates. ``named_data_iters`` are for hooks, which name them.
        """
        provided, expected = (
            set(training_data_iter.data_shapes),
            set(net.buffer.Input.outputs.keys()),
        )
        if provided != expected:
            raise IteratorValidationError(
                f"the iterator provides {sorted(provided)} and the network has the inputs "
                f"{sorted(expected)}; give the data these names"
            )
        self._say("Before Training")
        self.stepper.start(net)
        self.stepper.carry_context = self.carry_context
        run = self._compiled_step(net) if self.compiled else self.stepper.run
        try:
            self._start_hooks(net, named_data_iters | {"training_data_iter": training_data_iter})
            stop = self._emit_hooks(net, "update") or self._emit_hooks(net, "epoch")
            while not stop:
                stop = self._train_epoch(net, training_data_iter, run)
        finally:
            self._finish_hooks()

    def _compiled_step(self, net: Any) -> Any:
        """Return a function that makes one step of the compiled network."""
        read = [scorer.out_name or net.output_name for scorer in self.train_scorers]
        steps: dict[tuple[Any, ...], Any] = {}

        def run() -> None:
            constants = self.stepper.constant_values()
            if constants not in steps:
                keep = [*self.keep, *filter(None, read)]
                steps[constants] = net.compile(stepper=self.stepper, keep=keep)
            steps[constants](self.stepper.context)
            if self.carry_context:
                self.stepper.context = net.get_context()

        return run

    def _train_epoch(self, net: Any, iterator: DataIterator, run: Any) -> bool:
        """Train for an epoch; return True if a hook stops the training."""
        self.current_epoch_nr += 1
        self.stepper.context = None
        self._say(f"Epoch {self.current_epoch_nr}")
        sys.stdout.flush()
        stop = False
        scores: Scores = {scorer.__name__: [] for scorer in self.train_scorers}
        for _ in run_network(net, iterator(handler=net.handler)):
            self.current_update_nr += 1
            run()
            scores = {name: [] for name in net.get_loss_values()} | scores
            gather_losses_and_scores(net, self.train_scorers, scores)
            net.apply_weight_modifiers()
            if self._emit_hooks(net, "update"):
                stop = True
                break
        results = aggregate_losses_and_scores(scores, net, self.train_scorers)
        self._add_log("rolling_training", results)
        return self._emit_hooks(net, "epoch") or stop

    def evaluate(self, net: Any, **named_data_iters: DataIterator) -> Logs:
        """Call all hooks once and return their logs, which are ``results`` too."""
        try:
            self._start_hooks(net, named_data_iters)
            self._emit_hooks(net, "epoch", logs=self.results)
            self._emit_hooks(net, "update", logs=self.results)
        finally:
            self._finish_hooks()
        return self.results

    def _say(self, what: str) -> None:
        if self.verbose:
            print("\n\n", 10 * "- ", what, 10 * " -")

    def _start_hooks(self, net: Any, named_data_iters: dict[str, DataIterator]) -> None:
        for name, hook in self.hooks.items():
            if hasattr(hook, "start"):
                with _named(name, "starting"):
                    hook.start(net, self.stepper, self.verbose, named_data_iters)

    def _finish_hooks(self) -> None:
        for hook in self.hooks.values():
            if hasattr(hook, "finish"):
                hook.finish()

    def _emit_hooks(self, net: Any, timescale: str, logs: Logs | None = None) -> bool:
        """Call the hooks whose turn it is; return True if one of them stops the training."""
        stop = False
        count = self.current_epoch_nr if timescale == "epoch" else self.current_update_nr
        for name, hook in self.hooks.items():
            if hook.timescale == timescale and count % hook.interval == 0:
                try:
                    with _named(name, "calling"):
                        log = hook(
                            epoch_nr=self.current_epoch_nr,
                            update_nr=self.current_update_nr,
                            net=net,
                            stepper=self.stepper,
                            logs=self.logs,
                        )
                except StopIteration as signal:
                    log, stop = signal.value, True
                self._add_log(name, log, hook.verbose, logs)
        return stop

    def _add_log(
        self,
        name: str,
        value: Any,
        verbose: bool | None = None,
        logs: Logs | None = None,
        indent: int = 0,
    ) -> None:
        """Append a value, or those of nested dictionaries, to the lists of the logs."""
        if value is None:
            return
        verbose = self.verbose if verbose is None else verbose
        logs = self.logs if logs is None else logs
        if isinstance(value, dict):
            if verbose:
                print(" " * indent + name)
            inner = logs.setdefault(name, {})
            for key, each in value.items():
                self._add_log(key, each, verbose, inner, indent + 2)
        else:
            if verbose:
                print(" " * indent + f"{name:{40 - indent}}: {value}")
            values = logs.setdefault(name, [])
            if isinstance(values, dict):
                raise ValidationError(
                    f"the log {name!r} is a dictionary of {', '.join(values)}, and {value!r} was "
                    "to be added to it; return logs of one structure from each call of a hook"
                )
            values.append(value)


class _named:
    """Adds the name of a hook as a note to an error that it raises, except ``StopIteration``."""

    def __init__(self, name: str, what: str) -> None:
        self.name, self.what = name, what

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, StopIteration):
            error.add_note(f"while {self.what} the hook {self.name!r}")
