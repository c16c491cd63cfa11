# Each command works from nothing: it makes .venv and installs what it needs, again only when the
# metadata changed. `make PYTHON=python3.12 demo` chooses the interpreter.

PYTHON ?= python3
# Processes of tests: one for each processor, and no more than memory is likely to be there for.
JOBS ?= $(shell n=$$(getconf _NPROCESSORS_ONLN); echo $$((n < 8 ? n : 8)))
VENV := .venv
BENCH := .venv-bench
BIN := $(VENV)/bin
# What an installation is made of; the rest is read where it lies.
METADATA := setup.cfg pyproject.toml setup.py geon/transformers/native/entry.c geon/transformers/pycuda/steady.c \
	geon/transformers/loading/extension.h \
	$(wildcard geon/transformers/native/c/product/*)
# The clone as a path, not an import hook: a folder called geon beside a script does not hide a path.
EDITABLE := --config-settings editable_mode=compat --editable
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Tests start many processes: each finds the bytecode of the others.
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/$(VENV)/bytecode
unexport PYTHONDONTWRITEBYTECODE
PYTEST := $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal $(TEST_OPTIONS)
# A share of `make test-all`, such as PART=2/4.
PART ?= 1/1

.PHONY: demo test test-tiny test-all test-frameworks docs bench compile-times bench-numpy bench-random fuzz fuzz-large fuzz-speed clean

demo: $(VENV)/installed-examples  ## Train on handwritten digits, then predict in a second process.
	$(BIN)/python examples/digits.py train
	$(BIN)/python examples/digits.py predict

test-tiny: $(VENV)/installed-test  ## A few seconds, no compiler: build, derive, NumPy, dump.
	$(BIN)/python -m pytest -q tests/tiny

test: $(VENV)/installed-test  ## What must hold before a change lands: format, lint, types, tests, README, docs.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy > $(VENV)/types.txt & types=$$!; $(PYTEST); tests=$$?; \
		wait $$types; types=$$?; cat $(VENV)/types.txt; exit $$((types + tests))

test-all: $(VENV)/installed-test  ## All tests with all their cases; PART=2/4 for the second of four shares.
	$(PYTEST) --all --part $(PART)

test-frameworks: $(VENV)/installed-frameworks  ## Functions of PyTorch and JAX, which the other tests do without.
	$(BIN)/python -m pytest -q tests/frontends/torch tests/frontends/jax \
		tests/frontends/brainstorm/test_against_torch.py \
		tests/frontends/nnc/test_nnc_against_torch.py \
		tests/frontends/nnc/test_models_against_torch.py tests/test_foreign_arrays.py

docs: $(VENV)/installed-test  ## Build the documentation into site/.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(BENCH)/installed  ## Measure geon beside its peers; BENCH_OPTIONS='--only gelu' for a part, BASE=v1 for a revision beside it.
	$(BENCH)/bin/python -m benchmarks.peers $(if $(BASE),--base "$(BASE)") $(BENCH_OPTIONS)
	$(if $(BENCH_OPTIONS),,$(BENCH)/bin/python -m benchmarks.fitting)
	$(if $(BENCH_OPTIONS),,$(BENCH)/bin/python -m benchmarks.peers.memory)

compile-times: $(BENCH)/installed  ## Measure first calls beside JAX.
	$(BENCH)/bin/python -m benchmarks.compile_times

bench-numpy: $(VENV)/installed-test  ## Print the figures of the NumPy transformer.
	$(BIN)/python benchmarks/numpy_figures.py

fuzz: $(VENV)/installed-test  ## Compare many more random graphs than the tests do.
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal -o timeout=0 -o faulthandler_timeout=0 --hypothesis-profile=long \
		tests/test_random_graphs.py tests/native/test_random_native.py \
		tests/native/test_random_short_rows.py

PROGRAMS ?=
SEED ?=

fuzz-large: $(VENV)/installed-test  ## Random programs over large arrays, at each constant of the code.
	$(BIN)/python -m tests.large.fuzz --programs $(or $(PROGRAMS),1000) --seed "$(SEED)" --jobs $(JOBS)

fuzz-speed: $(VENV)/installed-test  ## Kernels of random large programs, the worst share of their ceiling first.
	$(BIN)/python -m benchmarks.random_programs.fuzz_speed --programs $(or $(PROGRAMS),300) \
		--seed "$(SEED)" $(SPEED_OPTIONS)

bench-random: $(VENV)/installed-bench  ## Random large programs and their derivatives beside JAX.
	$(BIN)/python -m benchmarks.random_programs.bench_random --programs $(or $(PROGRAMS),100) \
		--seed "$(SEED)" $(SPEED_OPTIONS)

clean:  ## Remove the environment and everything that was built.
	rm -rf $(VENV) $(BENCH) .bench-base build dist site *.egg-info geon/transformers/native/_entry.* \
		geon/transformers/native/prebuilt geon/transformers/pycuda/_steady.*

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
		"geon needs Python 3.11 or newer, $(PYTHON) is %d.%d: try `make PYTHON=python3.11 ...`" \
		% sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/installed-examples: $(METADATA) | $(BIN)/python
	$(PIP) $(EDITABLE) '.[examples]'
	@touch $@

$(VENV)/installed-test: $(METADATA) | $(BIN)/python
	$(PIP) $(EDITABLE) '.[examples,test,docs]'
	@touch $@ $(VENV)/installed-examples

$(VENV)/installed-bench: $(METADATA) | $(BIN)/python
	$(PIP) $(EDITABLE) '.[examples,test,docs,bench]'
	@touch $@ $(VENV)/installed-examples $(VENV)/installed-test

$(VENV)/installed-frameworks: $(METADATA) | $(BIN)/python
	$(PIP) $(EDITABLE) '.[examples,test,docs,frameworks]'
	@touch $@ $(VENV)/installed-examples $(VENV)/installed-test

# Each line of contenders.txt is what one pip installs; one that cannot be had is a dash.
$(BENCH)/installed: $(METADATA) benchmarks/peers/contenders.txt
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check $(EDITABLE) . matplotlib
	grep -v '^#' benchmarks/peers/contenders.txt | while read -r line; do \
		$(BENCH)/bin/python -m pip install --quiet --disable-pip-version-check $$line \
			|| echo "not installed: $$line"; done
	@touch $@
