# minfer: the front door. `make` alone prints what there is; CMake and its presets do the building.
#
# Standard output belongs to the program that runs (the model's answer, the tests' report); the steps before it speak on
# standard error. A step that has nothing to do costs milliseconds, so the second `make run` answers at once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.SUFFIXES:

JOBS ?= $(shell getconf _NPROCESSORS_ONLN)
MODEL ?= smollm2
PROMPT ?= What is the capital of France, and what is it known for?
ARGS ?=
PREFIX ?= /usr/local
TEST_TIMEOUT ?= 900
FUZZ_SECONDS ?= 30

# Taken word for word: a "$" in a prompt is a dollar sign.
override PROMPT := $(value PROMPT)
export PROMPT

BIN := build/release/minfer
CTEST := ctest --output-on-failure --no-tests=error --timeout $(TEST_TIMEOUT) -j $(JOBS)
# clang reads these; generated or foreign files would be left out here.
CXX_FILES = git ls-files -co --exclude-standard '*.cpp' '*.h' '*.cu' '*.cuh'

##@ Start here
.PHONY: run
run: build/release/build.ninja $(if $(filter smollm2,$(MODEL)),model) ## set up and build what is missing, then answer PROMPT="..." (MODEL=, ARGS=)
	@ninja -C build/release -j $(JOBS) $(if $(wildcard $(BIN)),--quiet) minfer >&2
	@$(BIN) run '$(MODEL)' "$$PROMPT" $(ARGS)

.PHONY: test
test: build ## build and run every test; ends with ctest's summary
	@tools/get_model.sh || echo 'tests: no default model, the tests that need it are skipped' >&2
	@$(CTEST) --test-dir build/release

##@ Build
.PHONY: setup
setup: ## install the Debian packages that are missing (says which; instant when none are)
	@tools/setup.sh build

.PHONY: setup-dev
setup-dev: ## the same for clang-format, clang-tidy, clang and debootstrap
	@tools/setup.sh build dev

.PHONY: model
model: | setup ## fetch the default model into ~/.cache/minfer/models (MINFER_MODELS)
	@tools/get_model.sh

.PHONY: build
build: build/release/build.ninja ## release build of everything, into build/release
	@ninja -C build/release -j $(JOBS) >&2

.PHONY: install
install: build ## install program, headers, library and CMake package under PREFIX (default /usr/local)
	DESTDIR='$(DESTDIR)' cmake --install build/release --prefix '$(PREFIX)' >&2

.PHONY: clean
clean: ## remove build/
	rm -rf build

##@ Test
.PHONY: unit
unit: build ## the tests beside the code: no network, no model
	@$(CTEST) --test-dir build/release -LE 'repo|e2e'

.PHONY: conformance
conformance: build ## every backend and instruction set against the reference, bit for bit
	@$(CTEST) --test-dir build/release -R '^(backend|conformance)'

# The system root is kept beside the build folders; it is what the toolchain file cmake/aarch64.cmake expects.
ARM64_ROOT := build/arm64-root
.PHONY: neon
neon: build/release/build.ninja ## cross-build for 64-bit Arm; NEON against the reference and this machine, under qemu
	@tools/setup_arm64.sh $(ARM64_ROOT)
	@[ build/aarch64/build.ninja -nt CMakePresets.json ] || { cmake --preset aarch64 && touch build/aarch64/build.ninja; } >&2
	@ninja -C build/aarch64 -j $(JOBS) backend_test minfer >&2
	@ninja -C build/release -j $(JOBS) minfer >&2
	@tools/check_arm64.sh build/aarch64 $(BIN) $(ARM64_ROOT)

.PHONY: debug
debug: build/debug/build.ninja ## debug build with internal checks on, and its tests
	@ninja -C build/debug -j $(JOBS) >&2
	@$(CTEST) --test-dir build/debug -LE 'repo|e2e'

.PHONY: asan
asan: build/asan/build.ninja ## the tests under AddressSanitizer and UBSan
	@ninja -C build/asan -j $(JOBS) >&2
	@UBSAN_OPTIONS=print_stacktrace=1 $(CTEST) --test-dir build/asan -LE 'repo|e2e'

.PHONY: tsan
tsan: build/tsan/build.ninja ## the tests under ThreadSanitizer
	@ninja -C build/tsan -j $(JOBS) >&2
	@TSAN_OPTIONS=halt_on_error=1 setarch -R $(CTEST) --test-dir build/tsan -LE 'repo|e2e'

.PHONY: fuzz
fuzz: setup-dev build/fuzz/build.ninja ## every fuzz target for FUZZ_SECONDS each (default 30)
	@ninja -C build/fuzz -j $(JOBS) >&2
	@tools/fuzz.sh build/fuzz $(FUZZ_SECONDS)

.PHONY: bare-test
bare-test: setup-dev ## make run twice and make test in a fresh minimal Debian 12 (root; DIR=folder)
	@tools/bare_debian_test.sh '$(or $(DIR),build/bare)'

##@ Measure
.PHONY: bench
bench: build/release/build.ninja $(if $(filter smollm2,$(MODEL)),model) ## prefill and decode speed of MODEL (ARGS="-p 512 -n 128 -r 3")
	@ninja -C build/release -j $(JOBS) minfer >&2
	@$(BIN) bench '$(MODEL)' $(ARGS)

##@ Check
.PHONY: check
check: check-layers check-size check-words check-docs check-format check-isa check-headers ## all of the checks below

.PHONY: check-layers check-size check-words check-docs
check-layers: | setup ## includes point down the list of layers only
check-size: | setup ## no file is too long
check-words: | setup ## no host paths, leftovers or printing where they do not belong
check-docs: | setup ## links, paths and make targets named in the docs exist
check-layers check-size check-words check-docs:
	@python3 tools/$(subst -,_,$@).py

.PHONY: check-headers
check-headers: | setup ## every header compiles alone
	@python3 tools/check_headers.py --jobs $(JOBS)

.PHONY: check-isa
check-isa: build ## kernels of one instruction set leak nothing into the others
	@python3 tools/check_isa.py --build build/release

.PHONY: check-format
check-format: | setup-dev ## the code is formatted
	@$(CXX_FILES) | xargs -r clang-format --dry-run -Werror && echo 'format: ok'

.PHONY: format
format: | setup-dev ## format the code in place
	@$(CXX_FILES) | xargs -r clang-format -i

.PHONY: tidy
tidy: setup-dev build ## clang-tidy over src/ and cli/
	@run-clang-tidy -quiet -j $(JOBS) -p build/release '/(src|cli)/'

.PHONY: docs
docs: check-docs ## check the documents

##@ Help
.PHONY: help
help: ## this list
	@awk 'BEGIN { FS = ":.*## " } \
	  /^##@ / { printf "\n%s\n", substr($$0, 5); next } \
	  /^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# The presets are no input of ninja's, so a change to them configures anew here.
build/%/build.ninja: CMakePresets.json | setup
	@cmake --preset $* >&2
	@touch $@
