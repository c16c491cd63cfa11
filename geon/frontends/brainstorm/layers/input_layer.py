"""``Input``: the layer whose outputs are the data of a network."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from ..errors import StructureValidationError
from ..structure.buffer_structure import BufferStructure
from ..structure.construction import ConstructionWrapper
from .arguments import argument
from .base_layer import Layer


class InputLayerImpl(Layer):
    """The layer of ``Input``."""

    expected_inputs = {}
    out_shapes = argument(
        "give a dictionary of shapes, such as Input(out_shapes={'default': ('T', 'B', 784)})",
        lambda shapes: isinstance(shapes, Mapping) and len(shapes) > 0,
    )

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the outputs that are given as shapes."""
        outputs = OrderedDict()
        for name, given in sorted(self.out_shapes.items()):
            try:
                outputs[name] = (
                    given if isinstance(given, BufferStructure) else BufferStructure(*given)
                )
            except (TypeError, StructureValidationError) as error:
                raise self.refused(f"out_shapes[{name!r}]: {error}") from None
        return outputs, {}, {}

    def forward_pass(self, buffers: Any, training_pass: bool = False) -> None:
        """Do nothing: outputs are given."""

    def backward_pass(self, buffers: Any) -> None:
        """Do nothing."""


def Input(out_shapes: Mapping[str, Any]) -> ConstructionWrapper:
    """The inputs of a network: ``Input(out_shapes={'default': ('T', 'B', 784)})``.

    Each output is given by ``net.provide_external_data``.
    """
    return ConstructionWrapper.create(InputLayerImpl, name="Input", out_shapes=out_shapes)
