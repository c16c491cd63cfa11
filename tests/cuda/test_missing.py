"""Where there is no GPU, an error and ``doctor`` say what is missing, and what mends it."""

import importlib.util

import pytest

import geon
from geon.errors import DeviceError
from geon.transformers.loading.registry import transformer_class
from geon.transformers.pycuda.runtime import gpu, nvrtc


@pytest.fixture
def without(monkeypatch):
    """Hides packages, or the driver."""
    gpu.missing.cache_clear()
    gpu.devices.clear()

    def hide(*names):
        find = importlib.util.find_spec
        monkeypatch.setattr(
            gpu.importlib.util, "find_spec", lambda name: None if name in names else find(name)
        )

    yield hide
    gpu.missing.cache_clear()
    gpu.devices.clear()


def test_no_pycuda(without):
    without("pycuda")
    missing = transformer_class("pycuda").unavailable()
    assert missing == "PyCUDA is not installed: pip install 'geon[cuda]'"
    with pytest.raises(DeviceError, match="there is no GPU to use: PyCUDA is not installed"):
        geon.make_transformer("pycuda")


def test_no_driver(without, monkeypatch):
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: name)

    def absent(name):
        raise OSError(f"{name} is not there")

    monkeypatch.setattr(gpu.ctypes, "CDLL", absent)
    with pytest.raises(DeviceError, match="no NVIDIA driver .*install the NVIDIA driver"):
        geon.make_transformer("pycuda")


def test_pycuda_that_does_not_start(without, monkeypatch):
    """As one that was built for another toolkit."""
    monkeypatch.setattr(gpu.importlib.util, "find_spec", lambda name: name)

    class Driver:
        @staticmethod
        def cuInit(flags):
            return 0

        @staticmethod
        def cuDeviceGetCount(count):
            count._obj.value = 1
            return 0

    load = importlib.import_module

    def broken(name, *package):
        if name == "pycuda.driver":
            raise ImportError("undefined symbol: cuArrayCreate_v2")
        return load(name, *package)

    monkeypatch.setattr(gpu.ctypes, "CDLL", lambda name: Driver)
    monkeypatch.setattr(gpu.importlib, "import_module", broken)
    message = r"PyCUDA does not start \(undefined symbol.*pip install .*--no-binary pycuda pycuda"
    with pytest.raises(DeviceError, match=message):
        geon.make_transformer("pycuda")


@pytest.mark.parametrize("device", ["first", True, 1.0, None])
def test_a_device_is_a_number(device):
    with pytest.raises(geon.errors.ArgumentError, match="give the number of a GPU"):
        geon.make_transformer("pycuda", device=device)


def test_no_compiler(monkeypatch):
    monkeypatch.setattr(nvrtc, "find_nvcc", lambda: None)
    with pytest.raises(DeviceError, match="neither NVRTC nor nvcc: pip install"):
        nvrtc.by_nvcc("", "sm_80")


def test_it_is_not_loaded_with_geon():
    import subprocess
    import sys

    text = "import geon, sys; print([m for m in sys.modules if 'cuda' in m])"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
