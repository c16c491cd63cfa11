"""Wiring of layers: ``a >> b``, named ports with ``-``, and unique names."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

from ..errors import NetworkValidationError

_creation = itertools.count()


class UniquelyNamed:
    """An object with a name that is unique among those that it was connected with.

    If several have the same base name, they are called ``name_1``, ``name_2`` and so on in the
    order of their creation, except for names that are another's base name.
    """

    def __init__(self, basename: str) -> None:
        self._basename, self._created = basename, next(_creation)
        self.scope: list[UniquelyNamed] = [self]

    def merge_scopes(self, other: UniquelyNamed) -> None:
        """Make the names of both, and of all that they are connected with, unique."""
        if self.scope is not other.scope:
            self.scope += other.scope
            for each in other.scope:
                each.scope = self.scope

    @property
    def name(self) -> str:
        """Return the unique name."""
        taken = {each._basename for each in self.scope}
        same = sorted(
            [each for each in self.scope if each._basename == self._basename],
            key=lambda each: each._created,
        )
        if len(same) == 1:
            return self._basename
        numbered = (f"{self._basename}_{number}" for number in itertools.count(1))
        free = (name for name in numbered if name not in taken)
        return next(itertools.islice(free, same.index(self), None))


class LayerDetails(UniquelyNamed):
    """A layer while it is wired: its type, arguments and connections.

    ``incoming`` has (layer, output name, input name), ``outgoing`` (output name, input name,
    layer).
    """

    def __init__(self, layer_type: str, name: str | None = None, **layer_kwargs: Any) -> None:
        if name is not None and not (isinstance(name, str) and name.isidentifier()):
            raise NetworkValidationError(
                f"{layer_type}: name={name!r} is no name of a layer; use letters, digits and "
                "underscores, such as 'Hidden_1'"
            )
        super().__init__(name or layer_type)
        self.layer_type, self.layer_kwargs = layer_type, layer_kwargs
        self.incoming: list[tuple[LayerDetails, str, str]] = []
        self.outgoing: list[tuple[str, str, LayerDetails]] = []

    def collect_connected_layers(self) -> set[LayerDetails]:
        """Return all layers that are connected with this one, in either direction."""
        found, waiting = {self}, [self]
        while waiting:
            layer = waiting.pop()
            near = {source for source, _, _ in layer.incoming}
            near |= {sink for _, _, sink in layer.outgoing}
            waiting += near - found
            found |= near
        return found

    @property
    def outgoing_connections(self) -> dict[str, list[str]]:
        """Return the inputs that each output goes to, as ``LAYER`` or ``LAYER.INPUT``."""
        found = defaultdict(list)
        for output, entry, layer in self.outgoing:
            found[output].append(layer.name if entry == "default" else f"{layer.name}.{entry}")
        return {output: sorted(found[output]) for output in sorted(found)}

    def __repr__(self) -> str:
        return f"<{self.layer_type} {self.name}>"


class ConstructionWrapper:
    """A layer with the input and the output that the next ``>>`` connects.

    ``a >> b`` connects a's output with b's input and is ``b``. ``a - 'loss'`` is a with the output
    ``loss``, ``'targets' - b`` is b with the input ``targets``.
    """

    @classmethod
    def create(cls, layer_impl: Any, name: str | None = None, **kwargs: Any) -> ConstructionWrapper:
        """Return a new layer of a class, or of the class of that name, with its arguments.

        Raises ``NetworkValidationError`` if the name of the class does not end in ``LayerImpl``.
        """
        if isinstance(layer_impl, str):
            layer_type = layer_impl
        else:
            class_name = getattr(layer_impl, "__name__", repr(layer_impl))
            if not class_name.endswith("LayerImpl") or class_name == "LayerImpl":
                raise NetworkValidationError(
                    f"{class_name} is no class of layers: its name must end in 'LayerImpl', and "
                    f"what is before that is the layer's type; call it {class_name}LayerImpl"
                )
            layer_type = class_name.removesuffix("LayerImpl")
        return cls(LayerDetails(layer_type, name=name, **kwargs))

    def __init__(
        self, layer: LayerDetails, input_name: str = "default", output_name: str = "default"
    ) -> None:
        self.layer, self.input_name, self.output_name = layer, input_name, output_name

    def __rshift__(self, other: object) -> ConstructionWrapper:
        if not isinstance(other, ConstructionWrapper):
            raise NetworkValidationError(
                f"{self!r} >> {other!r}: only a layer can follow a layer; names of ports are "
                "joined with '-', as in layer - 'loss' >> 'default' - other"
            )
        self.layer.merge_scopes(other.layer)
        self.layer.outgoing.append((self.output_name, other.input_name, other.layer))
        other.layer.incoming.append((self.layer, self.output_name, other.input_name))
        return other

    def __sub__(self, output_name: object) -> ConstructionWrapper:
        name = self._port(output_name, "output", "layer - 'predictions'")
        return ConstructionWrapper(self.layer, self.input_name, name)

    def __rsub__(self, input_name: object) -> ConstructionWrapper:
        name = self._port(input_name, "input", "'targets' - layer")
        return ConstructionWrapper(self.layer, name, self.output_name)

    def _port(self, name: object, what: str, example: str) -> str:
        if not isinstance(name, str):
            raise NetworkValidationError(
                f"{name!r} is no name of an {what} of {self.layer!r}; write {example}"
            )
        return name

    def __repr__(self) -> str:
        return f"<Layer: {self.input_name!r} - {self.layer.name} - {self.output_name!r}>"
