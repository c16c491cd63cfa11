"""Operator prototypes and the registry: slots, attributes with checkers, functions, gradients.

    register_operator("scale", geon.multiply, inputs=["X", "Y"], outputs=["Out"])

registers an operator: the prototype is data, and the function is one on geon tensors.
"""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...errors import ArgumentError, GeonError
from ...op_graph.core.source_info import user_call

GRAD = "@GRAD"  # the suffix of the name of a gradient
GRAD_OP = "_grad"  # the suffix of the type of a gradient operator


class RegistryError(GeonError, KeyError):
    """An operator type that is not registered, or that is registered twice."""

    def __str__(self) -> str:
        return str(self.args[0])


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
    ``not_in_gradient``: the gradient operator gets neither its value nor its gradient.
    """

    name: str
    comment: str = ""
    duplicable: bool = False
    dispensable: bool = False
    intermediate: bool = False
    not_in_gradient: bool = False


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on the value of an attribute, and its words in messages: ``"greater than 0"``."""

    accepts: Callable[[Any], bool]
    words: str


def at_least(bound: float) -> Check:
    """Return the check that a number, or each number of a list, is at least ``bound``."""
    return Check(lambda v: all(x >= bound for x in _listed(v)), f"at least {bound}")


def greater_than(bound: float) -> Check:
    """Return the check that a number, or each number of a list, is greater than ``bound``."""
    return Check(lambda v: all(x > bound for x in _listed(v)), f"greater than {bound}")


def in_range(low: float, high: float) -> Check:
    """Return the check that a number is at least ``low`` and at most ``high``."""
    return Check(lambda v: all(low <= x <= high for x in _listed(v)), f"from {low} to {high}")


def one_of(*choices: Any) -> Check:
    """Return the check that a value is one of ``choices``."""
    return Check(lambda v: v in choices, f"one of {', '.join(map(repr, choices))}")


def _listed(value: Any) -> Iterable[Any]:
    return value if isinstance(value, (list, tuple)) else (value,)


def _is_int(value: Any) -> bool:
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def _is_float(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


# The types of attributes: whether a single value has the type, and its plain Python form. The name
# with an s is the type of a list of such values.
SCALAR_TYPES: dict[str, tuple[Callable[[Any], bool], Callable[[Any], Any]]] = {
    "int": (_is_int, int),
    "float": (_is_float, float),
    "bool": (lambda v: isinstance(v, bool), bool),
    "string": (lambda v: isinstance(v, str), str),
    "block": (_is_int, int),
}
ATTRIBUTE_TYPES = (*SCALAR_TYPES, *[f"{name}s" for name in SCALAR_TYPES])


class _Required:
    def __repr__(self) -> str:
        return "required"


REQUIRED = _Required()


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute of an operator: one of ``ATTRIBUTE_TYPES``, with a default and a check.

    A value of the type ``block`` is the index of a block of the program. ``default`` is
    ``REQUIRED`` for none; None stands for an optional attribute that is not given.
    """

    name: str
    type: str
    default: Any = REQUIRED
    comment: str = ""
    check: Check | None = None

    def __post_init__(self) -> None:
        if self.type not in ATTRIBUTE_TYPES:
            raise AttributeValueError(
                f"attribute {self.name!r} has the type {self.type!r}; the types are "
                f"{', '.join(ATTRIBUTE_TYPES)}"
            )

    def checked(self, value: Any, what: str) -> Any:
        """Return ``value`` in plain Python form; raise ``AttributeValueError`` if refused.

        ``what`` names the operator and its place in messages.
        """
        if value is None and self.default is None:
            return None
        plural = self.type not in SCALAR_TYPES
        is_typed, plain = SCALAR_TYPES[self.type.removesuffix("s") if plural else self.type]
        fits = (
            isinstance(value, (list, tuple)) and all(map(is_typed, value))
            if plural
            else is_typed(value)
        )
        if not fits:
            raise AttributeValueError(
                f"{what}: attribute {self.name}={value!r} is no {self.type}; give "
                f"{'a list of ' if plural else ''}{self.type}"
                + (f" {self.check.words}" if self.check else "")
            )
        found = tuple(map(plain, value)) if plural else plain(value)
        if self.check is not None and not self.check.accepts(found):
            raise AttributeValueError(
                f"{what}: attribute {self.name}={value!r} must be {self.check.words}"
            )
        return found


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
        names = [attribute.name for attribute in self.attributes]
        unknown = [name for name in given if name not in names]
        if unknown:
            raise AttributeValueError(
                f"{what}: operator {self.type} has no attribute {unknown[0]!r}; it has "
                f"{', '.join(names) or 'none'}"
            )
        found = {}
        for attribute in self.attributes:
            value = given.get(attribute.name, attribute.default)
            if value is REQUIRED:
                raise AttributeValueError(
                    f"{what}: operator {self.type} needs the attribute {attribute.name} "
                    f"({attribute.type}); give {attribute.name}="
                )
            found[attribute.name] = attribute.checked(value, what)
        return found

    def fill(
        self, role: str, given: Mapping[str, Any], what: str
    ) -> dict[str, tuple[Any, ...] | None]:
        """Return the variables of each slot as a tuple, None for those left out.

        ``role`` is "inputs" or "outputs". Raises ``ArgumentError`` for unknown slots, for missing
        ones that are not dispensable and for lists in slots that are not duplicable.
        """
        slots: tuple[Slot, ...] = getattr(self, role)
        unknown = set(given) - {slot.name for slot in slots}
        if unknown:
            raise ArgumentError(
                f"{what}: operator {self.type} has no {role[:-1]} {min(unknown)!r}; its {role} are "
                f"{', '.join(slot.name for slot in slots) or 'none'}"
            )
        found: dict[str, tuple[Any, ...] | None] = {}
        for slot in slots:
            value = given.get(slot.name)
            listed = value if isinstance(value, (list, tuple)) else [value]
            if value is None or not listed:
                if not slot.dispensable and role == "inputs" and value is None:
                    raise ArgumentError(
                        f"{what}: operator {self.type} needs the input {slot.name}; give "
                        f"{slot.name}="
                    )
                found[slot.name] = None if value is None else ()
                continue
            if len(listed) > 1 and not slot.duplicable:
                raise ArgumentError(
                    f"{what}: {role[:-1]} {slot.name} of {self.type} holds one variable, and was "
                    f"given {len(listed)}: {', '.join(map(str, listed))}"
                )
            found[slot.name] = tuple(listed)
        return found


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
    it. ``differentiable`` is False for an operator without gradient.
    """

    proto: OpProto
    function: Callable[..., Any]
    gradient: Callable[..., Mapping[str, Any]] | None = None
    differentiable: bool = True
    positional: bool = False
    gradient_of: OpInfo | None = None
    takes: frozenset[str] = field(default_factory=frozenset)

    @property
    def type(self) -> str:
        """The name under which it is registered."""
        return self.proto.type


_REGISTRY: dict[str, OpInfo] = {}


def register_operator(
    type: str,
    function: Callable[..., Any],
    inputs: Iterable[str | Slot] = ("X",),
    outputs: Iterable[str | Slot] = ("Out",),
    attributes: Iterable[Attribute] = (),
    *,
    gradient: Callable[..., Mapping[str, Any]] | None = None,
    differentiable: bool = True,
    positional: bool = False,
    comment: str = "",
) -> OpInfo:
    """Register an operator and return its ``OpInfo``; see there for ``function``.

    A slot may be a string: ``"X"``, ``"X*"`` (duplicable), ``"X?"`` (dispensable), ``"Mask~"``
    (intermediate), with a comment after a space: ``"X* the terms"``. Raises ``RegistryError`` if
    the type is registered already.
    """
    what = user_call(f"register_operator({type!r})")
    if type in _REGISTRY:
        raise RegistryError(f"{what}: an operator of this type exists; choose another name")
    proto = OpProto(
        type,
        tuple(map(_slot, inputs)),
        tuple(map(_slot, outputs)),
        tuple(attributes),
        inspect.cleandoc(comment),
    )
    names = [slot.name for slot in (*proto.inputs, *proto.outputs)]
    names += [attribute.name for attribute in proto.attributes]
    repeated = [name for name in names if names.count(name) > 1]
    if repeated:
        raise RegistryError(f"{what}: two slots or attributes have the name {repeated[0]!r}")
    takes = frozenset(inspect.signature(gradient).parameters) if gradient else frozenset()
    unknown = takes - {*names, *[f"{slot.name}{GRAD_OP}" for slot in proto.outputs]}
    if unknown:
        raise RegistryError(
            f"{what}: its gradient takes {min(unknown)!r}, which is no slot, attribute, or "
            "gradient of an output such as Out_grad"
        )
    info = OpInfo(proto, function, gradient, differentiable, positional, None, takes)
    _REGISTRY[type] = info
    return info


SUFFIXES = {"*": "duplicable", "?": "dispensable", "~": "intermediate"}


def _slot(given: str | Slot) -> Slot:
    if isinstance(given, Slot):
        return given
    name, _, comment = given.partition(" ")
    flags = {}
    while name[-1:] in SUFFIXES:
        flags[SUFFIXES[name[-1]]] = True
        name = name[:-1]
    return Slot(name, comment, **flags)


def operator_info(type: str) -> OpInfo:
    """Return the registered operator; that of a gradient operator is made when first asked for.

    Raises ``RegistryError`` for an unknown type.
    """
    found = _REGISTRY.get(type)
    if found is not None:
        return found
    if type.endswith(GRAD_OP):
        from .gradients import gradient_info  # imported for training only

        found = _REGISTRY[type] = gradient_info(operator_info(type.removesuffix(GRAD_OP)))
        return found
    raise RegistryError(f"operator {type!r} is not registered{_similar(type)}")


def _similar(type: str) -> str:
    import difflib

    near = difflib.get_close_matches(type, _REGISTRY)
    return (
        f"; did you mean {' or '.join(near)}?" if near else "; register it with register_operator"
    )


def operator_types() -> list[str]:
    """Return the types of all registered operators without gradient operators, sorted."""
    return sorted(name for name, info in _REGISTRY.items() if info.gradient_of is None)
