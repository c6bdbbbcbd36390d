# All targets need Go, make and git. Help texts name further requirements.

SHELL := /bin/bash
TOOL := go tool -modfile=$(CURDIR)/internal/tools/go.mod
LINT := go tool -modfile=$(CURDIR)/internal/tools/lint/go.mod golangci-lint
# addlicense skips generated files and files that have a header.
LICENSE := $(TOOL) addlicense -c "The tokenpulse Authors" -y "" -l Apache-2.0 -s=only
LICENSED := git ls-files '*.go' '*.proto'
# Runs go test, and ends with the output of the failed tests.
TESTSUM := $(TOOL) gotestsum --format=standard-quiet --hide-summary=skipped

COLLECTOR := dist/otelcol-tokenpulse
TOKENGEN := dist/tokengen
# The Collector and tokengen of make run.
QUICKSTART := dist/quickstart/otelcol-quickstart dist/quickstart/tokengen

# Without a C compiler, the tests run without the race detector.
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)

# Tests that the race detector would only disturb: it allocates, takes memory, and is slow where one
# goroutine compares two computations.
NO_RACE := Alloc|Memory_|Equal|Agrees|AgreeWith

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: run
run: $(QUICKSTART) ## Build and start a Collector with its live page, send demo traffic, show percentiles; Ctrl-C stops everything
	@scripts/run

.PHONY: build
build: $(COLLECTOR) $(TOKENGEN) ## Build the Collector and tokengen into dist/

SOURCES := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './dist/*' -not -path './internal/tools/*') \
	$(shell find exporter/tokensliexporter/internal/page -path '*/assets/*' -o -name openapi.yaml)

# A binary depends on its sources and the Go version only: not on its folder (-trimpath,
# which the builder sets too), the commit (-buildvcs) or the C library.
export GOFLAGS += -buildvcs=false

$(COLLECTOR): builder-config.yaml go.mod go.sum $(SOURCES)
	@scripts/progress "Build $@" "2 minutes with an empty build cache" $(TOOL) builder --config $<

# So that a first build is short, there are few components in it, and the compiler neither
# optimizes nor writes data for debuggers. The builder and tokengen have the same flags: they
# then share compiled packages.
QUICK := -N -l -dwarf=false
$(QUICKSTART): export CGO_ENABLED := 0
$(QUICKSTART): export GOFLAGS := -buildvcs=false -trimpath '-gcflags=all=$(QUICK)'

dist/quickstart/otelcol-quickstart: builder-config-quickstart.yaml go.mod go.sum $(SOURCES)
	@mkdir -p dist
	@scripts/progress "Build $@" "1 minute with an empty build cache" $(TOOL) builder --gcflags="all=$(QUICK)" --config $<

TOKENGEN_SOURCES := go.mod go.sum cmd/tokengen/go.mod cmd/tokengen/go.sum $(SOURCES)

$(TOKENGEN): $(TOKENGEN_SOURCES)
	CGO_ENABLED=0 go build -C cmd/tokengen -trimpath -o $(CURDIR)/$@ .

dist/quickstart/tokengen: $(TOKENGEN_SOURCES)
	go build -C cmd/tokengen -o $(CURDIR)/$@ .

dist/licenses.txt: $(COLLECTOR) $(TOKENGEN) $(wildcard internal/tools/licenses/*)
	@scripts/check-licenses

.PHONY: check-licenses
check-licenses: dist/licenses.txt ## Check the licences of all modules in the binaries; lists them in dist/licenses.txt, with their texts in dist/notices.txt

.DELETE_ON_ERROR:

%.cdx.json: % dist/licenses.txt
	go run -C internal/tools ./sbom $(CURDIR)/$< $(CURDIR)/dist/licenses.txt >$@

.PHONY: sbom
sbom: $(COLLECTOR).cdx.json $(TOKENGEN).cdx.json ## Write a bill of materials (CycloneDX) for each binary into dist/

# Packages for Linux. Before the release of a version, they sort below it: 0.1.0-dev.
RELEASE := $(shell awk '$$1 == "version:" { print $$2 }' builder-config.yaml)
VERSION ?= $(RELEASE)$(if $(shell git tag --points-at HEAD v$(RELEASE) 2>/dev/null),,-dev)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
ARCHS ?= amd64 arm64
PACKAGE_ENV = VERSION=$(VERSION) SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)
PACKAGED := $(foreach arch,$(ARCHS),dist/linux_$(arch)/otelcol-tokenpulse dist/linux_$(arch)/tokengen)

# The builder has written the sources of the Collector to dist.
dist/linux_%/otelcol-tokenpulse: $(COLLECTOR)
	@scripts/progress "Build $@" "2 minutes with an empty build cache" \
		env CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -C dist -trimpath -ldflags='-s -w' -o $(CURDIR)/$@ .

dist/linux_%/tokengen: $(TOKENGEN_SOURCES)
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -C cmd/tokengen -trimpath -o $(CURDIR)/$@ .

.PHONY: dist
dist: $(PACKAGED) $(PACKAGED:=.cdx.json) ## Build archives, deb and rpm for Linux, with bills of materials and checksums, into dist/packages; ARCHS=amd64 builds fewer
	@rm -rf dist/packages
	@export $(PACKAGE_ENV); for arch in $(ARCHS); do scripts/package $$arch dist/packages || exit 1; done
	@cd dist/packages && sha256sum -- * >SHA256SUMS && cat SHA256SUMS

.PHONY: reproducible
reproducible: dist ## Build again in another folder, and compare the hashes of the packages; ARCHS as above
	@$(PACKAGE_ENV) ARCHS="$(ARCHS)" scripts/reproducible

# Installs the deb as root, and removes it. The second version is for an upgrade.
.PHONY: test-packages
test-packages: dist $(TOKENGEN) ## Install, run, upgrade and remove the deb of this machine's architecture, and check the unit and the rpm; needs Debian or Ubuntu, root or sudo, systemd-analyze and rpm
	@rm -rf dist/upgrade
	@export $(PACKAGE_ENV) VERSION=99.0.0; scripts/package $$(go env GOARCH) dist/upgrade
	go test -C e2e -count=1 -tags=packages -v $(if $(filter-out 0,$(shell id -u)),-exec 'sudo -E') . -run='^TestPackage' | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

.PHONY: vulncheck
vulncheck: build ## Look up known vulnerabilities in the code that the binaries call; needs https://vuln.go.dev
	$(TOOL) govulncheck -C cmd/tokengen .
	$(TOOL) govulncheck -C dist .

# The unit tests of the module in a folder.
define unit-tests
	cd $(1) && $(TESTSUM) -- -timeout=20m $(RACE) $(if $(RACE),-skip='$(NO_RACE)') ./...
	$(if $(RACE),cd $(1) && $(TESTSUM) -- -vet=off -run='$(NO_RACE)' $$(git grep -lE '^func Test\w*($(NO_RACE))' '*_test.go' ':!cmd' ':!e2e' ':!internal/tools' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u))
endef

# The race detector waits a second at the end of each of 60 programs, for races of goroutines that are
# left. goleak finds these goroutines.
test: export GORACE := atexit_sleep_ms=50

.PHONY: test
test: build $(QUICKSTART) ## Unit tests, golden files, fuzz seeds, then end-to-end tests of the built Collector; uses the race detector if a C compiler exists
	@$(if $(RACE),,echo "no C compiler found: tests run without the race detector";)
	$(call unit-tests,.)
	$(call unit-tests,cmd/tokengen)
	go test -C internal/tools ./sanitise
	cd e2e && $(TESTSUM) --format=standard-verbose -- -count=1 -timeout=20m -parallel=4 ./... | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

# All components on a release of the Collector, with parts of contrib. The manifest is that of the
# oldest supported release, with other versions. The builder is of the same release.
ON := 155
BETWEEN := 158 159 160

dist/release/%/otelcol-release: e2e/release/builder-config.yaml go.mod go.sum $(SOURCES)
	@mkdir -p $(@D)
	sed 's/0\.155\.0/0.$*.0/; s/v0\.155 /v0.$* /; s/v1\.61\.0/v1.'$$(($* - 94))'.0/; s,dist/release/155,$(@D),' $< >$(@D)/builder-config.yaml
	go run go.opentelemetry.io/collector/cmd/builder@v0.$*.0 --config $(@D)/builder-config.yaml

.PHONY: test-oldest
test-oldest: ## Build all components on the oldest supported release of the Collector, and run the quickstart, the tap and the connector there
	$(MAKE) test-release ON=155

.PHONY: test-releases
test-releases: ## The same on the releases between the oldest and the newest for which all parts of contrib resolve
	set -e; for release in $(BETWEEN); do $(MAKE) test-release ON=$$release; done

.PHONY: test-release
test-release: dist/release/$(ON)/otelcol-release $(TOKENGEN) ## The same on one release, such as ON=158
	go test -C e2e -count=1 -v . -collector=$(CURDIR)/$< \
		-run='^Test(ExampleQuickstart|ExampleTap|ExampleSLOEvents|StandardMetrics)_' | grep -E '^(---|ok|FAIL|PASS)'; exit $${PIPESTATUS[0]}

# The commands of a page for new users, in an empty folder.
.PHONY: test-start-here
test-start-here: build ## Clone, build and run each part of docs/start-here.md in an empty folder, and print the times; needs curl
	go test -C e2e -count=1 -v . -run='^TestStartHere' -from-scratch | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

.PHONY: test-kubernetes
test-kubernetes: build ## Decode examples/kubernetes strictly into the types of Kubernetes and the operators, and validate its configs; the first build takes minutes
	cd e2e/kubernetes && go mod tidy -diff && $(LINT) run ./...
	go test -C e2e/kubernetes -count=1 -v ./...

.PHONY: test-soak
test-soak: build ## Load for 55 minutes: token events at half and twice the Collector's capacity, and a proxy whose clients break off: memory, goroutines and connections stay bounded. SOAK_WARMUP, SOAK_HALF and SOAK_DOUBLE as in 30m
	go test -C e2e -count=1 -timeout=24h -v . -run='^TestSoak' -soak-growth=0.05 \
		-soak-warmup=$(or $(SOAK_WARMUP),2m) -soak-half=$(or $(SOAK_HALF),30m) -soak-double=$(or $(SOAK_DOUBLE),10m)

# npm stores a copy of the lock file in node_modules. npm ci is slow, so it runs only
# if the lock file is newer than this copy.
CLIENTS := e2e/clients/node_modules/.package-lock.json

$(CLIENTS): e2e/clients/package-lock.json
	npm ci --prefix e2e/clients
	@touch $@

.PHONY: test-clients
test-clients: build $(CLIENTS) ## Run real client libraries against the built Collector; needs Node.js 20, npm and Python 3.9. CLIENTS_ARGS=-update rewrites the client table in docs/sources.md
	go test -C e2e -count=1 -tags=clients -v . -run='^Test(Tap|Timed|Python)?Clients(_.*)?$$' $(CLIENTS_ARGS)

# llama.cpp, as the package for Linux on x86-64 ships it. Packages for GPUs and other
# systems are optional dependencies, and left out. npm ci refuses a lock file without them;
# npm install takes the same versions from it.
ENGINE := e2e/engine/node_modules/.package-lock.json

$(ENGINE): e2e/engine/package-lock.json
	npm install --no-save --omit=optional --ignore-scripts --prefix e2e/engine
	@touch $@

.PHONY: test-engine
test-engine: build $(ENGINE) ## Compare what the token_tap receiver sees with the timings of llama.cpp, which runs a model with random weights; needs Linux on x86-64, Node.js 20 and npm
	go test -C e2e -count=1 -tags=engine -v . -run='^TestEngine_'

# The Collector of examples/fleet, and the Kafka broker of its tests.
FLEET := dist/fleet/otelcol-fleet
KAFKA := dist/fleet/kafkabroker

$(FLEET): examples/fleet/builder-config.yaml go.mod go.sum $(SOURCES)
	$(TOOL) builder --config $<

$(KAFKA): internal/tools/go.mod internal/tools/kafkabroker/main.go
	cd internal/tools && go build -o ../../$@ ./kafkabroker

# The live page of the exporter. Its built files are committed, so that go build needs no Node.js.
PAGE := exporter/tokensliexporter/internal/page
PAGE_MODULES := $(PAGE)/web/node_modules/.package-lock.json

$(PAGE_MODULES): $(PAGE)/web/package-lock.json
	npm ci --prefix $(PAGE)/web
	@touch $@

.PHONY: page
page: $(PAGE_MODULES) ## Build the live page into the files that the exporter embeds; needs Node.js 20 and npm
	npm --prefix $(PAGE)/web run --silent build

.PHONY: check-page
check-page: $(PAGE_MODULES) ## Check types, units and colours of the live page, and that its built files are those of its sources
	npm --prefix $(PAGE)/web run --silent types
	npm --prefix $(PAGE)/web run --silent test
	@scripts/check-page $(PAGE)

.PHONY: page-media
page-media: build ## Rewrite the pictures of the live page in docs/images from a run of five minutes; needs chromium and webp
	go test -C e2e -count=1 -tags=media -v . -run='^TestLivePageMedia$$'

# Lighthouse rates a page by simulating a slow computer.
LIGHTHOUSE := e2e/lighthouse/node_modules/.package-lock.json

$(LIGHTHOUSE): e2e/lighthouse/package-lock.json
	npm ci --prefix e2e/lighthouse
	@touch $@

.PHONY: test-lighthouse
test-lighthouse: build $(LIGHTHOUSE) ## Lighthouse rates performance and accessibility of the live page at 95 or more; needs chromium, Node.js 20 and npm
	go test -C e2e -count=1 -tags=lighthouse -v . -run='^TestLivePageLighthouse$$'

.PHONY: test-fleet
test-fleet: build $(FLEET) $(KAFKA) ## Run examples/fleet: several Collectors behind a gateway or Kafka, one of which is killed; needs prometheus
	go test -C e2e -count=1 -tags=fleet -v . -run='^TestFleetExample' | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

# Built from the Go module. 3.5 is the long-term release, and among the last that enable
# native histograms by a flag.
PROMETHEUS := dist/prometheus/3.5/prometheus dist/prometheus/3.14/prometheus

$(PROMETHEUS): dist/prometheus/%/prometheus: scripts/build-prometheus
	scripts/build-prometheus $*
	@touch $@

.PHONY: test-prometheus
test-prometheus: build $(PROMETHEUS) ## Let Prometheus 2 and 3 scrape the Collector with each setting of docs/prometheus.md; needs prometheus, and 5 minutes for the first build
	go test -C e2e -count=1 -tags=prometheus -v . -run='^TestPrometheus(Page|3)' | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

# Jaeger 1.76 is the last release of Jaeger 1. Built from the Go module.
JAEGER := dist/jaeger/1.76.0/all-in-one

$(JAEGER): dist/jaeger/%/all-in-one: scripts/build-jaeger
	scripts/build-jaeger $*
	@touch $@

.PHONY: test-jaeger
test-jaeger: build $(JAEGER) ## Run each query of docs/traces.md in Jaeger and in jq; needs jq, and 4 minutes for the first build. JAEGER_ARGS=-update redraws the waterfall of the page
	go test -C e2e -count=1 -tags=jaeger -v . -run='^TestTracesPage' $(JAEGER_ARGS) | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

# The tests wait for verdicts, so all of them run at once, on however few processors.
.PHONY: test-rollouts
test-rollouts: build ## Run examples/canary with the code of Argo Rollouts and Flagger until there is a verdict: 23 minutes, and 10 for the first build; needs curl
	go test -C e2e/rollouts -count=1 -timeout=1h -parallel=5 -v . | grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

.PHONY: bench
bench: ## Run the benchmarks of every package; BENCHTIME and COUNT as in go test
	go test -run='^$$' -bench=. -benchmem -benchtime=$(or $(BENCHTIME),1s) -count=$(or $(COUNT),1) ./...

BENCHMARK := dist/benchmark

$(BENCHMARK): e2e/go.mod e2e/go.sum $(SOURCES) $(wildcard e2e/benchmark/*.tmpl e2e/benchmark/configs/*)
	go build -C e2e -o $(CURDIR)/$@ ./benchmark

.PHONY: bench-e2e
bench-e2e: build $(BENCHMARK) ## Measure CPU per request of the whole Collector, compared with OTLP span events. BENCH_ARGS=-check fails if it became slower; -only '10 tokens' measures less
	dist/benchmark $(BENCH_ARGS)

# A Collector with our components and spanmetrics, all on one release. Its components need the builder of
# the same version.
PEERS := dist/peers/otelcol-peers

$(PEERS): e2e/benchmark/peers/builder-config.yaml go.mod go.sum $(SOURCES)
	@mkdir -p $(@D)
	go run go.opentelemetry.io/collector/cmd/builder@v0.155.0 --config $<

.PHONY: bench-peers
bench-peers: $(BENCHMARK) $(PEERS) ## Measure everything in about 15 minutes, also compared with spanmetrics; writes docs/performance.md and the ratios that -check expects
	dist/benchmark -collector $(PEERS) -peers $(PEERS) -document docs $(BENCH_ARGS)

.PHONY: bench-tap
bench-tap: build $(BENCHMARK) ## Measure what the token_tap receiver adds to streams, in about half an hour, compared with nginx and Go's reverse proxy; needs nginx and 20,000 open files; writes the cost in the README of the receiver, and the ratio that -check expects. BENCH_ARGS='-check -rounds 1' fails if it became slower
	dist/benchmark -tap -document receiver/tokentapreceiver $(BENCH_ARGS)

.PHONY: simulate
simulate: ## Simulate SEEDS worlds (default 1000) from seed FIRST (default 1): faults of network, pipeline, disk and process
	go test -count=1 -timeout=0 -run='^TestSimulation$$' ./internal/simulation -seeds=$(or $(SEEDS),1000) -first=$(or $(FIRST),1)

.PHONY: simulate-canary
simulate-canary: ## Simulate RUNS canaries (default 2000) for each row of the tables in docs/canary.md, and print the tables; about an hour on two cores
	go test -count=1 -timeout=0 -v -run='^TestSimulate$$' ./exporter/tokensliexporter/internal/canary -runs=$(or $(RUNS),2000)

.PHONY: fuzz
fuzz: ## Run each fuzz target for FUZZTIME (default 20s, about 15 minutes in total)
	@set -e; for package in $$(go list ./...); do \
		for target in $$(go test -list='^Fuzz' $$package | grep ^Fuzz || true); do \
			echo "$$package $$target"; \
			go test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(or $(FUZZTIME),20s) -fuzzminimizetime=10x $$package; \
		done; \
	done

.PHONY: dashboards
dashboards: ## Write the Grafana dashboards of examples/grafana
	cd internal/tools && go run ./dashboards ../../examples/grafana

.PHONY: generate
generate: dashboards ## Regenerate the files of mdatagen, protoc-gen-go and protoc-gen-go-grpc, the dashboards and the PrometheusRule
	go generate ./...
	scripts/prometheusrule >examples/kubernetes/prometheusrule.yaml
	cd internal/tools && go run ./protogen ../../proto tokenpulse/v1/token_stream.proto

.PHONY: format
format: ## Format Go files with gofumpt
	$(TOOL) gofumpt -w $$(git ls-files '*.go' | grep -vE 'generated_|[.]pb[.]go')

.PHONY: lint
lint: ## Run golangci-lint and actionlint, and check licence headers
	$(LINT) run ./...
	cd cmd/tokengen && $(LINT) run ./...
	cd e2e && $(LINT) run ./...
	@set -e; for tag in $$(git grep -h '^//go:build' 'e2e/*.go' | sort -u | cut -d' ' -f2); do go vet -C e2e -tags=$$tag .; done
	$(TOOL) actionlint
	@$(LICENSE) -check $$($(LICENSED)) || { echo "files above lack a licence header; add it: make license"; exit 1; }

.PHONY: license
license: ## Add missing licence headers to Go and proto files; run make generate after it if a proto file changed
	$(LICENSE) $$($(LICENSED))

# Without cgo, so no C cross-compiler is needed. go vet also type-checks the tests.
# The tests in e2e start processes with Unix system calls and need 64 bits.
CROSS := linux/arm64 linux/386 darwin/arm64 windows/amd64

.PHONY: cross
cross: ## Type-check the code and the tests for the other supported platforms
	@set -e; for platform in $(CROSS); do \
		echo "$$platform"; \
		export CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		go vet ./...; go vet -C cmd/tokengen ./...; go vet -C e2e ./benchmark/...; \
	done

.PHONY: clean
clean: ## Remove build output
	rm -rf dist
