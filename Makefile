# carrier-go: `make help` lists what there is. Everything needs Go, git and make only,
# but for the targets that say otherwise.

GO       ?= go
TOOL     := $(GO) tool -modfile=tools/go.mod
MODULES  := . tools tools/supply mockcarrier/conformant
OUT      := .out

# The race detector needs cgo and a C compiler.
CC_FOUND := $(shell command -v $$($(GO) env CC | cut -d' ' -f1) 2>/dev/null)
RACE     := $(if $(CC_FOUND),-race,)

.DEFAULT_GOAL := help

## demo: buy shipments through faults, follow a parcel, save a label, compare with the ledger
.PHONY: demo
demo:
	@mkdir -p $(OUT)
	@$(GO) build -o $(OUT)/mockcarrier ./mockcarrier/cmd/mockcarrier
	@$(GO) build -o $(OUT)/quickstart ./examples/quickstart
	@$(OUT)/quickstart -mock $(OUT)/mockcarrier -out $(OUT)

## test: all tests; those of the SDK and the mock with the race detector, where there is a C compiler
.PHONY: test
test:
	@$(if $(RACE),,echo "test: no C compiler, so the race detector is off";)
	@echo "== ."; $(if $(RACE),CGO_ENABLED=1,) $(GO) test $(RACE) -count=1 ./...
	@for m in $(filter-out .,$(MODULES)); do echo "== $$m"; (cd $$m && $(GO) test -count=1 ./...) || exit 1; done
	@$(if $(RACE),echo "== what the race detector would change: allocations and throughput"; $(GO) test -count=1 -run 'Alloc|Throughput|TwoWaits|ThreeDays' ./carrier/... ./mockcarrier,)

## generate: write the generated code from openapi/carrier.yaml
.PHONY: generate
generate:
	@$(GO) generate .

## generate-check: fail if generating would change a file; writes nothing
.PHONY: generate-check
generate-check:
	@$(GO) -C tools run ./generate -root .. -check

## lint: gofmt, go vet, staticcheck, go mod tidy
.PHONY: lint
lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$unformatted" ]; then echo "gofmt: $$unformatted"; exit 1; fi
	@for m in $(MODULES); do (cd $$m && $(GO) vet ./... && $(GO) mod tidy -diff) || exit 1; done
	@$(TOOL) staticcheck ./...

## lint-spec: check the spec's style (needs Node; skips without it)
.PHONY: lint-spec
lint-spec:
	@if command -v npm >/dev/null 2>&1; then \
		cd openapi/lint && npm ci --silent && REDOCLY_SUPPRESS_UPDATE_NOTICE=true npm run --silent lint; \
	else echo "lint-spec: skipped, since Node is not installed"; fi

## fuzz: run each fuzz target for FUZZTIME (default 3s)
FUZZTIME ?= 3s
.PHONY: fuzz
fuzz:
	@for p in $$($(GO) list ./...); do \
		for f in $$($(GO) test -list '^Fuzz' $$p | grep '^Fuzz'); do \
			echo "== $$p $$f"; $(GO) test -run '^$$' -fuzz "^$$f$$" -fuzztime $(FUZZTIME) $$p || exit 1; \
		done; \
	done

## bench: compare a call through the SDK with a call by hand, interleaved
.PHONY: bench
bench:
	@$(GO) test -run '^$$' -bench . ./carrier/

## cover: coverage of PACKAGES by their own tests; fails under COVER percent (default: carrier/resilience, 95)
PACKAGES ?= ./carrier/resilience
COVER    ?= 95
.PHONY: cover
cover:
	@mkdir -p $(OUT)
	@$(GO) test -count=1 -coverprofile=$(OUT)/cover.out $(PACKAGES)
	@$(GO) tool cover -func=$(OUT)/cover.out | awk '/^total:/ { if ($$3+0 < $(COVER)) { print "cover: under $(COVER) %"; exit 1 } }'

## mutate: change the resilience layer in one place at a time, and see that tests notice (17 minutes; FILES=a.go,b.go for some)
.PHONY: mutate
mutate:
	@$(GO) -C tools run ./mutate -root .. -package carrier/resilience -list carrier/resilience/MUTANTS.md $(if $(FILES),-files $(FILES))

## consumer: the module graph of someone who requires the SDK has at most 30 modules
.PHONY: consumer
consumer:
	@sh tools/consumer.sh

## examples: run the examples that end by themselves; a lab fails if its claim does not hold
.PHONY: examples
examples:
	@mkdir -p $(OUT)
	$(GO) run ./examples/lab-body
	$(GO) run ./examples/lab-herd -out $(OUT)/herd.svg
	$(GO) run ./examples/lab-idempotency
	$(GO) run ./examples/lab-stream

## sim: simulate retry storms; print the table, and draw .out/storms.svg
.PHONY: sim
sim:
	@mkdir -p $(OUT)
	@$(GO) -C carrier/resilience/simulation test -count=1 -timeout 20m -run '^TestTable$$' -args -table -seeds $(or $(SEEDS),1) -svg $(CURDIR)/$(OUT)/storms.svg

## interop: clients that are not ours against the mock (needs Node; skips without it)
.PHONY: interop
interop:
	@if command -v npm >/dev/null 2>&1; then \
		mkdir -p $(OUT) && $(GO) build -o $(OUT)/mockcarrier ./mockcarrier/cmd/mockcarrier && \
		cd interop && npm ci --silent && MOCKCARRIER=$(CURDIR)/$(OUT)/mockcarrier npm run --silent all; \
	else echo "interop: skipped, since Node is not installed"; fi

## page-test: the program's page in headless Chromium (skips without it)
.PHONY: page-test
page-test:
	@for b in "$$CHROMIUM" chromium chromium-browser google-chrome chrome; do \
		if command -v "$$b" >/dev/null 2>&1; then \
			mkdir -p $(OUT) && PAGE_TEST=1 PAGE_OUT=$(abspath $(OUT)) exec $(GO) test -count=1 -run '^TestPage' ./mockcarrier/cmd/mockcarrier; \
		fi; \
	done; echo "page-test: skipped, since Chromium is not installed"

## sbom: the bill of materials of the module and of mockcarrier, in .out (CycloneDX), held against the go command
.PHONY: sbom
SBOM := $(GO) -C tools/supply tool cyclonedx-gomod
SBOM_FLAGS := -json -licenses -std -noserial -notimestamp -short-purls
sbom:
	@mkdir -p $(OUT)
	@$(SBOM) mod $(SBOM_FLAGS) -type library -output $(abspath $(OUT))/sbom.cdx.json ../..
	@CGO_ENABLED=0 $(SBOM) app $(SBOM_FLAGS) -main mockcarrier/cmd/mockcarrier -output $(abspath $(OUT))/mockcarrier.cdx.json ../..
	@SBOM=$(abspath $(OUT)) $(GO) -C tools/supply test -count=1 -run '^TestSBOM' .

## dist: mockcarrier for each platform, the same bytes on every machine, with SHA256SUMS, in .out/dist
PLATFORMS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64
.PHONY: dist
dist:
	@rm -rf $(OUT)/dist && mkdir -p $(OUT)/dist
	@for p in $(PLATFORMS); do \
		export CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/}; \
		$(GO) build -trimpath -ldflags='-s -w' -o $(OUT)/dist/mockcarrier_$${GOOS}_$$GOARCH$$($(GO) env GOEXE) ./mockcarrier/cmd/mockcarrier || exit 1; \
	done
	@cd $(OUT)/dist && sha256sum mockcarrier_* >SHA256SUMS && cat SHA256SUMS

## vuln: known vulnerabilities in what the modules call (asks vuln.go.dev)
.PHONY: vuln
vuln:
	@mkdir -p $(OUT)
	@$(GO) -C tools/supply build -o $(abspath $(OUT))/govulncheck golang.org/x/vuln/cmd/govulncheck
	@for m in $(MODULES); do echo "== $$m"; (cd $$m && $(abspath $(OUT))/govulncheck ./...) || exit 1; done

## readme-test: run the commands of the READMEs that make test does not, in a fresh clone
.PHONY: readme-test
readme-test:
	@README=all $(GO) -C tools test -count=1 -timeout 30m ./readme

## compare: hold this SDK and what others use in its place against the same rules (6 minutes, and 3 to build)
.PHONY: compare
compare:
	@cd compare && $(GO) vet . && $(GO) test -count=1 . && $(GO) run .

## ci: everything that has to hold before a change lands
.PHONY: ci
ci: generate-check lint lint-spec test cover readme-test fuzz consumer examples interop sbom demo

## clean: remove what the other targets wrote
.PHONY: clean
clean:
	@rm -rf $(OUT) openapi/lint/node_modules interop/node_modules interop/build interop/src/generated

## help: this list
.PHONY: help
help:
	@sed -n 's/^## //p' Makefile
