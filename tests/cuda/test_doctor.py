"""``python -m geon doctor`` on machines with all that a GPU needs, and with parts of it."""

import ctypes
import importlib.metadata
import types

import pytest

from geon import __main__ as command
from geon.transformers.pycuda.reports import doctor
from geon.transformers.pycuda.runtime import nvrtc


class Library:
    """A driver with these devices: name, bytes, capability."""

    def __init__(self, *devices, starts=0):
        self.devices, self.starts = devices, starts

    def cuInit(self, flags):
        return self.starts

    def cuDriverGetVersion(self, version):
        version._obj.value = 12080

    def cuDeviceGetCount(self, count):
        count._obj.value = len(self.devices)

    def cuDeviceGet(self, handle, number):
        handle._obj.value = 10 + number

    def cuDeviceGetName(self, name, size, handle):
        name.value = self.devices[handle.value - 10][0].encode()

    def cuDeviceTotalMem_v2(self, size, handle):
        size._obj.value = self.devices[handle.value - 10][1]

    def cuDeviceGetAttribute(self, value, attribute, handle):
        value._obj.value = self.devices[handle.value - 10][2][attribute - 75]


@pytest.fixture
def machine(monkeypatch):
    """Says what there is: versions of packages, a compiler, a driver."""

    def has(packages=(), compiler="", driver=None):
        def version(name):
            if name not in packages:
                raise importlib.metadata.PackageNotFoundError(name)
            return "2026.1"

        def load(name):
            if driver is None:
                raise OSError(name)
            return driver

        monkeypatch.setattr(doctor.importlib.metadata, "version", version)
        monkeypatch.setattr(doctor, "compiler", lambda: compiler)
        names = {name: getattr(ctypes, name) for name in dir(ctypes) if name[0] != "_"}
        monkeypatch.setattr(doctor, "ctypes", types.SimpleNamespace(**{**names, "CDLL": load}))
        return list(doctor.findings())

    return has


def test_a_machine_that_has_nothing(machine):
    rows = machine()
    assert [row.there for row in rows] == [False] * 6
    assert [row.name for row in rows] == [
        "PyCUDA", "cuda-bindings", "nvmath-python", "cuDNN's frontend", "CUDA compiler",
        "NVIDIA driver",
    ]  # fmt: skip
    assert rows[0].status == "not installed: pip install 'geon[cuda]'"
    assert (
        rows[2].status == "not installed: pip install 'geon[cublaslt]', for "
        'products="cublaslt", matrices="cusolver" and transforms="cufft"'
    )
    assert rows[4].status.startswith("neither NVRTC nor nvcc: pip install 'geon[cuda]'")
    assert rows[5].status.endswith("install the NVIDIA driver: nvidia-smi must list a device")


def test_a_machine_that_has_all(machine):
    devices = Library(("NVIDIA H100", 80 * 2**30, (9, 0)), ("Old", 2**30, (6, 1)))
    rows = machine(
        ("pycuda", "cuda-bindings", "nvmath-python", "nvidia-cudnn-frontend"), "NVRTC 12.8", devices
    )
    assert [tuple(row) for row in rows] == [
        (True, "PyCUDA", "2026.1"),
        (True, "cuda-bindings", "2026.1"),
        (True, "nvmath-python", "2026.1"),
        (True, "cuDNN's frontend", "2026.1"),
        (True, "CUDA compiler", "NVRTC 12.8"),
        (True, "NVIDIA driver", "for CUDA 12.8"),
        (True, "device 0", "NVIDIA H100, 80.0 GiB, compute capability 9.0"),
        (
            False,
            "device 1",
            "Old, 1.0 GiB, compute capability 6.1: needs 7.0, use another device",
        ),
    ]


def test_a_driver_without_devices_and_one_that_does_not_start(machine):
    assert machine(driver=Library())[-1].status.startswith("none: install the NVIDIA driver")
    rows = machine(driver=Library(starts=999))
    assert rows[-1].status.startswith("does not start (error 999): install the NVIDIA driver")


def test_it_is_printed_below_the_transformers(capsys):
    assert command.main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    below = lines[lines.index("for NVIDIA GPUs:") + 1 :]
    assert [line[4:].split("  ")[0] for line in below[:3]] == [
        "PyCUDA", "cuda-bindings", "nvmath-python"
    ]  # fmt: skip


def test_nvcc_is_a_compiler_where_there_is_no_nvrtc(monkeypatch):
    monkeypatch.setattr(nvrtc, "find_nvrtc", lambda: None)
    monkeypatch.setattr(nvrtc, "find_nvcc", lambda: "/cuda/bin/nvcc")
    told = "nvcc: NVIDIA (R) Cuda compiler driver\nCuda compilation tools, release 12.8, V12.8.93\n"
    monkeypatch.setattr(nvrtc, "run_program", lambda command: (0, told, ""))
    found = nvrtc.compiler.__wrapped__()
    assert found == "/cuda/bin/nvcc: Cuda compilation tools, release 12.8, V12.8.93"
