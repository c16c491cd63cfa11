"""``public``, the decorator of public functions: checks of arguments, and hints for wrong ones.

A call whose arguments do not fit raises Python's TypeError, which only says that there is no such
name. ``public`` adds geon's name of the argument for that of another library (``axis=``, ``dim=``,
``keepdims=``), checks flags and lists, and gives the result the name and tags of the call.
"""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ...errors import ArgumentError
from .source_info import user_call


class Dispatch:
    """The function that takes calls with arguments of another kind of array; None without one.

    ``hook(function, args, keywords)`` returns the result, or NotImplemented for other arguments.
    """

    hook: Callable[[Any, tuple[Any, ...], dict[str, Any]], Any] | None = None


F = TypeVar("F", bound=Callable[..., Any])

# Argument names of other libraries, with geon's names for them; the first name that the called
# function has is suggested.
ALIASES = {
    "axis": ("axis", "reduction_axes", "normalization_axes", "axes", "over"),
    "axes": ("axes", "reduction_axes", "normalization_axes", "axis", "over"),
    "dim": ("axis", "reduction_axes", "normalization_axes", "axes", "over"),
    "dims": ("axes", "reduction_axes", "normalization_axes", "axis", "over"),
    "ndim": ("axes",),
    "shape": ("axes",),
    "size": ("axes", "length"),
    "n": ("length",),
    "newshape": ("axes",),
    "perm": ("axes",),
    "ddof": ("correction",),
    "unbiased": ("correction",),
    "a": ("x",),
    "input": ("x",),
    "tensor": ("x",),
    "data": ("initial_value", "value", "x"),
    "init": ("initial_value",),
    "initial": ("initial_value",),
    "initializer": ("initial_value",),
    "value": ("initial_value",),
    "object": ("value",),
    "requires_grad": ("trainable",),
    "lr": ("rate",),
    "learning_rate": ("rate",),
    "eps": ("epsilon",),
    "weight_decay": ("decay",),
    "beta_1": ("first",),
    "beta_2": ("second",),
    "b1": ("first",),
    "b2": ("second",),
    "kernel_initializer": ("init",),
    "weight_init": ("init",),
    "bias_initializer": ("bias",),
    "use_bias": ("bias",),
    "units": ("axes",),
    "out_features": ("axes",),
    "out_channels": ("axes",),
    "filters": ("axes",),
    "features": ("axes",),
    "input_dim": ("words",),
    "num_embeddings": ("words",),
    "output_dim": ("axes", "axis"),
    "embedding_dim": ("axes", "axis"),
    "num_groups": ("groups",),
    "num_heads": ("heads",),
    "batch_size": ("size",),
    "max_norm": ("norm",),
    "go_backwards": ("reverse",),
    "normalized_shape": ("over",),
    "layers": ("parts",),
    "type": ("dtype",),
    "a_min": ("low",),
    "a_max": ("high",),
    "min": ("low",),
    "max": ("high",),
    "minval": ("low",),
    "maxval": ("high",),
    "loc": ("mean", "location"),
    "mu": ("mean", "location"),
    "mean": ("location",),
    "scale": ("std",),
    "sigma": ("std", "scale"),
    "stddev": ("std", "scale"),
    "std": ("scale",),
    "df": ("degrees",),
    "alpha": ("shape", "concentration", "a"),
    "lam": ("mean", "rate"),
    "prob": ("p",),
    "probs": ("p",),
    "pad": ("widths",),
    "pad_width": ("widths",),
    "padding": ("widths",),
    "constant_values": ("value",),
    "indices": ("index",),
    "arrays": ("tensors",),
    "tensors": ("operands", "ops"),
    "num_classes": ("axis",),
    "depth": ("axis",),
    "argnums": ("x",),
    "wrt": ("x",),
    "negative_slope": ("slope",),
    "strides": ("stride",),
    "inputs": ("placeholders",),
    "outputs": ("results",),
    "feeds": ("placeholders",),
    "cond_fun": ("condition",),
    "cond": ("condition",),
    "body_fun": ("body",),
    "init_val": ("init",),
    "loop_vars": ("init",),
    "maximum_iterations": ("max_steps",),
    "filename": ("path",),
    "file": ("path",),
}
# Advice for arguments that geon does not need or expresses in another way.
BY_ELEMENT = "this goes by element; geon.sum, geon.max and their kin go along axes"
WINDOWS = "write windows={T: geon.Window(R, stride=2)}, an entry for each axis"
INSTEAD = {
    "axis": BY_ELEMENT,
    "dim": BY_ELEMENT,
    "keepdims": "leave it out: axes meet by name, so that x - geon.mean(x, A) is over x's axes",
    "keepdim": "leave it out: axes meet by name, so that x - geon.mean(x, A) is over x's axes",
    "out": "leave it out: the plan says where values lie; geon.assign changes a variable",
    "inplace": "leave it out: the plan says where values lie; geon.assign changes a variable",
    "dtype": "write geon.cast(x, dtype) before or after it",
    "where": "write geon.where(mask, x, other) first",
    "device": "choose the transformer: geon.make_transformer(name)",
    "key": "draw from a stream: geon.Random(seed).normal(axes)",
    "rng": "draw from a stream: geon.Random(seed).normal(axes)",
    "seed": "draw from a stream: geon.Random(seed).normal(axes)",
    "order": "axes go by name and have no memory order; geon.reorder(x, axes) orders a result",
    "from_logits": "write geon.softmax(scores, A) or geon.sigmoid(scores) as y, which stays exact",
    "reduction": "say which axes stay with out_axes=, and take geon.mean or geon.sum of the result",
    "create_graph": "leave it out: derivatives are expressions, which can be derived again",
    "retain_graph": "leave it out: derivatives are expressions, which can be derived again",
    "stable": "leave it out: equal elements keep their order",
    "training": "build two expressions, one with dropout and one without",
    "stride": WINDOWS,
    "strides": WINDOWS,
    "dilation": WINDOWS,
    "kernel_size": WINDOWS,
    "groups": "give both tensors an axis of groups: what both have and is not summed over stays",
    "length": "give it to the axis: geon.Axis(name, length)",
}


# Parameters of public functions that declare ``**notes`` with these annotations.
_NOTES = [("name", None, "str | None"), ("tags", (), "Tags"), ("follows", (), "Follows")]
_KEYWORDS = [
    inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
    for name, default, annotation in _NOTES
]
NOTES = {"Unpack[Named]": _KEYWORDS[:1], "Unpack[OpKeywords]": _KEYWORDS}


def public(function: F) -> F:
    """Return ``function`` as users call it: its arguments are checked and its result annotated.

    Unknown arguments raise ``ArgumentError``, and so does anything but True and False (or 1 and 0)
    for a ``bool`` parameter, and a value that is not iterable for a ``Sequence`` or an
    ``Iterable``. If the function takes ``**notes: Unpack[OpKeywords]``, the name, the tags and the
    ops that come before are those of its result; ``Unpack[Named]`` is the name alone.
    """
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    notes = NOTES.get(parameters[-1].annotation, []) if parameters else []
    if notes:
        parameters[-1:] = notes
    dispatched = function.__name__ != "__init__"  # a constructor makes no tensor
    known = {p.name for p in parameters}
    own = known - {p.name for p in notes}
    flags = _annotated(parameters, FLAG)
    lists = _annotated(parameters, LIST)

    @functools.wraps(function)
    def call(*args: Any, **keywords: Any) -> Any:
        if dispatched and Dispatch.hook is not None:
            answer = Dispatch.hook(call, args, keywords)
            if answer is not NotImplemented:
                return answer
        if flags:
            _check(FLAG, flags, function, args, keywords)
        noted = keywords and notes and not own.issuperset(keywords)
        if noted and not known.issuperset(keywords):
            raise ArgumentError(why(call, args, keywords, ""))
        try:
            result = function(*args, **keywords)
        except TypeError as error:
            inner = error.__traceback__
            if inner is not None and inner.tb_next is not None:
                if type(error) is TypeError:  # no error of geon's, which says more
                    _check(LIST, lists, function, args, keywords)
                raise  # raised inside of the function: its arguments were accepted
            mismatch = str(error)
        else:
            if noted:
                note = keywords.get
                result = result._annotate(note("name"), note("tags"), note("follows"))
            return result
        raise ArgumentError(why(call, args, keywords, mismatch))

    if notes:
        call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call  # type: ignore[return-value]  # the same signature


def differentiates(place: int, parameter: str) -> Callable[[F], F]:
    """Mark a function that takes the graph of an argument, not its value alone, to derive it.

    The argument has the position ``place`` and the name ``parameter``.
    """

    def decorate(function: F) -> F:
        function.differentiates = (place, parameter)  # type: ignore[attr-defined]  # a mark
        return function

    return decorate


def check_integer(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` if an argument of ``what`` is no integer."""
    if not isinstance(value, (int, np.integer)):
        raise ArgumentError(f"{user_call(what)}: {name}={value!r} is no integer; give one")


def check_choice(what: str, name: str, value: Any, options: Iterable[str]) -> None:
    """Raise ``ArgumentError`` if an argument of ``what`` is none of the strings ``options``."""
    if not (isinstance(value, str) and value in options):
        raise ArgumentError(
            f"{user_call(what)}: {name}={value!r} is none of {', '.join(options)}; give one"
        )


def explain_constructors(classes: Iterable[type], package: str) -> None:
    """Wrap the constructors of classes, and of their bases in the package, with ``public``."""
    for base in dict.fromkeys(base for cls in classes for base in cls.__mro__):
        own = vars(base).get("__init__")
        ours = base.__module__.startswith(f"{package}.")
        if own is not None and ours and not hasattr(own, "__wrapped__"):
            base.__init__ = public(own)  # type: ignore[misc]  # the same signature


def _is_flag(value: Any) -> bool:
    """Return True for True and False, and for 1 and 0."""
    if value is True or value is False:
        return True
    return isinstance(value, (bool, np.bool_, int, np.integer)) and value in (0, 1)


class _ArgumentCheck(NamedTuple):
    """Annotations, a test of arguments for parameters of them, and the end of the message."""

    annotation: re.Pattern[str]
    accepts: Callable[[Any], bool]
    cure: str


FLAG = _ArgumentCheck(re.compile("bool|<class 'bool'>"), _is_flag, "is no flag; give True or False")
# Parameters that take a list and nothing else; the check is made where a function failed.
LIST = _ArgumentCheck(
    re.compile(r"(Sequence|Iterable)\[([^\[\]]|\[[^\]]*\])*\]"),
    lambda value: isinstance(value, Iterable),
    "is no list; give a list, such as [a, b]",
)


def _annotated(
    parameters: Sequence[inspect.Parameter], check: _ArgumentCheck
) -> list[tuple[str, float]]:
    """Return the names and positions of the parameters that a check is for."""
    return [
        (p.name, position if p.kind is p.POSITIONAL_OR_KEYWORD else math.inf)
        for position, p in enumerate(parameters)
        if check.annotation.fullmatch(str(p.annotation))
    ]


def _check(
    check: _ArgumentCheck,
    checked: Sequence[tuple[str, float]],
    function: Callable[..., Any],
    args: Sequence[Any],
    keywords: Mapping[str, Any],
) -> None:
    """Raise ``ArgumentError`` if an argument of these parameters does not pass."""
    for name, position in checked:
        if name in keywords or position < len(args):
            value = keywords[name] if name in keywords else args[int(position)]
            if not check.accepts(value):
                what = user_call(_name(function, args))
                raise ArgumentError(f"{what}: {name}={value!r} {check.cure}") from None


def check_flag(what: str, name: str, value: Any) -> None:
    """Raise ``ArgumentError`` if a flag is neither True nor False, nor 1 nor 0."""
    if not FLAG.accepts(value):
        raise ArgumentError(f"{what}: {name}={value!r} {FLAG.cure}")


def _name(function: Callable[..., Any], args: Sequence[Any]) -> str:
    """Return the name of a function for messages; of a constructor, that of its class."""
    if function.__name__ == "__init__" and args:
        return type(args[0]).__name__
    qualified = getattr(function, "__qualname__", function.__name__)
    return str(qualified.rpartition(".")[2])


def why(
    function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any], mismatch: str
) -> str:
    """Return a message that says what is wrong with the arguments of a call, with advice."""
    accepted = inspect.signature(function).parameters
    parameters = {name: p for name, p in accepted.items() if name != "self"}
    name = _name(function, args)
    start = user_call(name)
    takes = f"it takes ({', '.join(_shown(p) for p in parameters.values())})"
    unknown = [word for word in keywords if word not in parameters]
    if not unknown:
        first = next(iter(parameters.values()), None)
        places = [p for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
        given = len(args) - ("self" in accepted)
        if first is not None and "positional argument" in mismatch and given > len(places):
            if str(first.annotation).startswith(("Sequence", "Iterable", "list")):
                return (
                    f"{start} was given {given} {first.name} one after another; give a list: "
                    + (f"{name}([a, b])")
                )
            if "self" in accepted:
                count = f"takes {len(places)} positional arguments but {given} were given"
                return f"{start} {count}; {takes}"
        return f"{start} {mismatch.partition('() ')[2]}; {takes}"
    words = " and ".join(f"{word}=" for word in unknown)
    cures = [_cure(word, parameters) for word in unknown]
    return f"{start} has no argument {words}; {'; '.join(filter(None, cures)) or takes}"


def _cure(word: str, parameters: Mapping[str, inspect.Parameter]) -> str:
    """Return the advice for an unknown argument; "" if there is none."""
    for own in ALIASES.get(word, ()):
        value = parameters.get(own)
        if value is not None and value.annotation is not value.empty:  # not an internal parameter
            if value.kind is value.VAR_POSITIONAL:
                return f"give the {own} one after another, without {word}="
            return f"write {own}= for {word}={_kind(str(value.annotation))}"
    if word in INSTEAD:
        return f"{word}=: {INSTEAD[word]}"
    import difflib

    near = difflib.get_close_matches(word, parameters, 1)
    return f"did you mean {near[0]}=?" if near else ""


def _kind(annotation: str) -> str:
    """Return the part of a message that says how to give a parameter that takes axes; else ""."""
    if annotation.startswith("NewAxes"):
        return ': a list such as [geon.Axis("N"), geon.Axis("C", 3)]'
    if annotation.startswith(("AxesLike", "AxisLike")):
        return ': a geon.Axis or its name, such as "N", not a number'
    return ": a geon.Axis" if annotation == "Axis" else ""


def _shown(p: inspect.Parameter) -> str:
    if p.kind is p.KEYWORD_ONLY:
        return f"{p.name}="
    stars = "*" * (p.kind is p.VAR_POSITIONAL) or "**" * (p.kind is p.VAR_KEYWORD)
    return stars + p.name
