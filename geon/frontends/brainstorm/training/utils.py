"""A loop over the batches of an iterator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


def run_network(
    net: Any, iterator: Iterable[dict[str, Any]], all_inputs: bool = True
) -> Iterator[int]:
    """Give each batch to a network in turn, and yield its number."""
    for number, data in enumerate(iterator):
        net.provide_external_data(data, all_inputs=all_inputs)
        yield number
