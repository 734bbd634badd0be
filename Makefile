# Building, trying and testing need Go, git and make, nothing else. What a
# target needs beyond that it checks first, and says how to get it.

.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

GO       ?= go
VERSION  ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
FUZZTIME ?= 10s
SEEDS    ?= 1..1000
PKGS     ?= ./...
BIN      ?= bin
RUNS     ?= 20
LOAD     ?= 4
CLONES   ?= 1
STEPS    ?=
PREFIX   ?= /usr/local
LUADIR   ?= $(shell tshark -G folders 2>/dev/null | sed -n 's/^Global Lua Plugins:[[:space:]]*//p')

# `make module PATH=...` is said to make in a variable that it would hand to all
# programs as the place where programs are. They get the one that make was started
# with: of its parent, as the shell sees it, or else what $(shell) has.
ifeq ($(origin PATH),command line)
MODULE := $(PATH)
override PATH := $(shell if [[ -r /proc/$$PPID/environ ]]; then \
	while IFS= read -r -d '' v; do [[ $$v != PATH=* ]] || echo "$${v:5}"; done \
	</proc/$$PPID/environ; else echo "$$PATH"; fi)
export PATH
endif

# Static, and the same bytes wherever the checkout lies.
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-X main.version=$(VERSION)'

# Packages that start no goroutine, nor do their tests: cmd/tidy holds that, and what
# they do in those of others is in the tests of engine and cmd. Of three packages some
# tests do, and the race detector watches these alone.
NO_RACE := ./bench/interop ./bench/interop/internal/cases \
	./bench/interop/internal/dialogue ./bench/interop/internal/report \
	./bench/interop/payload ./bench/machine ./bench/model ./bench/plots ./bench/ratio \
	./bench/result ./bench/stage ./cmd/crossvet ./cmd/perfdump ./cmd/tidy \
	./cmd/xroce/internal/configfile ./cmd/xroce/internal/plain \
	./cmd/xroce/internal/progress ./encap ./encap/ipoib ./engine/gopacketlayer \
	./engine/internal/notify ./engine/internal/pathtable ./engine/internal/sched \
	./engine/oob ./engine/sim/congestion ./engine/sim/msgtrial ./engine/sim/trial ./roce \
	./roce/analyze ./roce/cc ./roce/clock ./roce/cm ./roce/counter ./roce/dissect \
	./roce/internal/conversation ./roce/msg ./roce/msg/dissect ./roce/msg/match \
	./roce/recovery ./roce/roctest ./roce/verbs ./roce/wire ./xsk/xsktest/timeout

# Those that take longest begin first: else the last of them would run alone.
LONGEST := ./cmd/xroce ./engine/msg ./engine ./engine/tunnel ./cmd/xroce/internal/transfer \
	./bench ./roce ./engine/cm ./cmd/xroce/internal/perf ./xsk ./cmd/xroce/internal/rdmacm \
	./engine/sim/trial ./cmd/tidy ./bpf ./roce/msg ./engine/control ./encap ./roce/dissect

# packages lists the packages of $(PKGS) without some, which are given as ./DIRECTORY: of
# those that are left, the longest first.
packages = all=$$($(GO) list $(PKGS) $(if $(1),| grep -vxF "$$($(GO) list $(1))")); \
	first=$$($(GO) list $(LONGEST) | grep -xF "$$all"); \
	[[ -z $$first ]] || echo "$$first"; grep -vxF "$$first" <<<"$$all"

# Tests make much that does not live long, and so do linters and the simulator: with room for
# it, a third less of a processor goes to them. What is measured has the collector of users.
lint test test-root race race-all sim: export GOGC ?= 400

# By how much limits of time grow, here and now: see .ci/calibrate. Limits of go test
# for one package are minutes.
scaled = XROCE_TIMEOUT_MULTIPLIER=$$(.ci/calibrate); export XROCE_TIMEOUT_MULTIPLIER; \
	minutes() { echo "$$(($$1 * XROCE_TIMEOUT_MULTIPLIER))m"; }

# Packages that are tested at once, and tests of one that may run beside each other: three for
# each processor, because many wait, and fewer where others keep the processors busy: more would
# only stop each other.
at_once = n=$${AT_ONCE:-$$(($$(getconf _NPROCESSORS_ONLN) * \
	(XROCE_TIMEOUT_MULTIPLIER < 6 ? 3 : XROCE_TIMEOUT_MULTIPLIER < 40 ? 2 : 1)))}; \
	at_once=(-p "$$n" -parallel "$$n")

# Hand-written Go files, tracked or new. The examples are modules of their own, in
# which gofumpt takes our packages for those of Go: cmd/tidy looks at their form.
GO_FILES = $(shell git ls-files -co --exclude-standard -- '*.go' ':!docs/example' ':!docs/grpc' \
	| xargs -r ls -d 2>/dev/null \
	| xargs -r grep -L '^// Code generated .* DO NOT EDIT\.$$')

.PHONY: all
all: build lint test ## build, lint and test

.PHONY: help
help: ## print this list
	@echo 'usage: make TARGET [VARIABLE=value]'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo 'variables: PKGS=$(PKGS) FUZZTIME=$(FUZZTIME) SEEDS=$(SEEDS) RUNS=$(RUNS) LOAD=$(LOAD)'
	@echo '           CLONES=$(CLONES) TESTFLAGS= BENCHFLAGS= INTEROPFLAGS= STEPS='

.PHONY: build
build: ## build ./xroce, a static binary stamped with its version
	$(BUILD) -o xroce ./cmd/xroce

.PHONY: install
install: build ## install ./xroce below $(PREFIX), and the dissector where Wireshark looks
	install -D -m 755 xroce '$(DESTDIR)$(PREFIX)/bin/xroce'
	@if [[ -n '$(LUADIR)' ]]; then ./xroce wireshark --install --dir '$(DESTDIR)$(LUADIR)'; \
		else echo 'tshark is not here, so the dissector is not installed: give LUADIR='; fi

.PHONY: generate
generate: ## run all generators: BPF objects (needs clang), tables, docs
	@command -v clang >/dev/null && command -v llvm-strip >/dev/null || { \
		echo 'make generate needs clang, llvm-strip and the libbpf headers to rebuild the BPF'; \
		echo 'objects. On Debian and Ubuntu: apt-get install clang llvm libbpf-dev'; \
		exit 1; } >&2
	$(GO) generate $(PKGS)

.PHONY: fmt
fmt: ## format all hand-written Go files
	$(GO) tool gofumpt -w $(GO_FILES)

.PHONY: lint
lint: ## gofmt, gofumpt, go vet, staticcheck; golangci-lint where installed
	@echo gofmt, gofumpt; out=$$(gofmt -s -l $(GO_FILES); $(GO) tool gofumpt -l $(GO_FILES)); \
		test -z "$$out" || { echo "$$out"; echo 'not formatted: run make fmt'; exit 1; } >&2
	$(GO) vet $(PKGS)
	$(GO) tool staticcheck $(PKGS)
	@if command -v golangci-lint >/dev/null; then echo golangci-lint; golangci-lint run $(PKGS); \
		else echo 'golangci-lint: not installed, not run'; fi

.PHONY: test
test: ## unit tests in random order; those that need root say so and skip
	@$(scaled); $(at_once); list=$$($(call packages)) || true; \
	$(GO) test "$${at_once[@]}" -shuffle=on -timeout "$$(minutes 8)" $(TESTFLAGS) $$list

.PHONY: test-root
test-root: ## all tests, those that need root and AF_XDP too: a skip is a failure
	@test "$$(id -u)" = 0 || { echo 'make test-root needs root: sudo make test-root' >&2; exit 1; }
	@$(scaled); $(at_once); list=$$($(call packages)) || true; XROCE_ROOT_TESTS=1 \
	$(GO) test -count=1 "$${at_once[@]}" -shuffle=on -timeout "$$(minutes 8)" $(TESTFLAGS) $$list

.PHONY: need-cc
need-cc:
	@command -v $${CC:-gcc} >/dev/null || { \
		echo 'this needs a C compiler. On Debian and Ubuntu: apt-get install gcc libc6-dev'; \
		exit 1; } >&2

.PHONY: race
race: need-cc ## tests of what has goroutines, under the race detector (needs a C compiler)
	@$(scaled); $(at_once); CGO_ENABLED=1; export CGO_ENABLED; \
	test="$(GO) test -race $${at_once[*]} -shuffle=on -timeout $$(minutes 15) $(TESTFLAGS)"; \
	list=$$($(call packages,$(NO_RACE))) || true; bad=0; \
	test -z "$$list" || $$test $$list || bad=1; \
	$$test -run 'Goroutines|TestSeeds$$' ./roce ./engine/sim/trial ./engine/sim/msgtrial || bad=1; \
	exit $$bad

.PHONY: race-all
race-all: need-cc ## all tests under the race detector
	$(scaled); $(at_once); CGO_ENABLED=1 $(GO) test -race "$${at_once[@]}" -shuffle=on \
		-timeout "$$(minutes 20)" $(TESTFLAGS) $(PKGS)

# One line per fuzz target: package, name. It is read from the files: to ask each test
# binary would build them all.
test_files := {{$$p := .}}{{range .TestGoFiles}}{{$$p.ImportPath}} {{$$p.Dir}}/{{.}}{{"\n"}}{{end}}
test_files += {{range .XTestGoFiles}}{{$$p.ImportPath}} {{$$p.Dir}}/{{.}}{{"\n"}}{{end}}
.PHONY: fuzz-list
fuzz-list:
	@$(GO) list -f '$(test_files)' $(PKGS) | while read -r pkg file; do \
		[[ -z $$pkg ]] || sed -nE 's/^func (Fuzz[[:alnum:]_]*)\(.*/\1/p' "$$file" | \
			while read -r name; do echo "$$pkg $$name"; done; done

.PHONY: fuzz
fuzz: ## run every fuzz target for FUZZTIME, one on each processor at a time
	@list=$$($(MAKE) -s fuzz-list); GO=$(GO) .ci/fuzz $(FUZZTIME) <<<"$$list"

.PHONY: sim
sim: build ## run the simulator over SEEDS
	./xroce sim --seeds $(SEEDS)
	./xroce sim --messages --seeds $(SEEDS)
	./xroce sim --congestion all

.PHONY: demo
demo: build ## build, then show two endpoints talking (no sudo, no hardware)
	./xroce demo

.PHONY: bench
bench: ## measure us and others side by side, draw where time goes; see BENCHFLAGS=-h
	$(GO) run ./bench $(BENCHFLAGS)
	@newest=$$(ls bench/results/*.json 2>/dev/null | tail -n 1); test -z "$$newest" || \
	$(GO) run ./bench/plots --only where --from $$newest --out docs/plots

EVERY ?= 1h
.PHONY: bench-median
bench-median: RUNS = 5
bench-median: ## make RUNS whole runs, EVERY so long apart: their medians are docs/numbers.md
	$(GO) run ./bench --runs $(RUNS) --every $(EVERY) --page docs/numbers.md $(BENCHFLAGS)

# The newest result that has what the plots are made of.
RESULT ?= $(shell grep -l '"name": "msg-size-64"' bench/results/*.json 2>/dev/null | tail -n 1)

.PHONY: plots
plots: ## draw docs/plots from RESULT=FILE of the bench, by default the newest
	@test -n '$(RESULT)' || { \
		echo 'no result to draw: make bench BENCHFLAGS="--only msg-,register"' >&2; exit 1; }
	$(GO) run ./bench/plots --from $(RESULT) --out docs/plots

# The program takes the place of the shell, so that whoever ends make ends it.
.PHONY: interop
interop: ## run against rdma-core and perftest on Soft-RoCE in a VM (root, Debian)
	@$(GO) build -o $(BIN)/interop ./bench/interop; $(scaled); exec $(BIN)/interop $(INTEROPFLAGS)

.PHONY: module
module: ## rename the module, to publish it: PATH=host/owner/name
	@.ci/module '$(subst ','\'',$(MODULE))'

.PHONY: ci
ci: ## everything that continuous integration runs
	.ci/run

.PHONY: soak
soak: ## all of it RUNS times, CLONES at once, beside LOAD programs that keep the machine busy
	RUNS=$(RUNS) LOAD=$(LOAD) CLONES=$(CLONES) .ci/soak $(STEPS)

# Each is a test of which others run a few rounds.
.PHONY: survive
survive: ## long runs of flaps, changes, kills and opens, as root
	XROCE_ROOT_TESTS=1 XROCE_FLAPS=1000 XROCE_CHANGES=100 XROCE_KILLS=1000 XROCE_OPENS=5000 \
		$(GO) test -count=1 -timeout 3h -v ./engine \
		-run '^(TestLinkFlaps|TestChangesInTransfer|TestKilled|TestOpenAndClose)$$'

.PHONY: clean
clean: ## remove what building, testing and profiling left
	rm -rf xroce bin
	find . -path ./.git -prune -o -type f \( -name '*.test' -o -name '*.prof' \) -exec rm -f {} +
