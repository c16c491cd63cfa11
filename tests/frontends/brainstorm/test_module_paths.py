"""Names that programs and layers for Brainstorm import are at the paths that they have there."""

from importlib import import_module

import pytest

PATHS = {
    "": "Network Trainer create_from_description data_iterators generate_architecture "
    "get_description global_rnd handlers hooks initializers layers scorers tools training "
    "value_modifiers",
    "data_iterators": "AddGaussianNoise AddSaltNPepper DataIterator Flip Minibatches MultiHot "
    "OneHot Pad RandomCrop Undivided _calculate_lengths_from_mask",
    "describable": "Describable create_from_description get_description",
    "handlers": "DebugHandler NumpyHandler PyCudaHandler default_handler",
    "handlers.base_handler": "Handler",
    "handlers.debug_handler": "DebugArray DebugHandler",
    "handlers.numpy_handler": "NumpyHandler",
    "hooks": "BokehVisualizer EarlyStopper Hook InfoUpdater ModifyStepperAttribute "
    "MonitorLayerDeltas MonitorLayerGradients MonitorLayerInOuts MonitorLayerParameters "
    "MonitorLoss MonitorScores ProgressBar SaveBestNetwork SaveLogs SaveNetwork StopAfterEpoch "
    "StopAfterThresholdReached StopOnNan StopOnSigQuit",
    "initializers": "ArrayInitializer DenseSqrtFanIn DenseSqrtFanInOut EchoState Gaussian "
    "Identity Initializer LstmOptInit Orthogonal RandomWalk SparseInputs SparseOutputs Uniform "
    "evaluate_initializer",
    "layers": "BatchNorm BinomialCrossEntropy Clockwork ClockworkLstm Convolution2D "
    "DeltasScaling Dropout Elementwise FullyConnected Highway Input L1Decay L2Decay Loss Lstm "
    "Mask Merge NoOp Pooling2D Recurrent SigmoidCE SoftmaxCE SquaredDifference SquaredError",
    "layers.base_layer": "Layer",
    "randomness": "RandomState Seedable global_rnd",
    "scorers": "Accuracy Hamming MeanSquaredError Scorer aggregate_losses_and_scores "
    "gather_losses_and_scores",
    "structure": "Network generate_architecture",
    "structure.architecture": "Connection collect_all_connections generate_architecture "
    "get_canonical_layer_order instantiate_layers_from_architecture validate_architecture",
    "structure.buffer_structure": "BufferStructure StructureTemplate combine_buffer_structures",
    "structure.buffer_views": "BufferView",
    "structure.buffers": "BufferManager create_buffer_views_from_layout "
    "get_total_size_slices_and_shapes",
    "structure.construction": "ConstructionWrapper",
    "structure.layout": "Hub create_layout create_layout_stub gather_array_nodes "
    "get_connections get_forced_orders get_forward_closure merge_connections permute_rows "
    "can_be_connected_with_single_buffer",
    "structure.network": "Network",
    "structure.view_references": "resolve_references",
    "tools": "create_net_from_spec draw_network evaluate extract extract_and_save "
    "get_in_out_layers get_network_info print_network_info shuffle_data split",
    "training": "Exponential Linear MomentumStepper MultiStep NesterovStepper SgdStepper Trainer",
    "training.schedules": "DecreaseAfterEpoch Exponential Linear MultiStep",
    "training.steppers": "ForwardStepper MomentumStepper NesterovStepper SgdStepper "
    "TrainingStepper",
    "training.trainer": "Trainer run_network",
    "training.utils": "run_network",
    "utils": "InitializationError IteratorValidationError LayerValidationError "
    "NetworkValidationError StructureValidationError ValidationError flatten "
    "flatten_all_but_last flatten_features flatten_time flatten_time_and_features get_by_path "
    "get_inheritors is_valid_layer_name",
    "value_modifiers": "ClipValues ConstrainL2Norm FreezeValues GradientModifier L1Decay L2Decay "
    "MaskValues ValueModifier",
}


@pytest.mark.parametrize("path", PATHS)
def test_names_are_where_they_were(path):
    module = import_module(f"geon.frontends.brainstorm{'.' if path else ''}{path}")
    missing = [name for name in PATHS[path].split() if not hasattr(module, name)]
    assert missing == []


def test_other_names_are_missed():
    structure = import_module("geon.frontends.brainstorm.structure")
    with pytest.raises(AttributeError, match="has no attribute 'Other'"):
        _ = structure.Other
