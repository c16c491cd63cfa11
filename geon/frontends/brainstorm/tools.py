"""Tools: networks from a line of text, evaluation, extraction of buffers, information, pictures."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import UnavailableError
from . import initializers, layers
from .data_iterators import DataIterator
from .errors import IteratorValidationError, ValidationError
from .scorers import Scorer, Scores, aggregate_losses_and_scores, gather_losses_and_scores
from .structure.network import Network
from .training.utils import run_network
from .utils import Array, open_hdf5

__all__ = [
    "create_net_from_spec", "draw_network", "evaluate", "extract", "extract_and_save",
    "get_in_out_layers", "get_network_info", "print_network_info", "shuffle_data", "split",
]  # fmt: skip


# Evaluation ---------------------------------------------------------------------------------------


def evaluate(
    network: Any,
    iter: DataIterator,
    scorers: Sequence[Scorer] = (),
    out_name: str = "",
    targets_name: str = "targets",
    mask_name: str | None = None,
) -> dict[str, float]:
    """Return the losses and scores of a network on the data of an iterator.

    ``out_name``, the path of the predictions, and the names of the inputs with targets and mask
    are for scorers that have none of their own.
    """
    scores: Scores = {scorer.__name__: [] for scorer in scorers}
    scores |= {name: [] for name in network.get_loss_values()}
    for _ in run_network(network, iter(handler=network.handler)):
        network.forward_pass()
        gather_losses_and_scores(network, scorers, scores, out_name, targets_name, mask_name)
    return aggregate_losses_and_scores(scores, network, scorers)


def extract(
    network: Any, iter: DataIterator, buffer_names: str | Sequence[str]
) -> dict[str, Array]:
    """Return buffers over (T, B, ...) of all data of an iterator, by their dotted paths.

    Batches are joined along B, in the order of the iterator. Those with fewer steps than the
    longest are filled up with 0.
    """
    parts = list(_extracted(network, iter, buffer_names))
    if not parts:
        raise IteratorValidationError("extract: the iterator has no batch; give it data")
    return {
        name: np.concatenate([_with_steps(p[name], _most_steps(parts, name)) for p in parts], 1)
        for name in parts[0]
    }


def extract_and_save(
    network: Any, iter: DataIterator, buffer_names: str | Sequence[str], file_name: str
) -> None:
    """Write the buffers that ``extract`` returns to an HDF5 file, batch by batch.

    For example, ``['Output.outputs.predictions', 'Hid1.outputs.default']``.
    """
    with open_hdf5(file_name, "Buffers file v1.0") as file:
        for part in _extracted(network, iter, buffer_names):
            for name, data in part.items():
                if name not in file:
                    free = (None, None, *data.shape[2:])
                    empty = (0, 0, *data.shape[2:])
                    file.create_dataset(name, empty, data.dtype, maxshape=free, chunks=data.shape)
                known = file[name]
                start = known.shape[1]
                steps = max(known.shape[0], data.shape[0])
                known.resize((steps, start + data.shape[1], *data.shape[2:]))
                known[: data.shape[0], start:] = data


def _extracted(
    network: Any, iter: DataIterator, buffer_names: str | Sequence[str]
) -> Iterator[dict[str, Array]]:
    names = [buffer_names] if isinstance(buffer_names, str) else list(buffer_names)
    for _ in run_network(network, iter(handler=network.handler), all_inputs=False):
        network.forward_pass()
        yield {name: network.get(name)[: network.time_size] for name in names}


def _most_steps(parts: list[dict[str, Array]], name: str) -> int:
    return max(part[name].shape[0] for part in parts)


def _with_steps(data: Array, steps: int) -> Array:
    return np.pad(data, [(0, steps - data.shape[0]), *[(0, 0)] * (data.ndim - 1)])


# Networks -----------------------------------------------------------------------------------------

OUTPUTS = {
    "classification": layers.SoftmaxCE,
    "multi-label": layers.SigmoidCE,
    "regression": layers.SquaredError,
}  # constructors of output layers by the type of the task


def get_in_out_layers(
    task_type: str,
    in_shape: int | tuple[int, ...],
    out_shape: int | tuple[int, ...],
    data_name: str = "default",
    targets_name: str = "targets",
    projection_name: str | None = None,
    outlayer_name: str | None = None,
    mask_name: str | None = None,
    use_conv: bool | None = None,
) -> tuple[Any, Any]:
    """Return the layer ``Input`` and a projection, wired with the output and loss of a task.

    ``task_type`` is ``classification`` (softmax), ``multi-label`` (sigmoid) or ``regression``
    (squared error). The projection is fully connected, or a convolution of 1 x 1 for an output
    with three axes; ``use_conv`` decides otherwise. It is called ``<outlayer_name>_projection``,
    and the output layer ``Output``, by default. With ``mask_name``, the loss is masked by an input
    over (T, B, 1) of this name. ``inp >> hidden >> projection`` completes the network.
    """
    in_shape, out_shape = (
        shape if isinstance(shape, (tuple, list)) else (shape,) for shape in (in_shape, out_shape)
    )
    if task_type not in OUTPUTS:
        raise ValidationError(
            f"task_type={task_type!r}; give one of {', '.join(map(repr, OUTPUTS))}"
        )
    outlayer_name = outlayer_name or "Output"
    projection_name = projection_name or f"{outlayer_name}_projection"
    if use_conv or (use_conv is None and len(out_shape) == 3):
        projection = layers.Convolution2D(
            out_shape[-1], (1, 1), activation="linear", name=projection_name
        )
    elif use_conv is False or len(out_shape) == 1:
        projection = layers.FullyConnected(out_shape, activation="linear", name=projection_name)
    else:
        raise ValidationError(
            f"out_shape={tuple(out_shape)} has {len(out_shape)} lengths; give 1, or 3 for images, "
            "or say use_conv="
        )
    output, loss = OUTPUTS[task_type](name=outlayer_name), layers.Loss()
    projection >> "default" - output
    classes = task_type == "classification"
    shapes = {
        data_name: ("T", "B", *in_shape),
        targets_name: ("T", "B", *((*out_shape[:-1], 1) if classes else out_shape)),
    }
    if mask_name is not None:
        shapes[mask_name] = ("T", "B", 1)
    inputs = layers.Input(out_shapes=shapes)
    inputs - targets_name >> "targets" - output
    if mask_name is None:
        output - "loss" >> loss
    else:
        mask = layers.Mask()
        output - "loss" >> mask >> loss
        inputs - mask_name >> "mask" - mask
    return inputs, projection


ACTIVATIONS = {"s": "sigmoid", "t": "tanh", "r": "rel", "l": "linear"}
POOLINGS = {"m": "max", "a": "avg"}
WINDOW = {"p": "padding", "s": "stride"}
# By letter: the constructor, its keyword for a word, the words, the word by default, and the names
# and types of its numbers. Layers with a kernel size have a window.
LAYERS: dict[str, tuple[Any, str, dict[str, str], str, dict[str, type]]] = {
    "F": (layers.FullyConnected, "activation", ACTIVATIONS, "rel", {"size": int}),
    "R": (layers.Recurrent, "activation", ACTIVATIONS, "tanh", {"size": int}),
    "L": (layers.Lstm, "activation", ACTIVATIONS, "tanh", {"size": int}),
    "B": (layers.BatchNorm, "", {}, "", {}),
    "D": (layers.Dropout, "", {}, "", {"drop_prob": float}),
    "C": (layers.Convolution2D, "activation", ACTIVATIONS, "rel",
          {"num_filters": int, "kernel_size": int}),
    "P": (layers.Pooling2D, "type", POOLINGS, "max", {"kernel_size": int}),
}  # fmt: skip
TOKEN = re.compile(r"\s*(?:(?P<layer>[A-Z])|(?P<word>[a-z])|(?P<number>[-+]?\d*\.?\d+))\s*[:/|]?")


def _layer(text: str, letter: str, values: list[str | int | float]) -> Any:
    """Return the layer of a letter, from the values behind it."""
    if letter not in LAYERS:
        raise ValidationError(
            f"{text!r} is no layer: {letter!r} is none of {', '.join(LAYERS)}; use one of these"
        )
    constructor, keyword, words, word, numbers = LAYERS[letter]
    values = list(values)

    def number(kind: type, what: str) -> Any:
        if not values or not isinstance(values[0], kind):
            raise ValidationError(f"{text!r} lacks {what}, {kind.__name__}; give it there")
        return values.pop(0)

    given: dict[str, Any] = {}
    if keyword:
        given[keyword] = words[str(values.pop(0))] if values and values[0] in words else word
    for name, kind in numbers.items():
        if values or name != "drop_prob":
            given[name] = number(kind, f"{name}=")
    if "kernel_size" in given:
        given |= {"padding": 0, "stride": 1}
        while values and values[0] in WINDOW:
            which = WINDOW[str(values.pop(0))]
            given[which] = number(int, f"a number for {which}=")
        given |= {name: (given[name], given[name]) for name in ("kernel_size", "stride")}
    if values:
        raise ValidationError(f"{text!r} has {values} too many; leave them out")
    return constructor(**given)


def layers_of_spec(spec: str) -> Iterator[Any]:
    """Yield the hidden layers that a line of text describes, as in ``create_net_from_spec``."""
    found: list[tuple[str, int, list[str | int | float]]] = []
    place = 0
    while place < len(spec.rstrip()):
        match = TOKEN.match(spec, place)
        if match is None or (match["layer"] is None and not found):
            raise ValidationError(
                f"{spec!r} is not understood at {spec[place:]!r}; a layer is a letter of "
                f"{', '.join(LAYERS)} and its arguments, such as 'D.2 F1200 C32:5p2'"
            )
        if match["layer"]:
            found.append((match["layer"], place, []))
        elif match["word"]:
            found[-1][2].append(match["word"])
        else:
            text = match["number"]
            found[-1][2].append(float(text) if "." in text else int(text))
        place = match.end()
    starts = [start for _, start, _ in found] + [len(spec)]
    for (letter, start, values), end in zip(found, starts[1:], strict=True):
        yield _layer(spec[start:end].strip(), letter, values)


def create_net_from_spec(
    task_type: str,
    in_shape: int | tuple[int, ...],
    out_shape: int | tuple[int, ...],
    spec: str,
    data_name: str = "default",
    targets_name: str = "targets",
    mask_name: str | None = None,
    use_conv: bool | None = None,
) -> Any:
    """Return a network whose hidden layers are described by a line such as ``"D.2 F1200 D"``.

    A layer is a capital letter and its arguments:

    - ``F``, ``R`` and ``L``: fully connected, recurrent and LSTM, with their size
    - ``B``: batch normalisation
    - ``D``: dropout, with its probability, by default 0.5
    - ``C``: convolution, with the number of filters and the kernel size, such as ``C32:5``
    - ``P``: pooling, by ``m`` (maximum, the default) or ``a`` (average), with its kernel size

    An activation may stand before sizes: ``l`` linear, ``r`` rel, ``s`` sigmoid, ``t`` tanh.
    ``p1`` and ``s2`` behind kernel sizes give padding and stride. Blanks are ignored. The other
    arguments are those of ``get_in_out_layers``. Layers with an activation are initialised by
    ``DenseSqrtFanInOut``, where it fits, and others by ``Gaussian``. ``output_name`` of the network
    is the path of the predictions.
    """
    inputs, projection = get_in_out_layers(
        task_type,
        in_shape,
        out_shape,
        data_name=data_name,
        targets_name=targets_name,
        mask_name=mask_name,
        use_conv=use_conv,
    )
    last = inputs if data_name == "default" else inputs - data_name
    for layer in layers_of_spec(spec):
        last = last >> layer
    network = Network.from_layer(last >> projection)
    network.output_name = "Output.outputs.predictions"
    dense = {
        name: initializers.DenseSqrtFanInOut(layer.kwargs["activation"])
        for name, layer in network.layers.items()
        if "activation" in layer.kwargs
    }
    network.initialize(
        {**dense, "default": initializers.Gaussian(), "fallback": initializers.Gaussian()}
    )
    return network


def get_network_info(network: Any) -> str:
    """Return a text with the shapes of inputs, outputs and parameters of each layer."""
    lines = [f"total number of parameters: {network.buffer.parameters.size}"]
    for name, layer in network.layers.items():
        parameters = dict(network.buffer[name].parameters.items())
        lines += [name, *(f"\t{key}{tuple(view.shape)}" for key, view in parameters.items())]
        lines.append(f"number of parameters: {sum(view.size for view in parameters.values())}")
        for title, shapes in (("input", layer.in_shapes), ("output", layer.out_shapes)):
            each = "\t".join(f"{key}{shape.feature_shape}" for key, shape in shapes.items())
            lines += [f"{title} shapes:", f"\t{each}"]
        lines.append("-" * 80)
    return "\n".join(lines)


def print_network_info(network: Any) -> None:
    """Print the shapes of inputs, outputs and parameters of each layer."""
    print("=" * 30, "Network information", "=" * 30)
    print(get_network_info(network))


COLUMN_WIDTH, ROW_HEIGHT = 2.2, 0.8  # inches of a layer in a picture
BEND = 0.2  # of edges over several columns, as a share of their length


def draw_network(network: Any, file_name: str = "network.png") -> Any:
    """Write a picture of the layers and their connections to a file, with Matplotlib.

    Layers stand in columns by their distance from ``Input``. In a notebook, the picture is
    returned. Raises ``UnavailableError`` if Matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UnavailableError(
            "draw_network draws with Matplotlib, which is not installed: pip install matplotlib"
        ) from None
    edges = {
        (source, sink.split(".")[0])
        for source, layer in network.architecture.items()
        for sinks in layer["@outgoing_connections"].values()
        for sink in sinks
    }
    depth = dict.fromkeys(network.layers, 0)
    for name in network.layers:  # in canonical order: sources come first
        for source, sink in edges:
            if source == name:
                depth[sink] = max(depth[sink], depth[name] + 1)
    columns: dict[int, list[str]] = {}
    for name, column in depth.items():
        columns.setdefault(column, []).append(name)
    places = {
        name: (column, (len(names) - 1) / 2 - row)
        for column, names in columns.items()
        for row, name in enumerate(names)
    }
    rows = max(map(len, columns.values()))
    span = max((depth[sink] - depth[source] for source, sink in edges), default=0)
    bulge = BEND / 2 * span * COLUMN_WIDTH / ROW_HEIGHT if span > 1 else 0  # of the longest edge
    height = rows + 0.4 + bulge
    figure = Figure(figsize=(COLUMN_WIDTH * len(columns), ROW_HEIGHT * height))
    axes = figure.add_axes((0, 0, 1, 1), frameon=False, xticks=[], yticks=[])
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(-rows / 2 - 0.2 - bulge, rows / 2 + 0.2))
    box = {"boxstyle": "round", "facecolor": "white"}
    boxes = {
        name: axes.text(*place, name, ha="center", va="center", bbox=box).get_bbox_patch()
        for name, place in places.items()
    }
    for source, sink in sorted(edges):
        bent = f"arc3,rad={BEND if depth[sink] - depth[source] > 1 else 0}"
        arrow = {"arrowstyle": "->", "connectionstyle": bent, "patchA": boxes[source],
                 "patchB": boxes[sink]}  # fmt: skip
        axes.annotate("", places[sink], places[source], arrowprops=arrow)
    figure.savefig(file_name)
    try:
        from IPython.display import Image
    except ImportError:
        return None
    return Image(filename=file_name) if Path(file_name).suffix == ".png" else None


# Data ---------------------------------------------------------------------------------------------


def shuffle_data(*args: Array | None, seed: int | None = None) -> list[Array | None]:
    """Return arrays over (T, B, ...) with their sequences in one random order; None stays None."""
    count = _sequences(args)
    order = np.random.RandomState(seed).permutation(count)
    return [None if array is None else array[:, order] for array in args]


def split(*args: Array | None, ratios: Sequence[float] = (9, 1)) -> list[list[Array | None]]:
    """Return for each ratio a list of that part of the sequences of each array over (T, B, ...)."""
    ends = np.round(np.cumsum(np.array(ratios) / np.sum(ratios)) * _sequences(args)).astype(int)
    return [
        [None if array is None else array[:, start:stop] for array in args]
        for start, stop in zip([0, *ends[:-1]], ends, strict=True)
    ]


def _sequences(arrays: Sequence[Array | None]) -> int:
    counts = {array.shape[1] for array in arrays if array is not None}
    if len(counts) != 1:
        raise IteratorValidationError(
            f"the arrays have {sorted(counts)} sequences; give at least one array over (T, B, "
            "...), and equal numbers of sequences"
        )
    return counts.pop()
