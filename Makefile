# The commands of this project; each does the set-up that it needs. `make check` while you work,
# `make test` before you commit, `make test-all` for the slow rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# OpenMP threads that spin while they wait make small kernels twenty times slower on a busy machine.
export OMP_WAIT_POLICY = passive

.PHONY: setup demo browser check test test-all endurance lint docs results remeasure bench clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else "manifind needs Python 3.11 or newer, and %s is %d.%d; say make PYTHON=/path/to/python3.11" % (sys.executable, v[0], v[1]))'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt -e ".[all,test]"
	touch $(READY)

demo: setup
	$(BIN)/manifind demo

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The tests of the page need a browser; where none can be installed they are skipped, and say so.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null \
	  || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } >/dev/null 2>&1 \
	  || echo "no Chromium here, and none can be installed: the tests of the page will be skipped"

# Lint, types and the tests that need no fit (tests/conftest.py says which), without those that draw many examples.
check: lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -m "quick and not slow and not hypothesis"

# Two processes of one thread each take little more than half the time of one with two threads. Files go in their order,
# in which the longest come first; by the number of their tests those with few long ones would come last.
test: lint browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --durations 15

# What `make test` leaves out: long tests, most of them of the page, the wheel with each extra in a clean environment,
# endurance tests, benchmarks in quick form.
test-all: setup browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m long -n 2 --dist loadfile --no-loadscope-reorder --durations 15
	$(BIN)/python -m pytest -m wheel --durations 15
	$(MAKE) endurance

# The full counts of the tests that kill writers, fail disks and read during commits, with what they saw.
endurance: setup
	$(BIN)/python -m pytest -m endurance --log-cli-level=INFO

# Regenerates the pages that are made from code and from results.
docs: setup
	$(BIN)/python scripts/paper_map.py
	$(BIN)/python scripts/data_table.py
	$(BIN)/python scripts/methods_page.py
	$(BIN)/python scripts/reproduction.py
	$(BIN)/python scripts/outdated.py
	$(BIN)/python scripts/readings.py --render
	$(BIN)/python scripts/levers.py --render
	$(BIN)/python scripts/extractors.py --render
	$(BIN)/python scripts/whitening.py --render
	$(BIN)/python scripts/cutoff.py --render
	$(BIN)/python scripts/tuning.py --render
	$(BIN)/python scripts/words.py --render
	$(BIN)/python scripts/results.py --render

# Measures time and memory, and renders docs/performance.md. Takes hours, on a machine that does nothing else.
bench: setup
	$(BIN)/python benchmarks/run.py

# Runs what the documents claim and renders it.
results: setup
	$(BIN)/python scripts/results.py

# Runs again every result that other code made, as after a change of the default, and renders the pages: many hours.
# What is finished is saved, so that it can be stopped and goes on.
remeasure: setup
	$(BIN)/manifind compare --suite local --outdated --results docs/results/suite.jsonl
	$(BIN)/manifind compare --suite modern --tune-budget 8 --outdated --results docs/results/suite.jsonl
	$(BIN)/manifind reproduce local --outdated --results docs/results/reproduction.jsonl
	$(BIN)/python scripts/levers.py --outdated
	$(BIN)/python scripts/extractors.py --outdated
	$(BIN)/python scripts/whitening.py --outdated
	$(BIN)/python scripts/cutoff.py --outdated
	$(BIN)/python scripts/tuning.py --outdated
	$(BIN)/python scripts/words.py
	$(BIN)/python scripts/readings.py --outdated
	$(BIN)/python scripts/results.py --outdated
	$(BIN)/python benchmarks/run.py --only-missing
	$(MAKE) docs

clean:
	rm -rf $(VENV) dist build demo .mypy_cache .ruff_cache .pytest_cache
