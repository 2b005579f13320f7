# Everything is run from here: `make` lists the targets.
#
#   PYTHON       the interpreter that .venv is made with: Python 3.11, 3.12 or 3.13
#   INSTALLER    uv, or pip for a network where only pip is set up
#   PYTEST_ARGS  arguments for pytest: by default one process a core
#   PROFILE      sizes that the book is built with: smoke, default or full
#   JOBS         chapters executed at the same time; by default one for each processor
#   PORT         where `make serve` shows the book
#   AUDIT_ARGS   more arguments for pip-audit: -s osv asks another list of vulnerabilities
#   LOCK_ARGS    more arguments for uv pip compile: --upgrade takes the newest of everything

PYTHON ?= python3
INSTALLER ?= uv
PYTEST_ARGS ?= -n auto --dist worksteal
PROFILE ?= default
JOBS ?=
PORT ?= 8000
LOCK_ARGS ?=
AUDIT_ARGS ?=

SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:

VENV := .venv
LOWEST := .venv-lowest
PY := $(VENV)/bin/python

# Nothing of the caller's shell decides what is run: no other packages, no
# active environment, no other Jupyter kernels.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV CONDA_PREFIX JUPYTER_PATH UV_SYSTEM_PYTHON UV_PYTHON

# Python reads the path of an editable package in the locale's encoding: in the
# C locale a checkout under a folder with an accent would not start.
export LC_ALL := C.UTF-8

# The programs run several processes or threads of their own; BLAS threads besides would only wait.
export OPENBLAS_NUM_THREADS ?= 1

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: venv
venv: ## make or refresh .venv from the lock; does nothing when it fits
	@tools/venv.sh '$(PYTHON)' '$(VENV)' '$(INSTALLER)'

.PHONY: book
book: venv ## execute what has changed and make the pages; prints the path of the first
	@$(VENV)/bin/rankrouting book --profile '$(PROFILE)' $(if $(JOBS),--jobs '$(JOBS)')

.PHONY: pdf
pdf: venv ## build the book, and print all of it; needs Chromium
	@$(VENV)/bin/rankrouting book --profile '$(PROFILE)' $(if $(JOBS),--jobs '$(JOBS)') --pdf
	@echo '_build/$(PROFILE)/html/downloads/book.pdf'

.PHONY: serve
serve: book ## build the book and show it on this machine
	cd '_build/$(PROFILE)/html' && '$(CURDIR)/$(PY)' -m http.server --bind 127.0.0.1 $(PORT)

.PHONY: browser
browser: book ## build the book and test its pages in Chromium
	RANKROUTING_SITE='_build/$(PROFILE)/html' $(PY) -m pytest tests/browser $(PYTEST_ARGS)

.PHONY: test
test: lint ## lint, then run all tests and doctests
	$(PY) -m pytest $(PYTEST_ARGS)

.PHONY: test-fast
test-fast: venv ## run the tests that are not marked slow
	$(PY) -m pytest -m 'not slow' $(PYTEST_ARGS)

# Old packages next to new ones they did not know: what these deprecate is no error here.
.PHONY: test-lowest
test-lowest: venv ## run the tests with the oldest allowed direct dependencies, in .venv-lowest
	$(VENV)/bin/uv venv --quiet --clear --no-python-downloads --python $(PY) $(LOWEST)
	$(VENV)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --resolution lowest-direct --editable '.[cluster,dev]'
	$(LOWEST)/bin/python -m pytest -W default::DeprecationWarning $(PYTEST_ARGS)

.PHONY: test-all
test-all: venv ## run all tests on every installed Python of 3.11, 3.12 and 3.13, in .venv-3.11 and so on
	@tools/test_all.sh '$(CURDIR)/$(VENV)/bin/uv' '$(INSTALLER)' $(PYTEST_ARGS)

.PHONY: audit
audit: venv ## look up known vulnerabilities of what requirements.lock pins; needs a network
	@tools/audit.sh '$(VENV)/bin/uv' requirements.lock $(AUDIT_ARGS)

.PHONY: bench
bench: venv ## measure speed against what else could be used; needs g++ and a quiet machine
	$(PY) -m benchmarks

.PHONY: calibrate
calibrate: venv ## coverage, false alarms and power of the claims: hours; stops and goes on where it was
	$(PY) -m calibration.coverage
	$(PY) -m calibration.false_alarms
	$(PY) -m calibration.power

.PHONY: lint
lint: venv ## check style, format, types and spelling
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/codespell .

.PHONY: format
format: venv ## format the code and mend what ruff can mend
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

.PHONY: lock
lock: venv ## write requirements.lock anew from pyproject.toml
	$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras --generate-hashes \
	    --no-header --no-annotate --no-emit-index-url $(LOCK_ARGS) --output-file requirements.lock pyproject.toml

.PHONY: clean
clean: ## remove all that was made, .venv too
	rm -rf $(VENV) $(VENV)-3.* $(LOWEST) _build .mypy_cache .pytest_cache .ruff_cache .hypothesis lib/*.egg-info
	find lib tests tools book benchmarks calibration -name __pycache__ -prune -exec rm -rf {} +
