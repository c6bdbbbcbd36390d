// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Example returns the path of a file in the folder examples.
func Example(t *testing.T, name string) string {
	t.Helper()
	return filepath.Join(testenv.Root(t), "examples", name)
}

// ExampleEnvironment sets the environment variables that the examples read, and returns
// the file that they write spans to.
func ExampleEnvironment(t *testing.T) (spansFile string) {
	t.Helper()
	folder := t.TempDir()
	spansFile = filepath.Join(folder, "spans.jsonl")
	certificate, key := selfSigned(t, folder)
	for name, value := range map[string]string{
		"SPANS_FILE":         spansFile,
		"OTLP_GRPC_ENDPOINT": FreeAddress(t),
		"OTLP_HTTP_ENDPOINT": FreeAddress(t),
		"HEALTH_ENDPOINT":    FreeAddress(t),
		"TOKENPULSE_TOKEN":   "secret",
		"TLS_CERT_FILE":      certificate,
		"TLS_KEY_FILE":       key,
	} {
		Setenv(t, name, value)
	}
	return spansFile
}

// DemoRecording returns the path of a recording of demo traffic.
func DemoRecording(t *testing.T) string {
	t.Helper()
	return filepath.Join(testenv.Root(t), "testdata", "recordings", "demo.jsonl")
}

// DemoRequests counts the requests of the demo recording.
func DemoRequests(t *testing.T) int {
	t.Helper()
	return RequestsOf(t, DemoRecording(t))
}

// RequestsOf counts the requests of a recording.
func RequestsOf(t *testing.T, file string) int {
	t.Helper()
	recording, err := os.ReadFile(file)
	require.NoError(t, err)
	return bytes.Count(recording, []byte(`"event":"start"`))
}

// Replay sends a recording over gRPC.
func Replay(t *testing.T, c *Collector, file string) {
	t.Helper()
	Run(t, Built(t, "tokenpulse"), "replay", file, "--transport", "grpc", "--endpoint", c.GRPC)
}

// selfSigned writes a certificate and key for the loopback address.
func selfSigned(t *testing.T, folder string) (certificateFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "tokenpulse test"},
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	encodedKey, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	write := func(name, kind string, content []byte) string {
		var encoded bytes.Buffer
		require.NoError(t, pem.Encode(&encoded, &pem.Block{Type: kind, Bytes: content}))
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, encoded.Bytes(), 0o600))
		return path
	}
	return write("cert.pem", "CERTIFICATE", certificate), write("key.pem", "PRIVATE KEY", encodedKey)
}
