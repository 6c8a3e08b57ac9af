# The two commands of the README, and what they need.
#
#   make demo    allocate an example cluster
#   make test    run the tests
#
# Everything runs in a virtual environment, VENV, that is made when it is missing
# and installed again when pyproject.toml changes. Needs Python 3.11+ with venv.

VENV ?= .venv
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$name"; break; }; done)
PYTEST_ARGS ?= -n auto
SITE ?= site
DIST ?= dist

BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: help install demo demo-scheduler test lint types docs bench dist clean
.DEFAULT_GOAL := help

help:
	@echo "make demo   allocate an example cluster (examples/cluster.yaml)"
	@echo "make demo-scheduler   run the example scheduler in a cluster of doubles"
	@echo "make test   run the tests                (PYTEST_ARGS='-n auto')"
	@echo "make lint   ruff: rules and format"
	@echo "make types  mypy --strict"
	@echo "make docs   build the documentation into site/, warnings are errors"
	@echo "make bench  measure the allocator against the recorded reference, and the claim tracker"
	@echo "make dist   build sdist and wheel into dist/"
	@echo "make clean  remove what was built"

install: $(STAMP)

$(STAMP): pyproject.toml
ifeq ($(strip $(PYTHON)),)
	$(error No Python 3.11 or newer found; name one with PYTHON=/path/to/python3)
endif
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# The command says 1 when a claim fits nowhere: an answer, not a failure of the demo.
demo: $(STAMP)
	$(BIN)/dra-core allocate examples/cluster.yaml || test $$? -eq 1

# About ten seconds: 200 pods on 20 nodes. Says 1 when an invariant was broken, or a pod left over.
demo-scheduler: $(STAMP)
	$(BIN)/python -m examples.support.scheduler_demo

test: $(STAMP)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet --site-dir $(abspath $(SITE))
	$(BIN)/python tests/support/built_site.py $(SITE)

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run; code=$$?; $(BIN)/python -m benchmarks.tracker && exit $$code

dist: $(STAMP)
	$(BIN)/python -m build --outdir $(DIST)

clean:
	rm -rf $(DIST) $(SITE) .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
