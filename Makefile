# Two targets do everything from a bare checkout with python3 and make: `make demo`, `make test`.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test pytest docs evidence benchmarks lint format clean

demo: $(STAMP)
	$(BIN)/noisewise demo

# Types are checked on one core while the tests begin on the other.
test: $(STAMP)
	$(MAKE) --no-print-directory -j2 lint pytest

pytest: $(STAMP)
	$(BIN)/pytest -m "not evidence" -n 2 --dist loadfile

# The documentation site, in build/site; a warning is an error (with --quiet it would not be). Its worked
# examples run first, for some minutes; what they gave is kept in build/gallery until they or the library change.
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open build/site/index.html"

# Heavier evidence: same code, more trials. The figures are in docs/evidence.md. It samples for longer
# than it compiles, hence more of the compiler's passes than `make test` asks for.
evidence: $(STAMP)
	XLA_FLAGS=--xla_backend_optimization_level=1 JAX_DISABLE_MOST_OPTIMIZATIONS=0 $(BIN)/pytest -m evidence -v -s

benchmarks: $(STAMP)
	$(BIN)/python -m benchmarks

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# uv resolves and installs in seconds what takes pip minutes; it lives in the environment only.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python -c constraints.txt -e '.[dev]'
	touch $(STAMP)

clean:
	rm -rf $(VENV) build dist demo-output .pytest_cache .mypy_cache .ruff_cache
