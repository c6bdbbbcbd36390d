//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package tokenlatencyprocessor derives what the token timings of a model call
// mean, and writes it on the call's span.
package tokenlatencyprocessor
