"""``for_each``: one test over a table of cases, which reports every case that fails."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from _pytest.mark import ParameterSet

Test = Callable[..., None]


def for_each(
    names: str | Sequence[str],
    values: Iterable[Any],
    *,
    ids: Callable[[Any], object] | Iterable[object] | None = None,
) -> Callable[[Test], Test]:
    """Run a test once for each of ``values`` within one pytest item.

    Takes the arguments of ``pytest.mark.parametrize``: ``names`` separated by commas, and for
    several names tuples of values, or ``pytest.param`` without marks. A table of a thousand cheap
    cases then costs one set-up and one report. Fixtures are shared by the cases. Raises one
    ``AssertionError`` that names each case that failed, with the first one as its cause; skips if
    every case does.
    """
    split = names.split(",") if isinstance(names, str) else names
    parameters = [name.strip() for name in split]
    cases, labels = [], []
    for value in values:
        named = isinstance(value, ParameterSet)
        case = value.values if named else value if len(parameters) > 1 else (value,)
        cases.append(tuple(case))
        labels.append(value.id if named and value.id is not None else None)
    labels = [own or label for own, label in zip(labels, _labels(cases, ids), strict=True)]

    def decorate(test: Test) -> Test:
        @functools.wraps(test)
        def run(*args: Any, **fixtures: Any) -> None:
            failed: list[tuple[object, BaseException]] = []
            skipped = 0
            for label, case in zip(labels, cases, strict=True):
                try:
                    test(*args, **fixtures, **dict(zip(parameters, case, strict=True)))
                except pytest.skip.Exception:
                    skipped += 1
                except (Exception, pytest.fail.Exception) as error:
                    failed.append((label, error))
            if failed:
                failures = "\n".join(f"[{label}] {type(e).__name__}: {e}" for label, e in failed)
                message = f"{len(failed)} of {len(cases)} cases failed:\n{failures}"
                raise AssertionError(message) from failed[0][1]
            if skipped == len(cases):
                pytest.skip(f"all {len(cases)} cases were skipped")

        signature = inspect.signature(test)
        left = [p for name, p in signature.parameters.items() if name not in parameters]
        run.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return run

    return decorate


def _labels(
    cases: list[tuple[Any, ...]], ids: Callable[[Any], object] | Iterable[object] | None
) -> list[object]:
    """Return the label of each case in a report."""
    if ids is None:
        return ["-".join(map(str, case)) for case in cases]
    if callable(ids):
        return ["-".join(str(ids(value)) for value in case) for case in cases]
    return list(ids)
