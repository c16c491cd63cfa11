"""What the programs of ``examples/`` that fit equations and likelihoods print is right.

They are ``predator_prey``, ``newton``, ``kalman_filter``, ``gaussian_process`` and
``heat_equation``.
"""

import re
from pathlib import Path

import gaussian_process
import heat_equation
import kalman_filter
import newton
import numpy as np
import predator_prey
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import minimize
from scipy.special import expit

Capture = pytest.CaptureFixture[str]


def is_png(path: Path) -> bool:
    return path.read_bytes().startswith(b"\x89PNG")


def numbers(text: str) -> list[float]:
    return [float(each) for each in re.findall(r"-?\d+\.?\d*(?:e[-+]\d+)?", text)]


# predator_prey ----------------------------------------------------------------------------------


def test_rates_of_made_and_of_real_numbers_are_found(tmp_path: Path, capsys: Capture) -> None:
    predator_prey.main(["--into", str(tmp_path / "hares.png")])
    _, *rows, last = capsys.readouterr().out.splitlines()
    made, found, pelts = np.array([numbers(row)[-3:] for row in rows]).T
    np.testing.assert_allclose(found, made, rtol=0.1)
    # B. Carpenter, "Predator-prey population dynamics", 2018: means of what is likely.
    np.testing.assert_allclose(pelts[:4], [0.55, 0.028, 0.024, 0.80], rtol=0.05)
    error, plain = numbers(last)
    assert error < 0.25 < plain
    assert is_png(tmp_path / "hares.png")


def test_the_solver_solves_the_equation() -> None:
    fit = predator_prey.Fit()
    birth, hunted, fed, death, *first = predator_prey.FIRST
    years = np.arange(21)
    told = solve_ivp(
        lambda t, y: [(birth - hunted * y[1]) * y[0], (fed * y[0] - death) * y[1]],
        (0, 20), first, t_eval=years, rtol=1e-10, atol=1e-10,
    )  # fmt: skip
    np.testing.assert_allclose(fit.found()[1], told.y.T, rtol=1e-5)


# newton -----------------------------------------------------------------------------------------


def test_newton_needs_few_steps_where_descent_needs_many(tmp_path: Path, capsys: Capture) -> None:
    picture = tmp_path / "newton.png"
    newton.main(["--steps", "10", "--descent", "1000", "--into", str(picture)])
    *steps, last = capsys.readouterr().out.splitlines()
    assert numbers(steps[-1])[1] < 1e-8
    assert "descent: after" in steps[3] and steps[-1].endswith("not after 1000")
    assert numbers(last)[0] > 94
    assert is_png(picture)


def test_newton_ends_where_scipy_ends() -> None:
    (x, malignant), _ = newton.load(0)
    model = newton.Regression(0.1)
    for _ in range(12):
        model.newton(x, malignant)

    def cost(w: np.ndarray) -> tuple[float, np.ndarray]:
        scores = x @ w
        each = np.logaddexp(0, scores) - scores * malignant
        slope = (expit(scores) - malignant) @ x / len(x) + newton.RIDGE * w
        return each.mean() + newton.RIDGE / 2 * w @ w, slope

    best = minimize(cost, np.zeros(31), jac=True, options={"gtol": 1e-9}).x
    np.testing.assert_allclose(model.transformer.get("w"), best, atol=1e-5)


# kalman_filter ----------------------------------------------------------------------------------


def test_variances_are_those_that_made_and_those_of_the_book(
    tmp_path: Path, capsys: Capture
) -> None:
    kalman_filter.main(["--into", str(tmp_path / "nile.png")])
    walks, nile = capsys.readouterr().out.splitlines()
    seen, speed, seen_found, speed_found = numbers(walks)
    assert abs(seen_found / seen - 1) < 0.05 and abs(speed_found / speed - 1) < 0.1
    flow, level, _ = numbers(nile)
    assert abs(flow / 15099 - 1) < 0.002 and abs(level / 1469.1 - 1) < 0.005
    assert is_png(tmp_path / "nile.png")


def test_the_likelihood_is_that_of_the_joint_normal_distribution() -> None:
    """Of places at five times: the covariance of all, written out."""
    y = np.random.default_rng(0).normal(size=(1, 5))
    filter = kalman_filter.Filter([[1, 1], [0, 1]], [0.7, 0.3], 2.0)
    move, seen = np.array([[1, 1], [0, 1]]), np.array([1, 0])
    known, states = 2.0 * np.eye(2), []
    for _ in range(5):
        states.append(known)
        known = move @ known @ move.T + np.diag([0, 0.3])
    covariance = np.zeros((5, 5))
    for early in range(5):
        for late in range(early, 5):
            both = np.linalg.matrix_power(move, late - early) @ states[early]
            covariance[early, late] = covariance[late, early] = seen @ both @ seen
    covariance += 0.7 * np.eye(5)
    _, log_size = np.linalg.slogdet(2 * np.pi * covariance)
    told = -(log_size + y[0] @ np.linalg.solve(covariance, y[0])) / 2
    assert filter.found(y)[1] == pytest.approx(told)


# gaussian_process -------------------------------------------------------------------------------


def test_the_likelihood_rises_and_later_years_are_foretold(tmp_path: Path, capsys: Capture) -> None:
    gaussian_process.main(["--into", str(tmp_path / "co2.png")])
    _, likelihood, foretold = capsys.readouterr().out.splitlines()
    before, after = numbers(likelihood)
    assert after > before + 20
    *_, off, straight, inside, _ = numbers(foretold)
    assert off < straight / 2 and inside >= 8
    assert is_png(tmp_path / "co2.png")


def test_learning_years_one_by_one_is_the_decomposition_of_all() -> None:
    process = gaussian_process.Process()
    computed = process.transformer.computation(gaussian_process.covariance(process.sizes))()
    likelihood, _, means, variances = process.found()
    known = gaussian_process.KNOWN
    y = (gaussian_process.CO2[:known] - process.middle) / process.spread
    given, cross = computed[:known, :known], computed[known:, :known]
    _, log_size = np.linalg.slogdet(2 * np.pi * given)
    assert likelihood == pytest.approx(-(log_size + y @ np.linalg.solve(given, y)) / 2, rel=1e-6)
    np.testing.assert_allclose(means[known:], cross @ np.linalg.solve(given, y), rtol=1e-5)
    left = computed[known:, known:] - cross @ np.linalg.solve(given, cross.T)
    np.testing.assert_allclose(variances[known:], np.diag(left), rtol=1e-4)


# heat_equation ----------------------------------------------------------------------------------


def test_the_coefficient_is_found(tmp_path: Path, capsys: Capture) -> None:
    heat_equation.main(["--steps", "6", "--into", str(tmp_path / "heat.png")])
    *steps, last = capsys.readouterr().out.splitlines()
    made, found = numbers(last)
    assert abs(found / made - 1) < 0.005
    first, end = (numbers(steps[k])[-1] for k in (0, -1))
    assert end < 1.05 * heat_equation.NOISE < 0.1 < first
    assert is_png(tmp_path / "heat.png")


def test_heat_spreads_as_a_normal_distribution() -> None:
    """A bell of variance s stays one, with variance s + 2 c t, while it is far from its image."""
    x = np.arange(heat_equation.POINTS) / heat_equation.POINTS - 0.5

    def bell(variance: float) -> np.ndarray:
        return np.exp(-(x**2) / (2 * variance)) / np.sqrt(variance)

    times = np.array([0.1, 0.5])
    found = heat_equation.Ring(1e-3).solve(bell(1e-3), times)
    np.testing.assert_allclose(found, [bell(1e-3 + 2e-3 * t) for t in times], atol=1e-12)
