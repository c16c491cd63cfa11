"""``Input``: the layer whose outputs are the data of a network."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from ..errors import LayerValidationError, StructureValidationError
from ..structure.buffer_structure import BufferStructure
from ..structure.construction import ConstructionWrapper
from .base_layer import Layer


def Input(out_shapes: Mapping[str, Any]) -> ConstructionWrapper:
    """The inputs of a network: ``Input(out_shapes={'default': ('T', 'B', 784)})``.

    Each output is given by ``net.provide_external_data``.
    """
    return ConstructionWrapper.create(InputLayerImpl, name="Input", out_shapes=out_shapes)


class InputLayerImpl(Layer):
    """See ``Input``."""

    expected_inputs = {}
    expected_kwargs = {"out_shapes"}

    def setup(self, kwargs: Any, in_shapes: Any) -> Any:
        """Return the outputs that are given as shapes."""
        shapes = kwargs.get("out_shapes")
        if not isinstance(shapes, Mapping) or not shapes:
            raise LayerValidationError(
                f"{self.described}: out_shapes={shapes!r}; give a dictionary of shapes, such as "
                "Input(out_shapes={'default': ('T', 'B', 784)})"
            )
        outputs = OrderedDict()
        for name in sorted(shapes):
            given = shapes[name]
            try:
                outputs[name] = (
                    given if isinstance(given, BufferStructure) else BufferStructure(*given)
                )
            except (TypeError, StructureValidationError) as error:
                raise LayerValidationError(
                    f"{self.described}: out_shapes[{name!r}]: {error}"
                ) from None
        return outputs, {}, {}

    def forward_pass(self, buffers: Any, training_pass: bool = False) -> None:
        """Do nothing: outputs are given."""

    def backward_pass(self, buffers: Any) -> None:
        """Do nothing."""
