# Each command works from nothing: it makes .venv and installs what it needs, again only when the
# metadata changed. `make PYTHON=python3.12 demo` chooses the interpreter.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test docs bench-numpy fuzz clean

demo: $(VENV)/installed-examples  ## Train on handwritten digits, then predict in a second process.
	$(BIN)/python examples/digits.py train
	$(BIN)/python examples/digits.py predict

test: $(VENV)/installed-test  ## Everything that must hold: format, lint, types, tests, README, docs.
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n $(JOBS)

docs: $(VENV)/installed-test  ## Build the documentation into site/.
	$(BIN)/mkdocs build --strict

bench-numpy: $(VENV)/installed-test  ## Print the figures of the NumPy transformer.
	$(BIN)/python benchmarks/numpy_figures.py

fuzz: $(VENV)/installed-test  ## Compare many more random graphs than the tests do.
	$(BIN)/python -m pytest -q -n $(JOBS) tests/test_random_graphs.py --hypothesis-profile=long

clean:  ## Remove the environment and everything that was built.
	rm -rf $(VENV) build dist site *.egg-info

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit( \
		"geon needs Python 3.11 or newer, $(PYTHON) is %d.%d: try `make PYTHON=python3.11 ...`" \
		% sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/installed-examples: setup.cfg pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[examples]'
	@touch $@

$(VENV)/installed-test: setup.cfg pyproject.toml | $(BIN)/python
	$(PIP) --editable '.[examples,test,docs]'
	@touch $@ $(VENV)/installed-examples
