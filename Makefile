# make demo: set up and serve. make test: set up and test. Both start from nothing but Python 3.11, make and (on Debian) apt.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# Where the CPU build of PyTorch comes from when pip's own sources lack it.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
TORCH := $(shell sed -n 's/^\(torch==[^ ;]*\).*/\1/p' requirements/cpu.lock)

.PHONY: demo test test-all unit lint stop lock clean
demo: $(VENV)/ready
	$(BIN)/peagle demo

test: lint
	sh requirements/test-system.sh
	$(BIN)/pytest -q tests -m "not slow" --durations=15

# Also what kills, freezes, scales and shards engines, one after the other.
test-all: lint
	sh requirements/test-system.sh
	$(BIN)/pytest -q tests

unit: $(VENV)/ready
	$(BIN)/pytest -q tests/unit

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

stop:
	$(BIN)/peagle stop

# The locked CPU set, without dependencies: the resolver would take minutes and bring CUDA builds. Compiled here: an image's user may not
# write bytecode, nor may anyone under PYTHONDONTWRITEBYTECODE, and would compile 5,000 modules anew in each process of an engine.
$(VENV)/ready: requirements/cpu.lock pyproject.toml requirements/system.sh
	sh requirements/system.sh
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing the CPU set ($$(grep -c == requirements/cpu.lock) packages, about 2.5 GB on disk)"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(TORCH) \
	  || $(BIN)/python -m pip install --quiet --no-deps --index-url $(TORCH_INDEX) $(TORCH)
	$(BIN)/uv pip install --python $(BIN)/python --no-deps --compile-bytecode --requirement requirements/cpu.lock
	$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation --editable .
	touch $@

# New versions of everything: edit requirements/cpu.in, then `make lock`, then `make test`.
lock:
	$(BIN)/uv pip compile requirements/cpu.in --override requirements/overrides.txt --python-version 3.11 --no-header --no-annotate \
	  $(if $(PIP_FIND_LINKS),--find-links $(PIP_FIND_LINKS)) --output-file requirements/cpu.lock

clean:
	rm -rf $(VENV)
