"""``Distribution``: the methods of all families, and the sets on which their densities live."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, NoReturn, TypeVar, dataclass_transform

import geon

from ..errors import ArgumentError
from ..op_graph.building.constants import as_tensor
from ..op_graph.core.argument_hints import public
from ..op_graph.core.source_info import user_call
from ..op_graph.random.parameters import Requirement, check
from ..op_graph.syntax.foreign_names import missing_member
from ..op_graph.syntax.submodule_names import METHODS
from ..op_graph.values.dtypes import as_dtype

if TYPE_CHECKING:
    from geon import Axes, Random, Tensor

    from ..op_graph.building.typing import NewAxes, TensorLike

T = TypeVar("T")
# The types that a constructor takes for fields that are no parameters.
GIVEN = {"over": "AxesLike"}
INFINITY = float("inf")


class Support(NamedTuple):
    """A set of values: the words for it, a test, and a value inside for use in place of others."""

    words: str
    contains: Callable[[Any, Tensor], Tensor]
    inside: Callable[[Any], Any]


def is_whole(x: Tensor) -> Tensor:
    """Return True where x is a whole number."""
    return geon.equal(x, geon.floor(x)) if x.dtype.kind not in "iu" else geon.equal(x, x)


REAL = Support("all numbers", lambda d, x: geon.equal(x, x), lambda d: 0.0)
FROM_0 = Support("numbers of at least 0", lambda d, x: x >= 0, lambda d: 1.0)
ABOVE_0 = Support("numbers above 0", lambda d, x: x > 0, lambda d: 1.0)
UNIT = Support("numbers from 0 to 1", lambda d, x: geon.logical_and(x >= 0, x <= 1), lambda d: 0.5)
WHOLE_FROM_0 = Support(
    "whole numbers of at least 0", lambda d, x: geon.logical_and(x >= 0, is_whole(x)), lambda d: 0.0
)
WHOLE_FROM_1 = Support(
    "whole numbers of at least 1", lambda d, x: geon.logical_and(x >= 1, is_whole(x)), lambda d: 1.0
)
BETWEEN = Support(
    "numbers from low to high",
    lambda d, x: geon.logical_and(x >= d.low, x <= d.high),
    lambda d: d.low,
)
FROM_SCALE = Support("numbers of at least scale", lambda d, x: x >= d.scale, lambda d: d.scale)
UP_TO_COUNT = Support(
    "whole numbers from 0 to count",
    lambda d, x: geon.logical_and(geon.logical_and(x >= 0, x <= d.count), is_whole(x)),
    lambda d: 0.0,
)
ZERO_OR_ONE = Support(
    "0 and 1", lambda d, x: geon.logical_or(geon.equal(x, 0), geon.equal(x, 1)), lambda d: 0.0
)


@dataclass_transform(eq_default=False, frozen_default=True)
def family(cls: type[T]) -> type[T]:
    """Return the class as a frozen dataclass whose constructor answers wrong arguments."""
    made = dataclass(frozen=True, eq=False)(cls)
    init: Any = made.__init__
    # Its frames are geon's: messages and source lines are those of the caller.
    init.__code__ = init.__code__.replace(co_filename=__file__)
    # Fields hold tensors; the constructor takes what makes them.
    for field in fields(made):  # type: ignore[arg-type]  # it is a dataclass
        if field.type == "Any":
            optional = " | None" if field.default is None else ""
            init.__annotations__[field.name] = GIVEN.get(field.name, "TensorLike") + optional
    made.__init__ = public(init)  # type: ignore[method-assign]  # the same signature
    return made


@family
class Distribution:
    """A probability distribution for each index of the axes of its parameters.

    Parameters are numbers or tensors; those with axes are broadcast to the axes of all. ``axes``
    are these, and ``event_axes`` those along which one value lies, such as the classes of a
    Dirichlet distribution. The parameters are fields, so derivatives with respect to them are
    taken as of any tensor. Raises ``ArgumentError`` for a constant parameter out of range.
    """

    requirements: ClassVar[dict[str, Requirement]] = {}  # by the name of the parameter
    support: ClassVar[Support] = REAL
    is_discrete: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        tensors = {
            name: as_tensor(value) for name, value in given.items() if self._is_parameter(name)
        }
        for name, requirement in self.requirements.items():
            if given[name] is not None:
                check(type(self).__name__, name, given[name], requirement)
        every = union(*(tensor.axes for tensor in tensors.values()))
        for name, tensor in tensors.items():
            wide = tensor if tensor.axes in (every, geon.Axes()) else geon.broadcast(tensor, every)
            object.__setattr__(self, name, wide)

    if not TYPE_CHECKING:  # type checkers know the members

        def __getattr__(self, name: str) -> NoReturn:
            raise missing_member(self, name, METHODS)

    def _need(self, name: str, cls: type) -> None:
        """Raise ``ArgumentError`` if the field ``name`` is no instance of ``cls``."""
        value = getattr(self, name)
        if not isinstance(value, cls):
            raise ArgumentError(
                f"{user_call(type(self).__name__)}: {name}={value!r} is no {cls.__name__}; give a "
                f"geon.distributions.{cls.__name__}"
            )

    def _is_parameter(self, name: str) -> bool:
        """Return True for fields that are broadcast to each other."""
        return True

    def _parameters(self) -> list[Tensor]:
        return [
            getattr(self, field.name)
            for field in fields(self)
            if isinstance(getattr(self, field.name), geon.Tensor)
        ]

    @property
    def event_axes(self) -> Axes:
        """The axes along which one value lies; none for distributions of numbers."""
        return geon.Axes()

    @property
    def axes(self) -> Axes:
        """The axes of the parameters for which there is a distribution for each index."""
        every = union(*(tensor.axes for tensor in self._parameters()))
        return geon.Axes(*(axis for axis in every if axis.name not in self.event_axes))

    @property
    def dtype(self) -> Any:
        """The dtype of samples of continuous families: that of the parameters, float32 by default.

        Python numbers take the dtype of the other parameters.
        """
        strong = {t.dtype for t in self._parameters() if not t.weak and "float" in t.dtype.name}
        return max(strong, key=lambda dtype: dtype.itemsize, default=as_dtype("float32"))

    # What families define -------------------------------------------------------------------------

    def _log_prob(self, x: Tensor) -> Tensor:
        """Return the logarithm of the density for values inside of the support."""
        raise NotImplementedError

    def _sample(self, random: Random, axes: Axes) -> Tensor:
        """Return a draw over ``axes``, which contain those of the distribution and the event's."""
        raise NotImplementedError

    def _cdf(self, x: Tensor) -> Tensor:
        """Return the probability of values of at most x, for x inside of the support."""
        self._missing("cdf", "geon.mean(d.sample(random, [S]) <= x, S) estimates it")

    def _quantile(self, p: Tensor) -> Tensor:
        """Return the value at which the distribution function is p."""
        self._missing("quantile", "geon.sort(d.sample(random, [S]), S) estimates it")

    def _missing(self, what: str, cure: str) -> NoReturn:
        raise ArgumentError(
            f"{user_call(what)}: {type(self).__name__} has no {what} in closed form; {cure}"
        )

    # What users call ------------------------------------------------------------------------------

    def log_prob(self, x: TensorLike) -> Tensor:
        """Return the logarithm of the density, or of the probability of a discrete value, at x.

        The result is over the axes of ``x`` and of the distribution without the event's. Outside of
        the support it is -inf, and its derivatives are 0.
        """
        x = self._value(x)
        if self.support is REAL:
            return self._ordered(self._log_prob(x), x)
        inside = self.support.contains(self, x)
        at = geon.where(inside, x, self.support.inside(self))
        outside = geon.where(geon.isnan(x), x, -INFINITY)
        return self._ordered(geon.where(inside, self._log_prob(at), outside), x)

    def prob(self, x: TensorLike) -> Tensor:
        """Return the density, or the probability of a discrete value, at x; see ``log_prob``."""
        return geon.exp(self.log_prob(x))

    def sample(self, random: Random, axes: NewAxes = ()) -> Tensor:
        """Draw values from the stream ``random`` over ``axes``, then those of the distribution.

        Draws of continuous families have derivatives with respect to the parameters, unless the
        family says otherwise.
        """
        if not isinstance(random, geon.Random):
            raise ArgumentError(
                f"{user_call('sample')}: random={random!r} is no stream of random numbers; make "
                f"one with random = geon.Random(seed), then {type(self).__name__}(...).sample("
                "random, axes)"
            )
        every = union(geon.Axes(axes), self.axes, self.event_axes)
        return geon.reorder(self._sample(random, every), every)

    def cdf(self, x: TensorLike) -> Tensor:
        """Return the probability of values of at most x.

        Raises ``ArgumentError`` if the family has no closed form.
        """
        x = self._value(x)
        if self.support is REAL:
            return self._ordered(self._cdf(x), x)
        x = geon.floor(x) if self.is_discrete else x
        inside = self.support.contains(self, x)
        found = self._cdf(geon.where(inside, x, self.support.inside(self)))
        above = geon.cast(x > self.support.inside(self), found.dtype)
        return self._ordered(geon.where(inside, found, above), x)

    def quantile(self, p: TensorLike) -> Tensor:
        """Return the value at which the distribution function is ``p``; NaN outside of 0 to 1.

        Raises ``ArgumentError`` if the family has no closed form.
        """
        p = as_tensor(p)
        valid = geon.logical_and(p >= 0, p <= 1)
        made = self._quantile(geon.where(valid, p, 0.5))
        return self._ordered(geon.where(valid, made, float("nan")), p)

    @property
    def mean(self) -> Tensor:
        """The expectation; NaN or infinite where there is none."""
        self._missing("mean", "geon.mean(d.sample(random, [S]), S) estimates it")

    @property
    def variance(self) -> Tensor:
        """The variance; NaN or infinite where there is none."""
        self._missing("variance", "geon.variance(d.sample(random, [S]), S) estimates it")

    @property
    def std(self) -> Tensor:
        """The standard deviation."""
        return geon.sqrt(self.variance)

    def entropy(self) -> Tensor:
        """Return the differential entropy, or that of a discrete distribution, in nats.

        Raises ``ArgumentError`` if the family has no closed form.
        """
        self._missing("entropy", "-geon.mean(d.log_prob(d.sample(random, [S])), S) estimates it")

    def _value(self, x: TensorLike) -> Tensor:
        """Return x as a tensor of floats; integers take the dtype of the distribution."""
        tensor = as_tensor(x)
        return tensor if "float" in tensor.dtype.name else geon.cast(tensor, self.dtype)

    def _ordered(self, made: Tensor, x: Tensor) -> Tensor:
        """Return a result with the axes of x first."""
        every = union(x.axes, self.axes)
        return made if made.axes is every else geon.reorder(made, every)

    def _full(self, value: Any) -> Tensor:
        """Return a value over the axes of the distribution."""
        tensor = as_tensor(value)
        return tensor if tensor.axes is self.axes else geon.broadcast(tensor, self.axes)


def union(*axes: Any) -> Axes:
    """Return the axes of all, each name once, in the order of their first appearance."""
    found: dict[str, Any] = {}
    for each in axes:
        for axis in each:
            found.setdefault(axis.name, axis)
    return geon.Axes(*found.values())
