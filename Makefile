# Everything begins here, on a machine that has Python 3.11 or newer and make. `make help` lists it.
# Without make, `python start.py book` (or build, test, lab …) does the same; what is installed, and where, stands there.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PYTHON ?= python3
START := @$(PYTHON) start.py
# what reads, and what proves and teaches
BIN := .venv/bin
DEV := .venv-dev/bin
OUT ?= .
PORT ?= 8000
TESTS ?=
JOBS ?= 2

# for `make assignment`
FOLDER = $(abspath $(patsubst ~/%,$(HOME)/%,$(COURSE)))
USAGE = make assignment COURSE=folder NAME=hw1 ITEMS="basics/attention ex-two-hops" \
  [TITLE="name of the course" SEED=number: for a new course]

# for `make new`
NEW = make new KIND=mechanism NAME=linformer, or KIND=explorer NAME=compressed/low_rank_lens, or \
  KIND=chapter NAME=compressed/low_rank; of a mechanism without a row in the catalogue too \
  IN=compressed/low_rank BIBKEY=wang2020linformer

.PHONY: help book build chapter new test test-all hub-test pdf assignment lab bench sheet experiments pictures env pins clean first second npm

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*  ## \(.*\)/  make \1	\2/p' Makefile | expand -t 20

book:  ## build the book and serve it on this machine
	$(START) book --out $(OUT) --port $(PORT)

build:  ## build the book only; OUT=folder elsewhere, DRAFT=1 shows failing cells, PROVE=1 tries exercises
	$(START) build --out $(OUT) $(if $(DRAFT),--draft) $(if $(PROVE),--prove)

chapter:  ## build one chapter and say what it lacks: C=sparse/hashing
	@test -n "$(C)" || { echo 'make chapter C=sparse/hashing' >&2; exit 2; }
	$(START) chapter $(C) --out $(OUT)

new: second  ## write the stubs of KIND=mechanism, explorer or chapter: NAME=linformer
	@test -n "$(KIND)" && test -n "$(NAME)" || { echo '$(NEW)' >&2; exit 2; }
	@$(DEV)/python scripts/new.py $(KIND) $(NAME) $(if $(IN),--in $(IN)) $(if $(BIBKEY),--bibkey $(BIBKEY))

pdf: second build  ## the same as one PDF, with outline and page numbers; the landing page then names it
	@$(DEV)/python scripts/chrome.py --install
	@$(DEV)/python scripts/print_book.py --out $(OUT)

test:  ## prove the library, one of each kind of page, and all that was changed (SINCE=commit); FRESH=1 knows nothing
	@TFVIZ_OUT=$(OUT) $(PYTHON) start.py test -n $(JOBS) $(if $(SINCE),--since $(SINCE)) $(TESTS)

test-all:  ## prove everything; ONLY=library, pages or teaching; JOBS=0 in one process
	@TFVIZ_OUT=$(OUT) $(PYTHON) start.py test-all -n $(JOBS) $(if $(ONLY),--only $(ONLY)) $(TESTS)

hub-test: env  ## run a class on a real JupyterHub on this machine, from fetching to feedback
	@OMP_NUM_THREADS=1 TFVIZ_ALL=yes $(DEV)/python -m pytest teaching/tests/hub

assignment: second  ## for instructors: COURSE=folder NAME=hw1 ITEMS="basics/attention ex-two-hops"
	@test -n "$(COURSE)" && test -n "$(NAME)" && test -n "$(ITEMS)" || { echo '$(USAGE)' >&2; exit 2; }
	@test -e "$(FOLDER)/course.toml" || $(DEV)/tfviz-course new "$(FOLDER)" \
	  --name "$(or $(TITLE),$(notdir $(FOLDER)))" $(if $(SEED),--seed $(SEED))
	@$(DEV)/tfviz-course assignment "$(NAME)" $(ITEMS) --course "$(FOLDER)"

lab:  ## open JupyterLab, with everything installed
	$(START) lab

bench: env  ## measure speed, memory and the weight of the pages
	@$(DEV)/python scripts/system.py --install
	@for script in bench/*.py teaching/bench/*.py; do echo "== $$script"; PYTHONPATH=scripts:tests:book/_ext $(DEV)/python $$script || exit 1; done

sheet: env  ## make contact sheets of all explorers, to look at: _build/sheet; WIDTH=390, DARK=1
	@PYTHONPATH=scripts:tests:book/_ext $(DEV)/python scripts/sheet.py $(if $(WIDTH),--width $(WIDTH)) $(if $(DARK),--dark)

experiments: first  ## train the small models whose results are not up to date; SCHEDULER=address
	@$(BIN)/python -m tfviz_lab $(if $(SCHEDULER),--scheduler $(SCHEDULER))

pictures: env  ## make the pictures of the README and of the guide for instructors again
	@PYTHONPATH=. $(DEV)/python scripts/pictures.py
	@PYTHONPATH=.:scripts $(DEV)/python teaching/guide_pictures.py --site _build/html

env:  ## only install all that is needed, for teaching and tests too
	$(START) env

pins: second  ## pin the versions that are installed: requirements.txt, teaching/requirements.txt, requirements-dev.txt
	@$(DEV)/python scripts/pins.py

first second npm:
	$(START) $@

clean:  ## remove what was built; the environment stays
	rm -rf _build .pytest_cache .mypy_cache .ruff_cache .hypothesis
