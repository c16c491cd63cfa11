"""``Layer``: the base of all layers, and the search for a class of layers by its type."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from ....errors import ArgumentError
from ..errors import LayerValidationError, NetworkValidationError
from ..structure.buffer_structure import BufferStructure, StructureTemplate
from ..structure.construction import ConstructionWrapper
from ..utils import get_inheritors
from .arguments import REQUIRED, Argument
from .layer_program import LayerProgram
from .symbols import Symbols

Shapes = Mapping[str, BufferStructure]
SUFFIX = "LayerImpl"


def get_layer_class_from_typename(typename: str) -> type[Layer]:
    """Return the class of layers of a type, such as ``FullyConnected``.

    Raises ``NetworkValidationError`` if there is none.
    """
    found = {cls.__name__: cls for cls in sorted_inheritors()}
    if not isinstance(typename, str) or typename + SUFFIX not in found:
        known = ", ".join(sorted(name.removesuffix(SUFFIX) for name in found))
        raise NetworkValidationError(
            f"there is no type of layer {typename!r}; there are {known}; a type of your own is a "
            f"subclass of Layer with the name {typename}{SUFFIX}"
        )
    return found[typename + SUFFIX]


def sorted_inheritors() -> list[type[Layer]]:
    """Return all classes of layers by name; of equal names the one that was defined last wins."""
    named = [cls for cls in get_inheritors(Layer) if cls.__name__.endswith(SUFFIX)]
    return sorted(named, key=lambda cls: (cls.__name__, cls.order))


class Layer:
    """The base of layers.

    A subclass is named ``...LayerImpl`` and defines ``setup``, which returns the shapes of its
    outputs, parameters and internals. It states its forward pass once in ``forward``; the backward
    pass is derived. Or it overrides ``forward_pass`` and ``backward_pass`` with operations of
    ``self.handler`` on the buffers; then ``backward_pass`` adds to input deltas and gradients.

    - ``expected_inputs``: the template of each input
    - ``expected_kwargs``: the names of its arguments, which are in ``kwargs``; or members that are
      made by ``arguments.argument``, which are checked
    - ``computes_no_input_deltas_for``: inputs without a derivative
    - ``computes_no_gradients_for``: parameters without a derivative
    - ``takes_no_output_deltas_from``: outputs whose deltas are ignored
    - ``state``: internals that keep their value from pass to pass, with their first values
    """

    expected_inputs: ClassVar[Mapping[str, StructureTemplate]] = {
        "default": StructureTemplate("T", "B", "...")
    }
    expected_kwargs: ClassVar[Iterable[str]] = ()
    arguments: ClassVar[Mapping[str, Argument]] = {}
    optional_inputs: ClassVar[Iterable[str]] = ()
    computes_no_input_deltas_for: ClassVar[Sequence[str]] = ()
    computes_no_gradients_for: ClassVar[Sequence[str]] = ()
    takes_no_output_deltas_from: ClassVar[Sequence[str]] = ()
    starts_backward_pass_from: ClassVar[Sequence[str]] = ()
    state: ClassVar[Mapping[str, float]] = {}
    order = 0

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = {name: each for name, each in vars(cls).items() if isinstance(each, Argument)}
        if own:
            cls.arguments = {**cls.arguments, **own}
            cls.expected_kwargs = tuple(cls.arguments)
        Layer.order += 1
        cls.order = Layer.order

    def __init__(
        self,
        name: str,
        in_shapes: Shapes,
        incoming: Iterable[Any],
        outgoing: Iterable[Any],
        **kwargs: Any,
    ) -> None:
        self.name, self.kwargs = name, kwargs
        self.incoming, self.outgoing = list(incoming), list(outgoing)
        self.handler: Any = None
        self.layer_type = type(self).__name__.removesuffix(SUFFIX)
        self._validate_kwargs()
        self.in_shapes = self._validate_in_shapes(in_shapes)
        outputs, parameters, internals = self.setup(kwargs, self.in_shapes)
        self.out_shapes = self._checked_shapes("outputs", outputs)
        self.parameter_shapes = self._checked_shapes("parameters", parameters)
        self.internal_shapes = self._checked_shapes("internals", internals)
        self.trained_last = False
        self._programs: dict[bool, LayerProgram] = {}

    # To be provided by subclasses ----------------------------------------------------------------

    def setup(self, kwargs: Mapping[str, Any], in_shapes: Shapes) -> tuple[Shapes, Shapes, Shapes]:
        """Return the shapes of outputs, parameters and internals, each by name in order."""
        raise NotImplementedError(f"{type(self).__name__} has no method setup")

    def forward(self, buffers: Symbols) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        """Return the tensors of outputs and of internals, by name, from those of ``buffers``."""
        raise NotImplementedError(
            f"{type(self).__name__} has neither a method forward, which computes with geon's "
            "tensors, nor forward_pass and backward_pass, which compute with the handler"
        )

    # The passes ----------------------------------------------------------------------------------

    def forward_pass(self, buffers: Any, training_pass: bool = False) -> None:
        """Compute outputs and internals from inputs and parameters, in their buffers."""
        self.trained_last = bool(training_pass)
        self.program(self.trained_last).run_forward(buffers)
        self.handler.on_device.release_all()

    def backward_pass(self, buffers: Any) -> None:
        """Add to input deltas and gradients what follows from the output deltas."""
        self.program(self.trained_last).run_backward(buffers)
        self.handler.on_device.release_all()

    def program(self, training: bool) -> LayerProgram:
        """Return the compiled passes, with the handler's transformer."""
        if training not in self._programs:
            self._programs[training] = LayerProgram(self, self.handler, training)
        return self._programs[training]

    def set_handler(self, handler: Any) -> None:
        """Set the handler, which computes the passes."""
        self.handler = handler
        self._programs.clear()

    @property
    def is_derived(self) -> bool:
        """Return True if the passes are those of ``forward``, not overridden."""
        own = type(self)
        return own.forward_pass is Layer.forward_pass and own.backward_pass is Layer.backward_pass

    def port(self, output_name: str) -> BufferStructure | None:
        """Return the structure of an output, or of an internal as ``..internals.NAME``."""
        if output_name.startswith("..internals."):
            return self.internal_shapes.get(output_name.removeprefix("..internals."))
        return self.out_shapes.get(output_name)

    # Checks --------------------------------------------------------------------------------------

    @property
    def described(self) -> str:
        """Return the layer's name and type, for messages."""
        return f"{self.name} ({self.layer_type})"

    def refused(self, message: str) -> LayerValidationError:
        """Return the error that names the layer and says what is wrong."""
        return LayerValidationError(f"{self.described}: {message}")

    def _validate_kwargs(self) -> None:
        unexpected = sorted(set(self.kwargs) - set(self.expected_kwargs))
        if unexpected:
            raise LayerValidationError(
                f"{self.described} takes no argument {', '.join(map(repr, unexpected))}; it takes "
                f"{', '.join(map(repr, sorted(self.expected_kwargs))) or 'none'}"
            )
        for name, argument in self.arguments.items():
            value = self.kwargs.get(name, argument.default)
            value = None if value is REQUIRED else value
            if not argument.valid(value):
                raise self.refused(f"{name}={value!r}; {argument.needed}")
            setattr(self, name, argument.made(value))

    def _validate_in_shapes(self, in_shapes: Shapes) -> OrderedDict[str, BufferStructure]:
        templates = self.expected_inputs
        for name, structure in in_shapes.items():
            sources = ", ".join(
                f"{edge.start_layer}.{edge.output_name}"
                for edge in self.incoming
                if edge.input_name == name
            )
            if name not in templates:
                raise LayerValidationError(
                    f"{self.described} has no input {name!r}, which comes from {sources}; it has "
                    f"{', '.join(map(repr, sorted(templates))) or 'none'}"
                )
            if not templates[name].matches(structure):
                raise self.refused(
                    f"the input {name!r} takes shapes "
                    f"{templates[name].shape}, and {sources or 'what is given'} has the shape "
                    f"{structure.shape}; connect an output of such a shape"
                )
        missing = sorted(set(templates) - set(in_shapes) - set(self.optional_inputs))
        if missing:
            raise self.refused(
                f"nothing is connected with the input "
                f"{', '.join(map(repr, missing))}; connect an output of the shape "
                f"{templates[missing[0]].shape}, as in layer >> {missing[0]!r} - {self.name}"
            )
        return OrderedDict((name, in_shapes[name]) for name in sorted(in_shapes))

    def _checked_shapes(self, what: str, shapes: Shapes) -> OrderedDict[str, BufferStructure]:
        for name, structure in shapes.items():
            if not isinstance(structure, BufferStructure):
                raise self.refused(
                    f"setup gave {structure!r} as the shape of {what}.{name}; give a "
                    "BufferStructure"
                )
            if what == "parameters" and structure.buffer_type:
                raise self.refused(
                    f"the parameter {name!r} has the shape {structure.shape}; a "
                    "parameter has neither T nor B"
                )
        return OrderedDict(shapes)

    def __repr__(self) -> str:
        return f"<{self.layer_type} {self.name}>"


def constructor(cls: type[Layer]) -> Callable[..., ConstructionWrapper]:
    """Return the function that wires a layer of a class: its arguments, then ``name``.

    Arguments that are None are left to the layer.
    """
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    defaults = {name: each.default for name, each in cls.arguments.items()} | {"name": None}
    signature = inspect.Signature(
        [
            inspect.Parameter(n, kind, default=inspect.Parameter.empty if d is REQUIRED else d)
            for n, d in defaults.items()
        ]
    )

    def construct(*args: Any, **keywords: Any) -> ConstructionWrapper:
        try:
            bound = signature.bind(*args, **keywords)
        except TypeError as error:
            raise ArgumentError(f"{construct.__name__}{signature}: {error}") from None
        bound.apply_defaults()
        given = {name: value for name, value in bound.arguments.items() if value is not None}
        return ConstructionWrapper.create(cls, **given)

    construct.__name__ = construct.__qualname__ = cls.__name__.removesuffix(SUFFIX)
    construct.__doc__, construct.__module__ = cls.__doc__, cls.__module__
    construct.__signature__ = signature  # type: ignore[attr-defined]
    return construct
