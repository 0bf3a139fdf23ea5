# Every target sets up what it needs, in one step, on a machine that has Python 3.11-3.13 and nothing else.

PYTHON ?= $(shell for p in python3.12 python3.13 python3.11 python3 python; do \
	$$p -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# Nothing is installed but what the lock names, with its hash.
INSTALL := $(BIN)/uv pip install --quiet --verify-hashes --compile-bytecode --no-build-isolation -c requirements.lock
# Our own modules too: where Python may not write bytecode, they would be compiled anew each time (0.3 s).
COMPILE := $(BIN)/python -m compileall -q api kube job publisher operator cli
INPUTS := pyproject.toml requirements.lock

.PHONY: demo test test-cluster demo-cluster check format bench bench-cluster differential picture lock crds clean
.DELETE_ON_ERROR:

## The main job on real data: the best ways to serve Qwen3-32B on 16 H200 GPUs, in out/.
demo: $(VENV)/.run
	$(BIN)/dgdr search examples/qwen3-32b.yaml --out out --force

## All tests. A real API server is built and started for some of them (once, about five minutes).
test: $(VENV)/.dev
	$(BIN)/python -m pytest --ignore=tests/cluster $(PYTEST)

## The tests on a real cluster: one node, started here as root; or your own: KUBECONFIG=… and DGDR_TEST_IMAGES=….
test-cluster: $(VENV)/.dev
	$(BIN)/python -m pytest tests/cluster $(PYTEST)

## The walk from a request to a promoted deployment on a real cluster, command by command.
demo-cluster: $(VENV)/.dev
	$(BIN)/python -m tests.cluster.walk

## What CI checks beside the tests: style, types, import rules, generated files, the lock.
check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python -m dgdr_api.crd --check crds
	$(BIN)/python -m docs.generate --check
	$(BIN)/python .ci/lock.py --check

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

## Speed, memory and optima beside aiconfigurator, matching alone, growth with the budget: about 40 minutes.
## One request: make bench BENCH='--only deepseek-r1'.
bench: $(VENV)/.dev
	@$(COMPILE)
	$(BIN)/python -m benchmarks.run $(BENCH)
	$(if $(BENCH),,$(BIN)/python -m benchmarks.matching --write)
	$(if $(BENCH),,$(BIN)/python -m benchmarks.growth)

## The cluster path on a real API server: first status, memory, what publishing costs.
bench-cluster: $(VENV)/.dev
	$(BIN)/python -m benchmarks.cluster

## Every request time of random small replays beside Dynamo 1.6.1's replay, which is installed apart; about ten minutes.
differential: $(VENV)/.dev
	$(BIN)/python -m benchmarks.differential

picture: $(VENV)/.dev
	$(BIN)/python -m docs.picture

crds: $(VENV)/.dev
	$(BIN)/python -m dgdr_api.crd --write crds
	$(BIN)/python -m docs.generate --write

## docs/coverage.md anew: the validation matrix, judged by the performance data.
coverage: $(VENV)/.dev
	$(BIN)/python -m docs.coverage_page

lock: $(VENV)/.dev
	$(BIN)/python .ci/lock.py --write

clean:
	rm -rf $(VENV) out .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(VENV)/.run: $(VENV)/.base
	$(INSTALL) -e '.[job,publisher,cli]'
	@$(COMPILE)
	@touch $@

$(VENV)/.dev: $(VENV)/.base
	$(INSTALL) -e '.[job,publisher,operator,cli,dev,build]'
	@$(COMPILE)
	@touch $@ $(VENV)/.run

# uv and hatchling come first, themselves from the lock; the build of this project needs no other tool.
$(VENV)/.base: $(INPUTS) .ci/lock.py
	@test -n "$(PYTHON)" || { echo "Python 3.11, 3.12 or 3.13 with venv is needed: install it, or make PYTHON=/path/to/python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python .ci/lock.py --only uv > $(VENV)/uv.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r $(VENV)/uv.lock
	$(INSTALL) hatchling
	@touch $@
