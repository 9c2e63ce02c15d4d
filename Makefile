# Two commands: `make demo` runs the main job, `make test` the tests. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo test lint bench lock clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements.lock requirements-java.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	$(BIN)/python -c "import sys; from windrow.hosts.spark import java; sys.exit(java.find() is None)" || \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-java.lock
	touch $@

demo: $(STAMP)
	$(BIN)/windrow demo

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What needs Spark mostly waits for it, so the other tests run beside it. Each Python worker that Spark starts imports
# Windrow: without bytecode files, where the environment forbids them, that takes three times as long.
test: export PYTHONDONTWRITEBYTECODE =
test: lint
	@$(BIN)/python -m pytest -m "not spark" > .fast-tests.log 2>&1 & fast=$$!; \
	$(BIN)/python -m pytest -m spark; spark=$$?; \
	wait $$fast; others=$$?; cat .fast-tests.log; \
	exit $$((spark || others))

bench: $(STAMP)
	$(BIN)/windrow bench --list

# After a change of dependencies in pyproject.toml. Needs uv.
lock:
	uv pip compile pyproject.toml --extra test --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o requirements.lock
	uv pip compile requirements-java.in --universal --python-version 3.11 --generate-hashes \
	  --no-header --no-emit-index-url --no-annotate -o requirements-java.lock

clean:
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .ruff_cache .hypothesis
