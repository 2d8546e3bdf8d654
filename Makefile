# Two commands on a fresh machine that has make and Python 3.11 or newer: `make demo` and `make test`.
# Settings: make demo PYTHON=/path/to/python3.12 ARGS="--seed 1"
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
SETTINGS := pyproject.toml constraints.txt

.PHONY: help demo test test-fast check fix clean

help: ## show these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.installed-demo ## install, then go from the packaged pairs to a search bar (runs/demo)
	$(BIN)/bridgehead demo $(ARGS)

test: check ## install, then run all checks and all tests
	$(BIN)/python -m pytest $(ARGS)

test-fast: $(VENV)/.installed-test ## run the tests that are not marked slow
	$(BIN)/python -m pytest -m "not slow" $(ARGS)

check: $(VENV)/.installed-test ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fix: $(VENV)/.installed-test ## format, and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove the environment, caches and builds; runs/ stays
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests scripts bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@if [ -z "$(PYTHON)" ] || ! "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
		echo "bridgehead needs Python 3.11 or newer; found: $$("$(or $(PYTHON),python3)" --version 2>&1 | head -n 1)." >&2; \
		echo "Install one, or name it: make $(or $(MAKECMDGOALS),demo) PYTHON=/path/to/python3.12" >&2; \
		exit 1; \
	fi
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
		echo "$(PYTHON) cannot make an environment; on Debian and Ubuntu: apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.installed-demo: $(SETTINGS) | $(BIN)/python
	@echo "Installing what the demo needs into $(VENV); this takes minutes the first time."
	$(PIP_INSTALL) -e ".[audit,hub,molecules,serve]"
	@touch $@

# The test extra holds the demo's extras too.
$(VENV)/.installed-test: $(SETTINGS) | $(BIN)/python
	@echo "Installing what the tests need into $(VENV); this takes minutes the first time."
	$(PIP_INSTALL) -e ".[test]"
	@touch $@ $(VENV)/.installed-demo
