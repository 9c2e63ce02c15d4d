# Two commands: `make demo` runs the main job, `make test` the tests. Each sets up what it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo demo-kafka test soak lint bench lock clean

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

demo-kafka: $(STAMP)
	$(BIN)/windrow demo kafka

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Three processes side by side: tests that share one Spark session, then those that kill Spark programs, so that there is
# one Spark at a time; tests of operators and SQL, then of hosts and experiments; lint, then all others. tests/README.md
# says where a new test goes. Programs that tests start import Windrow: without bytecode files, where the environment
# forbids them, that takes three times as long.
FAST := --durations=15 -m "not spark and not kills and not soak"
ELSEWHERE := tests/operators tests/sql tests/hosts tests/bench
test: export PYTHONDONTWRITEBYTECODE =
test: $(STAMP)
	@($(BIN)/python -m pytest $(FAST) tests/operators tests/sql; operators=$$?; \
	  $(BIN)/python -m pytest $(FAST) tests/hosts tests/bench && exit $$operators) > .operators-and-hosts.log 2>&1 & first=$$!; \
	($(MAKE) --no-print-directory lint && $(BIN)/python -m pytest $(FAST) $(addprefix --ignore=,$(ELSEWHERE))) \
	  > .fast-tests.log 2>&1 & second=$$!; \
	$(BIN)/python -m pytest --durations=15 -m "spark and not soak" tests; spark=$$?; \
	$(BIN)/python -m pytest --durations=5 -m kills tests/hosts/spark; kills=$$?; \
	wait $$first; first=$$?; wait $$second; second=$$?; cat .operators-and-hosts.log .fast-tests.log; \
	exit $$((spark || kills || first || second))

# For hours, by hand: other random examples each time, fifty times as many, more kills, and what takes minutes alone.
soak: export PYTHONDONTWRITEBYTECODE =
soak: $(STAMP)
	WINDROW_EXAMPLES=20 $(BIN)/python -m pytest $(FAST)
	WINDROW_KILLS=30 $(BIN)/python -m pytest --durations=5 -m kills tests/hosts/spark
	$(BIN)/python -m pytest -m soak tests

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
