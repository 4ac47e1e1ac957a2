# Everything sets itself up: the first target that needs it makes .venv and installs the package into it, and
# that is not done again while pyproject.toml is unchanged. Another interpreter: make test PYTHON=python3.13

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY_DEMO := $(VENV)/.ready-demo
READY_TEST := $(VENV)/.ready-test
READY_BENCH := $(VENV)/.ready-bench
READY_GPU := $(VENV)/.ready-gpu
PICTURE := vcgmm-demo.png

# OpenMP threads that wait should go to sleep soon. By default GNU's spin for long, which gains nothing here and
# on a busy machine makes whatever runs in scikit-learn (and in two test workers at once) several times slower.
export GOMP_SPINCOUNT ?= 1000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-gpu test-gpu-interpreted lint bench paper clean clean-cache

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-21s %s\n", $$1, $$2}'

demo: $(READY_DEMO) ## cluster a million points, print a table, write vcgmm-demo.png
	$(BIN)/vcgmm demo --output $(PICTURE) --force

test: lint ## style, types, import direction, then all tests with coverage
	rm -f .coverage .coverage.*
	@echo "== small kernels as plain Python: the only way to see their lines =="
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n 2 -m interpreted --cov --cov-report=
	@echo "== the whole suite, compiled =="
	$(BIN)/python -m pytest -q -n 2 --cov --cov-append --cov-report=term --cov-fail-under=95

# The package's own settings leave the GPU's code out of the coverage, since `make test` does without torch.
test-gpu-interpreted: $(READY_GPU) ## the GPU's kernels and steps without a GPU, under Triton's interpreter
	OMP_NUM_THREADS=1 TRITON_INTERPRET=1 $(BIN)/python -m pytest -q -n 2 tests/gpu tests/contract --cov=src/vcgmm/gpu --cov-config=/dev/null \
		--cov-report=term-missing:skip-covered --cov-fail-under=95

# All that does not ask for the CPU fits on the GPU, as far as it is offered there: see tests/conftest.py.
test-gpu: $(READY_GPU) ## all tests with a GPU, on which fits run too that are told nothing
	$(BIN)/python -c "import torch; torch.cuda.init()"
	$(BIN)/python -m pytest -q -n 2 --device=auto

lint: $(READY_TEST) ## style, types and import direction alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(READY_BENCH) ## us and the peers on the sets in $$VCGMM_DATA: table, CSV, pictures; goes on where it stopped
	$(BIN)/python benchmarks/peers.py --tables docs/benchmarks/peers.md

paper: $(READY_DEMO) ## the paper's tables and figures from the sets in $$VCGMM_DATA (quick look: make paper PAPER="--seeds 5")
	$(BIN)/python benchmarks/paper.py $(PAPER)

clean-cache: ## forget compiled kernels
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean: clean-cache ## remove all that was made: environment, caches, reports, pictures
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -rf .coverage .coverage.* htmlcov src/*.egg-info $(PICTURE)

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# Order-only on the interpreter: it is a link to a file whose age says nothing about this environment.
$(READY_DEMO): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[plot]'
	touch $@

# What the tests need contains what the demo needs, so the demo is ready too.
$(READY_TEST): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev,plot]'
	touch $(READY_DEMO) $@

# Triton comes with a torch for GPUs only; its interpreter needs it everywhere.
$(READY_GPU): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[dev,gpu,plot]' triton
	touch $(READY_DEMO) $(READY_TEST) $@

$(READY_BENCH): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install -qq --disable-pip-version-check -e '.[bench,plot]'
	touch $(READY_DEMO) $@
