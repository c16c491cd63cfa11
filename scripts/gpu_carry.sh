#!/usr/bin/env bash
# Fills a folder with what scripts/gpu_check.sh needs on a machine without network: wheels for
# Python 3.12 on Linux x86-64, and PyCUDA's sources. Usage: scripts/gpu_carry.sh FOLDER
set -euo pipefail
folder=${1:?"usage: scripts/gpu_carry.sh FOLDER"}
mkdir -p "$folder"
python3 -m pip download --quiet --dest "$folder" --only-binary :all: \
    --python-version 3.12 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
    "numpy>=2.1" sympy cachetools safetensors ml_dtypes pytest pytest-timeout pytest-xdist \
    hypothesis scipy mpmath xarray pandas threadpoolctl scikit-learn tqdm pytools mako platformdirs \
    "setuptools>=77" wheel pip cuda-bindings
python3 -m pip download --quiet --dest "$folder" --no-deps --only-binary :all: \
    --python-version 3.12 --platform manylinux_2_28_x86_64 --platform manylinux2014_x86_64 \
    nvmath-python cuda-core cuda-pathfinder nvidia-cudnn-frontend ||
    echo "without nvmath-python and cuDNN's frontend: no library of NVIDIA will be checked"
python3 -m pip download --quiet --dest "$folder" --no-deps --no-binary :all: \
    --no-build-isolation "pycuda==2026.1" ||
    python3 -m pip download --quiet --dest "$folder" --no-deps "pycuda==2026.1"
du -sh "$folder"
