# Trireme's commands. `make` or `make help` lists them.
SHELL := bash
# rustup's directory, for shells whose profile does not name it.
export PATH := $(PATH):$(HOME)/.cargo/bin

# Programs that change directory need it as well.
ifdef CARGO_TARGET_DIR
export CARGO_TARGET_DIR := $(abspath $(CARGO_TARGET_DIR))
endif
BIN := $(or $(CARGO_TARGET_DIR),target)/release

# Options, as in `make fuzz SECONDS=600`; ARGS are passed on to the program that the target runs.
SECONDS ?= 60
MINUTES ?= 10
# Another Debian release, as in `make conformance ROOT=trixie`.
ROOT ?=
# Where `make bench` puts its reports.
OUT ?= trireme-bench-$(shell date -u +%Y-%m-%dT%H%M%SZ)
ARGS ?=

# Asked before a build that would be in vain.
needs_root = [ "$$(id -u)" = 0 ] || { echo "make $@: its Debian roots need chroot and namespaces: run it as root" >&2; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help build deb test-deb demo test test-all test-lab conformance soak bad-days crash bench sim sim-soak mutants model coverage lint fuzz clean

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 22

build:  ## release build of libtrireme.so and of the trireme program
	@scripts/packages.sh build
	cargo build --release --package trireme-provider --package trireme-cli
	@mkdir -p $(BIN)/garb && ln -sf ../trireme $(BIN)/garb/garbd
	@echo "built $(BIN)/libtrireme.so and $(BIN)/trireme, which is an arbitrator by the name of $(BIN)/garb/garbd"

deb:  ## Debian packages of the library, the program and the arbitrator, into target/deb (for this Debian release and later ones)
	@scripts/packages.sh deb
	@$(MAKE) --no-print-directory build
	scripts/deb.sh $(BIN)/../deb

test-deb:  ## installs, upgrades, runs, removes and purges the packages in clean roots of Debian 12 and 13 (needs root)
	@$(needs_root)
	@$(MAKE) --no-print-directory deb
	scripts/test-deb.sh $(BIN)/../deb

demo:  ## three nodes on this machine under load, one is killed and comes back (KEEP=1 leaves them running)
	@scripts/packages.sh demo
	@$(MAKE) --no-print-directory build
	$(BIN)/trireme demo $(ARGS)

test:  ## what every change passes: unit, property and simulation tests, real servers, the core of MariaDB's suites
	@scripts/test.sh

test-all:  ## the longer rest, which CI runs after `make test`: seeds of the commit's own, all other clusters of real servers
	@scripts/test.sh rest

test-lab:  ## the lab's experiments and systems, with real servers (eight minutes)
	@scripts/test.sh lab

conformance:  ## MariaDB's whole Galera suites (hours), compared with Galera (ROOT=trixie: those of Debian 13; needs root)
	@$(if $(ROOT),$(needs_root))
	@scripts/packages.sh conformance
	@$(MAKE) --no-print-directory build
	$(if $(ROOT),scripts/debian-root.sh $(ROOT)) scripts/conformance.sh $(ARGS)

soak:  ## mixed load on three nodes for MINUTES=10: crashes, errors, memory, identical rows
	@scripts/packages.sh demo
	@$(MAKE) --no-print-directory build
	$(BIN)/trireme soak --minutes $(MINUTES) --max-growth-mib-per-minute 1 $(ARGS)

bad-days:  ## a node killed, a full, slow or lost disk, a cut, a clock off, a long ALTER ...: each is named and ended as docs/runbooks.md says
	@scripts/packages.sh demo
	@$(MAKE) --no-print-directory build
	TRIREME_REAL=1 TRIREME_PROVIDER="$(abspath $(BIN))/libtrireme.so" cargo test --release --package trireme-cli --test real_cluster -- --test-threads=1 real::bad_days $(ARGS)

crash:  ## 100 schedules of kill -9 under load: nothing acknowledged is lost (ARGS="--schedules 10 --seed 7")
	@scripts/packages.sh demo
	@$(MAKE) --no-print-directory build
	$(BIN)/trireme crash $(ARGS)

bench:  ## a quick pass over all experiments, a report each, into OUT=DIR (latency takes sudo; more: trireme bench --help)
	@scripts/packages.sh bench
	@$(MAKE) --no-print-directory build
	scripts/bench.sh $(BIN)/trireme $(OUT) $(ARGS)

sim:  ## one schedule of the simulator after the other (ARGS="--seeds 0..1000 --profile churn")
	cargo run --release --package simulator -- run $(or $(ARGS),--seeds 0..1000)

sim-soak:  ## COUNT=20000 more schedules, on from the last range in crates/simulator/ranges.txt
	scripts/sim-soak.sh $(or $(COUNT),20000)

mutants:  ## planted mistakes: in how many schedules the simulator finds each, and which test finds those outside of it
	cargo run --release --package simulator --features mutants -- mutants $(ARGS)
	scripts/mutants.sh

model:  ## every interleaving of a small group (minutes, some GiB)
	cargo run --release --package trireme-model -- --bound large $(ARGS)

coverage:  ## what the simulator (SEEDS=500) and the tests reach of the pure cores, at least 95 %
	scripts/coverage.sh $(or $(SEEDS),500)

lint:  ## formatting, clippy, the oldest Rust, licences and advisories
	@scripts/packages.sh lint
	cargo fmt --all --check
	cargo fmt --manifest-path fuzz/Cargo.toml --check
	cargo clippy --workspace --all-targets -- -D warnings
	@if cargo +1.85 --version >/dev/null 2>&1; then cargo +1.85 check --workspace --all-targets --target-dir target/oldest; \
	else echo "lint: Rust 1.85, which Debian has, is not installed (rustup toolchain install 1.85): unchecked"; fi
	@if command -v cargo-deny >/dev/null; then cargo deny check; \
	else echo "lint: cargo-deny is not installed (cargo install --locked cargo-deny): licences and advisories unchecked"; fi

fuzz:  ## every decoder of foreign bytes, and cores among liars, SECONDS=60 each (TARGETS="certification ..." for some)
	@scripts/packages.sh fuzz
	scripts/fuzz.sh $(SECONDS) $(TARGETS)

clean:  ## remove what was built, and what target/ keeps: the fuzzing corpus, verdicts of suites that were broken off
	cargo clean
