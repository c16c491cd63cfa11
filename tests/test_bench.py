"""The benchmark against peers runs, compares results, and writes what it says it writes."""

from __future__ import annotations

import importlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from benchmarks.peers import base, ceilings, contest, costs, memory, report, workloads
from benchmarks.peers.processes import BASE, Lost, Process
from benchmarks.peers.worker import digest

ROOT = Path(__file__).parents[1]


def bench(tmp_path: Path, *options: str) -> dict:
    """The JSON of a trial run of geon on NumPy beside NumPy by hand."""
    out = tmp_path / "results.json"
    command = [sys.executable, "-m", "benchmarks.peers", "--quick", "--rounds", "2"]
    command += ["--threads", "1"]
    ran = subprocess.run(
        [*command, "--contenders", "geon,numpy", "--out", str(out), *options],
        env={**os.environ, "GEON_TRANSFORMER": "numpy"},
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    assert "Geometric mean" in ran.stdout
    return json.loads(out.read_text())


@pytest.mark.slow
def test_two_workloads(tmp_path):
    written = tmp_path / "page.md"
    run = bench(tmp_path, "--only", "gelu,logistic", "--page", str(written))
    assert [row["name"] for row in run["workloads"]] == ["gelu", "logistic"]
    assert run["contenders"] == ["geon", "numpy"] and not run["missing"]
    for row in run["workloads"]:
        for name in ("geon", "numpy"):
            found = row["contenders"][name]
            assert 0 < found["best"] <= found["median"] and len(found["rounds"]) == 2
        assert row["contenders"]["geon"]["memory"] > 0
        assert row["best_peer"] is None and row["ratio"] is None  # NumPy by hand is no peer
    if shutil.which("cc"):
        assert run["ceilings"]["fma"]["32"] > 1e8
        assert run["workloads"][0]["share"] > 0
    page = report.page(run)
    assert "tanh-GELU" in page and run["machine"]["processor"] in page
    assert written.read_text() == page and ".png" not in page
    assert "(some.png)" in report.page(run, "some.png")


@pytest.mark.slow
def test_work_that_moves_elements(tmp_path):
    names = [workload.name for workload in workloads.MOVES]
    run = bench(tmp_path, "--only", ",".join(names))
    assert [row["name"] for row in run["workloads"]] == names and len(names) >= 8
    for row in run["workloads"]:
        for name in ("geon", "numpy"):
            assert "median" in row["contenders"][name], (row["name"], row["contenders"][name])


@pytest.mark.parametrize("contender", ["jax", "torch"])
def test_peers_compute_the_same(contender):
    """The small sizes of what moves elements, in this process."""
    pytest.importorskip(contender)
    module = importlib.import_module(f"benchmarks.peers.{contender}_work")
    module.start(1)
    from benchmarks.peers import numpy_work

    for workload in workloads.MOVES:
        found = [
            each.BUILDERS[workload.kind](workload.small, workload.inputs(True)).results()
            for each in (module, numpy_work)
        ]
        same = contest.differs(*map(digest, found), workload.rtol)
        assert same is None, (workload.name, same)


@pytest.mark.slow
def test_loops(tmp_path):
    names = [workload.name for workload in workloads.LOOPS]
    run = bench(tmp_path, "--only", ",".join(names))
    assert [row["name"] for row in run["workloads"]] == names and len(names) >= 8
    for row in run["workloads"]:
        assert "median" in row["contenders"]["geon"], (row["name"], row["contenders"]["geon"])


SHARED = [(each, "LOOPS", 4) for each in ("jax", "torch", "numba", "c")]
SHARED += [(each, "NETS", 4) for each in ("jax", "torch")]


@pytest.mark.slow
@pytest.mark.parametrize(("contender", "kind", "least"), SHARED)
def test_peers_compute_the_same_loops_and_networks(contender, kind, least):
    """The small sizes, in this process."""
    if contender != "c":
        pytest.importorskip(contender)
    elif ceilings.compiler() is None:
        pytest.skip("there is no C compiler")
    module = importlib.import_module(f"benchmarks.peers.{contender}_work")
    module.start(1)
    from benchmarks.peers import geon_work

    work = getattr(workloads, kind)
    shared = [workload for workload in work if workload.kind in module.BUILDERS]
    assert len(shared) >= least
    for workload in shared:
        found = [
            each.BUILDERS[workload.kind](workload.small, workload.inputs(True)).results()
            for each in (module, geon_work)
        ]
        same = contest.differs(*map(digest, found), workload.rtol)
        assert same is None, (workload.name, same)


def test_loops_by_hand_need_a_compiler_that_works(monkeypatch):
    from benchmarks.peers import c_work

    monkeypatch.setenv("CC", "false")
    with pytest.raises(RuntimeError, match=r"false did not compile loops\.c"):
        c_work.start(1)


@pytest.mark.slow
def test_what_fit_costs_is_printed():
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.fitting", "--batches", "2", "--rounds", "1"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
    )
    assert ran.returncode == 0, ran.stderr
    rows = [line.strip("|").split(" | ") for line in ran.stdout.splitlines()[2:]]
    assert len(rows) == 2
    for row in rows:
        least, ratio = (float(row[at].split()[0]) for at in (1, -2))
        assert least > 0 and 0.2 < ratio < 50


@pytest.mark.slow
def test_compile_time_and_import(tmp_path):
    run = bench(tmp_path, "--only", "compile-chain-gradient,import")
    (row,) = run["compile"]
    assert row["contenders"]["geon"]["cold"] > 0 and row["contenders"]["geon"]["cached"] > 0
    assert row["contenders"]["numpy"] == {"reason": "compiles nothing"}
    assert run["import"]["geon"]["median"] > run["import"]["numpy"]["median"] > 0


def test_another_revision_is_measured_from_its_own_folder(tmp_path):
    """Its package is found before the working tree's, and the benchmark in the latter."""
    package = tmp_path / "geon"
    package.mkdir()
    (package / "__init__.py").write_text("raise ImportError('this is the other one')\n")
    process = Process(BASE, 1, base=tmp_path)
    with pytest.raises(Lost, match="this is the other one"):
        process.ask("version")
    process.stop()
    with pytest.raises(Lost, match="no revision was given"):
        Process(BASE, 1)


def test_a_revision_that_is_not_there():
    with pytest.raises(base.UnknownRevisionError, match="git rev-parse --verify"):
        base.installed("no-such-revision")


def test_a_revision_is_installed_once(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "FOLDER", tmp_path)
    asked = []

    def ran(command):
        asked.append(command[:2])
        if command[1] == "rev-parse":
            return b"0123456789abcdef0123\n"
        if command[1] == "archive":
            made = io.BytesIO()
            with tarfile.open(fileobj=made, mode="w"):
                pass
            return made.getvalue()
        Path(command[command.index("--target") + 1]).mkdir()
        return b""

    monkeypatch.setattr(base, "ran", ran)
    folder = base.installed("then")
    assert folder.parent == tmp_path and folder.is_dir() and len(asked) == 3
    assert base.installed("then") == folder and len(asked) == 4
    assert [path.name for path in tmp_path.iterdir()] == [folder.name]


def test_disagreement_is_found():
    good = [np.linspace(-1, 1, 1000), np.float32(3)]
    bad = [good[0] + np.eye(1, 1000, 500)[0] * 0.05, good[1]]
    nan = [good[0], np.float32(np.nan)]
    results = {"a": digest(bad), "b": digest(good), "c": digest(good), "d": digest(nan)}
    same, different = contest.agreeing(results, 1e-3)
    assert same == {"b", "c"}
    assert different["a"].startswith("result 0 has") and "norm nan" in different["d"]
    short = digest([good[0][:10], good[1]])
    assert contest.differs(short, digest(good), 1e-3) == "result 0 has 10 elements, not 1000"


def test_ceiling_of_a_workload():
    lines = ["fma 32 1e11", "fma 64 5e10"]
    for mix in (*ceilings.MIXES, *ceilings.IN_PLACE):
        lines += [f"bytes {mix}|65536 4e10", f"bytes {mix}|262144 1e10"]
    made = ceilings.read(2, "\n".join(lines))
    assert made.bandwidth("1:1", 1 << 17) == pytest.approx(2e10)
    assert made.bandwidth("1:1", 1) == 4e10 and made.bandwidth("1:1", 1e9) == 1e10
    assert ceilings.mix_of(costs.adam(100)) == "4:3 in place"
    assert ceilings.mix_of(costs.softmax_backward(10, 10)) == "2:1"
    assert made.seconds(costs.gelu(10_000_000)) == pytest.approx(8e-3)
    assert made.seconds(costs.matmul(1000, 1000, 1000)) == pytest.approx(2e-2)


def test_what_is_slower_than_before_is_named():
    rows = [{"title": "one", "before": 0.9}, {"title": "two", "before": 1.2}]
    run = {"contenders": ["geon", "geon_base"], "before": 1.04, "workloads": rows}
    assert report.before_line(run) == [
        "Geometric mean of geon before / geon: 1.04; slower than before: one."
    ]
    assert report.before_line({**run, "contenders": ["geon"]}) == []


def test_summary():
    def row(**medians):
        found = {name: {"median": value, "best": value / 2} for name, value in medians.items()}
        made = {"contenders": found, "ceiling_seconds": 0.5}
        report.summarize(made)
        return made

    made = row(geon=1.0, jax=3.0, torch=2.0, numpy=0.1)
    assert made["best_peer"] == "torch" and made["ratio"] == made["ratio_of_best"] == 2.0
    assert made["share"] == 0.5
    assert made["before"] is None
    assert row(geon=1.0, geon_base=1.5, jax=3.0)["before"] == 1.5
    assert row(geon=1.0, geon_base=1.5, jax=3.0)["best_peer"] == "jax"
    assert row(jax=1.0)["ratio"] is None
    written = row(geon=2.0, c=1.0, numba=3.0)
    assert written["best_peer"] == "numba" and written["by_hand"] == 0.5
    assert report.geometric_mean([2.0, None, 8.0]) == pytest.approx(4.0)
    assert [report.seconds(v) for v in (1.234, 0.0123, 4.5e-6, 1.5e-7, None)] == [
        "1.23 s", "12.3 ms", "4.50 µs", "0.15 µs", "–",
    ]  # fmt: skip


def test_peaks_of_training_steps(capsys, monkeypatch):
    """The table has a row for each case; checkpoints and one of two values kept are seen in it."""
    monkeypatch.setenv("GEON_TRANSFORMER", "numpy")
    found = memory.main(["--quick"])
    assert len(found) == len(memory.CASES) and all(each["geon"] > 0 for each in found)
    shown = capsys.readouterr().out
    assert all(case.title in shown for case in memory.CASES)
