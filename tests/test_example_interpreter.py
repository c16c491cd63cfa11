"""The transformer in few lines: what it lacks is said, and what it checks is named as elsewhere."""

import pytest
from interpreter_transformer import InterpreterTransformer

import geon


def test_what_a_transformer_lacks_is_said():
    x = geon.placeholder([geon.Axis("N")], name="x")
    with InterpreterTransformer() as transformer:
        f = transformer.computation(x + 1, x)
        for text in (lambda: f.source, lambda: f.explain("emit")):
            with pytest.raises(geon.UnavailableError, match=r'no method emit: explain\("plan"\)'):
                text()
        assert "add" in f.explain("plan") and f([1])[0] == 2


def test_a_transformer_without_compile_says_so():
    class Lacking(geon.Transformer):
        target = InterpreterTransformer.target

    f = Lacking().computation(geon.constant(1) + 1)
    with pytest.raises(geon.UnavailableError, match="Lacking has no method compile"):
        f()
