"""``Body``: a closed function from parameters to tensors, used as an attribute of regions."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..op_graph import Op, Tensor


class Body:
    """A closed function: ``results`` depend on the numbered ``parameters`` and no other leaf.

    Ops are interned, so bodies that compute the same results from the same parameters are equal.
    """

    __slots__ = ("_hash", "parameters", "results")

    _hash: int
    parameters: tuple[Op, ...]
    results: tuple[Tensor, ...]

    def __init__(self, parameters: tuple[Op, ...], results: tuple[Tensor, ...]) -> None:
        object.__setattr__(self, "parameters", parameters)
        object.__setattr__(self, "results", results)
        object.__setattr__(self, "_hash", hash((*map(id, parameters), None, *map(id, results))))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a body is immutable; build a new one")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("a body is immutable; build a new one")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Body):
            return NotImplemented
        return self._ids() == other._ids()

    def __hash__(self) -> int:
        return self._hash

    def _ids(self) -> tuple[list[int], list[int]]:
        return list(map(id, self.parameters)), list(map(id, self.results))

    def __repr__(self) -> str:
        given, result = (", ".join(map(str, ops)) for ops in (self.parameters, self.results))
        return f"<body of ({given}) with the results ({result})>"
