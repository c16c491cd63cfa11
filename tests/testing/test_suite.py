"""The conformance suite, run as a third party runs it: from elsewhere, for an installed package."""

import os
import re
import subprocess
import sys
from pathlib import Path

import interpreter_transformer
import pytest

from geon.op_graph.building.elementwise_build import Elementwise
from geon.op_graph.core.primitive import PRIMITIVES
from geon.testing.samples import SAMPLES
from tests.testing import wrong
from tests.transformers import apart_memory

# Rows that the suite tests otherwise than by samples: leaves, effects and regions have files of
# their own, and the rest is inserted by geon between rows that have samples.
ELSEWHERE = set(
    "placeholder variable length random_bits assign doall sequential with_effect print cast copy"
    " checked custom after scan while fixed_point converged case region_result parameter"
    " real imag conj as_complex bitcast fourier_parts".split()
)


def run(folder, source, name, attribute, *arguments):
    """The finished run of the suite for a class in a file, under a name it is installed by."""
    module = Path(source).stem + "_installed"
    (folder / f"{module}.py").write_text(Path(source).read_text())
    information = folder / "thirdparty-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: thirdparty\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        f"[geon.transformers]\n{name} = {module}:{attribute}\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs"]
    return subprocess.run(
        [*command, "geon.testing", "--transformer", name, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
    )


def test_a_transformer_of_a_third_party_passes(tmp_path):
    source = interpreter_transformer.__file__
    done = run(tmp_path, source, "interpreter", "InterpreterTransformer")
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 400


@pytest.mark.slow
def test_one_whose_values_lie_apart_from_numpy_passes(tmp_path):
    source = Path(interpreter_transformer.__file__)
    (tmp_path / source.name).write_text(source.read_text())
    done = run(tmp_path, apart_memory.__file__, "apart", "ApartTransformer")
    assert done.returncode == 0, done.stdout
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 400


def test_a_wrong_row_fails_by_its_name(tmp_path):
    done = run(tmp_path, wrong.__file__, "wrong", "WrongRow", "-k", "tanh or sin or exp")
    failed = set(re.findall(r"^FAILED \S*::(\S+)", done.stdout, re.MULTILINE))
    assert done.returncode == 1 and failed >= {
        "test_values_over_unequal_axes[tanh]",
        "test_every_special_value_with_every_other[tanh]",
        "test_elementwise_rows[tanh]",
    }
    assert all("[tanh]" in name for name in failed), failed
    assert re.search(r"wrong row and the naive interpreter part at tanh\(", done.stdout)
    assert "test_elementwise.py:" in done.stdout


@pytest.mark.parametrize("name", ["nowhere", "absent"])
def test_what_cannot_be_used_is_said_in_one_line(tmp_path, name):
    (tmp_path / "absent.py").write_text(
        "import geon\n\n\nclass Absent(geon.Transformer):\n    @classmethod\n"
        "    def unavailable(cls):\n        return 'no device: buy one'\n"
    )
    done = run(tmp_path, tmp_path / "absent.py", "absent", "Absent", "--transformer", name)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
    assert {"nowhere": "there is no transformer", "absent": "buy one"}[name] in done.stderr


def test_every_row_is_in_the_suite():
    sampled = {sample.row for samples in SAMPLES.values() for sample in samples}
    missing = [
        name
        for name, row in PRIMITIVES.items()
        if not isinstance(row, Elementwise) and name not in sampled | ELSEWHERE
    ]
    assert missing == []


def test_the_page_shows_the_example():
    page = (Path(__file__).parents[2] / "docs" / "write-a-transformer.md").read_text()
    source = Path(interpreter_transformer.__file__).read_text()
    body = source.split('"""\n', 1)[1].split("\n\nif __name__")[0].strip()
    assert body in page
