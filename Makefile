# Everything runs in .venv, which is made when it is missing: `make demo` and `make test` need python3 and make only.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := $(VENV)/stamps
KERNELS := src/valuate/_kernels
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Compiled kernels are kept beside their source, where clean-cache and fresh-kernels find them.
unexport NUMBA_CACHE_DIR

.DEFAULT_GOAL := help
.PHONY: help demo test check bench clean clean-cache fresh-kernels

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

demo: $(STAMPS)/runtime fresh-kernels ## collect a log, look at it, fit it, print the value with its interval, write the page
	@$(BIN)/valuate demo --force

test: $(STAMPS)/test fresh-kernels ## run all tests
	@$(BIN)/python -m pytest -q -n 2

check: $(STAMPS)/dev fresh-kernels ## ruff, mypy --strict, import-linter
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check
	@$(BIN)/mypy
	@$(BIN)/lint-imports

bench: $(STAMPS)/runtime fresh-kernels ## measure the targets (BENCH=--strict fails where one is missed)
	@$(BIN)/valuate bench $(BENCH)

clean: clean-cache ## remove .venv and everything that tools left behind
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find src tests -type d -name __pycache__ -prune -exec rm -rf {} +

clean-cache: ## remove the compiled kernels
	@rm -f $(KERNELS)/.sources
	@find $(KERNELS) \( -name '*.nbi' -o -name '*.nbc' \) -exec rm -f {} +

# Numba looks at the one file that a kernel stands in: after an edit in another it would go on running the old code.
# So the cache goes whenever a checksum over all the files changes.
fresh-kernels:
	@now=$$(find $(KERNELS) -name '*.py' -exec cksum {} + | LC_ALL=C sort); \
	if [ "$$now" != "$$(cat $(KERNELS)/.sources 2>/dev/null)" ]; then \
		$(MAKE) --no-print-directory clean-cache && printf '%s\n' "$$now" > $(KERNELS)/.sources; \
	fi

$(STAMPS)/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "valuate needs Python 3.11 or newer; choose one with make PYTHON=...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/runtime: $(STAMPS)/made pyproject.toml constraints.txt
	@echo "Installing valuate into $(VENV) ..."
	@$(INSTALL) -e '.[io]'
	@touch $@

$(STAMPS)/test: $(STAMPS)/made pyproject.toml constraints.txt
	@echo "Installing valuate and its test parts into $(VENV) ..."
	@$(INSTALL) -e '.[test]'
	@touch $@ $(STAMPS)/runtime

$(STAMPS)/dev: $(STAMPS)/made pyproject.toml constraints.txt
	@echo "Installing valuate and its development parts into $(VENV) ..."
	@$(INSTALL) -e '.[dev]'
	@touch $@ $(STAMPS)/runtime $(STAMPS)/test
