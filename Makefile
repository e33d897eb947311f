# Every task of this repository by name; CI calls these and nothing else.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
STACK  ?= local
SEED   ?=
VERBOSE ?=
JOBS   ?=
ROUNDS ?=
BIN    := .venv/bin
HOLDFAST := $(BIN)/holdfast
VERBOSITY = $(if $(VERBOSE),--verbose)
SOAK   := $(BIN)/python -m tests.soak
UV     := $(BIN)/uv
# Four on two cores: of a worker's time two fifths are CPU time, and the others are waits for control planes.
WORKERS ?= 4
PYTEST := $(BIN)/pytest
BESIDE := nice -n 10 $(MAKE) --no-print-directory
# What needs `make tools`: the engine, control planes, and the tests that ask the package registry.
NEED_TOOLS := -m "(engine or cluster or registry) and not soak"
SLOW   := $(NEED_TOOLS) tests/engine tests/cluster tests/unit/rehearsal/tools tests/unit/controller/test_image.py
# A slow test that fails on a busy machine runs once more, alone; one that fails twice fails the run.
SLOW_CACHE := -o cache_dir=.tools/pytest
AGAIN  := --last-failed --last-failed-no-failures none --maxfail 1
# One seed for what is drawn, so that no change is blamed for the draw of another; SEED=… draws others.
SEEDED := HOLDFAST_SEED=$(or $(SEED),6)

# The engine is pinned: it need not look for a newer one.
export PULUMI_SKIP_UPDATE_CHECK := true
export PYTHONUNBUFFERED := 1
# Each process would compile the SDKs, the sources and the assertions of the tests again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^##@ / {printf "%s%s\n", gap, substr($$0, 5); gap = "\n"} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Setup

.venv/.installed: requirements.lock pyproject.toml
	@echo "python: installing the locked packages into .venv"
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else f"error: Python {sys.version.split()[0]} found, 3.11 or newer needed; name one with make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@test -x $(UV) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r <(awk '/^[a-z]/ {on = /^uv==/} on' requirements.lock)
	@$(UV) pip install --quiet --python .venv --require-hashes -r requirements.lock
	@$(UV) pip install --quiet --python .venv --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: venv
venv: .venv/.installed ## Python packages, pinned by hash, in .venv

.PHONY: tools
tools: venv ## build the tools that are not on PATH into .tools/bin; HOLDFAST_TOOLS=… takes them from an archive
	@$(HOLDFAST) tools

##@ The local platform

.PHONY: up
up: tools ## bring up the local platform
	@$(HOLDFAST) rehearse up local $(VERBOSITY)

.PHONY: demo
demo: tools ## a spot eviction on the local platform, step by step
	@$(HOLDFAST) rehearse demo local

.PHONY: down
down: tools ## drain and remove the local platform
	@$(HOLDFAST) rehearse down local $(VERBOSITY)

##@ Any stack, with no account

.PHONY: preview
preview: tools ## print the policies' verdicts on the engine's plan, for example STACK=aws-dev; VERBOSE=1 prints the plan
	@$(HOLDFAST) rehearse preview $(STACK) $(VERBOSITY)

.PHONY: rehearse
rehearse: tools ## run the whole lifecycle: preview, up, up again, a lost spot node, refresh, destroy; TO=aws-dev-2 moves a job there
	@$(HOLDFAST) rehearse run $(STACK) $(VERBOSITY) $(if $(TO),--to $(TO))

.PHONY: preflight
preflight: venv ## compare the quotas of an account with the demand of STACK
	@$(HOLDFAST) preflight $(STACK)

.PHONY: cost
cost: venv ## print the hourly cost of STACK before it exists
	@$(HOLDFAST) cost $(STACK)

##@ Checks

.PHONY: format
format: venv ## format the sources
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: lint
lint: venv ## check format, lint, types and workflows
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@found=$$($(BIN)/lint-imports --no-cache pyproject.toml) || { echo "$$found"; exit 1; }
	@$(BIN)/zizmor --offline --quiet .github
	@$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci examples/delivery/gitlab-ci.yaml
	@# A Go program: linted with where `make tools` has built it.
	@! found=$$($(HOLDFAST) tools which actionlint 2> /dev/null) || $$found
	@# With the heap that Node.js takes by itself, pyright empties its cache of types again and again: 211 CPU seconds, not 105.
	@NODE_OPTIONS=--max-old-space-size=8192 $(BIN)/pyright

.PHONY: site
site: venv ## build the documentation as a site in .tools/site; a link to nothing fails
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict
	@echo "site: .tools/site/index.html"

.PHONY: unit
unit: venv ## tests that need no tool: pure logic and components under mocks
	@$(PYTEST) -n 2 -m "not (engine or cluster or registry or soak)" tests/unit

.PHONY: slow
slow: tools ## tests on the real engine and on real control planes; FOLDER=tests/cluster/gke takes one folder
	@$(SEEDED) $(PYTEST) -n $(WORKERS) $(if $(FOLDER),$(NEED_TOOLS) $(FOLDER),$(SLOW))

.PHONY: test
test: tools ## everything on a pull request: lint, types, unit, engine, cluster and registry tests
	@# The slow tests wait more than they compute: lint and unit tests run beside them, with lower priority.
	@mkdir -p .tools/logs; log=.tools/logs/test-beside.log; \
	$(BESIDE) lint unit site > $$log 2>&1 & beside=$$!; \
	trap 'kill $$beside 2>/dev/null || true' EXIT; \
	slow=0; $(SEEDED) $(PYTEST) -n $(WORKERS) $(SLOW_CACHE) $(SLOW) || slow=$$?; \
	failed=0; wait $$beside || failed=$$?; \
	cat $$log; \
	if [ $$slow -ne 0 ]; then \
	  echo "These slow tests failed and run once more, alone. Fix one that passes now: its wait or its subject has a race."; \
	  $(SEEDED) $(PYTEST) -v $(SLOW_CACHE) $(AGAIN) $(SLOW) || failed=$$?; \
	fi; \
	exit $$failed

##@ Long runs

.PHONY: chaos
chaos: tools ## run jobs on a ladder while everything around them fails; SEED=7 JOBS=200 ROUNDS=6, or TWO=1 FAULTS=300
	@$(SOAK) faults $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(TWO),--two $(or $(FAULTS),30))

.PHONY: frameworks
frameworks: tools ## train with Ray and TensorFlow as real processes; installs 2 GB into .tools/frameworks
	@test -x .tools/frameworks/bin/python || $(UV) venv --quiet --python $(BIN)/python .tools/frameworks
	@$(UV) pip install --quiet --python .tools/frameworks/bin/python -r tests/soak/frameworks/requirements.txt
	@$(PYTEST) tests/soak/frameworks/resume.py tests/soak/frameworks/rayjob.py

.PHONY: bench
bench: tools ## measure previews against the same resources and ConfigMaps, and moves against JobSet's restarts
	@$(SOAK) bench $(if $(JOBS),--moves-only --jobs $(JOBS))

.PHONY: judges
judges: venv ## judge drawn stacks by what clouds and SDKs publish, and plant mistakes; SEED=7 draws others
	@$(SOAK) judges $(if $(SEED),--seed $(SEED))

.PHONY: mutants
mutants: tools ## change the sources in small ways and check that tests fail; AREA=ladder takes one list
	@$(SOAK) mutants $(if $(AREA),--area $(AREA))

.PHONY: soak
soak: tools ## what is exhaustive or drawn at length; hours. RUN='model --seed 7' takes one run, RUN=--help lists them
ifdef RUN
	@$(SOAK) $(RUN)
else
	@HOLDFAST_SOAK=1 $(if $(SEED),HOLDFAST_SEED=$(SEED)) $(PYTEST) -n $(WORKERS) -m "soak or seeded or hypothesis" tests \
		$(if $(SEED),--hypothesis-seed=$(SEED))
	@$(SOAK) model $(if $(SEED),--seed $(SEED))
	@$(SOAK) alerts
	@$(SOAK) reachability $(if $(SEED),--seed $(SEED))
endif

##@ Releases

.PHONY: pack
pack: venv ## build the policy pack, dist/policy-pack, and the kubectl plugin, dist/kubectl-holdfast: each is self-contained
	@$(HOLDFAST) pack dist/policy-pack --kubectl dist/kubectl-holdfast

.PHONY: chart
chart: venv ## write the fallback controller as a Helm chart, dist/chart
	@$(HOLDFAST) chart dist/chart

.PHONY: wheel
wheel: venv ## build the package, dist/pulumi_holdfast-….whl, and its source distribution
	@$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null

.PHONY: component
component: wheel ## build the plugin for every language of Pulumi, dist/pulumi-resource-holdfast-v….tar.gz
	@version=$$($(BIN)/python -c 'import pulumi_holdfast; print(pulumi_holdfast.__version__)'); folder=$$(mktemp -d); \
	wheel=pulumi_holdfast-$$version-py3-none-any.whl; \
	cp components/PulumiPlugin.yaml components/__main__.py dist/$$wheel "$$folder"; \
	echo "./$$wheel[aws,azure,gcp]" > "$$folder/requirements.txt"; \
	tar -czf dist/pulumi-resource-holdfast-v$$version.tar.gz -C "$$folder" .; rm -r "$$folder"

##@ Generated files

.PHONY: lock
lock: venv ## pin every Python package with its hashes
	@$(UV) pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
		--no-emit-index-url --no-annotate --no-header pyproject.toml -o requirements.lock
	@$(UV) pip compile --quiet --universal --python-version 3.11 --extra aws --extra azure --extra gcp --extra policy \
		--generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml -o infra/requirements.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header components/pulumi_holdfast/controller/requirements.in -o components/pulumi_holdfast/controller/requirements.lock
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header policies/requirements.in -o policies/requirements.txt

.PHONY: schemas
schemas: venv ## regenerate the editors' schemas and the tables of docs/configuration.md and docs/fallback.md
	@$(HOLDFAST) schemas
