"""``checked``: a decorator that checks arguments of functions of NNC."""

from ..base.arguments import ArgumentChecks

checked = ArgumentChecks(
    {
        "Command": "a command, such as nnc.cmd.relu()",
        "DynamicModel": "a model, such as cnnp.dynamic(f)",
        "GraphBase": "a graph, such as nnc.Graph()",
        "Micro": "a micro operation, such as micro.input(0)",
        "Model": "a model, such as cnnp.dense(10)",
        "ModelIO": "cnnp.input(), or the result of a model on it",
        "Parameters": "parameters, such as model.parameters()",
        "Schedule": "what graph.static_schedule() returns",
        "Stream": "a stream, such as nnc.Stream()",
        "SymbolicGraph": "a graph of symbols, such as nnc.SymbolicGraph()",
        "Tensor": "a tensor, such as nnc.Tensor(array)",
        "TensorParam": "a param, such as nnc.TensorParam((2, 3))",
        "TensorSymbol": "a symbol, such as g.tensor((2, 3))",
        "TensorVariable": "a variable, such as graph.variable(array)",
        "geon.Tensor": "a tensor of geon, such as geon.constant(array, axes)",
    }
)
