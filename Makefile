# make demo    from a fresh clone: the whole journey on bundled data, results in demo/
# make test    the whole check: format, lint, types, layers, tests
# make docs    the documentation site, in site/
# make format  put the source in order

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test docs format clean

demo: $(VENV)/run.stamp
	$(BIN)/metricdp demo

test: $(VENV)/dev.stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n 3 --dist worksteal

docs: $(VENV)/dev.stamp
	$(BIN)/python tools/site.py
	$(BIN)/zensical build --clean

format: $(VENV)/dev.stamp
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf demo site build

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "metricdp needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# Every package is pinned and checked against its hash; the library and the studies of papers are installed in place.
$(VENV)/run.stamp: constraints.txt pyproject.toml papers/pyproject.toml | $(VENV)/bin/python
	@echo "Installing what metricdp needs into $(VENV), once ..."
	$(PIP) install --require-hashes --no-deps --requirement constraints.txt
	$(PIP) install --no-deps --no-build-isolation --editable . --editable papers
	@touch $@

$(VENV)/dev.stamp: constraints-dev.txt $(VENV)/run.stamp
	@echo "Installing the tools of the check into $(VENV), once ..."
	$(PIP) install --require-hashes --no-deps --requirement constraints-dev.txt
	@touch $@
