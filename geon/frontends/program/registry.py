"""Operator prototypes and the registry: slots, attributes with checkers, functions, gradients.

    register_operator("scaled", geon.multiply, inputs=["X", "Y"], outputs=["Out"])

registers an operator: the prototype is data, and the function is one on geon tensors.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from ...errors import ArgumentError, AxisError, GeonError
from ...op_graph.core.source_info import user_call

GRAD = "@GRAD"  # the suffix of the name of a gradient
GRAD_OP = "_grad"  # the suffix of the type of a gradient operator


class RegistryError(GeonError, LookupError):
    """An operator type that is not registered, or that is registered twice."""


class ProgramError(GeonError, ValueError):
    """A program that cannot be built: an unknown or repeated name, or an incomplete block."""


class OperatorError(GeonError, RuntimeError):
    """A failure of an operator's function that is no error of geon."""


class AttributeValueError(ArgumentError, ValueError):
    """An attribute that an operator lacks, or a value that its type or checker refuses."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A named place of an operator's inputs or outputs.

    ``duplicable``: it holds a list of variables. ``dispensable``: it may be left out.
    ``intermediate``: an output that only the gradient reads, and that creators do not return.
    ``not_in_gradient``: an output whose value the gradient operator does not get. ``rank``: the
    number of dimensions, "4" or "2+" for at least 2; "" for any.
    """

    name: str
    comment: str = ""
    duplicable: bool = False
    dispensable: bool = False
    intermediate: bool = False
    not_in_gradient: bool = False
    rank: str = ""

    def __post_init__(self) -> None:
        if self.rank and not self.rank.removesuffix("+").isdigit():
            raise ArgumentError(
                f"slot {self.name!r} has the rank {self.rank!r}; write '2', or '2+' for at least 2"
            )

    def check_rank(self, rank: int) -> None:
        """Raise ``AxisError`` for a value with another number of dimensions."""
        least = int(self.rank.rstrip("+") or 0)
        if rank < least or (rank > least and self.rank.isdigit()):
            wanted = f"at least {least}" if self.rank.endswith("+") else self.rank
            raise AxisError(f"{self.name} has the rank {rank}; give it {wanted} dimensions")


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on a value, or on each of a list, and its words: ``"greater than 0"``."""

    accepts: Callable[[Any], bool]
    words: str


def at_least(bound: float) -> Check:
    """Return the check that numbers are at least ``bound``."""
    return Check(lambda x: x >= bound, f"at least {bound}")


def greater_than(bound: float) -> Check:
    """Return the check that numbers are greater than ``bound``."""
    return Check(lambda x: x > bound, f"greater than {bound}")


def in_range(low: float, high: float) -> Check:
    """Return the check that numbers are at least ``low`` and at most ``high``."""
    return Check(lambda x: low <= x <= high, f"from {low} to {high}")


def one_of(*choices: Any) -> Check:
    """Return the check that a value is one of ``choices``."""
    return Check(lambda v: v in choices, f"one of {', '.join(map(repr, choices))}")


# The types of attributes: their Python type, and their plain form. The name with an s is the type
# of a list of such values. A block is the number of a block of the program.
SCALAR_TYPES: dict[str, tuple[type, Callable[[Any], Any]]] = {
    "int": (Integral, int),
    "float": (Real, float),
    "bool": (bool, bool),
    "string": (str, str),
    "block": (Integral, int),
}
ATTRIBUTE_TYPES = (*SCALAR_TYPES, *[f"{name}s" for name in SCALAR_TYPES])
REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "required"})()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operator: its type, of ``ATTRIBUTE_TYPES``, a default and a check.

    ``default`` is ``REQUIRED`` for none; None stands for an optional attribute that is not given.
    """

    name: str
    type: str
    default: Any = REQUIRED
    comment: str = ""
    check: Check | None = None

    def __post_init__(self) -> None:
        if self.type not in ATTRIBUTE_TYPES:
            types = ", ".join(ATTRIBUTE_TYPES)
            raise AttributeValueError(
                f"attribute {self.name!r} has the type {self.type!r}; the types are {types}"
            )

    def checked(self, value: Any, what: str) -> Any:
        """Return ``value`` in plain form; raise ``AttributeValueError`` if it is refused.

        ``what`` names the operator and its place in messages.
        """
        if value is None and self.default is None:
            return None
        is_list = self.type not in SCALAR_TYPES
        cls, plain = SCALAR_TYPES[self.type.removesuffix("s") if is_list else self.type]
        listed = value if is_list and isinstance(value, (list, tuple)) else [value]
        fits = isinstance(value, (list, tuple)) == is_list and all(
            isinstance(v, cls) and (cls is bool or not isinstance(v, bool)) for v in listed
        )
        if not fits or not (self.check is None or all(map(self.check.accepts, listed))):
            kind = f"a list of {self.type}" if is_list else self.type
            words = f" that is {self.check.words}" if self.check else ""
            raise AttributeValueError(
                f"{what}: attribute {self.name}={value!r} is refused; give {kind}{words}"
            )
        return tuple(map(plain, listed)) if is_list else plain(value)


@dataclass(frozen=True)
class OpProto:
    """The prototype of an operator: its slots and attributes, as data for creators and files."""

    type: str
    inputs: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    attributes: tuple[Attribute, ...] = ()
    comment: str = ""

    def complete(self, given: Mapping[str, Any], what: str) -> dict[str, Any]:
        """Return all attributes in order, checked, with defaults for those not ``given``."""
        self._refuse_unknown("attribute", given, [each.name for each in self.attributes], what)
        found = {}
        for each in self.attributes:
            value = given.get(each.name, each.default)
            if value is REQUIRED:
                raise AttributeValueError(
                    f"{what}: operator {self.type} needs the attribute {each.name} ({each.type}); "
                    f"give {each.name}="
                )
            found[each.name] = each.checked(value, what)
        return found

    def fill(
        self, role: str, given: Mapping[str, Any], what: str
    ) -> dict[str, tuple[Any, ...] | None]:
        """Return the variables of each slot as a tuple, None for those left out.

        ``role`` is "inputs" or "outputs". Raises ``ArgumentError`` for unknown slots, for missing
        inputs that are not dispensable and for lists in slots that are not duplicable.
        """
        slots: tuple[Slot, ...] = getattr(self, role)
        self._refuse_unknown(role[:-1], given, [slot.name for slot in slots], what)
        found: dict[str, tuple[Any, ...] | None] = {}
        for slot in slots:
            value = given.get(slot.name)
            listed = tuple(value) if isinstance(value, (list, tuple)) else (value,)
            if value is None and role == "inputs" and not slot.dispensable:
                raise ArgumentError(
                    f"{what}: operator {self.type} needs the input {slot.name}; give {slot.name}="
                )
            if value is not None and not listed and role == "inputs" and not slot.dispensable:
                raise ArgumentError(
                    f"{what}: input {slot.name} of {self.type} is an empty list; give a variable"
                )
            if len(listed) > 1 and not slot.duplicable:
                raise ArgumentError(
                    f"{what}: {role[:-1]} {slot.name} of {self.type} holds one variable, and was "
                    f"given {len(listed)}: {', '.join(map(str, listed))}; give one of them"
                )
            found[slot.name] = None if value is None else listed
        return found

    def _refuse_unknown(self, role: str, given: Iterable[str], known: list[str], what: str) -> None:
        unknown = [name for name in given if name not in known]
        if unknown:
            error = AttributeValueError if role == "attribute" else ArgumentError
            raise error(
                f"{what}: operator {self.type} has no {role} {unknown[0]!r}; its {role}s are "
                f"{', '.join(known) or 'none'}"
            )


@dataclass(frozen=True, eq=False)
class OpInfo:
    """A registered operator: its prototype, its function, and its gradient.

    ``function`` takes the values of the input slots in order (a list for a duplicable slot, None
    for one left out) and the attributes by keyword; it returns the value of the output slot, or a
    tuple with one for each. Values are ``geon.frontends.positional`` arrays if ``positional``, else
    geon tensors with the axes d0, d1, ... in the order of dimensions; in both cases a result may be
    a geon tensor, whose axes are its dimensions in their order.

    ``gradient`` takes by keyword what it names: inputs, outputs, the gradients of outputs such as
    ``Out_grad``, attributes; it returns a dictionary from input slots to gradients. None derives
    it. ``differentiable`` is False for an operator without gradient. ``takes`` are the parameters
    of ``gradient``, and ``gradient_of`` is the operator that a gradient operator belongs to. The
    function gets selected rows as they are if it ``takes_rows``, else as whole tables.
    """

    proto: OpProto
    function: Callable[..., Any]
    gradient: Callable[..., Mapping[str, Any]] | None = None
    differentiable: bool = True
    positional: bool = False
    gradient_of: OpInfo | None = None
    takes: frozenset[str] = frozenset()
    takes_rows: bool = False

    @property
    def type(self) -> str:
        """The name under which it is registered."""
        return self.proto.type


_REGISTRY: dict[str, OpInfo] = {}


def register_operator(
    type: str, function: Callable[..., Any], inputs: Iterable[str | Slot] = ("X",),
    outputs: Iterable[str | Slot] = ("Out",), attributes: Iterable[Attribute] = (), *,
    gradient: Callable[..., Mapping[str, Any]] | None = None, differentiable: bool = True,
    positional: bool = False, takes_rows: bool = False, comment: str = "", replace: bool = False,
) -> OpInfo:  # fmt: skip
    """Register an operator and return its ``OpInfo``; see there for ``function``.

    A slot may be a string: ``"X"``, ``"X*"`` (duplicable), ``"X?"`` (dispensable), ``"Mask~"``
    (intermediate), then its rank ``"X@4"`` or ``"X@2+"``, and a comment after a space:
    ``"X* the terms"``. Raises ``RegistryError`` if
    the type is registered already, unless ``replace``, such as for a cell that runs again.
    """
    what = user_call(f"register_operator({type!r})")
    if type in _REGISTRY and not replace:
        raise RegistryError(
            f"{what}: an operator of this type exists; choose another name, or give replace=True"
        )
    _REGISTRY.pop(type + GRAD_OP, None)
    slots = tuple(map(_slot, inputs)), tuple(map(_slot, outputs))
    proto = OpProto(type, *slots, tuple(attributes), inspect.cleandoc(comment))
    names = [slot.name for slot in (*slots[0], *slots[1])]
    names += [attribute.name for attribute in proto.attributes]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise RegistryError(
            f"{what}: two slots or attributes have the name {repeated[0]!r}; rename one"
        )
    takes = frozenset(inspect.signature(gradient).parameters) if gradient else frozenset()
    unknown = takes - {*names, *[f"{slot.name}{GRAD_OP}" for slot in proto.outputs]}
    if unknown:
        raise RegistryError(
            f"{what}: its gradient takes {min(unknown)!r}, which is no slot, attribute, or "
            "gradient of an output such as Out_grad"
        )
    info = OpInfo(proto, function, gradient, differentiable, positional, None, takes, takes_rows)
    _REGISTRY[type] = info
    return info


SUFFIXES = {"*": "duplicable", "?": "dispensable", "~": "intermediate"}


def _slot(given: str | Slot) -> Slot:
    if isinstance(given, Slot):
        return given
    text, _, comment = given.partition(" ")
    name, _, rank = text.partition("@")
    bare = name.rstrip("*?~")
    marks: dict[str, Any] = {SUFFIXES[mark]: True for mark in name[len(bare) :]}
    return Slot(bare, comment, rank=rank, **marks)


def operator_info(type: str) -> OpInfo:
    """Return the registered operator; that of a gradient operator is made when first asked for.

    Raises ``RegistryError`` for an unknown type.
    """
    if type not in _REGISTRY:
        if not type.endswith(GRAD_OP):
            near = " or ".join(difflib.get_close_matches(type, _REGISTRY))
            cure = f"did you mean {near}?" if near else "register it with register_operator"
            raise RegistryError(f"operator {type!r} is not registered; {cure}")
        from .gradients import gradient_info  # imported for training only

        _REGISTRY[type] = gradient_info(operator_info(type.removesuffix(GRAD_OP)))
    return _REGISTRY[type]


def operator_types() -> list[str]:
    """Return the types of all registered operators without gradient operators, sorted."""
    return sorted(name for name, info in _REGISTRY.items() if info.gradient_of is None)
