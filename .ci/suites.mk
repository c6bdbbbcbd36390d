# Suites that take long or need more programs. .github/workflows/nightly.yml runs most of them, .ci/run
# some. ARGS are further arguments of a suite's last command, such as ARGS=-update.

.PHONY: suites
suites:
	@$(LIST) .ci/suites.mk

##@ Programs and libraries of others

# All components on a release of the Collector, with parts of contrib. The manifest is that of the
# oldest supported release, with other versions. The builder is of the same release.
dist/release/%/otelcol-release: e2e/release/builder-config.yaml go.mod go.sum $(SOURCES)
	@mkdir -p $(@D)
	sed 's/0\.155\.0/0.$*.0/; s/v0\.155 /v0.$* /; s/v1\.61\.0/v1.'$$(($* - 94))'.0/; s,dist/release/155,$(@D),' $< >$(@D)/builder-config.yaml
	go run go.opentelemetry.io/collector/cmd/builder@v0.$*.0 --config $(@D)/builder-config.yaml

# The files of a chain of patterns would be deleted.
.PRECIOUS: dist/release/%/otelcol-release

suite-release-%: dist/release/%/otelcol-release $(COMMAND)
	go test -C e2e -count=1 -p=1 -v ./pipelines ./prometheus ./tap -collector=$(CURDIR)/$< \
		-run='^Test(ExampleQuickstart|ExampleTap|ExampleSLOEvents|StandardMetrics)_' $(ARGS) | grep -E '^(---|ok|FAIL|PASS)'; exit $${PIPESTATUS[0]}

.PHONY: suite-oldest
suite-oldest: suite-release-155 ## Build all components on the oldest supported release of the Collector, and run the quickstart, the tap and the connector there

.PHONY: suite-releases
suite-releases: suite-release-158 suite-release-159 suite-release-160 ## The same on the releases between the oldest and the newest for which all parts of contrib resolve

CLIENTS := e2e/clients/node_modules/.package-lock.json

$(CLIENTS): e2e/clients/package-lock.json
	npm ci --prefix e2e/clients
	@touch $@

.PHONY: suite-clients
suite-clients: build $(CLIENTS) ## Run real client libraries against the built Collector; needs Node.js 20, npm and Python 3.9. ARGS=-update rewrites the client table in docs/sources.md
	go test -C e2e -count=1 -tags=clients -v ./clients -run='^Test(Tap|Timed|Python)?Clients(_.*)?$$' $(ARGS)

# llama.cpp, as the package for Linux on x86-64 ships it. Packages for GPUs and other
# systems are optional dependencies, and left out. npm ci refuses a lock file without them;
# npm install takes the same versions from it.
ENGINE := e2e/engine/node_modules/.package-lock.json

$(ENGINE): e2e/engine/package-lock.json
	npm install --no-save --omit=optional --ignore-scripts --prefix e2e/engine
	@touch $@

.PHONY: suite-engine
suite-engine: build $(ENGINE) ## Compare what the token_tap receiver sees with the timings of llama.cpp, which runs a model with random weights, and stop it; needs Linux on x86-64, Node.js 20 and npm
	go test -C e2e -count=1 -tags=engine -v ./engine $(ARGS)

# The Collector of examples/fleet, and the Kafka broker of its tests.
FLEET := dist/fleet/otelcol-fleet
KAFKA := dist/fleet/kafkabroker

$(FLEET): examples/fleet/builder-config.yaml go.mod go.sum $(SOURCES)
	$(TOOL) builder --config $<

$(KAFKA): internal/tools/go.mod internal/tools/kafkabroker/main.go
	cd internal/tools && go build -o ../../$@ ./kafkabroker

.PHONY: suite-fleet
suite-fleet: build $(FLEET) $(KAFKA) ## Run examples/fleet: several Collectors behind a gateway or Kafka, one of which is killed; needs prometheus
	go test -C e2e -count=1 -tags=fleet -v ./fleet -run='^TestFleetExample' $(ARGS) | $(QUIET)

# Built from the Go module. 3.5 is the long-term release, and among the last that enable
# native histograms by a flag.
PROMETHEUS := dist/prometheus/3.5/prometheus dist/prometheus/3.14/prometheus

$(PROMETHEUS): dist/prometheus/%/prometheus: scripts/build-prometheus
	scripts/build-prometheus $*
	@touch $@

.PHONY: suite-prometheus
suite-prometheus: build $(PROMETHEUS) ## Let Prometheus 2 and 3 scrape the Collector with each setting of docs/prometheus.md; needs prometheus, and 5 minutes for the first build
	go test -C e2e -count=1 -tags=prometheus -v ./prometheus -run='^TestPrometheus(Page|3)' $(ARGS) | $(QUIET)

# Jaeger 1.76 is the last release of Jaeger 1; its module also has Jaeger 2.13. Built from the Go module.
JAEGER := dist/jaeger/1.76.0/all-in-one
JAEGER2 := dist/jaeger/1.76.0/jaeger

$(JAEGER) $(JAEGER2): scripts/build-jaeger
	scripts/build-jaeger 1.76.0 $(@F)
	@touch $@

.PHONY: suite-jaeger
suite-jaeger: build $(JAEGER) ## Run each query of docs/traces.md in Jaeger and in jq; needs jq, and 4 minutes for the first build. ARGS=-update redraws the waterfall of the page
	go test -C e2e -count=1 -tags=jaeger -v ./traces -run='^TestTracesPage' $(ARGS) | $(QUIET)

# The Collector of examples/backends.
BACKENDS := dist/backends/otelcol-backends

$(BACKENDS): examples/backends/builder-config.yaml go.mod go.sum $(SOURCES)
	$(TOOL) builder --config $<

.PHONY: suite-backends
suite-backends: build $(BACKENDS) ## Validate the config of docs/backends.md for ClickHouse's exporter, and add up delta in a receiving Collector
	go test -C e2e -count=1 -tags=backends -v ./pipelines -run='^Test(Backends|Delta)' $(ARGS) | $(QUIET)

# The versions that examples/compose names. The image of Grafana cannot be built from a Go module.
COMPOSED := dist/prometheus/3.14/prometheus dist/alertmanager/0.28.1/alertmanager $(JAEGER2)

dist/alertmanager/%/alertmanager:
	CGO_ENABLED=0 GOBIN=$(CURDIR)/$(@D) go install -trimpath github.com/prometheus/alertmanager/cmd/alertmanager@v$*

.PHONY: suite-compose
suite-compose: build $(IMAGE_PARTS) dist/licenses.txt $(COMPOSED) ## Build and restart the container image, and run examples/compose until an alert fires; needs Docker with BuildKit and Compose, and 10 minutes for the first build
	go test -C e2e -count=1 -tags=compose -v ./compose -run='^TestContainers' $(ARGS) | $(QUIET)

.PHONY: suite-kubernetes
suite-kubernetes: build ## Decode examples/kubernetes strictly into the types of Kubernetes and the operators, validate its configs, and let the kubelet's prober ask a sidecar; the first build takes minutes
	cd e2e/kubernetes && go mod tidy -diff && $(LINT) run ./...
	go test -C e2e/kubernetes -count=1 -v ./... $(ARGS)

.PHONY: suite-keda
suite-keda: build ## Let KEDA's scaler and its fallback read what the Collector of examples/capacity answers; the first build takes 10 minutes and 4 GB
	go test -C e2e/keda -count=1 -v ./... $(ARGS)
	cd e2e/keda && go mod tidy -diff && $(LINT) run ./... # after the build, which takes longer than its timeout

.PHONY: suite-slotools
suite-slotools: $(COMMAND) ## Let Sloth and OpenSLO read what tokenpulse slos writes, and promtool run the rules; needs prometheus, and 3 minutes for the first build
	go test -C e2e/slotools -count=1 -v ./... $(ARGS)
	cd e2e/slotools && go mod tidy -diff && $(LINT) run ./... # after the build, which takes longer than its timeout

# Lighthouse rates a page by simulating a slow computer.
LIGHTHOUSE := e2e/lighthouse/node_modules/.package-lock.json

$(LIGHTHOUSE): e2e/lighthouse/package-lock.json
	npm ci --prefix e2e/lighthouse
	@touch $@

.PHONY: suite-lighthouse
suite-lighthouse: build $(LIGHTHOUSE) ## Lighthouse rates performance and accessibility of the live page at 95 or more; needs chromium, Node.js 20 and npm
	go test -C e2e -count=1 -tags=lighthouse -v ./page -run='^TestLivePageLighthouse$$' $(ARGS)

.PHONY: suite-media
suite-media: build ## Rewrite the pictures in docs/images, those of the live page from a run of five minutes; needs chromium and webp
	go test -C e2e -count=1 -tags=media -v ./page -run='^Test(LivePage|Report|Terminal)Media$$' $(ARGS)

##@ From nothing to a package

# Without cgo, so no C cross-compiler is needed. go vet also type-checks the tests.
# The tests in e2e start processes with Unix system calls and need 64 bits.
PLATFORMS := linux/arm64 linux/386 darwin/arm64 windows/amd64

.PHONY: suite-platforms
suite-platforms: ## Type-check the code and the tests for the other supported platforms
	@set -e; for platform in $(PLATFORMS); do \
		echo "$$platform"; \
		export CGO_ENABLED=0 GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		go vet ./...; go vet -C cmd/tokenpulse ./...; go vet -C e2e ./benchmark/...; \
	done

.PHONY: suite-start-here
suite-start-here: build ## Clone, build and run each part of docs/start-here.md in an empty folder, and print the times; needs curl
	go test -C e2e -count=1 -v ./docs -run='^TestStartHere' -from-scratch $(ARGS) | $(QUIET)

.PHONY: suite-licenses
suite-licenses: dist/licenses.txt ## Check the licences of all modules in the binaries; lists them in dist/licenses.txt, with their texts in dist/notices.txt

.PHONY: suite-vulnerabilities
suite-vulnerabilities: build ## Look up known vulnerabilities in the code that the binaries call; needs https://vuln.go.dev
	$(TOOL) govulncheck -C cmd/tokenpulse .
	$(TOOL) govulncheck -C dist .

.PHONY: suite-reproducible
suite-reproducible: dist ## Build again in another folder, and compare the hashes of the packages; ARCHS as in make dist
	@$(PACKAGE_ENV) ARCHS="$(ARCHS)" scripts/reproducible

# Installs the deb as root, and removes it. The second version is for an upgrade.
.PHONY: suite-packages
suite-packages: dist $(COMMAND) ## Install, run, upgrade and remove the deb of this machine's architecture, and check the unit and the rpm; needs Debian or Ubuntu, root or sudo, systemd-analyze and rpm
	@rm -rf dist/upgrade
	@export $(PACKAGE_ENV) VERSION=99.0.0; scripts/package $$(go env GOARCH) dist/upgrade
	go test -C e2e -count=1 -tags=packages -v $(if $(filter-out 0,$(shell id -u)),-exec 'sudo -E') ./packages -run='^TestPackage' $(ARGS) | $(QUIET)

##@ Long runs

.PHONY: suite-soak
suite-soak: build ## Load for 55 minutes: token events at half and twice the Collector's capacity, and a proxy whose clients break off: memory, goroutines and connections stay bounded. ARGS='-soak-half=5m -soak-double=2m' takes less
	go test -C e2e -count=1 -timeout=24h -v ./load -run='^TestSoak' -soak-growth=0.05 -soak-warmup=2m -soak-half=30m -soak-double=10m $(ARGS)

.PHONY: suite-simulation
suite-simulation: ## Simulate 1000 worlds: faults of network, pipeline, disk and process. ARGS='-seeds=5000 -first=1000' simulates others
	go test -count=1 -timeout=0 -run='^TestSimulation$$' ./internal/simulation -seeds=1000 $(ARGS)

.PHONY: suite-canary
suite-canary: ## Simulate 2000 canaries for each row of the tables in docs/canary.md, and print the tables; about an hour on two cores. ARGS=-runs=200 takes less
	go test -count=1 -timeout=0 -v -run='^TestSimulate$$' ./internal/canary -runs=2000 $(ARGS)

.PHONY: suite-kserve
suite-kserve: build ## Compare three services of a KServe group on live traffic with examples/canary/kserve.yaml, until each has its verdict; about 20 minutes
	go test -C e2e -count=1 -timeout=45m -tags=canary -v ./page -run='^TestKServeCanary' $(ARGS)

.PHONY: suite-liveness simulate-liveness
suite-liveness simulate-liveness: ## Simulate 300 engine-days for the tables of docs/liveness.md, and print them; about 3 minutes on two cores. ARGS='-days=30 -curve' compares settings
	go test -count=1 -timeout=0 -v -run='^TestSimulate$$' ./internal/liveness -days=300 $(ARGS)

.PHONY: suite-capacity simulate-capacity
suite-capacity simulate-capacity: ## Simulate 200 engines with a known limit, and services that are scaled by what was learned of it; about 15 minutes on two cores. ARGS='-first=10000 -trail' simulates others
	go test -count=1 -timeout=0 -v -run='^TestSimulate$$' ./internal/capacity -seeds=200 -changes=200 -closed=200 $(ARGS)

.PHONY: simulate-sizing
simulate-sizing: ## Simulate 60 benchmarks of engines with a known limit for each row of the tables of docs/offline.md, and print them; about an hour on two cores
	go test -C cmd/tokenpulse -count=1 -timeout=0 -v -run='^TestSimulate$$' ./internal/sizing -sweeps=60 $(ARGS)

.PHONY: suite-compare simulate-compare
suite-compare simulate-compare: ## Simulate 400 comparisons of runs with 200, 1000 and 5000 requests for each row of the tables of docs/offline.md, and print them; hours on two cores. ARGS='-runs=100 -sizes=1000' takes less, ARGS='-runs=100 -sizes=200 -rivals' compares methods
	go test -C cmd/tokenpulse -count=1 -timeout=0 -v -run='^TestSimulate' ./internal/twosample -runs=400 $(ARGS)

.PHONY: suite-fuzz
suite-fuzz: ## Run each fuzz target for FUZZTIME (default 20s, about 15 minutes in total)
	@set -e; for module in . cmd/tokenpulse; do for package in $$(go list -C $$module ./...); do \
		for target in $$(go test -C $$module -list='^Fuzz' $$package | grep ^Fuzz || true); do \
			echo "$$package $$target"; \
			go test -C $$module -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(or $(FUZZTIME),20s) -fuzzminimizetime=10x $$package; \
		done; \
	done; done

# A Collector with our components and spanmetrics, all on one release. Its components need the builder of
# the same version.
PEERS := dist/peers/otelcol-peers

$(PEERS): e2e/benchmark/peers/builder-config.yaml go.mod go.sum $(SOURCES)
	@mkdir -p $(@D)
	go run go.opentelemetry.io/collector/cmd/builder@v0.155.0 --config $<

.PHONY: suite-bench-peers
suite-bench-peers: $(BENCHMARK) $(PEERS) ## Measure everything in about half an hour, at two heaps, also compared with spanmetrics; writes docs/performance.md and the ratios that -check expects
	$(BENCHMARK) -collector $(PEERS) -peers $(PEERS) -document docs $(ARGS)

.PHONY: suite-bench-tap
suite-bench-tap: build $(BENCHMARK) ## Measure what the token_tap receiver adds to streams, in about half an hour, compared with nginx, haproxy and Go's reverse proxy; needs these two and 20,000 open files; writes the cost in the README of the receiver. ARGS='-check -rounds 1' fails if it became slower
	$(BENCHMARK) -tap -document receiver/tokentapreceiver $(ARGS)
