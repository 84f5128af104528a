# Everything begins here, on a machine that has Python 3.11 or newer and make. `make help` lists it.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= .
PORT ?= 8000
TESTS ?= tests
JOBS ?= 2

# for `make assignment`
FOLDER = $(abspath $(patsubst ~/%,$(HOME)/%,$(COURSE)))
USAGE = make assignment COURSE=folder NAME=hw1 ITEMS="basics/attention ex-two-hops" \
  [TITLE="name of the course" SEED=number: for a new course]

# for `make new`
NEW = make new KIND=mechanism NAME=linformer, or KIND=explorer NAME=low_rank_lens, or \
  KIND=chapter NAME=compressed/low_rank

ENV := $(VENV)/.installed
DEV := $(VENV)/.installed-dev
DEVPY := .venv-dev/bin/python
NPM := node_modules/.installed

.PHONY: help book build chapter new test hub-test pdf assignment lab bench sheet experiments pictures env pins clean

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

book: $(ENV) $(NPM)  ## build the book and serve it on this machine
	@$(BIN)/python scripts/build_book.py --out $(OUT) --port $(PORT) --serve

build: $(ENV) $(NPM)  ## build the book only; OUT=folder elsewhere, DRAFT=1 shows failing cells
	@$(BIN)/python scripts/build_book.py --out $(OUT) $(if $(DRAFT),--draft)

chapter: $(ENV) $(NPM)  ## build one chapter and say what it lacks: C=sparse/hashing
	@test -n "$(C)" || { echo 'make chapter C=sparse/hashing' >&2; exit 2; }
	@$(BIN)/python scripts/chapter.py $(C) --out $(OUT)

new: $(ENV)  ## write the stubs of KIND=mechanism, explorer or chapter: NAME=linformer
	@test -n "$(KIND)" && test -n "$(NAME)" || { echo '$(NEW)' >&2; exit 2; }
	@$(BIN)/python scripts/new.py $(KIND) $(NAME)

pdf: $(DEV) build  ## the same as one PDF, with outline and page numbers; the landing page then names it
	@$(BIN)/python scripts/system.py --install
	@$(BIN)/python scripts/print_book.py --out $(OUT)

test: $(DEV) $(NPM)  ## run every test, those in a browser too; JOBS=0 in one process
	@$(BIN)/python scripts/system.py --install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" node_modules/.bin/prettier --check --log-level=warn tfviz/explorers book/assets
	PATH="$(CURDIR)/$(BIN):$$PATH" node_modules/.bin/tsc
	TFVIZ_OUT=$(OUT) OMP_NUM_THREADS=1 MPLBACKEND=agg $(BIN)/python -m pytest $(if $(JOBS),-n $(JOBS)) $(TESTS)

hub-test: $(DEV) $(NPM)  ## run a class on a real JupyterHub on this machine, from fetching to feedback
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/hub

assignment: $(DEV)  ## for instructors: COURSE=folder NAME=hw1 ITEMS="basics/attention ex-two-hops"
	@test -n "$(COURSE)" && test -n "$(NAME)" && test -n "$(ITEMS)" || { echo '$(USAGE)' >&2; exit 2; }
	@test -e "$(FOLDER)/course.toml" || $(BIN)/tfviz-course new "$(FOLDER)" \
	  --name "$(or $(TITLE),$(notdir $(FOLDER)))" $(if $(SEED),--seed $(SEED))
	@$(BIN)/tfviz-course assignment "$(NAME)" $(ITEMS) --course "$(FOLDER)"

lab: $(ENV)  ## open JupyterLab, with everything installed
	@$(BIN)/jupyter lab

bench: $(DEV) $(NPM)  ## measure speed, memory and the weight of the pages
	@$(BIN)/python scripts/system.py --install
	@for script in bench/*.py; do echo "== $$script"; PYTHONPATH=scripts:tests:book/_ext $(BIN)/python $$script || exit 1; done

sheet: $(DEV) $(NPM)  ## make contact sheets of all explorers, to look at: _build/sheet; WIDTH=390, DARK=1
	@PYTHONPATH=scripts:tests:book/_ext $(DEVPY) scripts/sheet.py $(if $(WIDTH),--width $(WIDTH)) $(if $(DARK),--dark)

experiments: $(ENV)  ## train the small models whose results are not up to date; SCHEDULER=address
	@$(BIN)/python -m tfviz_lab $(if $(SCHEDULER),--scheduler $(SCHEDULER))

pictures: $(DEV) $(NPM)  ## make the pictures of the README again
	@$(BIN)/python scripts/pictures.py

env: $(DEV) $(NPM)  ## only install all that is needed, for teaching and tests too

pins: $(DEV)  ## pin the versions that are installed: requirements.txt and requirements-dev.txt
	@$(BIN)/python scripts/pins.py

clean:  ## remove what was built; the environment stays
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis

# what reading, notebooks and JupyterLab need
$(ENV): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Python 3.11 or newer is needed; this is %d.%d. Try: make PYTHON=/path/to/python" % v[:2])'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# what tests, grading, a hub and benchmarks need on top
$(DEV): requirements-dev.txt $(ENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

# npm comes from the environment, as a wheel; nothing but Python is needed for it.
$(NPM): package.json package-lock.json $(ENV)
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm ci --ignore-scripts --no-audit --no-fund --loglevel=error
	@touch $@
