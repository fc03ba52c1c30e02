# Every target sets itself up on a fresh checkout: .venv with uv if available, otherwise with python3 -m venv and pip.
# It reinstalls only if pyproject.toml changes. `make` alone lists the targets. A second Python gets its own environment:
# make test PYTHON=python3.13 VENV=.venv-3.13

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
PYTEST_ARGS ?=
SOAKED ?= soak or not soak

# The first Python that is new enough; PYTHON=/path/to/python chooses another.
define find_python
	for python in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	done || { echo "agentkit needs Python 3.11 or newer; select one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
endef

# $(call install,<what to install>): into the environment, silently unless it fails.
define install
	@echo "setting up $(VENV): $(1)"
	@if command -v uv >/dev/null; then \
		[ -x $(BIN)/python ] || uv venv --quiet --python "$(or $(PYTHON),>=3.11)" $(VENV); \
		uv pip install --quiet --python $(BIN)/python -e '$(1)'; \
	else \
		if ! [ -x $(BIN)/python ]; then $(find_python); "$$python" -m venv $(VENV); fi; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '$(1)' 2> >(grep -v '^WARNING: ' >&2); \
	fi
endef

CORE := $(VENV)/.core
DEV := $(VENV)/.dev
DOCS := $(VENV)/.docs

.PHONY: help demo test cases soak peers peers-install peers-test lint format types docs bench real clean

help: ## list the targets
	@sed -nE 's/^([a-z]+):.*## (.*)/\1\t\2/p' Makefile | expand -t 10

$(CORE): pyproject.toml
	$(call install,.[cli])
	@touch $@

$(DEV): pyproject.toml
	$(call install,.[dev])
	@touch $@ $(CORE)

$(DOCS): pyproject.toml
	$(call install,.[dev$(comma)docs])
	@touch $@ $(DEV) $(CORE)

comma := ,

demo: $(CORE) ## one tool class, called by a JSON-calling and an XML-calling model; no key needed
	@$(BIN)/agentkit demo

# Hundreds of tests start a Python of their own: it reads bytecode, also where a container's image says to write none and
# uv, which compiles nothing, installed.
test cases soak: export PYTHONDONTWRITEBYTECODE :=

# One process more than there are processors: a fifth of the suite's time is waiting.
test: $(DEV) ## the whole suite; narrow it with TESTS=tests/test_x.py and PYTEST_ARGS=-x
	@$(BIN)/python -m pytest -q -n $$(( $$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN) + 1 )) --dist worksteal \
		$(PYTEST_ARGS) $(TESTS)

# Most cases that differ in the format alone run nowhere else: before a release, and after a change of the reader.
cases: $(DEV) ## every case, long or left out of the suite, once: about an hour
	@$(BIN)/python -m pytest -q -n auto --dist worksteal -m "soak or not soak" --timeout=1800 $(PYTEST_ARGS) tests

soak: $(DEV) ## the long runs: every corpus, every property on 300 examples, 1,000 kills
	@AGENTKIT_EXAMPLES=$${AGENTKIT_EXAMPLES:-300} $(BIN)/python -m pytest -q -n auto -m "$(SOAKED)" \
		--timeout=1800 $(PYTEST_ARGS) tests

# The systems that train models do not fit into one environment: verifiers 0.3 wants the MCP SDK 1, 0.4 wants openai 2.
# verl is installed without what only its trainers need; open-instruct is a checkout: make peers OPEN_INSTRUCT=/path
PEERS := .venv-peers
PEER_TESTS := hypothesis pytest pytest-timeout pytest-xdist
# The files by name: others in tests/interop want an MCP SDK that verifiers 0.3 does not go with.
PEER_EXPORTS := $(wildcard tests/interop/test_*_export.py tests/interop/test_*_plugin.py) tests/interop/test_agent_peers.py
PEER_RUN := -m pytest -q -n 0 -m peer -p no:cacheprovider
VERL_NEEDS := "torch<2.14" ray omegaconf hydra-core codetiming cachetools pandas pyarrow dill regex pillow torchdata peft \
	cloudpickle orjson pylatexenc uvicorn fastapi aiohttp jmespath datasets accelerate "transformers>=5.5.3,<5.11,!=5.6.0"
# The two model servers without what only running a model needs: their tool parsers import on a machine without a GPU.
SERVER_NEEDS := "torch<2.14" "transformers>=5.16.1,<5.21" aiohttp cachetools cbor2 cloudpickle fastapi ipython msgspec numpy \
	nvidia-ml-py orjson oss-harmony partial-json-parser pillow prometheus_client psutil py-cpuinfo pybase64 python-multipart \
	pyzmq regex requests sentencepiece setuptools soundfile tiktoken uvloop

peers: peers-install peers-test ## the exports' tests in the systems they are for, installed from the registry (7 GB)
	@PYTHONPATH=$(PEERS)/verl07 $(PEERS)/rl/bin/python docs/exports_table.py --write 2>/dev/null
	@for name in rl verifiers3 verifiers4; do $(PEERS)/$$name/bin/python docs/exports_table.py --write 2>/dev/null; done

peers-install: peers-install-verifiers4 peers-install-verifiers3 peers-install-rl peers-install-servers

$(PEERS)/%/bin/python:
	@$(find_python); "$$python" -m venv $(PEERS)/$*

peers-install-verifiers4: $(PEERS)/verifiers4/bin/python
	@$(PEERS)/verifiers4/bin/pip install -q $(PEER_TESTS) "verifiers==0.4.0" jsonschema docstring-parser
	@$(PEERS)/verifiers4/bin/pip install -q --no-deps -e .

peers-install-verifiers3: $(PEERS)/verifiers3/bin/python
	@$(PEERS)/verifiers3/bin/pip install -q -e . $(PEER_TESTS) "verifiers==0.3.1"

peers-install-rl: $(PEERS)/rl/bin/python
	@$(PEERS)/rl/bin/pip install -q -e . $(PEER_TESTS) $(VERL_NEEDS) trl openai-agents langchain-core pydantic-ai-slim \
		skyrl-gym openenv-core docker backoff nltk "pyvers<0.2" importlib_metadata
	@$(PEERS)/rl/bin/pip install -q --no-deps verl==0.9.1 tensordict==0.10
	@$(PEERS)/rl/bin/pip install -q --no-deps --upgrade --target $(PEERS)/verl07 verl==0.7.1

peers-install-servers: $(PEERS)/servers/bin/python
	@$(PEERS)/servers/bin/pip install -q -e . $(PEER_TESTS) $(SERVER_NEEDS)
	@$(PEERS)/servers/bin/pip install -q --no-deps vllm==0.33.0 sglang==0.5.23 xgrammar==0.2.8 apache-tvm-ffi triton

peers-test: $(addprefix peers-test-,verifiers4 verifiers3 rl servers)
	@PYTHONPATH=$(PEERS)/verl07 $(PEERS)/rl/bin/python $(PEER_RUN) tests/interop/test_verl_export.py -k hands_over_the_id

peers-test-%:
	@$(PEERS)/$*/bin/python $(PEER_RUN) $(PEER_EXPORTS)

# the code in pages, which are narrower than an editor
PAGES := --no-cache --quiet --line-length 88 --config 'format.exclude = ["*.py"]'

lint: $(DEV) ## ruff: rules and format, without changes
	@$(BIN)/ruff check --quiet --no-cache .
	@$(BIN)/ruff format --no-cache --quiet --check . && $(BIN)/ruff format $(PAGES) --check . || { echo "run: make format"; exit 1; }
	@echo "lint: clean"

format: $(DEV) ## ruff: format, and fix what can be fixed
	@$(BIN)/ruff check --quiet --no-cache --fix-only .
	@$(BIN)/ruff format --no-cache --quiet .
	@$(BIN)/ruff format $(PAGES) .

types: $(DEV) ## mypy --strict on both packages and the examples
	@$(BIN)/mypy

docs: $(DOCS) ## build the site into site/, warnings as errors
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "docs: site/index.html"

bench: $(DEV) ## the benchmarks, each printing its figures
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python "$$file"; done

# Any server that speaks chat completions: make real SERVER=http://127.0.0.1:8080/v1 MODEL=qwen REAL_ARGS="--limit 20"
real: $(DEV) ## live models: make real SERVER=http://127.0.0.1:8080/v1 MODEL=name
	@$(BIN)/python benchmarks/real_models.py --table $(if $(SERVER),--server "$(SERVER)") \
		$(if $(MODEL),--model "$(MODEL)") $(REAL_ARGS)

clean: ## remove everything that was built, including the environment
	@rm -rf .venv .venv-* site dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
