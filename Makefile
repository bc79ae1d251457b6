# What contributors and CI call. Needs Python 3.10 or newer, git and make; everything else goes into .venv.
PYTHON ?= python3
BIN := .venv/bin

# Seconds of the random walk of `make matrix`.
SECONDS ?= 60

.PHONY: demo page serve test histories lint format static train matrix bench golden mutants release clean

# Enough to generate a project and to train it.
.venv/project: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[project]"
	touch $@

# Everything that the tests use.
.venv/dev: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@ .venv/project

# Render a project with the defaults, train it on handwritten digits, and print what it reached.
demo: .venv/project
	rm -rf build/demo
	$(BIN)/tricks new build/demo --defaults
	cd build/demo && ../../$(BIN)/python train.py

# The page that picks techniques, in build/page: of a tag (make page TAG=v0.1.0), or a preview of the work tree.
TAG ?=
page: .venv/project
	$(BIN)/python -m web build/page $(if $(TAG),--revision $(TAG))

# The same, opened on this machine at http://127.0.0.1:8000.
serve: page
	$(BIN)/python -m http.server --bind 127.0.0.1 --directory build/page 8000

# Two processes: the tests are many small projects, and each keeps one core busy.
test: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

# Many random histories of changed projects, drawn anew: so many of each property.
HISTORIES := 1000
histories: .venv/dev
	HISTORIES=$(HISTORIES) OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_histories.py --hypothesis-show-statistics $(ARGS)

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --config pyproject.toml . template
	$(BIN)/mypy

format: .venv/dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format --config pyproject.toml . template

# Every project that can be generated, checked as text.
static: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m matrix static

# Nothing, everything, each option alone and all pairs, trained, stopped, resumed and exported.
train: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m matrix train basics pairs

# All of docs/verification.md. What passed before and has not changed is taken over.
matrix: static
	OMP_NUM_THREADS=1 $(BIN)/python -m matrix train --seconds $(SECONDS)
	OWNERS=all OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 tests/test_owners.py

# Measures the generated loop beside others (benchmarks/README.md); a quiet machine and some twenty minutes.
bench: .venv/dev
	$(BIN)/python -m pip install --quiet -r benchmarks/requirements.txt
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks $(ARGS)

# The three projects under review in tests/golden, rendered anew.
golden: .venv/dev
	$(BIN)/python -m tests.golden

# Breaks every technique on purpose, some eighty times: the proofs of the generated project must notice each.
mutants: .venv/dev
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants

# A release of the last commit: changelog, commit, tag, and a wheel that was tried. Nothing is pushed.
release: .venv/dev
	.ci/release "$(VERSION)" --check
	$(MAKE) lint static test
	.ci/release "$(VERSION)"

clean:
	rm -rf build .venv
