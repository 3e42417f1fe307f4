# `make help` lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CARGO ?= cargo
TESTBED = $(CARGO) run --quiet -p spillway-testbed --bin testbed --
# The same, as the tests of the workspace have built it: `cargo run` would build its dependencies anew with fewer features.
BUILT_TESTBED = $${CARGO_TARGET_DIR:-target}/debug/testbed
# One end-to-end test by (a part of) its name: make e2e TEST=deployment
TEST ?=
# One for each: they wait more than they work, and the suite itself limits how many share the clusters.
export RUST_TEST_THREADS ?= 100

.PHONY: help
help: ## Show this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: demo
demo: prerequisites ## From nothing to two clusters with a Deployment of 3 running across
	$(CARGO) run --quiet -p spillway-e2e --bin demo

# One build for all tests. The clusters are taken down whether they passed or not.
.PHONY: test
test: prerequisites lint ## Everything that must pass before a change lands
	status=0; $(CARGO) test --workspace || status=$$?; for name in e2e e2e-single; do $(BUILT_TESTBED) --name $$name down; done; exit $$status

.PHONY: lint
lint: ## Formatting, and clippy with warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings

.PHONY: test-unit
test-unit: ## Unit tests and generated files; no clusters
	$(CARGO) test --workspace --exclude spillway-e2e

.PHONY: e2e
e2e: prerequisites ## End-to-end tests on real clusters, which stay up for the next run (TEST=name for one)
	$(CARGO) test --workspace --test e2e -- --nocapture $(TEST)

.PHONY: soak
soak: prerequisites ## End-to-end tests that take minutes each, one after the other (TEST=name for one)
	$(CARGO) test --workspace --test e2e -- --nocapture --ignored --test-threads=1 $(TEST)

# The operators are the release binaries that the image would have.
.PHONY: bench bench-quick
bench: prerequisites bench-build ## What offloading costs, against vanilla: more than an hour; results in target/bench (BENCH="--help" for more)
	$(CARGO) run --quiet --release -p spillway-bench --bin bench -- $(BENCH)

bench-quick: prerequisites bench-build ## The same with 100 pods: a few minutes
	$(CARGO) run --quiet --release -p spillway-bench --bin bench -- --quick $(BENCH)

.PHONY: bench-build
bench-build:
	$(CARGO) build --release -p spillway-admission -p spillway-peering -p spillway-shadow-pod -p spillway-virtual-kubelet

BENCH ?=

.PHONY: testbed-up
testbed-up: prerequisites ## Two real clusters, home and away, on this machine
	$(TESTBED) up

.PHONY: testbed-down
testbed-down: ## Remove every cluster of every testbed
	$(TESTBED) down --all

.PHONY: image
image: ## The container image with all binaries, as a docker-archive in target/
	$(CARGO) build --release -p spillway-admission -p spillway-peering -p spillway-shadow-pod -p spillway-virtual-kubelet
	$(TESTBED) image build --out target/spillway-image.tar --tag spillway/spillway:$(VERSION) admission peering shadow-pod virtual-kubelet

VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)

.PHONY: crds
crds: ## Write the CRDs from crates/api to crds/ and into their chart
	$(CARGO) run --quiet -p spillway-api --example crds -- crds
	$(CARGO) run --quiet -p spillway-api --example crds -- manifests/charts/spillway-crds/files

.PHONY: deny
deny: ## Licences and sources of the dependencies (needs cargo-deny)
	$(CARGO) deny check licenses bans sources

.PHONY: prerequisites
prerequisites:
	@missing=""; \
	[ "$$(uname -s)" = Linux ] || missing="$$missing Linux"; \
	[ "$$(id -u)" = 0 ] || missing="$$missing root"; \
	for tool in cargo go cc apt-get; do command -v $$tool >/dev/null || missing="$$missing $$tool"; done; \
	if [ -n "$$missing" ]; then echo "Real clusters need:$$missing (see README.md, 'What it needs')" >&2; exit 1; fi
