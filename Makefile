# gpufabric: `make plan` shows what it does, `make test` proves it. Both start from nothing.
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

# Numba's disk cache does not notice a change in another module: name it by all kernels together.
KERNELS := $(sort $(wildcard src/gpufabric/kernels/*.py))
export NUMBA_CACHE_DIR := $(CURDIR)/.cache/numba-$(shell cat $(KERNELS) /dev/null | sha256sum | cut -c 1-16)

SPEC ?= examples/train-1024.yaml
OUT ?= out/$(basename $(notdir $(SPEC)))

.PHONY: help plan test lint bench calibrate docs messages lock clean

help:  ## Show the targets
	@grep -E '^[a-z]+:.*##' Makefile | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

plan:  ## Design the network of SPEC (examples/train-1024.yaml) into OUT (out/train-1024)
	@scripts/bootstrap.sh
	@.venv/bin/gpufabric plan $(SPEC) -o $(OUT)

test:  ## Lint, then run all tests
	@scripts/bootstrap.sh test
	@scripts/real_parts.sh
	@scripts/test.sh

lint:  ## Format, lint, types, import law
	@scripts/bootstrap.sh test
	@scripts/lint.sh

bench:  ## Run benchmarks/ and renew benchmarks/results.json (ONLY=name for one module)
	@scripts/bootstrap.sh test
	@.venv/bin/python -m benchmarks.run $(ONLY)

calibrate:  ## Fit the constants of the workload models on calibration/data and write them and the reports
	@scripts/bootstrap.sh test
	@.venv/bin/python -m calibration.write_fit
	@.venv/bin/python -m calibration.training
	@.venv/bin/python -m calibration.training_report
	@.venv/bin/python -m calibration.validation

docs:  ## Build the documentation into out/docs
	@scripts/bootstrap.sh docs
	@NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs build --strict --quiet
	@echo out/docs/index.html

messages:  ## Renew the catalogues of translations from the sources
	@scripts/bootstrap.sh
	@.venv/bin/python -m scripts.messages

lock:  ## Renew the locked requirements (ARGS=--upgrade for newer versions)
	@scripts/bootstrap.sh lock
	@scripts/lock.sh $(ARGS)

clean:  ## Remove what was made, except .venv
	rm -rf out dist .benchmarks .cache .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -not -path './.venv/*' -prune -exec rm -rf {} +
