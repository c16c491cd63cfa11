"""The parts of ``scripts/gpu_check.sh`` run on the host, small: what they ask of geon is there."""

import subprocess
from pathlib import Path

import pytest

from geon.transformers.pycuda.runtime import host
from tests.cuda import on_gpu

pytestmark = pytest.mark.skipif(host.find_compiler() is None, reason="there is no C++ compiler")
SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.mark.slow
@pytest.mark.parametrize("part", on_gpu.PARTS)
def test_a_part_runs(part, capsys):
    on_gpu.main([part, "--transformer", "cuda-on-host", "--small"])
    out = capsys.readouterr().out
    assert out.splitlines()[-1].startswith(f"{part} took ")
    assert part == "kernels" or len(out.splitlines()) > 3


def test_the_report_has_what_the_parts_left(tmp_path, capsys):
    (tmp_path / "summary.txt").write_text("build: passed, 90 s\nsuite: failed, 7 s\n")
    (tmp_path / "bench.txt").write_text("NVIDIA H100 sm_90\ncopy of 256 MiB: 2900 GB/s\n")
    (tmp_path / "suite.txt").write_text("...\n2 failed, 7 passed in 3.10s\n")
    on_gpu.main(["report", str(tmp_path)])
    out = capsys.readouterr().out
    assert "- build: passed, 90 s\n- suite: failed, 7 s\n" in out
    assert "NVIDIA H100 sm_90\ncopy of 256 MiB" in out
    assert "2 failed, 7 passed in 3.10s" in out
    assert "## Products\n\n```text\ndid not run\n```" in out
    assert "- NVIDIA driver: " in out


@pytest.mark.parametrize("script", ["gpu_check.sh", "gpu_carry.sh"])
def test_the_scripts_are_ones(script):
    done = subprocess.run(["bash", "-n", str(SCRIPTS / script)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    done = subprocess.run(["bash", str(SCRIPTS / script)], capture_output=True, text=True)
    assert done.returncode != 0 and "usage: scripts/" in done.stderr


def test_parts_are_resumed(tmp_path):
    """A part that has passed is not run again, one that failed is."""
    report = tmp_path / "report"
    report.mkdir()
    for part in (
        "build",
        "suite",
        "demo",
        "sanitizer",
        "products",
        "convolutions",
        "matrices",
        "transforms",
        "bench",
    ):
        (report / f"{part}.passed").touch()
    (report / "geon-testing.done").touch()
    (report / "summary.txt").write_text("build: passed, 1 s\n")
    (report / "venv" / "bin").mkdir(parents=True)
    python = report / "venv" / "bin" / "python"
    python.write_text('#!/bin/sh\necho "ran $*"\n')
    python.chmod(0o755)
    command = ["bash", str(SCRIPTS / "gpu_check.sh"), str(tmp_path), str(report)]
    environment = {"PATH": "/usr/bin:/bin", "RESULTS": str(tmp_path / "results.md")}
    for _ in range(2):
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
    assert (report / "summary.txt").read_text().count("runtime: passed") == 1
    assert "ran -m tests.cuda.on_gpu runtime" in (report / "runtime.txt").read_text()
    assert "on_gpu report" in (tmp_path / "results.md").read_text()
    python.write_text("#!/bin/sh\nexit 3\n")
    (report / "bench.passed").unlink()
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode != 0
    assert "bench: failed, see " in done.stdout
    (report / "suite.passed").unlink()
    done = subprocess.run(
        command, capture_output=True, text=True, env={**environment, "LIMIT": "0"}
    )
    assert done.returncode != 0
    assert "suite: not begun, run the same command again, 0 s" in done.stdout
    python.write_text('#!/bin/sh\necho "ran $*"\n')
    done = subprocess.run([*command, "suite"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    ran = (report / "suite.txt").read_text()  # what had passed of it is not run again
    assert ran.endswith("--transformer pycuda tests\n") and len(ran.splitlines()) == 1


def test_what_is_installed_was_carried():
    """Every package that the one script installs, the other downloads."""
    check, carry = ((SCRIPTS / f"gpu_{name}.sh").read_text() for name in ("check", "carry"))
    after = [part.split("||")[0] for part in check.split('"${install[@]}"')[1:]]
    names = {word for part in after for word in part.replace("\\", " ").split()}
    names = {word for word in names if word.replace("-", "").replace("_", "").isalnum()}
    assert {"pandas", "nvmath-python", "cuda-bindings"} <= names
    missing = {name for name in names if name not in carry and not name.startswith("-")}
    assert not missing, f"gpu_carry.sh does not download {missing}"
