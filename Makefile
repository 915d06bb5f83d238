# Every target sets up what it needs in .venv; nothing outside this folder is touched
# (but for Debian's python3-venv package, which scripts/setup.sh installs where it is missing and may).

PY := .venv/bin/python
# tests start this program many times: without kept bytecode each start compiles all of it, half a second
unexport PYTHONDONTWRITEBYTECODE
DATA ?= ../shared/data

.PHONY: demo test test-slow test-r fast coverage mutants faults fuzz check docs bench performance audit reproduce release clean

demo: .venv/plain  ## the main job on real data: a private histogram and its picture, in demo/
	bash scripts/demo.sh

test: .venv/ready .venv/loops .venv/spark  ## all but the slowest tests, of each some cases, doctests included, on all cores: a few minutes
	$(PY) -m pytest -n auto --dist worksteal

test-slow: .venv/ready .venv/loops .venv/spark  ## every case of every test, and the real data in DATA's place: an hour
	$(PY) -m pytest -n auto --dist worksteal --slow

test-r: .venv/ready  ## the R package in r/, where there are R, reticulate, testthat, knitr and rmarkdown: some minutes
	bash scripts/test_r.sh

fast: .venv/ready  ## while editing: the mathematics, in under a minute
	$(PY) -m pytest -n auto --dist worksteal --quick tests/unit/_core tests/unit/theta tests/unit/queries tests/unit/mechanisms tests/golden tests/test_imports.py

coverage: .venv/ready .venv/spark  ## which lines the usual tests never run (compiled loops count where they run interpreted)
	$(PY) -m pytest -n auto --dist worksteal --cov=pufferfish --cov-report=term:skip-covered

mutants: .venv/ready .venv/spark  ## do the tests notice faults that are put into the source on purpose?
	$(PY) tests/mutants.py

faults: .venv/ready  ## killed programs, full disks, broken engines, clocks set back, flipped bits: docs/faults.md
	$(PY) tests/faults/run.py

SECONDS ?= 1800
TARGETS ?=
fuzz: .venv/ready  ## hostile files and command lines, half an hour for each target (SECONDS=60 TARGETS="csv where")
	$(PY) -m pip install --quiet 'atheris>=3.0' || echo "no atheris for this machine: changes are made without it" >&2
	$(PY) tests/fuzz/run.py $(TARGETS) --seconds $(SECONDS)

check: .venv/ready docs  ## style, types, the site of docs/, and the numbers in its sentences
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m pyrefly check
	$(PY) scripts/fill_results.py --check

# the variable turns off a notice about the tool's own next version, which is no warning about these pages
docs: .venv/ready  ## the site, in site/ (any warning is an error); read it with: .venv/bin/python -m http.server -d site
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build

release: .venv/ready  ## the wheel and the sdist, in dist/, tried in an empty environment, and their SHA-256 digests
	OUTPUT=dist bash scripts/smoke.sh extras
	cd dist && sha256sum *.whl *.tar.gz > SHA256SUMS && cat SHA256SUMS

bench: .venv/ready .venv/spark  ## speed, as ratios to a plain reference in the same run
	$(PY) benchmarks/mqm_exact.py
	$(PY) benchmarks/propagation.py
	$(PY) benchmarks/promises.py
	$(PY) benchmarks/reports.py
	$(PY) benchmarks/law_mechanisms.py
	$(PY) benchmarks/trees.py
	$(PY) benchmarks/bounds.py
	$(PY) benchmarks/filters.py
	$(PY) benchmarks/tables.py
	$(PY) benchmarks/bulletin.py
	$(PY) benchmarks/dependencies.py
	$(PY) benchmarks/many_subjects.py
	$(PY) benchmarks/compiling.py
	$(PY) benchmarks/growth.py --quick
	$(PY) benchmarks/spark.py
	$(PY) benchmarks/transitions.py $(DATA)
	$(PY) benchmarks/certificates.py --data $(DATA)
	$(PY) benchmarks/cliffs.py --quick

performance: .venv/ready  ## the tables of docs/performance.md: large, some twenty minutes and 10 GB of disk
	$(PY) benchmarks/growth.py > docs/results/growth.md
	$(PY) benchmarks/compiling.py > docs/results/compiling.md
	$(PY) benchmarks/dependencies.py > docs/results/dependencies.md
	$(PY) benchmarks/bulletin.py --subjects 20000 > docs/results/bulletin.md
	$(PY) benchmarks/tables.py "10_000_000 parquet" "10_000_000 csv" "200_000_000 parquet" > docs/results/tables.md
	$(PY) scripts/fill_results.py

audit: .venv/ready  ## what mechanisms promise beside what really leaks: docs/audit.md, within a minute or two
	$(PY) -m paper audit --output docs/audit.md

reproduce: .venv/ready  ## the paper's tables and figures, into docs/ if the data sets are in DATA, else what needs none
ifneq ($(wildcard $(DATA)/.),)
	$(PY) -m paper reproduce all --data $(DATA) --output docs/results
	$(PY) scripts/fill_results.py
else
	$(PY) -m paper reproduce all --output results
endif

# the program with its pictures: all that a user needs
.venv/plain: pyproject.toml scripts/setup.sh
	bash scripts/setup.sh plain

# and what tests and checks need besides
.venv/ready: .venv/plain
	bash scripts/setup.sh ready

# what tests of tables on a cluster need, where there is Java
.venv/spark: .venv/ready
	bash scripts/setup.sh spark

# machine code of the loops, made before several processes of tests would make it each for itself
.venv/loops: .venv/plain tests/loops.py $(shell find src/pufferfish/_core src/pufferfish/mechanisms -name '*.py')
	$(PY) tests/loops.py
	touch $@

clean:
	rm -rf .venv demo dist site
