// Package tokenstreamreceiver turns the token events that services send, over
// HTTP and gRPC, of their own or as OpenTelemetry log events, into one finished
// span per stream.
package tokenstreamreceiver

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml
