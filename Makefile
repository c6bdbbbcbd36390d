# All targets need Go, make and git; help texts name what else. Rare suites are in .ci/suites.mk.

SHELL := /bin/bash
TOOL := go tool -modfile=$(CURDIR)/internal/tools/go.mod
LINT := go tool -modfile=$(CURDIR)/internal/tools/lint/go.mod golangci-lint
# addlicense skips generated files and files that have a header.
LICENSE := $(TOOL) addlicense -c "The tokenpulse Authors" -y "" -l Apache-2.0 -s=only
LICENSED := git ls-files '*.go' '*.proto'
# Runs go test, and ends with the output of the failed tests.
TESTSUM := $(TOOL) gotestsum --format=standard-quiet --hide-summary=skipped

COLLECTOR := dist/otelcol-tokenpulse
COMMAND := dist/tokenpulse
# The Collector and tokenpulse of make run.
QUICKSTART := dist/quickstart/otelcol-quickstart dist/quickstart/tokenpulse

.DELETE_ON_ERROR:

# Prints the headings and targets of a makefile.
LIST := awk -F':.*\#\# ' '/^\#\#@ / { print "\n" substr($$0, 5) } /^[a-z0-9-]+:.*\#\# / { printf "  %-22s %s\n", $$1, $$2 }'

.PHONY: help
help:
	@$(LIST) Makefile
	@printf '\n%s\n  %s\n' "Rare suites, such as make suite-fuzz. make suites says what they do." "$$(sed -nE 's/^suite-([a-z-]+):.*## .*/\1/p' .ci/suites.mk | paste -sd' ')"

##@ Use it

.PHONY: run
run: $(QUICKSTART) ## Build and start a Collector with its live page, send demo traffic, show percentiles; Ctrl-C stops everything
	@scripts/run

.PHONY: build
build: $(COLLECTOR) $(COMMAND) ## Build the Collector and tokenpulse into dist/

SOURCES := $(shell find . -name '*.go' -not -name '*_test.go' -not -path './dist/*' -not -path './internal/tools/*' -not -path './e2e/internal/*') \
	$(shell find internal/page -path '*/assets/*' -o -name openapi.yaml)

# A binary depends on its sources and the Go version only: not on its folder (-trimpath,
# which the builder sets too), the commit (-buildvcs) or the C library.
export GOFLAGS += -buildvcs=false

$(COLLECTOR): builder-config.yaml go.mod go.sum $(SOURCES)
	@scripts/progress "Build $@" "2 minutes with an empty build cache" $(TOOL) builder --config $<

# So that a first build is short, there are few components in it, and the compiler neither
# optimizes nor writes data for debuggers. The builder and tokenpulse have the same flags: they
# then share compiled packages.
QUICK := -N -l -dwarf=false
$(QUICKSTART): export CGO_ENABLED := 0
$(QUICKSTART): export GOFLAGS := -buildvcs=false -trimpath '-gcflags=all=$(QUICK)'

dist/quickstart/otelcol-quickstart: builder-config-quickstart.yaml go.mod go.sum $(SOURCES)
	@mkdir -p dist
	@scripts/progress "Build $@" "1 minute with an empty build cache" $(TOOL) builder --gcflags="all=$(QUICK)" --config $<

COMMAND_SOURCES := go.mod go.sum cmd/tokenpulse/go.mod cmd/tokenpulse/go.sum $(SOURCES)

$(COMMAND): $(COMMAND_SOURCES)
	CGO_ENABLED=0 go build -C cmd/tokenpulse -trimpath -o $(CURDIR)/$@ .

dist/quickstart/tokenpulse: $(COMMAND_SOURCES)
	go build -C cmd/tokenpulse -o $(CURDIR)/$@ .

# Packages for Linux. Before the release of a version, they sort below it: 0.1.0-dev.
RELEASE := $(shell awk '$$1 == "version:" { print $$2 }' builder-config.yaml)
VERSION ?= $(RELEASE)$(if $(shell git tag --points-at HEAD v$(RELEASE) 2>/dev/null),,-dev)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
ARCHS ?= amd64 arm64
PACKAGE_ENV = VERSION=$(VERSION) SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH)
PACKAGED := $(foreach arch,$(ARCHS),dist/linux_$(arch)/otelcol-tokenpulse dist/linux_$(arch)/tokenpulse)

# The builder has written the sources of the Collector to dist.
dist/linux_%/otelcol-tokenpulse: $(COLLECTOR)
	@scripts/progress "Build $@" "2 minutes with an empty build cache" \
		env CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -C dist -trimpath -ldflags='-s -w' -o $(CURDIR)/$@ .

dist/linux_%/tokenpulse: $(COMMAND_SOURCES)
	CGO_ENABLED=0 GOOS=linux GOARCH=$* go build -C cmd/tokenpulse -trimpath -o $(CURDIR)/$@ .

# The licences of all modules in the binaries, with their texts in dist/notices.txt.
dist/licenses.txt: $(COLLECTOR) $(COMMAND) $(wildcard internal/tools/licenses/*)
	@scripts/check-licenses

# The bill of materials of a binary.
%.cdx.json: % dist/licenses.txt
	go run -C internal/tools ./sbom $(CURDIR)/$< $(CURDIR)/dist/licenses.txt >$@

.PHONY: dist
dist: $(COMMAND) $(PACKAGED) $(PACKAGED:=.cdx.json) ## Build archives, deb and rpm for Linux, with bills of materials and checksums, into dist/packages; ARCHS=amd64 builds fewer
	@rm -rf dist/packages
	@export $(PACKAGE_ENV); for arch in $(ARCHS); do scripts/package $$arch dist/packages || exit 1; done
	@cd dist/packages && sha256sum -- * >SHA256SUMS && cat SHA256SUMS

# The binaries of the machine's architecture, also where the machine runs macOS.
IMAGE_PARTS := $(addprefix dist/linux_$(shell go env GOARCH)/,otelcol-tokenpulse tokenpulse)

.PHONY: image
image: $(IMAGE_PARTS) dist/licenses.txt ## Build the container images otelcol-tokenpulse:local and tokenpulse:local; needs Docker with BuildKit. BASE=... names another base image
	DOCKER_BUILDKIT=1 docker build --file packaging/Dockerfile $(BASE:%=--build-arg=BASE=%) --tag otelcol-tokenpulse:local .
	DOCKER_BUILDKIT=1 docker build --file packaging/Dockerfile $(BASE:%=--build-arg=BASE=%) --tag tokenpulse:local --target tokenpulse .

.PHONY: clean
clean: ## Remove build output
	rm -rf dist

##@ Change it

# Without a C compiler, the tests run without the race detector.
RACE := $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && [ "$$(go env CGO_ENABLED)" = 1 ] && echo -race)

# Tests that the race detector would only disturb: it allocates, takes memory, and is slow where one
# goroutine compares two computations.
NO_RACE := Alloc|Memory_|Equal|Agrees|AgreeWith|Simulate_

# The unit tests of the module in a folder.
define unit-tests
	cd $(1) && $(TESTSUM) -- -timeout=20m $(RACE) $(if $(RACE),-skip='$(NO_RACE)') ./...
	$(if $(RACE),cd $(1) && $(TESTSUM) -- -vet=off -run='$(NO_RACE)' $$(git grep -lE '^func Test\w*($(NO_RACE))' -- '*_test.go' ':!cmd' ':!e2e' ':!internal/tools' | sed 's,^,./,; s,/[^/]*$$,,' | sort -u))
endef

# The race detector waits a second at the end of each of 60 programs, for races of goroutines that are
# left. goleak finds these goroutines.
test: export GORACE := atexit_sleep_ms=50

# Leaves out the lines of go test that say which test starts.
QUIET := grep -vE '^=== (RUN|PAUSE|CONT)'; exit $${PIPESTATUS[0]}

# The packages of e2e run one after the other, because their tests measure time, CPU and memory.
# go list compiles them before, at once.
.PHONY: test
test: build $(QUICKSTART) ## Unit tests, golden files, fuzz seeds, then end-to-end tests of the built Collector; uses the race detector if a C compiler exists
	@$(if $(RACE),,echo "no C compiler found: tests run without the race detector";)
	$(call unit-tests,.)
	$(call unit-tests,cmd/tokenpulse)
	go test -C internal/tools ./sanitise
	cd e2e && go list -export -deps -test ./... >/dev/null
	cd e2e && $(TESTSUM) --format=standard-verbose -- -p=1 -count=1 -timeout=20m -parallel=4 ./... | $(QUIET)

.PHONY: format
format: ## Format Go files, and add missing licence headers to Go and proto files; after a new proto file, run make generate
	$(TOOL) gofumpt -w $$(git ls-files '*.go' | grep -vE 'generated_|[.]pb[.]go')
	$(LICENSE) $$($(LICENSED))

.PHONY: lint
lint: ## Run golangci-lint and actionlint, and check licence headers
	$(LINT) run ./...
	cd cmd/tokenpulse && $(LINT) run ./...
	cd e2e && $(LINT) run ./...
	@set -e; for tag in $$(git grep -h '^//go:build' 'e2e/*.go' | sort -u | cut -d' ' -f2); do go vet -C e2e -tags=$$tag ./...; done
	$(TOOL) actionlint
	@$(LICENSE) -check $$($(LICENSED)) || { echo "files above lack a licence header; add it: make format"; exit 1; }

.PHONY: generate
generate: ## Regenerate the files of mdatagen and protoc, the dashboards and the PrometheusRule
	cd internal/tools && go run ./dashboards ../../examples/grafana
	go generate ./...
	scripts/prometheusrule >examples/kubernetes/prometheusrule.yaml
	cd internal/tools && go run ./protogen ../../proto tokenpulse/v1/token_stream.proto

# The live page of the exporter. Its built files are committed, so that go build needs no Node.js.
PAGE := internal/page
PAGE_MODULES := $(PAGE)/web/node_modules/.package-lock.json

# npm stores a copy of the lock file in node_modules. npm ci is slow, so it runs only if the lock
# file is newer than this copy.
$(PAGE_MODULES): $(PAGE)/web/package-lock.json
	npm ci --prefix $(PAGE)/web
	@touch $@

.PHONY: page
page: $(PAGE_MODULES) ## Build the live page into the files that the exporter embeds; needs Node.js 20 and npm
	npm --prefix $(PAGE)/web run --silent build

.PHONY: check-page
check-page: $(PAGE_MODULES) ## Check types, units and colours of the live page, and that its built files are those of its sources; needs the same
	npm --prefix $(PAGE)/web run --silent types
	npm --prefix $(PAGE)/web run --silent test
	@scripts/check-page $(PAGE)

.PHONY: bench
bench: ## Run the benchmarks of every package; BENCHTIME and COUNT as in go test
	go test -run='^$$' -bench=. -benchmem -benchtime=$(or $(BENCHTIME),1s) -count=$(or $(COUNT),1) ./...

BENCHMARK := dist/benchmark

$(BENCHMARK): e2e/go.mod e2e/go.sum $(SOURCES) $(wildcard e2e/benchmark/*.tmpl e2e/benchmark/configs/*)
	go build -C e2e -o $(CURDIR)/$@ ./benchmark

.PHONY: bench-e2e
bench-e2e: build $(BENCHMARK) ## Measure CPU per request of the whole Collector, compared with OTLP span events; ARGS=-check fails if it became slower, ARGS="-only '10 tokens'" measures less
	$(BENCHMARK) $(ARGS)

include .ci/suites.mk
