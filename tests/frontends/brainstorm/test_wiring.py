"""Wiring, names, architectures and shapes."""

import json

import pytest

from geon.errors import GeonError
from geon.frontends.brainstorm import Network, generate_architecture
from geon.frontends.brainstorm.errors import (
    LayerValidationError,
    NetworkValidationError,
    StructureValidationError,
)
from geon.frontends.brainstorm.layers import (
    FullyConnected,
    Highway,
    Input,
    Loss,
    Mask,
    Merge,
    NoOp,
    Recurrent,
    SoftmaxCE,
    SquaredDifference,
)
from geon.frontends.brainstorm.structure.architecture import (
    Connection,
    collect_all_connections,
    get_canonical_layer_order,
    instantiate_layers_from_architecture,
    validate_architecture,
)
from geon.frontends.brainstorm.structure.buffer_structure import (
    BufferStructure,
    StructureTemplate,
    combine_buffer_structures,
)
from geon.frontends.brainstorm.structure.construction import ConstructionWrapper, UniquelyNamed


def inputs(**shapes):
    return Input(
        {name: ("T", "B", *shape) for name, shape in (shapes or {"default": (4,)}).items()}
    )


def classifier():
    entry = inputs(default=(4,), targets=(1,))
    cost = SoftmaxCE(name="Cost")
    entry >> FullyConnected(5, name="A") >> FullyConnected(3, "linear", name="B") >> cost
    entry - "targets" >> "targets" - cost
    cost - "loss" >> Loss()
    return cost


def test_names_are_unique_in_what_is_connected():
    names = [UniquelyNamed(base) for base in ("foo", "bar", "foo", "foo_1")]
    assert [each.name for each in names] == ["foo", "bar", "foo", "foo_1"]
    names[0].merge_scopes(names[1])
    assert [each.name for each in names[:2]] == ["foo", "bar"]
    names[2].merge_scopes(names[1])
    assert [each.name for each in names[:3]] == ["foo_1", "bar", "foo_2"]
    names[3].merge_scopes(names[0])
    assert [each.name for each in names] == ["foo_2", "bar", "foo_3", "foo_1"]


def test_wiring_by_ports():
    entry = inputs(default=(4,), targets=(1,))
    hidden = entry >> FullyConnected(3)
    cost = hidden >> SoftmaxCE()
    entry - "targets" >> "targets" - cost
    (loss,) = [cost - "loss" >> Loss()]
    assert [edge[1:] for edge in cost.layer.incoming] == [
        ("default", "default"),
        ("targets", "targets"),
    ]
    assert [(out, into) for out, into, _ in cost.layer.outgoing] == [("loss", "default")]
    assert len(loss.layer.collect_connected_layers()) == 4
    assert repr("targets" - cost) == "<Layer: 'targets' - SoftmaxCE - 'default'>"


def test_an_architecture_goes_through_json():
    architecture = generate_architecture(classifier())
    assert architecture["Input"]["@outgoing_connections"] == {
        "default": ["A"],
        "targets": ["Cost.targets"],
    }
    assert architecture["A"] == {
        "@type": "FullyConnected",
        "@outgoing_connections": {"default": ["B"]},
        "size": 5,
        "activation": "rel",
    }
    again = Network.from_architecture(json.loads(json.dumps(architecture)))
    assert again.architecture == Network.from_layer(classifier()).architecture
    assert list(again.layers) == ["Input", "A", "B", "Cost", "Loss"]
    assert again.layers["Cost"].in_shapes["targets"].shape == ("T", "B", 1)


def test_a_list_of_targets_is_for_the_output_default():
    architecture = {
        "Input": {"@type": "Input", "@outgoing_connections": ["B", "A.inputs_1"],
                  "out_shapes": {"default": ["T", "B", 2]}},
        "B": {"@type": "NoOp", "@outgoing_connections": ["A.inputs_2"]},
        "A": {"@type": "Merge", "@outgoing_connections": []},
    }  # fmt: skip
    assert validate_architecture(architecture)
    assert get_canonical_layer_order(architecture) == ["Input", "B", "A"]
    assert collect_all_connections(architecture)[0] == Connection("B", "default", "A", "inputs_2")
    layers = instantiate_layers_from_architecture(architecture)
    assert layers["A"].out_shapes["default"].shape == ("T", "B", 4)


def test_several_edges_into_an_input_are_concatenated():
    entry = inputs(default=(2,))
    a, b = entry >> FullyConnected(3), entry >> FullyConnected(4)
    end = NoOp(name="End")
    a >> end
    b >> end
    net = Network.from_layer(end)
    assert net.layers["End"].in_shapes["default"].shape == ("T", "B", 7)


@pytest.mark.parametrize(
    "template, shape, matches",
    [
        (("...",), (5,), True),
        (("T", "B", "..."), ("T", "B"), True),
        (("T", "B", "..."), ("T", "B", 3, 4), True),
        (("T", "B", "..."), ("B", 3), False),
        (("B", "F"), ("B", 3), True),
        (("B", "F"), ("B", 3, 4), False),
        (("T", "B", 1), ("T", "B", 1), True),
        (("T", "B", 1), ("T", "B", 2), False),
        (("T", "B", "F", 2, "..."), ("T", "B", 7, 2, 5), True),
    ],
)
def test_templates(template, shape, matches):
    assert StructureTemplate(*template).matches(BufferStructure(*shape)) is matches


def test_structures():
    structure = BufferStructure("T", "B", 3, 4, context_size=2)
    assert structure.get_shape(5, 6) == (7, 6, 3, 4)
    assert (structure.feature_shape, structure.feature_size) == ((3, 4), 12)
    assert structure == BufferStructure("T", "B", 3, 4)
    assert BufferStructure.from_layout(structure.to_json(1)).context_size == 2
    both = combine_buffer_structures([structure, BufferStructure("T", "B", 3, 1)])
    assert (both.shape, both.context_size) == (("T", "B", 3, 5), 2)


def arch(**layers):
    """An architecture with a layer Input; a layer is its type, the targets, and its arguments."""
    found = {"Input": ("Input", ["A"], {"out_shapes": {"default": ["T", "B", 2]}})} | layers
    return {
        name: {"@type": kind, "@outgoing_connections": targets, **(more[0] if more else {})}
        for name, (kind, targets, *more) in found.items()
    }


WRONG = {
    "a cycle": (
        lambda: Network.from_architecture(
            arch(A=("NoOp", ["B"]), B=("NoOp", ["C"]), C=("NoOp", ["A"]))
        ),
        "cycle: A >> B >> C >> A",
    ),
    "a layer after itself": (
        lambda: Network.from_architecture(arch(A=("NoOp", ["A"]))),
        "cycle: A >> A",
    ),
    "layers that are not connected": (
        lambda: Network.from_architecture(
            arch(A=("NoOp", []), X=("NoOp", ["Y"]), Y=("NoOp", []))
        ),
        "not connected with the layer 'Input': X, Y",
    ),
    "no layer Input": (lambda: Network.from_layer(NoOp() >> NoOp()), "this one has none"),
    "two layers of type Input": (
        lambda: Network.from_architecture(
            arch(A=("NoOp", []), Z=("Input", ["A"], {"out_shapes": {"default": ["T", "B", 1]}}))
        ),
        r"\['Input', 'Z'\]",
    ),
    "an edge into Input": (
        lambda: Network.from_architecture(arch(A=("NoOp", ["Input"]))),
        "A.default goes to the layer 'Input'",
    ),
    "an edge to no layer": (
        lambda: Network.from_architecture(arch(A=("NoOp", ["Q"]))),
        "goes to 'Q', which is no layer; there are A, Input",
    ),
    "a name that is no identifier": (
        lambda: validate_architecture(arch(**{"A": ("NoOp", []), "1x": ("NoOp", [])})),
        "'1x' is no name of a layer",
    ),
    "a keyword as a name": (
        lambda: validate_architecture(arch(**{"A": ("NoOp", []), "for": ("NoOp", [])})),
        "'for' is no name",
    ),
    "a name that buffers have": (
        lambda: Network.from_layer(inputs() >> NoOp(name="parameters")),
        "'parameters' cannot be the name",
    ),
    "no type": (
        lambda: validate_architecture({"Input": {"@outgoing_connections": []}}),
        "'Input' has no '@type'",
    ),
    "no connections": (
        lambda: validate_architecture({"Input": {"@type": "Input"}}),
        "no '@outgoing_connections'",
    ),
    "no dictionary": (lambda: validate_architecture([1]), "an architecture is a dictionary"),
    "an unknown type": (
        lambda: Network.from_architecture(arch(A=("Foo", []))),
        "no type of layer 'Foo'; there are",
    ),
    "an unknown output": (
        lambda: Network.from_layer((inputs() - "foo") >> NoOp(name="A")),
        r"Input \(Input\) has no output 'foo', which goes to A.default; it has default",
    ),
    "an unknown input": (
        lambda: Network.from_layer(inputs() >> "foo" - NoOp(name="A")),
        r"A \(NoOp\) has no input 'foo', which comes from Input.default; it has 'default'",
    ),
    "a missing input": (
        lambda: Network.from_layer(inputs() >> "inputs_1" - Merge(name="M")),
        r"M \(Merge\): nothing is connected with the input 'inputs_2'",
    ),
    "a shape that does not fit": (
        lambda: Network.from_layer(
            Input({"default": ("B", 3)}) >> FullyConnected(2, name="A")
        ),
        r"A \(FullyConnected\): the input 'default' takes shapes \('T', 'B', '...'\), and "
        r"Input.default has the shape \('B', 3\)",
    ),
    "a mask of two features": (
        lambda: Network.from_layer(masked()),
        r"'mask' takes shapes \('T', 'B', 1\), and Input.mask has the shape \('T', 'B', 2\)",
    ),
    "shapes that cannot be concatenated": (
        lambda: Network.from_layer(joined()),
        r"Input.a and Input.b all go to End.default: the shapes \('T', 'B', 2, 3\) and",
    ),
    "targets of a wrong shape": (
        lambda: Network.from_layer(cost_of(3)),
        r"'targets' has the shape \('T', 'B', 3\).*'default' \('T', 'B', 4\), .*\('T', 'B', 1\)",
    ),
    "inputs of two shapes": (
        lambda: Network.from_layer(difference()),
        r"inputs_1 has the shape \('T', 'B', 2\) and inputs_2 \('T', 'B', 3\)",
    ),
    "inputs of Highway of two shapes": (
        lambda: Network.from_layer(highway()),
        "need one shape",
    ),
    "an argument that a layer lacks": (
        lambda: Network.from_architecture(arch(A=("NoOp", [], {"size": 2}))),
        r"A \(NoOp\) takes no argument 'size'; it takes none",
    ),
    "no size": (
        lambda: Network.from_architecture(arch(A=("Recurrent", []))),
        "size=None; it needs an integer of at least 1",
    ),
    "a size of 0": (
        lambda: Network.from_layer(inputs() >> Recurrent(0)),
        "size=0; it needs an integer",
    ),
    "an unknown activation": (
        lambda: Network.from_layer(inputs() >> FullyConnected(2, activation="relu")),
        "activation='relu'; there are 'rel', 'sigmoid', 'tanh', 'el', 'linear'",
    ),
    "no shapes of inputs": (
        lambda: Network.from_layer(Input({}) >> NoOp()),
        "out_shapes={}; give a dictionary",
    ),
    "a wrong shape of an input": (
        lambda: Network.from_layer(Input({"default": ("B", "T", 3)}) >> NoOp()),
        r"out_shapes\['default'\]: .*'T' and 'B' stand only at the front",
    ),
    "a layer before what is none": (lambda: inputs() >> "foo", "only a layer can follow a layer"),
    "a number as an output": (lambda: inputs() - 3, "3 is no name of an output of <Input Input>"),
    "a number as an input": (lambda: 3 - NoOp(), "3 is no name of an input"),
    "a class without the suffix": (
        lambda: ConstructionWrapper.create(BufferStructure),
        "its name must end in 'LayerImpl'",
    ),
    "a name with a blank": (lambda: NoOp(name="a b"), "name='a b' is no name of a layer"),
    "what is no layer": (lambda: generate_architecture("A"), "is no layer of a network"),
    "a structure without B": (lambda: BufferStructure("T", 3), "stand only at the front"),
    "a structure with a name": (lambda: BufferStructure("B", "F"), "'F' is no length"),
    "a negative length": (lambda: BufferStructure("B", -1), "-1 is no length"),
    "a context without steps": (
        lambda: BufferStructure("B", 3, context_size=1),
        "has no steps",
    ),
    "a template with ... inside": (
        lambda: StructureTemplate("B", "...", 3),
        "'...' cannot stand at 0.*stands last",
    ),
    "a template with a name": (lambda: StructureTemplate("B", "X"), "use lengths, 'F' and"),
    "nothing to combine": (lambda: combine_buffer_structures([]), "there are no structures"),
}  # fmt: skip


def masked():
    entry = inputs(default=(3,), mask=(2,))
    layer = entry >> Mask()
    entry - "mask" >> "mask" - layer
    return layer


def joined():
    entry, end = inputs(a=(2, 3), b=(3, 3)), NoOp(name="End")
    entry - "a" >> end
    entry - "b" >> end
    return end


def cost_of(features):
    entry = inputs(default=(4,), targets=(features,))
    cost = entry >> SoftmaxCE()
    entry - "targets" >> "targets" - cost
    return cost


def difference():
    entry, end = inputs(a=(2,), b=(3,)), SquaredDifference()
    entry - "a" >> "inputs_1" - end
    entry - "b" >> "inputs_2" - end
    return end


def highway():
    entry, end = inputs(a=(2,), b=(3,)), Highway()
    for port, name in zip("HTx", "aab", strict=True):
        entry - name >> port - end
    return end


@pytest.mark.parametrize("case", WRONG, ids=str)
def test_wrong(case):
    build, message = WRONG[case]
    with pytest.raises(
        (NetworkValidationError, LayerValidationError, StructureValidationError), match=message
    ) as caught:
        build()
    assert isinstance(caught.value, GeonError)
