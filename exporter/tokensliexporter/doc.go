// Package tokensliexporter publishes the latency distributions of language model
// requests on a Prometheus scrape endpoint.
package tokensliexporter

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
