"""The small models that ``onnx`` publishes with inputs and results: written by hand, or converted.

Those of the kind ``real`` are left out: they are downloaded.
"""

import glob
import os
import warnings

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests
from onnx.backend.test.runner import Runner

import geon
from geon.frontends.onnx import backend

SHARES = 10
KINDS = ("simple", "pytorch-converted", "pytorch-operator")
# Models that geon refuses, each with its reason; wrong numbers are no reason.
REFUSED: dict[str, str] = {}


def arrays(folder, part, infos):
    """The arrays of a data set, by the types of the model's inputs or outputs."""
    found = []
    for number, info in enumerate(infos[: len(glob.glob(f"{folder}/{part}_*.pb"))]):
        with open(f"{folder}/{part}_{number}.pb", "rb") as file:
            data = file.read()
        kind = info.type.WhichOneof("value")
        message = onnx.SequenceProto() if kind == "sequence_type" else onnx.TensorProto()
        message.ParseFromString(data)
        read = numpy_helper.to_list if kind == "sequence_type" else numpy_helper.to_array
        found.append(read(message))
    return found


def complaint(case):
    """What is wrong with a model: it fails and is not listed, or the other way round."""
    model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
    try:
        handle = backend.prepare(model, transformer=geon.NumPyTransformer())
        for folder in sorted(glob.glob(f"{case.model_dir}/test_data_set_*")):
            found = handle.run(arrays(folder, "input", model.graph.input))
            wanted = arrays(folder, "output", model.graph.output)
            Runner.assert_similar_outputs(wanted, found, case.rtol, case.atol)
    except Exception as error:
        refused = isinstance(error, geon.GeonError) and case.name in REFUSED
        return None if refused else f"{case.name}: {type(error).__name__}: {error}"
    return f"{case.name} passes, and is listed" if case.name in REFUSED else None


@pytest.mark.parametrize("kind", KINDS)
def test_models_pass_or_are_listed(kind, request):
    cases = load_model_tests(kind=kind)
    assert len(cases) > 20
    if not request.config.option.all:
        cases = cases[request.config.option.cases_seed % SHARES :: SHARES]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        wrong = [text for case in cases if (text := complaint(case))]
    assert not wrong, "\n".join(wrong)
