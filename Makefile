# Everything here needs Go, make and git only, unless it says otherwise.

SHELL := /bin/bash
TOOL := go tool -modfile=internal/tools/go.mod
LINT := go tool -modfile=internal/tools/lint/go.mod golangci-lint

COLLECTOR := dist/otelcol-tokenpulse
TOKENGEN := dist/tokengen

# The race detector needs a C compiler; without one the tests run without it.
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

.PHONY: run
run: build ## Build the Collector, send demo traffic, show percentiles; Ctrl-C stops all of it
	@scripts/run

.PHONY: build
build: $(COLLECTOR) $(TOKENGEN) ## Build the Collector and the traffic tool into dist/

SOURCES := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './dist/*' -not -path './internal/tools/*')

$(COLLECTOR): builder-config.yaml go.mod go.sum $(SOURCES)
	$(TOOL) builder --config builder-config.yaml

$(TOKENGEN): go.mod go.sum $(SOURCES)
	go build -o $@ ./cmd/tokengen

.PHONY: test
test: build ## Unit tests, golden files, fuzz seeds (with the race detector if there is a C compiler), then the built Collector end to end
	@$(if $(RACE),,echo "no C compiler found: testing without the race detector";)
	go test $(RACE) $$(go list ./... | grep -v /e2e)
	$(if $(RACE),go test -run=Allocation ./internal/...)
	go test -count=1 -timeout=20m -v ./e2e/... | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

# npm keeps a copy of the lock beside what it installed; npm ci is slow, so it only
# runs when the lock has changed since.
CLIENTS := e2e/clients/node_modules/.package-lock.json

$(CLIENTS): e2e/clients/package-lock.json
	npm ci --prefix e2e/clients
	@touch $@

.PHONY: test-clients
test-clients: build $(CLIENTS) ## Real client libraries against the built Collector; needs node 20 and npm. CLIENTS_ARGS=-update rewrites their table in docs/sources.md
	go test -count=1 -tags=clients -v ./e2e -run='^TestClients$$' $(CLIENTS_ARGS)

.PHONY: bench
bench: ## Benchmarks of every package; BENCHTIME and COUNT as for go test
	go test -run='^$$' -bench=. -benchmem -benchtime=$(or $(BENCHTIME),1s) -count=$(or $(COUNT),1) $$(go list ./... | grep -v /e2e)

.PHONY: bench-e2e
bench-e2e: build ## CPU of the whole Collector per token, beside OTLP span events in the same build. BENCH_ARGS="-min-ratio 25" fails under that
	go run ./e2e/benchmark $(BENCH_ARGS)

# A Collector with spanmetrics, built again when its config changes. It needs the
# builder of its own version.
PEERS := dist/peers/otelcol-peers

$(PEERS): e2e/benchmark/peers/builder-config.yaml
	go run go.opentelemetry.io/collector/cmd/builder@v0.155.0 --config $<

.PHONY: bench-peers
bench-peers: build $(PEERS) ## bench-e2e beside a Collector with spanmetrics, and spans and scrapes too; writes docs/performance.md
	go run ./e2e/benchmark -peers $(PEERS) -document docs/performance.md $(BENCH_ARGS)

.PHONY: fuzz
fuzz: ## Every fuzz target for FUZZTIME (default 20s)
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list='^Fuzz' $$package | grep ^Fuzz || true); do \
			echo "$$package $$target"; \
			go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(or $(FUZZTIME),20s) -fuzzminimizetime=10x $$package; \
		done; \
	done

.PHONY: generate
generate: ## Regenerate what mdatagen and protoc-gen-go write
	go generate ./...
	cd internal/tools && go run ./protogen ../../proto tokenpulse/v1/token_stream.proto

.PHONY: format
format: ## gofumpt
	$(TOOL) gofumpt -w $$(git ls-files '*.go')

.PHONY: lint
lint: ## golangci-lint
	$(LINT) run ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf dist
