"""``Layer``: base class of callables on tensors that create their variables at the first call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self

from ....errors import ArgumentError, AxisError
from ....op_graph.axes.axes import Axes, axes_may_equal
from ....op_graph.building.constants import as_tensor
from ....op_graph.core.source_info import user_call
from ....op_graph.op_graph import NO_AXES, Leaf, Tensor, VoidOp
from ....op_graph.rows.effects import assign
from ....op_graph.rows.leaves import variable
from ....op_graph.syntax.operators import is_function
from ....op_graph.values.dtypes import kind
from .cache import Cache
from .calls import Calls
from .unread import Unread, watch_unread

if TYPE_CHECKING:
    from ....op_graph.building.typing import DTypeLike
    from ..initialisers import First


class Training:
    """Passed to layers as ``training=`` in training; they add updates and costs to it.

    ``updates`` are the effects to be run with the step, such as those of running statistics.
    ``costs`` are scalars to be added to the cost, such as those of unevenly used experts. A warning
    is given if either was never requested.
    """

    def __init__(self) -> None:
        self._costs: list[Tensor] = []
        self._values: dict[Leaf, Tensor] = {}
        self._unread_costs = Unread("costs", "add sum(training.costs) to the cost")
        self._unread = Unread(
            "updates",
            "these variables keep their values; give *training.updates to transformer.computation, "
            "beside the step",
        )
        watch_unread(self, [self._unread, self._unread_costs])

    @property
    def costs(self) -> list[Tensor]:
        """Scalars to be added to the cost."""
        self._unread_costs.clear()
        return self._costs

    def add_cost(self, cost: Tensor) -> None:
        """Add a scalar to ``costs``."""
        self._costs.append(cost)
        self._unread_costs.add(cost)

    def value(self, state: Leaf) -> Tensor:
        """The value of a variable after the layers that were called so far."""
        return self._values.get(state, state)

    def keep(self, state: Leaf, value: Tensor) -> None:
        """Assign a variable this value after the step."""
        self._values[state] = value
        self._unread.add(state)

    @property
    def updates(self) -> list[VoidOp]:
        """An assignment for each variable that a layer has a new value for."""
        self._unread.clear()
        return [assign(state, value) for state, value in self._values.items()]


def takes(layer: Layer, option: str) -> bool:
    """Return True if a layer's ``forward`` has an argument of this name, or ``**keywords``."""
    forward = layer.forward
    names, others = arguments(getattr(forward, "__func__", forward))
    return others or option in names


@lru_cache(1024)
def arguments(function: Callable[..., Any]) -> tuple[frozenset[str], bool]:
    """Return the names of a function's arguments, and True if it takes ``**keywords``."""
    taken = inspect.signature(function).parameters
    return frozenset(taken), any(each.kind is each.VAR_KEYWORD for each in taken.values())


class Layer:
    """A callable on tensors with variables of its own, which its first call creates.

    A subclass defines ``forward(*inputs, training)``, which returns one tensor, requests its state
    by ``variable``, and calls other layers, its attributes. Further calls share the variables.
    ``name`` is the prefix of their names; layers inside of a named layer are named by their
    attributes, unless they have a name of their own.
    """

    forward: Callable[..., Tensor]
    name: str | None
    variables: dict[str, Leaf]
    calls: Calls

    def __new__(cls, *arguments: Any, **keywords: Any) -> Self:
        """Set the common attributes, so that a subclass need not call ``__init__``."""
        made = super().__new__(cls)
        made.name, made.variables, made.calls = None, {}, Calls()
        return made

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    @property
    def remembers(self) -> bool:
        """Return True if the layer, or an inner one, continues earlier calls with a ``cache``."""
        return any(layer.remembers for _, layer in self.layers())

    def __call__(
        self,
        *inputs: Any,
        training: Training | None = None,
        cache: Cache | None = None,
        **options: Any,
    ) -> Tensor:
        """The result for these tensors; with ``training``, in training mode.

        With ``cache``, layers with state continue after the times of earlier calls. ``options`` are
        those of the layer's ``forward``. Raises ``ArgumentError`` for a ``training`` that is no
        ``Training``, for a ``training`` or a ``cache`` that ``forward`` does not pass on, for
        unknown options, and for a ``forward`` that does not return a tensor.
        """
        if training is not None and not isinstance(training, Training):
            raise ArgumentError(
                f"{user_call(self)}: training={training!r} cannot hold what layers keep of a "
                "batch; give training=neon.Training() and run its updates, or None"
            )
        if cache is not None and not isinstance(cache, Cache):
            raise ArgumentError(
                f"{user_call(self)}: cache={cache!r} keeps nothing of the times "
                'before; give cache=neon.Cache(geon.Axis("place", 64)), or None'
            )
        if not hasattr(self, "forward"):
            raise ArgumentError(
                f"{user_call(self)}: has no forward; give its class one: def forward(self, x, "
                "training=None)"
            )
        for place, layer in self.layers():
            if layer.name is None and self.name is not None:
                layer.name = f"{self.name}.{place}"
        if cache is not None and self.remembers:
            if not takes(self, "cache"):
                raise ArgumentError(
                    f"{user_call(self)}: layers inside of it go on from a cache, and its forward "
                    "takes none to hand on; give forward a cache=, or call it on whole sequences"
                )
            options["cache"] = cache
        self.check_options(options)
        if self.takes_training(training):
            options["training"] = training
        given = [as_tensor(x) for x in inputs]
        result = self.forward(*given, **options)
        if not isinstance(result, Tensor):
            raise ArgumentError(
                f"{user_call(self)}: its forward gave {describe_result(result)}; let it return one "
                "tensor"
            )
        self.calls.add([*given, *options.values()], result)
        return result

    def takes_training(self, training: Training | None) -> bool:
        """Return True if ``forward`` takes ``training``; raise if only inner layers do."""
        if takes(self, "training"):
            return True
        if training is not None and list(self.layers()):
            raise ArgumentError(
                f"{user_call(self)}: layers inside of it are to train, and its forward takes no "
                "training to hand on; give it one: def forward(self, x, training=None)"
            )
        return False

    def check_options(self, options: Mapping[str, Any]) -> None:
        """Raise ``ArgumentError`` for an option that ``forward`` does not take."""
        for option in options:
            if not takes(self, option):
                inner = [layer for _, layer in self.layers() if takes(layer, option)]
                cure = (
                    f"call {inner[0]!r} with it in a forward, or in a function among the layers: "
                    f"lambda x: layer(x, {option}=...)"
                    if inner
                    else "leave it out"
                )
                raise ArgumentError(f"{user_call(self)}: its forward takes no {option}=; {cure}")

    def layers(self) -> Iterator[tuple[str, Layer]]:
        """Yield the inner layers with their paths: attributes and elements, such as ``all.0``."""
        for place, value in vars(self).items():
            yield from iterate_layers(place, value)

    def all_variables(self) -> list[Leaf]:
        """The variables made so far: the layer's own, then those of inner layers."""
        found = dict.fromkeys(self.variables.values())
        for _, layer in self.layers():
            found |= dict.fromkeys(layer.all_variables())
        return list(found)

    def parameters(self) -> list[Leaf]:
        """The trainable variables made so far."""
        return [leaf for leaf in self.all_variables() if leaf.trainable]

    def variable(
        self,
        place: str,
        axes: Axes,
        first: First,
        *,
        inputs: Axes = NO_AXES,
        outputs: Axes = NO_AXES,
        dtype: DTypeLike = "float32",
        tags: str = "",
        trainable: bool = True,
    ) -> Leaf:
        """The variable of this name over ``axes``: created at the first call, reused later.

        ``first`` is its initial value or an initialiser, which is called with the summed axes
        ``inputs`` and the produced axes ``outputs``. Raises ``AxisError`` if it was created over
        other axes.
        """
        made = self.variables.get(place)
        if made is None:
            if first is None:
                raise ArgumentError(
                    f"{user_call(self)}: nothing says what {place} is to begin with; give a "
                    "number, an array, or an initialiser such as neon.Glorot(random)"
                )
            if isinstance(first, type):
                raise ArgumentError(
                    f"{user_call(self)}: {place} is to begin with the class {first.__name__}; give "
                    "what the class makes, such as neon.Glorot(random)"
                )
            value = first(axes, inputs, outputs) if is_function(first) else first
            made = variable(
                axes,
                dtype,
                initial_value=value,
                trainable=trainable,
                name=None if self.name is None else f"{self.name}.{place}",
                tags=tags or place,
            )
            self.variables[place] = made
        elif not axes_may_equal(made.axes, axes):
            raise AxisError(
                f"{user_call(self)}: called on what needs {place} over {axes}, but it has {made} "
                f"(made at {made.line_info}) from an earlier call; called again a layer shares its "
                "variables, so make another layer"
            )
        return made

    def __repr__(self) -> str:
        kind = type(self).__name__
        return kind if self.name is None else f"{kind} {self.name!r}"


def iterate_layers(place: str, value: Any) -> Iterator[tuple[str, Layer]]:
    """Yield the layers in a value, each with its path below that of the value."""
    if isinstance(value, Layer):
        yield place, value
    elif isinstance(value, (list, tuple)):
        for number, each in enumerate(value):
            yield from iterate_layers(f"{place}.{number}", each)
    elif isinstance(value, dict):
        for key, each in value.items():
            yield from iterate_layers(f"{place}.{key}", each)


def describe_result(result: Any) -> str:
    """Return text for messages about a result that is no tensor."""
    if isinstance(result, (list, tuple)):
        return f"a {type(result).__name__} of {len(result)}"
    return "None" if result is None else f"{result!r}, which is {type(result).__name__}"


def parameter_dtype(x: Tensor) -> str:
    """Return the dtype of weights to be used with ``x``: its own, or float32 for integers."""
    return x.dtype.name if kind(x.dtype) == "f" else "float32"
