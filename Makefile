# Everything a person does with a clone.  `make help` lists it; each target does its own set-up.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
# Running needs less than working on it, so `make up` does not install the tools.
INSTALLED := $(VENV)/.installed
STAMP  := $(VENV)/.ready
WHEELS := $(VENV)/shapes
ANSIBLE := $(VENV)/ansible

# Some machines tell Python to keep no bytecode.  Tests start hundreds of processes, and each would compile every module
# anew, which took half of the whole run.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Seamark needs Python 3.11 or newer; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "installing Seamark into $(VENV), once: a virtual environment, then about 30 packages from PyPI (a minute or less)"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --disable-pip-version-check -e .
	@touch $@

$(STAMP): $(INSTALLED)
	@echo "installing what tests and benchmarks need, once …"
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(WHEELS)/.ready: tools/shapes/requirements.txt | $(STAMP)
	@rm -rf $(WHEELS)
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: -r $< -d $(WHEELS)
	@touch $@

# Ansible, and of the hundred collections in its package the one that one journey uses.
$(ANSIBLE)/.ready: | $(STAMP)
	@rm -rf $(ANSIBLE)
	@$(BIN)/pip install --quiet --disable-pip-version-check 'ansible-core>=2.18,<3' 'jsonpatch>=1.33,<2' \
	  && $(BIN)/pip download --quiet --disable-pip-version-check --no-deps 'ansible>=11,<15' -d $(ANSIBLE) \
	  && $(BIN)/python tools/collection.py $(ANSIBLE) kubernetes.core && rm $(ANSIBLE)/*.whl && touch $@ \
	  || echo "no Ansible to be had: the journey with its kubernetes.core modules is skipped" >&2

up: $(INSTALLED) ## run Seamark: API server, store, controllers, DNS and simulated nodes
	$(BIN)/seamark up $(ARGS)

# Many tests wait for other processes most of the time, so there is work for two more than there are cores.  A worker
# takes a whole file, whose tests share what they need, in the order of tests/conftest.py.  (Groups of tests would not do:
# pytest-xdist 3.8 puts them into node IDs, which pytest 9.2 no longer lets it change, so its --dist loadgroup has none.)
WORKERS = -n $$($(BIN)/python -c 'import os; print(2 + os.cpu_count())') --dist loadfile --no-loadscope-reorder
test: $(STAMP) $(ANSIBLE)/.ready ## all tests, on every core
	$(BIN)/pytest $(WORKERS) $(ARGS)

# With CI=1, properties are tried by the same examples each time; make test tries others.
check: $(STAMP) $(WHEELS)/.ready $(ANSIBLE)/.ready ## format, lint, types, layers, generated data, tests: what CI runs
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/shapes/generate.py $(WHEELS) --check
	CI=1 $(MAKE) test

coverage: $(STAMP) ## what the tests in one process reach (journeys run Seamark in others); fails if it fell
	$(BIN)/pytest $(WORKERS) --ignore tests/journeys --cov --cov-report=term:skip-covered $(ARGS)

format: $(STAMP) ## put the code into its format
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

shapes: $(WHEELS)/.ready ## make the descriptions of all kinds anew (tools/shapes)
	$(BIN)/python tools/shapes/generate.py $(WHEELS)

bench: $(STAMP) ## benchmarks: ratios against a peer or a baseline
	$(BIN)/python -m bench $(ARGS)

soak: $(STAMP) ## long runs: kills in the middle of writes, random requests, hours of random clients and faults
	$(BIN)/pytest -m soak $(ARGS)

fuzz: $(STAMP) ## throw bytes at the DNS wire format for a minute (coverage-guided)
	$(BIN)/pip install --quiet --disable-pip-version-check atheris
	$(BIN)/python tests/fuzz/fuzz_dns.py -max_total_time=60 $(ARGS)

release: $(STAMP) ## build the packages, check them, and try the wheel in an empty environment
	$(BIN)/pip install --quiet --disable-pip-version-check 'build>=1.2,<2' 'twine>=6.1,<8'
	rm -rf dist $(VENV)/release
	$(BIN)/python -m build --outdir dist .
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv $(VENV)/release
	$(VENV)/release/bin/pip install --quiet --disable-pip-version-check dist/seamark-*.whl
	$(VENV)/release/bin/seamark --version
	$(VENV)/release/bin/kubectl-why --help > /dev/null
	$(VENV)/release/bin/seamark demo --ephemeral
	@ls -l dist

kubectl-why: $(INSTALLED) ## dist/kubectl-why as one file for this Python, and a manifest for krew
	$(BIN)/python tools/kubectl_why/build.py

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage

.PHONY: help up test check coverage format shapes bench soak fuzz release kubectl-why clean
