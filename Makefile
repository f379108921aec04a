# One word a task, the same words for people and for machines. `make help` lists them.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3.11
SECONDS ?= 60
MINUTES ?= 30
ROUNDS ?= 3
SCENARIOS ?= 100
SEED ?= 1
KEEP ?= rehearsal
WORKERS ?= 2
TESTS_AT_ONCE ?= 3
# on two cores: many tests wait for a third of their time
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --no-deps
# `--no-compile` below: of 17,000 modules few are ever imported, and those are compiled then.
LOCKED := $(PIP) --require-hashes --no-build-isolation -r requirements

BY_NAME := --per-rule-ignores "DEP002=fsspec|hiredis|huggingface_hub|isal|psycopg|s3fs"
# Those are loaded by name, or by the library that they make faster or complete.

unexport PYTHONDONTWRITEBYTECODE
# Where it is set, each of the tests' thousand processes would compile anew all that it imports.

.DEFAULT_GOAL := help
.PHONY: help install system demo demo-dataset clean test test-all test-quick check format docs site notebooks pictures lock fuzz attack rehearse kills flips histories redactions matrix verdicts clean-runs soak bench-path bench-sync bench-calibration bench-tap tasks phrases label-studio

help:  ## show this list
	@awk '/^##@/ {print "\n" substr($$0, 5)} /^[a-z-]+:.*##/ {split($$0, part, ":.*## "); printf "  %-18s%s\n", part[1], part[2]}' $(MAKEFILE_LIST)

$(BIN)/python:
	@echo "== making $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python setup.cfg requirements/core.txt
	@echo "== installing KitchenSync into $(VENV) (half a minute with a good connection)"
	@$(LOCKED)/core.txt
	@$(PIP) --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.core requirements/dev.txt
	@echo "== installing the test and check tools into $(VENV)"
	@$(LOCKED)/dev.txt --no-compile
	@touch $@

$(VENV)/.all: $(VENV)/.dev requirements/all.txt
	@echo "== installing every extra into $(VENV) (a minute or two, 2.5 GB)"
	@$(LOCKED)/all.txt --no-compile
	@touch $@

##@ Start

install: $(VENV)/.all  ## make .venv with everything; the command is .venv/bin/kitchensync
	@echo "== ready: $(BIN)/kitchensync --help"

system:  ## install the Debian packages that browser tests, Open3D and Rerun want (needs root)
	apt-get update -q
	apt-get install -y -q --no-install-recommends chromium espeak-ng libnss3-tools libusb-1.0-0 libgl1 libegl1 libx11-6 mesa-vulkan-drivers

demo: $(VENV)/.core  ## from a fresh clone to a finished recording of the virtual kitchen (SECONDS=60)
	@$(BIN)/python examples/demo.py --seconds $(SECONDS)

demo-dataset: $(VENV)/.core  ## from a plan to a published data set: two virtual recordings, or six (SECONDS=30 FULL=1)
	@$(BIN)/python examples/demo_dataset.py --seconds $(or $(filter-out 60,$(SECONDS)),30) $(if $(FULL),--full)

clean:  ## remove what the tasks made, the recordings of the demo included
	rm -rf $(VENV) demo build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -f $$(sed -n 's|^/docs/|docs/|p' .gitignore)

##@ Test and check

test: $(VENV)/.all  ## run the quick tests and for each promise of README one to three slow ones: 8 minutes on 2 cores
	@$(BIN)/python -m pytest -n $(TESTS_AT_ONCE) --dist worksteal -m "not slow or promise"

test-all: $(VENV)/.all  ## run every test: more than 40 minutes on 2 cores
	@KITCHENSYNC_EXAMPLES=deep $(BIN)/python -m pytest -n $(TESTS_AT_ONCE) --dist worksteal

test-quick: $(VENV)/.all  ## run the tests that take no second and start no process: 90 seconds on 2 cores
	@$(BIN)/python -m pytest -q -n $(TESTS_AT_ONCE) --dist worksteal -m "not slow"

check: $(VENV)/.dev  ## lint, format, types, import contracts, documents up to date
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/requirements.py build
	@$(BIN)/deptry --no-ansi kitchensync -kf kitchensync -rf build/requirements.txt -rfd build/requirements-dev.txt $(BY_NAME)
	@$(BIN)/python tools/generate.py --check

format: $(VENV)/.dev  ## put the code into shape
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

##@ Documents

docs: $(VENV)/.core  ## write the generated pages of docs, those too that are not in git
	@$(BIN)/python tools/generate.py

site: $(VENV)/.dev  ## build the site of documents and notebooks into build/site/html
	@$(BIN)/python tools/site.py build/site
	@echo "== build/site/html/index.html; with its search: $(BIN)/python -m http.server -d build/site/html"

notebooks: $(VENV)/.dev  ## run the notebooks of examples on the recording of `make demo` and keep what they show
	@$(BIN)/jupyter nbconvert --execute --inplace --to notebook --ExecutePreprocessor.record_timing=False examples/notebooks/*.ipynb

pictures: $(VENV)/.dev  ## take the pictures of the manual anew, every screen in a real browser
	@$(BIN)/python tools/pictures.py

lock: $(BIN)/python  ## write requirements: versions and hashes of all that is installed (UPGRADE=1; needs uv)
	@$(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade)

##@ Attack and break

fuzz: $(VENV)/.all  ## give every parser wrong inputs (COUNT=50000 PARSERS=), and every command recordings and other things that mean harm (RECORDINGS=3000 OTHERS=500)
	@$(BIN)/python -P benchmarks/fuzz $(PARSERS) --count $(or $(COUNT),50000)
	@$(BIN)/python -P benchmarks/hostile_recordings --count $(or $(RECORDINGS),3000)
	@$(BIN)/python -P benchmarks/hostile_recordings --others --count $(or $(OTHERS),500)

attack: $(VENV)/.dev  ## attack app, recorder and clients on loopback in every way we know, a recording beside it (KINDS= SECONDS=10): 10 minutes
	@$(BIN)/python -P benchmarks/attack $(KINDS) --seconds $(or $(filter-out 60,$(SECONDS)),10)

rehearse: $(VENV)/.core  ## break everything on purpose and account for every packet (SCENARIOS=100 SEED=1 KEEP=rehearsal)
	@$(BIN)/kitchensync rehearse --scenarios $(SCENARIOS) --seed $(SEED) --keep $(KEEP)

kills: $(VENV)/.core  ## kill the recorder's processes at random, 1,000 times, and account for it (KILLS=1000 SEED=1 KEEP=kills)
	@$(BIN)/python -P benchmarks/recorder/kills.py --kills $(or $(KILLS),1000) --seed $(SEED) --keep $(or $(filter-out rehearsal,$(KEEP)),kills)

flips: $(VENV)/.dev  ## flip bits of a recording, 1,000 times one: each must be found and located (FLIPS=1000)
	@KITCHENSYNC_FLIPS=$(or $(FLIPS),1000) $(BIN)/python -m pytest -q -rP tests/system/test_flipped_bits.py

histories: $(VENV)/.dev  ## kill page, network and server at random while somebody cooks (HISTORIES=300)
	@KITCHENSYNC_HISTORIES=$(or $(HISTORIES),300) $(BIN)/python -m pytest -q tests/system/test_nothing_entered_is_lost.py

redactions: $(VENV)/.dev  ## pause, redact, withdraw, restore, copy, move and kill -9 recordings at random (HISTORIES=100)
	@KITCHENSYNC_HISTORIES=$(or $(HISTORIES),100) $(BIN)/python -m pytest -q -n $(WORKERS) -o timeout=3600 tests/storage/test_redact_histories.py tests/storage/test_move_histories.py tests/recipe_app/test_withdrawal_histories.py

matrix: $(VENV)/.dev  ## every command x every life of a recording x every condition of the computer
	@KITCHENSYNC_MATRIX=whole $(BIN)/python -m pytest -q -n $(WORKERS) tests/system/test_matrix.py

verdicts: $(VENV)/.core  ## play every fault at two intensities; write verdicts and cards beside the truth (goes on when run again)
	@$(BIN)/python -P benchmarks/verdict_table faults --keep $(or $(KEPT),verdicts) --write

clean-runs: $(VENV)/.core  ## recordings without a fault, idle and under load: which verdicts are below PASS, and why (RUNS=60)
	@$(BIN)/python -P benchmarks/verdict_table clean --keep $(or $(KEPT),verdicts) --runs $(or $(RUNS),60)

soak: $(VENV)/.core  ## record a rig at real rates for long: no process may grow, nothing may be lost (MINUTES=30)
	@$(BIN)/python -P benchmarks/recorder/soak.py --minutes $(MINUTES)

##@ Measure

bench-path: $(VENV)/.dev  ## the whole path of a packet, held to its budgets, beside its parts and MCAP (ROUNDS=3)
	@$(BIN)/python -P benchmarks/packet_path --rounds $(ROUNDS)

bench-sync: $(VENV)/.core  ## trials of the synchronization (a quarter of an hour); 15 minutes timed
	@$(BIN)/python -P benchmarks/alignment/sync_trials.py --workers $(WORKERS)
	@$(BIN)/python -P benchmarks/finished_recordings/sync_recordings.py

bench-calibration: $(VENV)/.all  ## lens and mount through known optics (half an hour)
	@OMP_NUM_THREADS=1 $(BIN)/python -P benchmarks/optics/calibration_trials.py --trials 50 --workers $(WORKERS)

bench-tap: $(VENV)/.dev  ## from a touch to the picture, without network, on a browser four times slower
	@$(BIN)/python -P benchmarks/app/tap_to_paint.py

tasks: $(VENV)/.dev  ## do the commonest tasks of cook and admin in a browser: touches and seconds of each
	@$(BIN)/python -m pytest -q -s tests/recipe_app/test_touches_of_tasks_in_a_browser.py -k commonest

phrases: $(VENV)/.all  ## speak twenty phrases into the browser's microphone: each is to be kept once, and as its words
	@KITCHENSYNC_PHRASES=20 $(BIN)/python -m pytest -q tests/recipe_app/test_narrator_in_a_browser.py -k microphone

label-studio: $(VENV)/.dev  ## install a Label Studio server into .venv/label-studio (800 MB), send a recording through it, correct steps on its page
	@test -x $(VENV)/label-studio/bin/label-studio || { \
		$(PYTHON) -m venv $(VENV)/label-studio && \
		$(VENV)/label-studio/bin/pip install --quiet --disable-pip-version-check label-studio==1.23.2; }
	@$(BIN)/python -m pytest -q -rP tests/system/test_label_studio.py tests/recipe_app/test_corrections_in_a_browser.py
