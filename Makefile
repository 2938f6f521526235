# Every command of rknn-tts, with its options as upper-case variables: `make engine FAMILY=piper TARGET=rk3588`; but
# ./rknn-tts bench, whose name the benchmarks of rknn-tts itself have here.
# The commands themselves, their options and what they check live in Python (rknn_tts/request.py); make only hands the
# variables over, as they were written, and never through a shell's or make's own expansion.

.DEFAULT_GOAL := help
SHELL := /bin/sh
MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:

# The names given on the command line (`NAME=` each), so that Python can refuse one that it does not know.
command_line := $(foreach name,$(.VARIABLES),$(if $(findstring command line,$(origin $(name))),$(name)))
export RKNN_TTS_MAKE_OVERRIDES := $(patsubst %,%=,$(filter-out PYTHON UV UPGRADE SHELL -%,$(command_line)))

# `$(value ...)` is the text as it was given: a `$` in a file's name survives.
$(foreach name,$(command_line),$(eval override $(name) := $$(value $(name)))$(eval export $(name)))

ENVIRONMENT := ./environments/run
TOOLS := .venv/bin/python -m
# What is checked: the folders of the design that hold Python.
PACKAGES := $(foreach folder,contracts pages rknn_tts converters models surgery gates logs cost engine environments \
    runtime farm docs tests,$(if $(wildcard $(folder)),$(folder)))

.PHONY: engine export compile surgery inspect diff plan report probe verify tune farm catalogue families passes doctor site clean distclean setup setup-dev check test bench locks help

## Commands

engine: ## compile a family's stage: FAMILY=piper TARGET=rk3588; or all of its stages: ALL=1
	@./rknn-tts from-make engine

export: ## write the NPU-ready ONNX with its contract inside: FAMILY=piper
	@./rknn-tts from-make export

compile: ## compile an exported or foreign ONNX: MODEL=file.onnx TARGET=rk3588 (a ladder: ALSO="b.onnx c.onnx")
	@./rknn-tts from-make compile

surgery: ## chosen passes on any ONNX: MODEL=file.onnx PASS='a b' COST=rk3588 CHECK=1 SAVE=out.onnx
	@./rknn-tts from-make surgery

inspect: ## what an engine, a manifest or an ONNX holds, and costs: MODEL=file
	@./rknn-tts from-make inspect

diff: ## what two engines cost per emitted frame, and what else differs: A=file B=file
	@./rknn-tts from-make diff

plan: ## the execution plan of what was built: ENGINES=engines/rk3588; its JSON Schema: SCHEMA=1
	@./rknn-tts from-make plan

report: ## one page that shows an engine, or compares several: ENGINES=engines/rk3588
	@./rknn-tts from-make report

probe: ## a kit that shows on a board what no PC can tell of an engine: MODEL=engine.rknn OPERATORS=all
	@./rknn-tts from-make probe

verify: ## what a probe found on a board, into the manifest: MODEL=engine.rknn RESULT=probe.json
	@./rknn-tts from-make verify

tune: ## sweep windows under the gates, and choose a ladder: FAMILY=piper TARGET=rk3588 WINDOWS=128,256,448
	@./rknn-tts from-make tune

farm: ## many checkpoints for many targets, as a matrix names them: MATRIX=file.toml CORES=2 PROFILE=folder
	@./rknn-tts from-make farm

catalogue: ## every engine of a folder, its proof and cost, and what changed: FOLDER=folder AGAINST=catalogue.json
	@./rknn-tts from-make catalogue

passes: ## the surgery passes, one line each
	@./rknn-tts from-make passes

families: ## the families and stages that can be compiled
	@./rknn-tts from-make families

doctor: ## what was found on this machine, and what to do about it
	@./rknn-tts from-make doctor

## Environments

setup: ## set up what `make engine` needs, so that it needs no network later (TOOLKIT=2.3.2)
	@$(ENVIRONMENT) toolchain rknn$(if $(TOOLKIT),-$(TOOLKIT))
	@echo "ready: run ./rknn-tts --help, or make engine FAMILY=piper TARGET=rk3588"

setup-dev:
	@$(ENVIRONMENT) toolchain+dev+torch+hub+phonemes+references farm

locks: ## write requirements/*.txt again from the .in files (maintainers; needs uv; UPGRADE=1 for newer versions)
	@requirements/relock

## Development

check: setup-dev ## lint, format and types
	$(TOOLS) ruff check .
	$(TOOLS) ruff format --check .
	$(TOOLS) mypy $(PACKAGES)

test: check ## make check, then the tests; what continuous integration runs
	$(TOOLS) pytest

bench: setup-dev ## the benchmarks: time over a bare conversion script, repeated command, peak memory
	$(TOOLS) pytest tests/bench --override-ini "python_files=bench_*.py" --no-header -s

site: ## README.md and docs/ as pages for a browser, without a server or a network: site/index.html (OUT=FOLDER)
	@$(ENVIRONMENT) toolchain+dev
	@$(TOOLS) mkdocs build --strict --site-dir "$${OUT:-site}"
	@echo "site: $${OUT:-site}/index.html"

## Cleaning

clean: ## remove the caches of finished steps, and the logs of builds
	@./rknn-tts from-make clean

distclean: ## remove the environments too (engines/ stays)
	rm -rf .venv .venv-* .venv.lock .mypy_cache .pytest_cache .ruff_cache .hypothesis build-logs site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^## /{print "\n" substr($$0, 4)} /^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' Makefile
	@echo
	@echo "Options: FAMILY TARGET STAGE CHECKPOINT CONFIG MEMBER WINDOW WINDOWS CONTEXT PADDING MAX_AXIS NORM SINE SAMPLE_RATE"
	@echo "CODES SEAM CACHE WINDOW_ROLE SPEAKER WIDTHS RELATIVE SAMPLE TEXT IDS SAVE_CHECKPOINT TOOLKIT OUT MODEL A B"
	@echo "LENGTHS CHUNK LOOK_AHEAD HISTORY BUCKETS PRECISION CALIBRATION SHAPE INPUTS NO_PASS PASS COST SAVE TIMEOUT"
	@echo "ALSO MEMORY JOBS JUNIT ACCEPT_REGTASK ENGINES OPERATORS RESULT CONTEXTS UTTERANCES RUNGS MATRIX FOLDER CORES PROFILE AGAINST"
	@echo "ALL=1 CHECK=1 FORCE=1 DRY_RUN=1 DECODER_MASK=1 NO_DECODER_MASK=1 WEIGH=1 QUICK=1 ALLOW_QUANTIZED=1 ABSOLUTE=1 REFERENCE=1"
	@echo "SCHEMA=1 NO_SAMPLE=1 JSON=1."
	@echo "PYTHON=python3.12 picks the Python of the environments."
	@echo "make ends with status 2 whenever a command fails; the command's own status (1: a gate or the build failed,"
	@echo "2: refused before it started) is in make's last line. A job that needs it runs ./rknn-tts itself."
