# Every target sets up what it needs: a virtual environment in the checkout with the versions of constraints.txt.
# Needs Python 3.11 or later with pip and venv, and make. `make PYTHON=/path/to/python3 test` takes another Python.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

NEW_ENOUGH := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python; do \
	if $$p -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo $$p; break; fi; done)
# Another PyTorch has an environment of its own: make test TORCH=2.14.1 (and TRANSFORMERS=4.57.3, if it shall be).
TORCH ?= 2.13.0
TRANSFORMERS ?=
OTHER := $(strip $(filter-out 2.13.0,$(TORCH)) $(TRANSFORMERS))
SPACE := $(subst ,, )
VENV := .venv$(if $(OTHER),-$(subst $(SPACE),-,$(OTHER)))
CONSTRAINTS := $(if $(OTHER),$(VENV)/constraints.txt,constraints.txt)
BIN := $(VENV)/bin
# A second implementation of many models, to compare with. Its own requirements name another torch.
LITGPT := litgpt lightning lightning-utilities pytorch-lightning torchmetrics psutil
# In the environment, so that it holds for build requirements too.
# Packages that other people wrote, to compare with; their requirements name other versions than ours.
PAIRS := .venv-pairs
PAIRS_PIP := $(PAIRS)/bin/python -m pip --disable-pip-version-check --quiet install
PIP := PIP_CONSTRAINT=$(CONSTRAINTS) $(BIN)/python -m pip --disable-pip-version-check --quiet install
WORKERS ?= 2

.PHONY: sanitized compare dist try-dist fresh rooms trusted lines help demo test check lint types floors unit long coverage slow docs zoo pairs serving bugs history conformance mutants mutants-checker mutants-kernel mutants-released kernel-defects kernels kernels-gems kernels-inductor kernels-own hunt forged-optimize forged-proofs conformance-jax breadth bench-refine bench-refutations bench-captured bench-meshes bench-depth bench-optimize calls bench-whole bench-rules bench-ir clean bench-env bench-robust forged-env bench-agents ray gpu-passes enzyme browser figures

help:
	@echo "make demo          a Llama over eight ranks proved equal to the original, and a broken one refuted"
	@echo "make test          what a change must pass at once: check, unit, docs"
	@echo "make check         ruff, pyright strict, import floors"
	@echo "make unit          pytest, without what is long or slow"
	@echo "make long          the wide rest of the tests: further cases of what unit tests, sweeps and long runs"
	@echo "make coverage      unit and long, and what of the package was run; about twice as long"
	@echo "make slow          the tests that take long"
	@echo "make ray           the tests of many claims and of rollouts on a local Ray"
	@echo "make gpu-passes    the tests of XLA's GPU passes, which need its CUDA plugin and no GPU"
	@echo "make enzyme        the tests of Enzyme-JAX's patterns"
	@echo "make browser       the tests of the HTML report in a Chromium, which must be installed"
	@echo "make figures       time, scaling and uses of laws, as SVG and PDF in build/figures; CAPTURES=folder"
	@echo "make docs          the documentation, into docs/_build/html"
	@echo "make zoo           every model and parallelisation, tiny sizes, as a table"
	@echo "make serving       decoding with a cache against one pass, for sequences of any length, as a table"
	@echo "make pairs         models of vLLM, torchtitan and timm against those of Transformers, and with fields changed"
	@echo "make mutants       injected bugs and how many are refuted, as a table"
	@echo "make mutants-checker  every check of the checker of proofs, and the test that fails without it"
	@echo "make mutants-kernel wrong Triton kernels: refuted, equal, unknown, or wrongly proved"
	@echo "make kernels       kernels of liger-kernel and vLLM as released, against plain PyTorch"
	@echo "make kernels-gems  FlagGems' operators as it registers them, against ATen, on the arguments of PyTorch's tests"
	@echo "make kernel-defects what kernels of these packages do wrongly, in Triton's interpreter"
	@echo "make mutants-released  the same kernels, changed at one place: refuted, equal, unknown, or wrongly proved"
	@echo "make kernels-inductor  Triton kernels that torch.compile generates, against the program"
	@echo "make kernels-own   Triton kernels that optimize prints, against the program"
	@echo "make sanitized     what optimize prints in C++, under sanitizers"
	@echo "make history       public bugs of distributed programs: refuted as they were, at which line, and proved as they are now"
	@echo "make bugs          public bug reports on implementations of models: the right pair, the wrong one, where it is wrong"
	@echo "make conformance   every sample of PyTorch's own operator database, captured and against eager, into docs; hours"
	@echo "make hunt          random pairs of programs that differ by an edit, none of which may be proved wrongly"
	@echo "make conformance-jax  functions of JAX on edge values: the captured graph against JAX itself"
	@echo "make forged-proofs  certificates of refinements and of equivalences, forged for wrong programs"
	@echo "make forged-optimize  certificates of optimize, forged for wrong programs, none of which may be accepted"
	@echo "make breadth       parallelism by framework, forward and with backward, up to 512 ranks, as a table"
	@echo "make bench-refine  time to prove by phase, as a table"
	@echo "make bench-refutations  what refuting injected bugs costs beside the proof, as a table"
	@echo "make compare       what tests on real ranks see of the bugs in docs/explanation/gallery.md, and what they cost, as a table"
	@echo "make bench-captured  files that others captured, from file to verdict, as a table; CAPTURES=folder"
	@echo "make bench-meshes  training steps on 512 ranks, as a table"
	@echo "make bench-depth   two implementations of a model of 8B parameters, on meta tensors, as a table"
	@echo "make bench-optimize  fused kernels of many programs beside other compilers, as a table and as figures in build/figures; hours, and goes on from a run that was ended"
	@echo "make calls         10,000 random calls of optimised programs against eager PyTorch; hours"
	@echo "make bench-whole   whole models through torch.compile: start-up, time and memory, first and second process; hours"
	@echo "make bench-rules   the rules benchmark: what is proved, and what is refused, as a table"
	@echo "make trusted       what each check imports and so trusts, by lines of code, as a table"
	@echo "make rooms         the table of packages in docs/explanation/architecture.md, from their docstrings"
	@echo "make lines         lines of the package by subpackage: code, docstrings, comments, blank, as a table"
	@echo "make bench-ir      time to build and validate large graphs"
	@echo "make bench-env     what XLA's passes do site by site, what is proved, steps per second; HLO=folder"
	@echo "make bench-robust  damaged HLO texts from reading to running, as a table; HLO=folder"
	@echo "make forged-env    certificates of trajectories that somebody forged, and what was accepted, as a table"
	@echo "make bench-agents  search agents and a learned policy against XLA's own decisions, as tables and charts; HLO=folder; KEPT=folder goes on from a run that was ended"
	@echo "make dist          a wheel and a source distribution, into dist; make try-dist KIND=wheel tries one in a fresh environment"
	@echo "make fresh         install, import and first verdict in fresh environments of several Python and PyTorch versions, as a table; FRESH='--python ... --torch ...'"
	@echo "make clean         removes what the other targets made"

$(VENV)/.created:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or later with venv and pip found; install one or pass PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@grep -v -E '^(torch|triton|setuptools$(if $(TRANSFORMERS),|transformers|huggingface-hub|tokenizers))==' constraints.txt > $(VENV)/constraints.txt
	@echo 'torch==$(TORCH)' >> $(VENV)/constraints.txt
	@$(if $(TRANSFORMERS),echo 'transformers==$(TRANSFORMERS)' >> $(VENV)/constraints.txt)
	@touch $@

# A call of its own, first: nothing that is installed later may decide which build of torch is taken.
$(VENV)/.torch: $(VENV)/.created
	$(PIP) torch==$(TORCH)
	@touch $@

$(VENV)/.run: $(VENV)/.torch pyproject.toml constraints.txt
	$(PIP) --editable '.[torch,models]'
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	$(PIP) --editable '.[torch,models,jax,gpu,env,dev,docs]'
	$(PIP) --no-deps $(LITGPT)
	@touch $@

demo: $(VENV)/.run
	@$(BIN)/rewright demo

# Types and documentation take one core each.
test: $(VENV)/.dev
	@$(MAKE) --no-print-directory -j 2 check docs
	@$(MAKE) --no-print-directory unit

check: lint types floors

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/pyright

floors: $(VENV)/.dev
	$(BIN)/lint-imports

unit: $(VENV)/.dev
	$(BIN)/pytest --numprocesses $(WORKERS) -m "not slow and not long" --durations 40 --durations-min 5

long: $(VENV)/.dev
	$(BIN)/pytest --numprocesses $(WORKERS) -m "long and not slow" --durations 40 --durations-min 5

coverage: $(VENV)/.dev
	$(BIN)/pytest --numprocesses $(WORKERS) -m "not slow" --cov --cov-report=term

slow: $(VENV)/.dev
	$(BIN)/pytest --numprocesses $(WORKERS) -m slow

$(VENV)/.ray: $(VENV)/.dev
	$(PIP) --editable '.[torch,models,jax,env,dev,docs,ray]'
	@touch $@

ray: $(VENV)/.ray
	$(BIN)/pytest tests/test_ray.py

$(VENV)/.gpu-passes: $(VENV)/.dev
	$(PIP) --editable '.[torch,models,jax,env,dev,docs,gpu-passes]'
	@touch $@

gpu-passes: $(VENV)/.gpu-passes
	$(BIN)/pytest tests/env/test_gpu.py

$(VENV)/.enzyme: $(VENV)/.dev
	$(PIP) --editable '.[torch,models,jax,env,dev,docs,enzyme]'
	@touch $@

enzyme: $(VENV)/.enzyme
	$(BIN)/pytest tests/env/test_enzyme.py

$(VENV)/.browser: $(VENV)/.dev
	$(PIP) --editable '.[torch,models,dev,docs,browser]'
	@touch $@

browser: $(VENV)/.browser
	$(BIN)/pytest tests/report/test_browser.py

FIGURES := build/figures

figures: $(VENV)/.dev
	@mkdir -p $(FIGURES)
	@$(BIN)/python -m bench.scaling $(CAPTURES) > $(FIGURES)/scaling.json
	@$(BIN)/python -m bench.uses > $(FIGURES)/uses.json
	@$(BIN)/python -m bench.draw $(FIGURES)

docs: $(VENV)/.dev
	$(BIN)/sphinx-build --fail-on-warning --quiet -b html docs docs/_build/html

zoo: $(VENV)/.dev
	@$(BIN)/python -m bench.zoo
	@$(BIN)/python -m bench.schedules
	@$(BIN)/python -m bench.megatron
	@$(MAKE) --no-print-directory pairs

$(PAIRS)/.created:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or later with venv and pip found; install one or pass PYTHON=" >&2; exit 1; }
	$(PYTHON) -m venv $(PAIRS)
	@touch $@

$(PAIRS)/.torch: $(PAIRS)/.created
	$(PAIRS_PIP) torch==2.13.0
	@touch $@

$(PAIRS)/.run: $(PAIRS)/.torch pyproject.toml constraints-pairs.txt
	$(PAIRS_PIP) hatchling editables
	$(PAIRS_PIP) --no-deps --requirement constraints-pairs.txt
	$(PAIRS_PIP) --no-deps --no-build-isolation --editable .
	$(PAIRS_PIP) --no-deps --upgrade --target $(PAIRS)/torchvision torchvision==0.28.0
	@touch $@

pairs: $(PAIRS)/.run
	@$(PAIRS)/bin/python -m bench.pairs
	@$(PAIRS)/bin/python -m bench.pairs --mutants
	@$(PAIRS)/bin/python -m bench.pairs --second
	@$(PAIRS)/bin/python -m bench.depth --peer vllm
	@$(PAIRS)/bin/python -m bench.titan

serving: $(VENV)/.dev
	@$(BIN)/python -W ignore -m bench.serving

history: $(VENV)/.dev
	@$(BIN)/python -m bench.history

bugs: $(VENV)/.dev
	@$(BIN)/python -m bench.bugs

mutants: $(VENV)/.dev
	@$(BIN)/python -m bench.mutants

mutants-checker: $(VENV)/.dev
	@$(BIN)/python -m bench.checker

KEPT_SAMPLES := $(if $(KEPT),--keep $(KEPT))

conformance: $(VENV)/.dev
	@$(BIN)/python -m bench.conformance --write docs/reference/conformance.md $(KEPT_SAMPLES)

mutants-kernel: $(VENV)/.dev
	@$(BIN)/python -m bench.kernel

kernels-inductor: $(VENV)/.dev
	@$(BIN)/python -m bench.kernel.inductor

kernels-own: $(VENV)/.dev
	@$(BIN)/python -m bench.kernel.own

sanitized: $(VENV)/.dev
	@$(BIN)/python -m bench.sanitized

kernels: $(PAIRS)/.run
	$(PAIRS_PIP) --no-deps liger-kernel==0.8.5 triton==3.9.0
	@$(PAIRS)/bin/python -W ignore -m bench.kernel.packages

kernels-gems: $(PAIRS)/.run
	$(PAIRS_PIP) --no-deps triton==3.9.0 flag-gems==5.0.2 sqlalchemy==2.1.9 greenlet==3.5.6 expecttest==0.3.0
	@$(PAIRS)/bin/python -W ignore -m bench.kernel.gems

kernel-defects: $(PAIRS)/.run
	$(PAIRS_PIP) --no-deps liger-kernel==0.8.5 triton==3.9.0 flag-gems==5.0.2 sqlalchemy==2.1.9 greenlet==3.5.6
	@$(PAIRS)/bin/python -W ignore -m bench.kernel.defects

mutants-released: $(PAIRS)/.run
	$(PAIRS_PIP) --no-deps liger-kernel==0.8.5 triton==3.9.0
	@$(PAIRS)/bin/python -W ignore -m bench.kernel.released --most 24

hunt: $(VENV)/.dev
	@$(BIN)/python -m bench.hunt
	@$(BIN)/python -m bench.hunt_values 20000 3

conformance-jax: $(VENV)/.dev
	@$(BIN)/python -W ignore -m bench.conformance_jax
forged-optimize: $(VENV)/.dev
	@$(BIN)/python -m bench.forged_optimize

forged-proofs: $(VENV)/.dev
	@$(BIN)/python -m bench.forged_proofs

breadth: $(VENV)/.dev
	@$(BIN)/python -m bench.breadth

bench-refine: $(VENV)/.dev
	@$(BIN)/python -m bench.refine

compare: $(VENV)/.dev
	@$(BIN)/python -m bench.compare

bench-refutations: $(VENV)/.dev
	@$(BIN)/python -m bench.refutations

bench-captured: $(VENV)/.dev
	@$(BIN)/python -m bench.captured $(CAPTURES)

bench-meshes: $(VENV)/.dev
	@$(BIN)/python -m bench.meshes

bench-depth: $(VENV)/.dev
	@$(BIN)/python -m bench.depth

bench-optimize: $(VENV)/.dev
	@$(BIN)/python -m bench.optimize --dtypes float32 bfloat16 --json build/optimize.jsonl --resume
	@$(BIN)/python -m bench.optimize.draw build/figures

calls: $(VENV)/.dev
	@$(BIN)/python -m bench.optimize.calls

bench-whole: $(VENV)/.dev
	@$(BIN)/python -m bench.optimize.whole

bench-rules: $(VENV)/.dev
	@$(BIN)/python -m bench.rules

trusted: $(VENV)/.dev
	$(BIN)/python -m bench.trusted

rooms: $(VENV)/.dev
	@$(BIN)/python -m bench.rooms

lines: $(VENV)/.dev
	@$(BIN)/python -m bench.lines

bench-ir: $(VENV)/.dev
	@$(BIN)/python -m bench.ir

bench-env: $(VENV)/.dev
	@$(BIN)/python -m bench.env $(HLO)

bench-robust: $(VENV)/.dev
	@$(BIN)/python -m bench.robust $(HLO)

forged-env: $(VENV)/.dev
	@$(BIN)/python -m bench.forged_env

$(VENV)/.agents: $(VENV)/.dev
	$(PIP) sb3-contrib
	@touch $@

KEEP := $(if $(KEPT),--keep $(KEPT))

bench-agents: $(VENV)/.agents
	@$(BIN)/python -m bench.policy $(HLO) --rounds 60 --out $(FIGURES) $(KEEP)
	@$(BIN)/python -m bench.policy $(HLO) --rounds 60 --then-xla --out $(FIGURES) $(KEEP)
	@$(BIN)/python -m bench.policy $(HLO) --rounds 60 --after-xla --out $(FIGURES) $(KEEP)

# What a release publishes; with TAG=vX.Y.Z it has to be of that version.
dist:
	$(PYTHON) -m venv build/dist-venv
	build/dist-venv/bin/python -m pip --disable-pip-version-check --quiet install build
	rm -rf dist
	build/dist-venv/bin/python -m build --outdir dist .
	@$(PYTHON) -c 'import glob, sys; [tag] = sys.argv[1:]; found = glob.glob("dist/rewright-*.whl"); \
	sys.exit(f"dist holds {found}, which is not {tag}" if tag and f"-{tag[1:]}-" not in found[0] else 0)' "$(TAG)"

# A wheel or a source distribution where nothing else is installed: a proof, a refutation, and what is said of both.
KIND := wheel
try-dist:
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(PYTHON) -m bench.fresh --dist dist --kind $(KIND)

fresh:
	@$(PYTHON) -m bench.fresh $(FRESH)

clean:
	rm -rf $(VENV) $(PAIRS) build dist docs/_build .coverage .coverage.* .pytest_cache .ruff_cache .hypothesis .import_linter_cache
