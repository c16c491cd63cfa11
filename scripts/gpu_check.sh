#!/usr/bin/env bash
# Checks the PyCUDA transformer on a machine with an NVIDIA GPU, a CUDA toolkit, Python 3.12 and no
# network, from a folder that scripts/gpu_carry.sh has filled. Usage:
#
#     scripts/gpu_check.sh FOLDER REPORT [PART ...]
#
# Parts run in this order, each leaves REPORT/<part>.txt, and one that has passed is not run again:
# build (PyCUDA, geon), runtime (started calls, graphs, DLPack), suite (all numeric tests on the
# device), demo (the examples), products (cuBLASLt beside generated kernels), convolutions (cuDNN
# beside them), matrices and transforms (cuSOLVER and cuFFT beside NumPy), sanitizer (compute-sanitizer over a part of the suite), bench (figures), steps
# (training steps, beside those of JAX and PyTorch where the machine's Python has them).
# REPORT/summary.txt says how each ended, and benchmarks/RESULTS-gpu.md (or $RESULTS) is written anew from all of it.
#
# It ends before $LIMIT seconds (530) are over: a part for which none are left is not begun, and
# the same command goes on where it ended. On a machine with 16 cores one time should do for all.
set -uo pipefail
carried=$(realpath "${1:?"usage: scripts/gpu_check.sh FOLDER REPORT [PART ...]"}")
mkdir -p "${2:?"usage: scripts/gpu_check.sh FOLDER REPORT [PART ...]"}"
report=$(realpath "$2")
shift 2
cd "$(dirname "$0")/.."
parts=("$@")
if [ ${#parts[@]} -eq 0 ]; then parts=(build runtime suite demo products convolutions matrices transforms sanitizer bench steps); fi
results=${RESULTS:-benchmarks/RESULTS-gpu.md}
limit=${LIMIT:-530}
venv=$report/venv
python=$venv/bin/python
cuda=${CUDA_ROOT:-/usr/local/cuda}
export CUDA_ROOT=$cuda PATH=$cuda/bin:$PATH
# The includes lie in one of these folders, libcuda or its stub in one of those.
for include in "$cuda/include" "$cuda/targets/x86_64-linux/include"; do
    [ -e "$include/cuda.h" ] && export CPATH=$include${CPATH:+:$CPATH}
done
for library in "$cuda/lib64" "$cuda/lib64/stubs" "$cuda/targets/x86_64-linux/lib/stubs"; do
    [ -d "$library" ] && export LIBRARY_PATH=$library${LIBRARY_PATH:+:$LIBRARY_PATH}
done
export LD_LIBRARY_PATH=$cuda/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
# So do NVIDIA's libraries that the machine's Python has: loaders look for them in the environment.
for library in $(python3 -c 'import site; print(*site.getsitepackages())'); do
    for library in "$library"/nvidia/*/lib; do
        [ -d "$library" ] && export LD_LIBRARY_PATH=$library:$LD_LIBRARY_PATH
    done
done
export GEON_CACHE=$report/cache
install=("$python" -m pip install --quiet --no-index --no-compile --find-links "$carried")
on_gpu=("$python" -m tests.cuda.on_gpu)

# Runs a command for so many seconds at most, and no longer than there is time; interrupted, it says
# what it has found.
within() {
    local left=$((limit - SECONDS)) most=$1
    shift
    if [ "$left" -le 0 ]; then return 124; fi
    timeout -s INT -k 5 $((left < most ? left : most)) "$@"
}

# Without ensurepip, as where Debian's python3-venv is missing, pip's own wheel installs pip. What
# the machine's Python has is not installed again, and the peers are there: so its folders follow
# those of the environment, also where that Python is of an environment itself.
environment() {
    python3 -m venv --without-pip "$venv" &&
        python3 -c 'import site; print(*site.getsitepackages(), sep="\n")' \
            > "$venv/lib/python3.12/site-packages/machine.pth" || return 1
    "$python" -m pip --version || "$python" -m ensurepip ||
        "$python" "$(echo "$carried"/pip-*.whl)/pip" install --quiet --no-index \
            --find-links "$carried" pip
}

# PyCUDA's wheel for this machine's toolkit, which was carried, or is built and stays for the next
# time.
pycuda() {
    mkdir -p "$report/wheels"
    cp "$carried"/pycuda-*.whl "$report/wheels" || true
    compgen -G "$report/wheels/pycuda-*.whl" && return
    local sources=$report/sources without=()
    rm -rf "$sources" && mkdir -p "$sources" || return 1
    tar -xzf "$carried"/pycuda-*.tar.gz -C "$sources" --strip-components 1 || return 1
    [ -e "$cuda/include/curand.h" ] || without=(--no-cuda-enable-curand)
    (cd "$sources" && "$python" configure.py --cuda-root="$cuda" "${without[@]}") || return 1
    within 240 "$python" -m pip wheel --quiet --no-index --no-deps --no-build-isolation \
        --wheel-dir "$report/wheels" "$sources"
}

build() {
    nvidia-smi || return 1
    python3 -c 'import sys; assert sys.version_info[:2] == (3, 12), sys.version' || return 1
    "$python" -m pip --version || environment || return 1
    "${install[@]}" setuptools wheel numpy pytools mako platformdirs || return 1
    pycuda || return 1
    "${install[@]}" --no-deps "$report"/wheels/pycuda-*.whl || return 1
    "${install[@]}" cuda-bindings sympy cachetools safetensors ml_dtypes pytest pytest-timeout \
        pytest-xdist hypothesis scipy mpmath xarray pandas threadpoolctl scikit-learn tqdm ||
        return 1
    "${install[@]}" nvmath-python || echo "nvmath-python was not carried: cuBLASLt, cuSOLVER and cuFFT are not checked"
    "${install[@]}" --no-deps nvidia-cudnn-frontend || echo "its frontend was not carried: cuDNN is not checked"
    "$python" -m pip install --quiet --no-index --no-deps --no-build-isolation --editable . || return 1
    local found
    found=$("$python" -m geon doctor)
    echo "$found"
    grep -q "^ok  pycuda" <<< "$found"
}

runtime() {
    within 40 "${on_gpu[@]}" runtime && within 60 "${on_gpu[@]}" kernels
}

suite() {
    local tests
    for tests in geon/testing tests; do
        [ -e "$report/${tests//\//-}.done" ] && continue
        within 200 "$python" -m pytest -q -n "$(nproc)" --tb=short -rf -p no:cacheprovider \
            --transformer pycuda "$tests" || return 1
        touch "$report/${tests//\//-}.done"
    done
}

demo() {
    export GEON_TRANSFORMER=pycuda
    cd "$report" || return 1
    within 30 "$python" "$OLDPWD/examples/digits.py" train &&
        within 30 "$python" "$OLDPWD/examples/digits.py" predict
}

# Runs a part with a library of nvmath-python, where that is installed.
by_nvmath() {
    if ! "$python" -c "import nvmath"; then
        echo "nvmath-python is not installed: $2 was not checked"
        return 0
    fi
    within 45 "${on_gpu[@]}" "$1"
}

products() { by_nvmath products cuBLASLt; }

matrices() { by_nvmath matrices cuSOLVER; }

transforms() { by_nvmath transforms cuFFT; }

convolutions() {
    if ! "$python" -c "import cudnn"; then
        echo "nvidia-cudnn-frontend is not installed: cuDNN was not checked"
        return 0
    fi
    within 45 "${on_gpu[@]}" convolutions
}

sanitizer() {
    command -v compute-sanitizer || return 1
    local tool
    for tool in memcheck racecheck; do
        within 60 compute-sanitizer --report-api-errors no --tool $tool --error-exitcode 9 "${on_gpu[@]}" kernels --small ||
            return 1
    done
}

bench() {
    within 150 "${on_gpu[@]}" figures
}

steps() {
    within 250 "${on_gpu[@]}" steps
}

failed=0
for part in "${parts[@]}"; do
    if [ -e "$report/$part.passed" ]; then continue; fi
    start=$SECONDS
    if [ "$start" -ge "$limit" ]; then
        end="not begun, run the same command again"
        failed=1
    elif ("$part") > "$report/$part.txt" 2>&1; then
        touch "$report/$part.passed"
        end=passed
    else
        end="failed, see $report/$part.txt"
        failed=1
    fi
    # What it said of an earlier run of the part goes.
    [ -e "$report/summary.txt" ] && sed -i "/^$part: /d" "$report/summary.txt"
    echo "$part: $end, $((SECONDS - start)) s" | tee -a "$report/summary.txt"
    if [ "$part" = build ] && [ "$end" != passed ]; then break; fi
done
[ -x "$python" ] && "${on_gpu[@]}" report "$report" > "$results"
exit $failed
