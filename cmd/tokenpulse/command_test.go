// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/recording"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/send"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const demo = "../../testdata/recordings/demo.jsonl"

// run runs tokenpulse and returns its output.
func run(ctx context.Context, args ...string) (string, error) {
	command := newCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	err := command.ExecuteContext(ctx)
	return out.String(), err
}

func readRecording(t *testing.T, path string) []*stream.Stream {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	streams, err := recording.Read(t.Context(), file)
	require.NoError(t, err)
	return streams
}

// testdata/recordings/README.md contains the command that generated the recording.
func TestGenerate_ReproducesDemoRecording(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(filepath.Dir(demo), "README.md"))
	require.NoError(t, err)
	_, line, found := strings.Cut(string(readme), "\n    tokenpulse ")
	require.True(t, found)
	line, _, _ = strings.Cut(line, "\n")
	path := filepath.Join(t.TempDir(), "demo.jsonl")
	_, err = run(t.Context(), strings.Fields(strings.Replace(line, "demo.jsonl", path, 1))...)
	require.NoError(t, err)
	expected, err := os.ReadFile(demo)
	require.NoError(t, err)
	got, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(expected), string(got))
}

func TestDemoRecording_HasAllOutcomes(t *testing.T) {
	outcomes, models := map[string]int{}, map[any]int{}
	for _, s := range readRecording(t, demo) {
		models[s.Attributes["gen_ai.request.model"]]++
		switch {
		case s.End == nil:
			outcomes["incomplete"]++
		case s.End.Cancelled:
			outcomes["cancelled"]++
		case s.End.Error != "":
			outcomes["error"]++
		default:
			outcomes["success"]++
		}
	}
	require.Len(t, models, 2)
	require.Positive(t, outcomes["success"])
	require.Positive(t, outcomes["error"])
	require.Positive(t, outcomes["cancelled"])
}

func TestReplay_EveryTransport(t *testing.T) {
	eachTransport(t, send.Transports, func(t *testing.T, transport send.Transport, receiver *fakeReceiver) {
		out, err := run(t.Context(), "replay", demo, "--transport", string(transport), "--endpoint", receiver.Endpoint(transport))
		require.NoError(t, err)
		require.Equal(t, readRecording(t, demo), receiver.Streams())
		require.Contains(t, out, "20 requests")
	})
}

func TestReplay_FillsMissingAttributes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bare.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"event":"start","stream_id":"s","time_unix_nano":"1795233292181556000"}`), 0o600))
	receiver := startReceiver(t)
	_, err := run(t.Context(), "replay", path, "--endpoint", receiver.Endpoint(send.NDJSON), "--service", "svc", "--model", "m", "--provider", "p")
	require.NoError(t, err)
	s := receiver.Streams()[0]
	require.Equal(t, stream.Attributes{"service.name": "svc"}, s.Resource.Attributes)
	require.Equal(t, stream.Attributes{"gen_ai.request.model": "m", "gen_ai.provider.name": "p"}, s.Attributes)
}

func TestReplay_RealSpeedShiftsToNow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "short.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"event":"start","stream_id":"s","time_unix_nano":"1000"}
{"event":"chunk","stream_id":"s","time_unix_nano":"50001000"}
{"event":"end","stream_id":"s","time_unix_nano":"100001000"}`), 0o600))
	receiver := startReceiver(t)
	before := time.Now().UnixNano()
	_, err := run(t.Context(), "replay", path, "--speed", "real", "--endpoint", receiver.Endpoint(send.NDJSON))
	after := time.Now().UnixNano()
	require.NoError(t, err)
	s := receiver.Streams()[0]
	require.GreaterOrEqual(t, s.Start, before)
	require.LessOrEqual(t, s.End.Time, after)
	require.EqualValues(t, 50_000_000, s.Chunks[0].Time-s.Start)
	require.EqualValues(t, 100_000_000, s.End.Time-s.Start)
}

func TestGenerate_EqualSeedsGiveEqualStreams(t *testing.T) {
	generate := func(args ...string) []*stream.Stream {
		receiver := startReceiver(t)
		_, err := run(t.Context(), append([]string{"generate", "--fast", "--transport", "grpc", "--endpoint", receiver.Endpoint(send.GRPC)}, args...)...)
		require.NoError(t, err)
		streams := receiver.Streams()
		for _, s := range streams[1:] {
			s.Shift(time.Duration(-streams[0].Start))
		}
		streams[0].Shift(time.Duration(-streams[0].Start))
		return streams
	}
	first := generate("--requests", "30", "--seed", "4")
	require.Len(t, first, 30)
	require.Equal(t, first, generate("--requests", "30", "--seed", "4"))
	require.NotEqual(t, first, generate("--requests", "30"))
}

func TestGenerate_FastTrafficEndsAboutNow(t *testing.T) {
	receiver := startReceiver(t)
	now := time.Now()
	_, err := run(t.Context(), "generate", "--fast", "--duration", "1h", "--rate", "0.1", "--seed", "1", "--transport", "protobuf", "--endpoint", receiver.Endpoint(send.Protobuf))
	require.NoError(t, err)
	streams := receiver.Streams()
	require.WithinDuration(t, now.Add(-time.Hour), time.Unix(0, streams[0].Start), time.Minute)
	require.LessOrEqual(t, streams[len(streams)-1].Start, now.Add(time.Minute).UnixNano())
}

// With a queue, requests start at --rate, whatever --concurrency says.
func TestGenerate_FastTrafficWithAQueueEndsAboutNow(t *testing.T) {
	receiver := startReceiver(t)
	now := time.Now()
	_, err := run(t.Context(), "generate", "--fast", "--requests", "360", "--rate", "0.1", "--concurrency", "2", "--queue-limit", "5", "--seed", "1",
		"--transport", "protobuf", "--endpoint", receiver.Endpoint(send.Protobuf))
	require.NoError(t, err)
	require.WithinDuration(t, now.Add(-time.Hour), time.Unix(0, receiver.Streams()[0].Start), time.Minute)
}

// The README has this limit.
func TestGenerate_EnginesShowTheirLimit(t *testing.T) {
	receiver := startReceiver(t)
	out, err := run(t.Context(), strings.Fields("generate --engines 2 --requests 10 --fast --transport protobuf --endpoint "+receiver.Endpoint(send.Protobuf))...)
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, shown, found := strings.Cut(string(readme), "\nEach of the engines")
	require.True(t, found)
	shown, _, found = strings.Cut(shown, "\n```")
	require.True(t, found)
	require.Contains(t, out, "Each of the engines"+shown)
	for _, s := range receiver.Streams() {
		require.Equal(t, "llama-3.3-70b", s.Attributes["gen_ai.request.model"])
	}
}

func TestGenerate_StopEndsStreamsAsCancelled(t *testing.T) {
	eachTransport(t, send.Transports, func(t *testing.T, transport send.Transport, receiver *fakeReceiver) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		_, err := run(ctx, "generate", "--concurrency", "5", "--tpot", "1s", "--prefill", "1ms", "--transport", string(transport), "--endpoint", receiver.Endpoint(transport))
		require.NoError(t, err)
		cancelled := 0
		for _, s := range receiver.Streams() {
			require.NotNil(t, s.End)
			if s.End.Cancelled {
				cancelled++
			}
		}
		require.GreaterOrEqual(t, cancelled, 5)
	})
}

func TestCommand_ErrorNamesFlagAndRemedy(t *testing.T) {
	receiver := startReceiver(t)
	endpoint := receiver.Endpoint(send.NDJSON)
	receiver.Reject(2)
	notARecording := filepath.Join(t.TempDir(), "no.jsonl")
	require.NoError(t, os.WriteFile(notARecording, []byte("\nhello\n"), 0o600))
	tests := map[string]struct {
		args string
		err  string
	}{
		"rejected":               {"replay " + demo + " --endpoint " + endpoint, "items; last message: wrong"},
		"not a receiver":         {"replay " + demo + " --endpoint " + endpoint + "/elsewhere", "answered 404 Not Found"},
		"no such file":           {"replay nowhere.jsonl", "no such file"},
		"not a recording":        {"replay " + notARecording, "no.jsonl: unknown format; expected token events"},
		"unknown speed":          {"replay " + demo + " --speed slow", `--speed is "slow"; valid values: max, real`},
		"unknown transport":      {"replay " + demo + " --transport pigeon", `--transport is "pigeon"; valid values: `},
		"ratio above one":        {"generate --error-ratio 2", "--error-ratio is 2"},
		"model without a name":   {"generate --model =2", "has no name"},
		"output without a limit": {"generate --output x", "--output x needs a limit; set --requests or --duration"},
		"rate and concurrency":   {"generate --rate 1 --concurrency 1", "--rate and --concurrency exclude each other; set one of them, or --queue-limit too"},
		"engines and a step":     {"generate --engines 1 --tpot 1s", "[engines tpot] were all set"},
		"engines of two models":  {"generate --engines 1 --model a --model b", "--engines serve one model, not 2"},
		"peak and concurrency":   {"generate --peak-rate 1 --concurrency 1", "--rate and --concurrency exclude each other"},
		"negative queue":         {"generate --queue-limit -1", "--queue-limit is -1"},
		"attribute without a =":  {"generate --attribute tenant", `--attribute "tenant" has no value; give key=value`},
		"window without a unit":  {"watch --window 5", `invalid argument "5"`},
		"window of a second":     {"watch --window 1s", "--window is 1s; give a duration from 10s to 24h0m0s"},
		"not a metrics endpoint": {"watch --once --metrics http://" + endpoint, "answered 404 Not Found"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := run(t.Context(), strings.Fields(test.args)...)
			require.ErrorContains(t, err, test.err)
		})
	}
}

func TestWatch_ShowsTableOrError(t *testing.T) {
	registry := prometheus.NewRegistry()
	requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "tokenpulse_requests_total", Help: "x"}, []string{"gen_ai_request_model"})
	registry.MustRegister(requests)
	requests.WithLabelValues("llama-70b").Inc()
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	out, err := run(t.Context(), "watch", "--once", "--metrics", server.URL)
	require.NoError(t, err)
	require.Contains(t, out, "llama-70b")

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	out, err = run(ctx, "watch", "--metrics", "http://localhost:1")
	require.NoError(t, err)
	require.Contains(t, out, "waiting for metrics: ")
	require.Contains(t, out, "refused")
	require.Contains(t, out, "  failed scrapes: 1\nwaiting")
	require.True(t, strings.HasSuffix(out, "\nfailed scrapes: 1\n"), out)
}

// Lines above the table, such as the hints of scripts/run, stay.
func TestWatch_ReplacesOnlyTable(t *testing.T) {
	var terminal bytes.Buffer
	w := &watcher{}
	w.replace(&terminal, []byte("head\na\nb\n"))
	w.replace(&terminal, []byte("head\nc\n"))
	w.replace(&terminal, []byte("head\nd\n"))
	require.Equal(t, "\x1b[?7lhead\na\nb\n\x1b[?7h"+"\x1b[3A\x1b[J\x1b[?7lhead\nc\n\x1b[?7h"+"\x1b[2A\x1b[J\x1b[?7lhead\nd\n\x1b[?7h", terminal.String())
}
