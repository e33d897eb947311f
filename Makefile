# Every task of this repository by name; CI calls these and nothing else.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
STACK  ?= local
SEED   ?=
JOBS   ?=
ROUNDS ?=
BIN    := .venv/bin
RUN    := $(BIN)/holdfast
SOAK   := $(BIN)/python -m tests.soak
UV     := $(BIN)/uv
# Four on two cores: of a worker's time two fifths are CPU time, and the others are waits for control planes.
WORKERS ?= 4
PYTEST := $(BIN)/pytest
BESIDE := nice -n 10 $(MAKE) --no-print-directory
# What needs `make tools`: the engine, control planes, and the tests that ask the package registry.
NEED_TOOLS := -m "(engine or cluster or registry) and not soak"
SLOW   := $(NEED_TOOLS) tests/engine tests/cluster tests/unit/simulator/tools tests/unit/fallback/test_image.py
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
	@$(RUN) tools

##@ The local platform

.PHONY: up
up: tools ## bring up the local platform
	@$(RUN) up local

.PHONY: demo
demo: tools ## a spot eviction on the local platform, step by step
	@$(RUN) demo local

.PHONY: picture
picture: tools ## run the demo on the platform that is up, and draw it for the documentation
	@$(RUN) demo local --picture docs/pictures/ladder.svg

.PHONY: down
down: tools ## drain and remove the local platform
	@$(RUN) down local

##@ Any stack, with no account

.PHONY: preview
preview: tools ## print the engine's plan and the policies' verdicts, for example STACK=aws-dev
	@$(RUN) preview $(STACK)

.PHONY: rehearse
rehearse: tools ## run the whole lifecycle: preview, up, up again, a lost spot node, refresh, destroy; TO=aws-dev-2 moves a job there
	@$(RUN) rehearse $(STACK) $(if $(TO),--to $(TO))

.PHONY: preflight
preflight: venv ## compare the quotas of an account with the demand of STACK
	@$(RUN) preflight $(STACK)

.PHONY: cost
cost: venv ## print the hourly cost of STACK before it exists
	@$(RUN) cost $(STACK)

##@ Checks

.PHONY: format
format: venv ## format the sources
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: lint
lint: venv ## check format, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@# With the heap that Node.js takes by itself, pyright empties its cache of types again and again: 211 CPU seconds, not 105.
	@NODE_OPTIONS=--max-old-space-size=8192 $(BIN)/pyright

.PHONY: workflows
workflows: tools ## lint the workflows of GitHub, and the one for GitLab by its published schema
	@$$($(RUN) tools which actionlint)
	@$(BIN)/zizmor --offline --quiet .github
	@$(BIN)/check-jsonschema --builtin-schema vendor.gitlab-ci examples/delivery/gitlab-ci.yaml

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
	$(BESIDE) lint unit workflows site > $$log 2>&1 & beside=$$!; \
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

.PHONY: crash
crash: tools ## kill `up` and `destroy` after every resource of STACK; the next run must converge
	@$(SOAK) crash $(STACK) --every

.PHONY: chaos
chaos: tools ## run jobs on a ladder while everything around them fails; SEED=7 JOBS=200 ROUNDS=6, or TWO=1 FAULTS=300
	@$(SOAK) faults $(if $(SEED),--seed $(SEED)) $(if $(JOBS),--jobs $(JOBS)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(TWO),--two $(or $(FAULTS),30)) $(if $(PICTURE),--picture $(PICTURE))

.PHONY: model
model: venv ## take simulated jobs through a million steps of the state machine; SEED=7 draws others
	@$(SOAK) model $(if $(SEED),--seed $(SEED))

.PHONY: alerts
alerts: venv ## judge alerts and dashboard with Prometheus' promtool, which is built first
	@$(SOAK) alerts

.PHONY: bench
bench: tools ## measure previews against the same resources and ConfigMaps, and moves against JobSet's restarts
	@$(SOAK) bench $(if $(JOBS),--moves-only --jobs $(JOBS))

.PHONY: cli
cli: tools ## run the local stack with the pulumi command and the published plugin, and time its preview
	@$(SOAK) cli

.PHONY: languages
languages: tools ## judge one program in Python, TypeScript, Go and YAML with the packed policy pack
	@$(SOAK) languages

.PHONY: pulumi-eks
pulumi-eks: tools ## rehearse the example of pulumi-eks with the package's own plugin, if it is on PATH
	@if command -v pulumi-resource-eks > /dev/null; then $(RUN) rehearse examples/parts/pulumi-eks --plugin eks; \
	else echo "not run: pulumi-resource-eks is not on PATH; docs/pulumi-eks.md says how to build it."; fi

.PHONY: judges
judges: venv ## judge drawn stacks by what clouds and SDKs publish, and plant mistakes; SEED=7 draws others
	@$(UV) venv --quiet --allow-existing --python $(BIN)/python .tools/clouds
	@$(UV) --no-config pip install --quiet --python .tools/clouds --require-hashes -r tests/soak/judges/requirements.lock
	@$(SOAK) judges $(if $(SEED),--seed $(SEED))

.PHONY: soak
soak: tools ## what is exhaustive or drawn at length: all lifecycles, kills, fault runs, long properties; hours
	@HOLDFAST_SOAK=1 $(if $(SEED),HOLDFAST_SEED=$(SEED)) $(PYTEST) -n $(WORKERS) -m "soak or seeded or hypothesis" tests \
		$(if $(SEED),--hypothesis-seed=$(SEED))
	@$(MAKE) --no-print-directory model alerts reachability

.PHONY: reachability
reachability: tools ## compare verdicts with the real scheduler and Karpenter on drawn NodePools; SEED=1000 ROUNDS=40 JOBS=20
	@$(SOAK) reachability $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(JOBS),--jobs $(JOBS))

.PHONY: mutants
mutants: tools ## change the sources in small ways and check that tests fail; AREA=ladder takes one list
	@$(SOAK) mutants $(if $(AREA),--area $(AREA))

.PHONY: frameworks
frameworks: venv ## run the examples' training with Ray and TensorFlow, 2 GB of packages; minutes
	@$(UV) venv --quiet --allow-existing --python $(BIN)/python .tools/frameworks
	@$(UV) pip install --quiet --python .tools/frameworks -r tests/soak/frameworks/requirements.txt
	@$(BIN)/pytest tests/soak/frameworks/resume.py

##@ In a workflow

# What a job writes: plan, comment, and the stack file before the change.
CI := dist/ci/$(STACK)
PREVIEW := pulumi preview --stack $(STACK) --diff --non-interactive --color never \
	--policy-pack policies --policy-pack-config policies/profiles/strict.json
BEFORE := mkdir -p dist/ci; rm -f $(CI).*; \
	[ -z "$(BASE)" ] || git show "$(BASE):stacks/Pulumi.$(STACK).yaml" > $(CI).before.yaml 2>/dev/null || true
COMMENT := cat $(CI).txt; \
	$(RUN) ci comment $(STACK) $(CI).txt --before $(CI).before.yaml $$([ $$status -eq 0 ] || echo --failed)

.PHONY: ci-preview
ci-preview: venv ## preview STACK in its cloud; save its plan, and the comment about it; BASE=… compares the cost
	@$(BEFORE); status=0; $(PREVIEW) --save-plan $(CI).plan.json > $(CI).txt 2>&1 || status=$$?; \
	$(COMMENT) > $(CI).md; exit $$status

.PHONY: ci-rehearse
ci-rehearse: tools ## rehearse STACK with no account, and save the comment about it
	@$(BEFORE); status=0; $(RUN) rehearse $(STACK) > $(CI).txt 2>&1 || status=$$?; \
	$(COMMENT) --rehearsal > $(CI).md; exit $$status

.PHONY: ci-post
ci-post: venv ## write the saved comment to PULL_REQUEST of REPOSITORY, or update it there
	@$(RUN) ci post $(REPOSITORY) $(PULL_REQUEST) $(CI).md

.PHONY: ci-post-fork
ci-post-fork: venv ## write the comments in dist/ci to the pull request of HEAD, which is a fork's owner:branch, at COMMIT
	@# The shell reads HEAD from the environment: a fork chooses the names of its branches, and make would expand them.
	@$(RUN) ci post-fork $(REPOSITORY) "$$HEAD" "$$COMMIT" dist/ci

.PHONY: ci-deploy
ci-deploy: venv ## update STACK as its saved plan says
	@pulumi up --stack $(STACK) --yes --non-interactive --color never --plan $(CI).plan.json \
		--policy-pack policies --policy-pack-config policies/profiles/strict.json

.PHONY: ci-drift
ci-drift: venv ## compare STACK with its cloud, and open, update or close the issue about it in REPOSITORY
	@mkdir -p dist/ci; $(PREVIEW) --refresh > $(CI).txt 2>&1 || { cat $(CI).txt; exit 1; }; cat $(CI).txt; \
	$(RUN) ci drift $(STACK) $(CI).txt $(REPOSITORY)

##@ Releases

.PHONY: pack
pack: venv ## build the policy pack as one folder, dist/policy-pack, self-contained
	@$(RUN) pack dist/policy-pack

.PHONY: chart
chart: venv ## write the fallback controller as a Helm chart, dist/chart
	@$(RUN) chart dist/chart

.PHONY: plugin
plugin: venv ## build the kubectl plugin as one file, dist/kubectl-holdfast
	@$(RUN) plugin dist/kubectl-holdfast

.PHONY: release-check
release-check: venv ## build a release twice, compare the bytes, write dist/release; TAG=… checks the tag
	@$(RUN) release dist/release $(if $(TAG),--tag $(TAG)) \
		$(addprefix --with ,$(wildcard dist/tools/*.tar.gz))

.PHONY: tools-archive
tools-archive: tools ## pack the built tools twice, compare the bytes, write dist/tools; HOLDFAST_TOOLS=FILE make tools unpacks them
	@$(RUN) tools archive dist/tools

##@ Generated files

.PHONY: lock
lock: venv ## pin every Python package with its hashes
	@$(UV) pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
		--no-emit-index-url --no-annotate --no-header pyproject.toml -o requirements.lock
	@$(UV) pip compile --quiet --universal --python-version 3.11 --extra aws --extra azure --extra gcp --extra policy \
		--generate-hashes --no-emit-index-url --no-annotate --no-header pyproject.toml -o infra/requirements.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header fallback/requirements.in -o fallback/requirements.lock
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header policies/requirements.in -o policies/requirements.txt
	@$(UV) --no-config pip compile --quiet --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-annotate --no-header tests/soak/judges/requirements.in -o tests/soak/judges/requirements.lock

.PHONY: schemas
schemas: venv ## regenerate the editors' schemas and the tables of docs/configuration.md from the configuration's model
	@$(RUN) schemas

.PHONY: release-state
release-state: venv ## after a release, record what it registers: later versions are compared with it
	@$(BIN)/python -m tests.support.release_state

.PHONY: crds
crds: tools ## regenerate the CRD charts from the pinned modules
	@$(RUN) tools crd-charts

.PHONY: machines
machines: venv ## regenerate the machine tables of AWS and Azure from their pinned sources
	@$(RUN) tools machine-tables
