"""Models whose optimiser keeps averages, waits for batches and scales costs."""

import numpy as np
import pytest

import geon
from geon.frontends import neon

from .test_training import VALIDATION, Interrupt, batches, examples, model, same


def everything():
    """All that goes around an optimiser at once, with a schedule, groups and clipping."""
    rate = neon.schedules.Cosine(0.05, 20)
    inner = neon.Groups(
        {neon.Matrices(): neon.Muon(rate), neon.Tag("b"): neon.SGD(rate, 0.9)},
        rest=neon.AdamW(rate, decay=0.01),
        clip=neon.ByGlobalNorm(1.0),
    )
    return neon.Averaged(neon.Accumulated(neon.Scaled(inner, every=2), 3), 0.9)


@pytest.mark.parametrize("averaged", [False, True])
def test_what_is_no_checkpoint_is_refused(make, tmp_path, averaged):
    made = model(make(), neon.Averaged(neon.Adam(0.05), 0.9))
    made.save(tmp_path / "whole")
    (tmp_path / "cut").write_bytes((tmp_path / "whole").read_bytes()[:200])
    (tmp_path / "text").write_text("no checkpoint")
    for name in ("cut", "text", "none", "."):
        with pytest.raises(geon.CheckpointError):
            model(make()).restore(tmp_path / name, averaged=averaged)


def test_figures_of_averages_are_those_of_a_model_with_these_weights(make):
    made = model(make(), neon.Averaged(neon.Adam(0.05), 0.9))
    run = made.fit(batches(), 3, validation=VALIDATION, averaged=True)
    other = model(make())
    for leaf in other.layer.all_variables():
        name = f"optimiser.{leaf.name}.average" if leaf.trainable else leaf.name
        other.transformer.set(leaf, made.transformer.get(name))
    wanted = other.evaluate(VALIDATION)
    assert made.evaluate(VALIDATION, averaged=True) == wanted != made.evaluate(VALIDATION)
    assert run.figures["validation cost"] == wanted["cost"]
    points = examples()[0]
    found = made.predict(points, averaged=True)
    np.testing.assert_array_equal(found, other.predict(points))
    np.testing.assert_allclose(
        made.predict(points, size=7, averaged=True), found, rtol=1e-5, atol=1e-6
    )


def test_a_model_of_averages_from_a_checkpoint(make, tmp_path):
    made = model(make(), everything())
    made.fit(batches(), 3)
    made.save(tmp_path / "run")
    points = examples()[0]
    other = model(make(), None)
    other.restore(tmp_path / "run", averaged=True)
    np.testing.assert_array_equal(other.predict(points), made.predict(points, averaged=True))
    other.restore(tmp_path / "run")
    np.testing.assert_array_equal(other.predict(points), made.predict(points))


def test_weights_that_have_no_average_are_restored_as_they_are(make, tmp_path):
    groups = neon.Groups({"net.0.*": None}, rest=neon.Averaged(neon.SGD(0.5), 0.5))
    made = model(make(), groups)
    made.fit(batches(), 1)
    made.save(tmp_path / "run")
    other = model(make(), None)
    other.restore(tmp_path / "run", averaged=True)
    points = examples()[0]
    np.testing.assert_array_equal(other.predict(points), made.predict(points, averaged=True))


@pytest.mark.parametrize("optimiser", [None, neon.SGD(0.1)], ids=["none", "sgd"])
def test_where_there_are_no_averages(transformer, tmp_path, optimiser):
    made = model(transformer, optimiser)
    made.save(tmp_path / "run")
    with pytest.raises(geon.ArgumentError, match=r"give optimiser=neon\.Averaged"):
        made.evaluate(VALIDATION, averaged=True)
    with pytest.raises(geon.ArgumentError, match="has no averages"):
        made.restore(tmp_path / "run", averaged=True)


@pytest.mark.parametrize("count", [1, 4, 5, 6, 10])
def test_a_run_with_everything_goes_on_bit_for_bit(make, tmp_path, count):
    def fit(callbacks=(), **options):
        made = model(make(), everything())
        callbacks = [*callbacks, neon.Checkpoints(tmp_path), neon.EarlyStopping(patience=9)]
        options = {"validation": VALIDATION, "averaged": True} | options
        return made.transformer, made.fit(batches(), 4, callbacks=callbacks, **options)

    whole, unbroken = fit()
    _, broken = fit([Interrupt(count)])
    assert broken.interrupted
    rest, resumed = fit(resume=tmp_path / "interrupted.safetensors")
    assert resumed.figures == unbroken.figures
    same(whole, rest)
