# Two commands prove the project on a fresh machine: `make demo` and `make test`. Everything lands in .venv.
PYTHON ?= python3
BIN := .venv/bin
# two workers with one thread each beat one worker with two threads on the small tensors of the tests
TESTS := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

.PHONY: demo test test-gpu setup browser check bench gates fuzz kills mutants notebook clean

demo: setup
	$(BIN)/naysay demo

test: setup browser
	$(TESTS)

# on a machine with a GPU, by its own Python with torch for CUDA and pytest: nothing is installed
test-gpu:
	PYTHONPATH=src:$$PYTHONPATH $(PYTHON) -m pytest tests/gpu --confcutdir=tests/gpu

# the report is tested in a real browser; where it cannot be installed, those tests skip and say so
browser:
	@command -v chromium chromedriver >/dev/null || \
		(command -v apt-get >/dev/null && test "$$(id -u)" = 0 && apt-get update -qq && \
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium chromium-driver >/dev/null) || \
		echo "chromium and chromedriver are not here: the report's browser tests will skip"

setup: .venv/ready

# torch first and by its exact version: a range may pull gigabytes of another build. All others by their sums, also those
# that torch has brought along
.venv/ready: requirements.txt pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $$(grep '^torch==' requirements.txt)
	grep -v '^torch==' requirements.txt | $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		--no-deps --force-reinstall --require-hashes -r /dev/stdin
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

bench: setup
	$(BIN)/python -m benchmarks

# whether accuracy and imports are as stored; make gates AGAINST=COMMIT compares speed too, in 16 minutes
gates: setup
	$(BIN)/python -m benchmarks gates $(if $(AGAINST),--against $(AGAINST))

# runs the cells of the notebooks and stores what they print; a test compares
notebook: setup
	OMP_NUM_THREADS=1 $(BIN)/python tools/notebook.py docs/*.ipynb

# minutes: jobs are killed at random moments and done again; a sample is among the tests
kills: setup
	$(BIN)/python tests/kills.py

# minutes: lines of the flow are made wrong, one by one, and some test must see each
mutants: setup
	$(BIN)/python tests/mutants.py

# thousands of spoilt files, by seed, for every reader: a result or one sentence; about two minutes, not part of the tests
fuzz: setup
	OMP_NUM_THREADS=1 $(BIN)/python tests/malformed.py

clean:
	rm -rf .venv build dist site .pytest_cache .mypy_cache .ruff_cache
