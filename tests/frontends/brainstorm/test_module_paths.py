"""Modules of Brainstorm, from which programs import, are found below the package."""

from importlib import import_module

import pytest

LAYERS = {
    "batch_normalization_layer": "BatchNorm",
    "binomial_cross_entropy_layer": "BinomialCrossEntropy",
    "clockwork_layer": "Clockwork",
    "clockwork_lstm_layer": "ClockworkLstm",
    "convolution_layer_2d": "Convolution2D",
    "deltas_scaling_layer": "DeltasScaling",
    "dropout_layer": "Dropout",
    "elementwise_layer": "Elementwise",
    "fully_connected_layer": "FullyConnected",
    "highway_layer": "Highway",
    "input_layer": "Input",
    "l1_decay": "L1Decay",
    "l2_decay": "L2Decay",
    "loss_layer": "Loss",
    "lstm_layer": "Lstm",
    "mask_layer": "Mask",
    "merge_layer": "Merge",
    "noop_layer": "NoOp",
    "pooling_layer_2d": "Pooling2D",
    "recurrent_layer": "Recurrent",
    "sigmoid_ce_layer": "SigmoidCE",
    "softmax_ce_layer": "SoftmaxCE",
    "squared_difference_layer": "SquaredDifference",
    "squared_error_layer": "SquaredError",
}
PUBLIC = {f"layers.{module}": [name, f"{name}LayerImpl"] for module, name in LAYERS.items()}
PUBLIC |= {
    "data_iterators": ["Minibatches", "Undivided"],
    "describable": ["Describable"],
    "handlers.base_handler": ["Handler"],
    "handlers.debug_handler": ["DebugHandler"],
    "handlers.numpy_handler": ["NumpyHandler"],
    "handlers.pycuda_handler": ["PyCudaHandler"],
    "hooks": ["EarlyStopper", "MonitorScores"],
    "initializers": ["Gaussian", "Orthogonal"],
    "layers.base_layer": ["Layer"],
    "randomness": ["RandomState", "Seedable"],
    "scorers": ["Accuracy", "Hamming"],
    "structure.architecture": ["generate_architecture", "validate_architecture"],
    "structure.buffer_structure": ["BufferStructure", "StructureTemplate"],
    "structure.buffer_views": ["BufferView"],
    "structure.buffers": ["BufferManager"],
    "structure.construction": ["ConstructionWrapper"],
    "structure.layout": ["create_layout"],
    "structure.network": ["Network"],
    "structure.view_references": ["resolve_references"],
    "tools": ["create_net_from_spec", "draw_network"],
    "training.schedules": ["Linear"],
    "training.steppers": ["MomentumStepper", "SgdStepper"],
    "training.trainer": ["Trainer"],
    "value_modifiers": ["ClipValues", "ConstrainL2Norm"],
}


@pytest.mark.parametrize("module", PUBLIC)
def test_a_module_has_its_path_and_names(module):
    found = import_module(f"geon.frontends.brainstorm.{module}")
    assert [name for name in PUBLIC[module] if not hasattr(found, name)] == []
