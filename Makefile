# Everything a contributor runs. Each target builds .venv first where it is missing or stale (.ci/setup).
# ARGS goes to the program:  make test ARGS="tests/log -k rebase"    make demo ARGS="--engine local"
# Tests run in PROCESSES processes; in none but pytest's own with  make test PROCESSES=0

SHELL := /bin/bash
BIN := .venv/bin
SOURCES := streamlake connectors tests benchmarks examples

.DEFAULT_GOAL := help
PROCESSES ?= 2

.PHONY: help demo test test-peers check bench clean setup

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20

demo: setup ## watch Kafka stream through Spark into a table and out again, through crashes
	@$(BIN)/streamlake demo $(ARGS)

test: ## run the tests; those that need Java are skipped where it is missing
	@.ci/setup --java
	@$(BIN)/pytest --numprocesses $(PROCESSES) --dist loadgroup --no-loadscope-reorder --ignore tests/peers $(ARGS)

test-peers: setup ## read random tables with deltalake, DuckDB and Delta on Spark, and theirs here
	@$(BIN)/pytest tests/peers $(ARGS)

check: setup ## lint, format, types, import floors, spelling
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports
	$(BIN)/codespell

bench: setup ## measure side by side with deltalake; ARGS names some: append tail snapshot replay flat
	@$(BIN)/python -m benchmarks $(ARGS)

setup: ## build or refresh .venv; the other targets do it by themselves
	@.ci/setup

clean: ## remove .venv, caches and build results
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
