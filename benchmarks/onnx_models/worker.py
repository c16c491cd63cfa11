"""A process that loads and times models for one contender: ``worker CONTENDER THREADS FOLDER``.

It answers JSON requests, one a line, on standard output.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from . import models

Run = Callable[[dict[str, Any]], list[Any]]
clock = time.perf_counter


def geon_session(path: Path, threads: int) -> Run:
    """Return a function of inputs by geon's native code."""
    import geon
    from geon.frontends import onnx

    model = onnx.load(path)
    f = model.computation(geon.make_transformer("native", threads=threads))
    names = list(model.inputs)
    return lambda inputs: list(f(*[inputs[name] for name in names]).values())


def onnxruntime_session(path: Path, threads: int) -> Run:
    """Return a function of inputs by ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options)
    return lambda inputs: session.run(None, inputs)


def geon_step(path: Path, threads: int) -> Run:
    """Return a step of gradient descent on all weights of a classifier by geon's native code."""
    import geon
    from geon.frontends import onnx

    model = onnx.load(path)
    (scores,) = model.outputs.values()
    batch, classes = scores.axes
    labels = geon.placeholder([batch], "int64", name="labels")
    hot = geon.onehot(labels, classes)
    loss = -geon.mean(geon.sum(hot * geon.log_softmax(scores, [classes]), classes))
    weights = [each for each in model.variables.values() if each.trainable]
    slopes = geon.deriv(loss, weights)
    step = geon.doall(
        [geon.assign(w, w - RATE * slope) for w, slope in zip(weights, slopes, strict=True)]
    )
    transformer = geon.make_transformer("native", threads=threads)
    f = transformer.computation([loss, step], *model.inputs.values(), labels)
    return lambda inputs: [f(*inputs.values())]


def torch_step(path: Path, threads: int) -> Run:
    """Return the same step by PyTorch: the nodes of the model as functions of its tensors."""
    import onnx
    import torch
    from onnx import numpy_helper
    from torch.nn import functional

    torch.set_num_threads(threads)
    graph = onnx.load(path).graph
    weights = {
        each.name: torch.tensor(numpy_helper.to_array(each)).requires_grad_()
        for each in graph.initializer
    }

    def result(node: Any, given: list[Any]) -> Any:
        has = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
        if node.op_type == "Conv":
            return functional.conv2d(*given, stride=has["strides"], padding=has["pads"][:2])
        if node.op_type == "MaxPool":
            return functional.max_pool2d(*given, 3, 2, 1)
        if node.op_type == "GlobalAveragePool":
            return given[0].mean((2, 3), keepdim=True)
        simple = {"Relu": torch.relu, "Add": torch.add, "MatMul": torch.matmul}
        simple |= {"Flatten": lambda x: x.flatten(1), "Identity": lambda x: x}
        return simple[node.op_type](*given)

    def run(inputs: dict[str, Any]) -> list[Any]:
        values = {**weights, "image": torch.from_numpy(inputs["image"])}
        for node in graph.node:
            values[node.output[0]] = result(node, [values[name] for name in node.input])
        scores = values[graph.output[0].name]
        loss = functional.cross_entropy(scores, torch.from_numpy(inputs["labels"]))
        loss.backward()
        with torch.no_grad():
            for weight in weights.values():
                weight -= RATE * weight.grad
                weight.grad = None
        return [loss.item()]

    return run


def labelled(batch: int) -> dict[str, Any]:
    """Return images and their classes."""
    labels = np.random.default_rng(2).integers(0, 1000, batch)
    return {**models.image(batch), "labels": labels}


RATE = 1e-4
SESSIONS = {"geon": geon_session, "onnxruntime": onnxruntime_session}
STEPS = {"geon": geon_step, "torch": torch_step}
INPUTS = {
    "image": models.image, "text": models.text, "table": models.table, "labelled": labelled,
}  # fmt: skip


class Worker:
    """The sessions that are open."""

    def __init__(self, contender: str, threads: int, folder: Path) -> None:
        self.contender, self.threads, self.folder = contender, threads, folder
        self.runs: dict[str, Run] = {}

    def load(self, name: str, kind: str, sizes: list[int]) -> float:
        """Load a model; return the seconds until the first result is there."""
        inputs = INPUTS[kind](*sizes)
        start = clock()
        makers = STEPS if kind == "labelled" else SESSIONS
        run = makers[self.contender](self.folder / f"{name}.onnx", self.threads)
        run(inputs)
        self.runs[name] = run
        return clock() - start

    def result(self, name: str, kind: str, sizes: list[int]) -> list[float]:
        """Return elements of the first result, at most a thousand."""
        value = np.asarray(self.runs[name](INPUTS[kind](*sizes))[0], np.float64).ravel()
        return list(map(float, value[:: max(1, value.size // 1000)]))

    def time(self, name: str, kind: str, sizes: list[int], seconds: float) -> float:
        """Return the median seconds of a call, of calls for so many seconds."""
        inputs, run = INPUTS[kind](*sizes), self.runs[name]
        run(inputs)
        times: list[float] = []
        end = clock() + seconds
        while len(times) < 3 or clock() < end:
            start = clock()
            run(inputs)
            times.append(clock() - start)
        return statistics.median(times)


def serve() -> None:
    """Answer requests ``[command, *arguments]`` until there are no more."""
    contender, threads, folder = sys.argv[1:]
    worker = Worker(contender, int(threads), Path(folder))
    answers, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        command, *arguments = json.loads(line)
        print(json.dumps(getattr(worker, command)(*arguments)), file=answers, flush=True)


if __name__ == "__main__":
    serve()
