// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
)

// fleetSeries extends examples/otlp-metrics.yaml with SLO verdicts and with frequent
// batches of metrics.
const fleetSeries = `
processors:
  token_latency:
    detail: full # for inter-chunk latencies
    slos:
      - {name: chat-ttft, indicator: time_to_first_token, threshold: 500ms}
      - {name: chat-tpot, indicator: time_per_output_token, threshold: 20ms}
connectors:
  token_sli/otlp:
    metrics_flush_interval: 100ms
    metrics: {tokenpulse.inter_chunk_latency: {enabled: true}}
`

// fleetMember extends that for a Collector that sends to a central one, with an
// instance id.
const fleetMember = `
processors:
  transform:
    metric_statements:
      - set(resource.attributes["service.instance.id"], "${env:COLLECTOR_NAME}")
exporters:
  otlp_http:
    endpoint: ${env:CENTRAL_ENDPOINT}
service:
  pipelines:
    metrics:
      processors: [transform]
      exporters: [otlp_http]
`

const fleetCentral = `
receivers:
  otlp:
    protocols:
      http:
        endpoint: ${env:CENTRAL_ADDRESS}
exporters:
  file:
    path: ${env:CENTRAL_FILE}
service:
  pipelines:
    metrics:
      receivers: [otlp]
      exporters: [file]
  telemetry:
    metrics:
      level: none
`

// Two Collectors receive half of the streams each and send to a central one. Added up,
// their counts, buckets and sums equal those of one Collector with all streams.
func TestFleet_SeriesAddUpToThoseOfOneCollector(t *testing.T) {
	t.Parallel()
	traffic := newFleetTraffic(t)
	folder := t.TempDir()
	series := writeFile(t, folder, "series.yaml", fleetSeries)

	central, address := filepath.Join(folder, "central.jsonl"), freeAddress(t)
	setenv(t, "CENTRAL_FILE", central)
	setenv(t, "CENTRAL_ADDRESS", address)
	setenv(t, "CENTRAL_ENDPOINT", "http://"+address)
	gateway := start(t, built(t, "otelcol-tokenpulse"), "--config", writeFile(t, folder, "central.yaml", fleetCentral))
	gateway.waitForListener(t, address)

	takeStreams := func(streams []byte, more ...string) *collector {
		c := startCollector(t, example(t, "otlp-metrics.yaml"), append([]string{"--config", series}, more...)...)
		run(t, built(t, "tokengen"), "replay", writeFile(t, t.TempDir(), "streams.jsonl", string(streams)),
			"--transport", "protobuf", "--endpoint", c.http)
		return c
	}
	var members []*collector
	for i, half := range traffic.halves {
		setenv(t, "COLLECTOR_NAME", fmt.Sprint("member-", i))
		members = append(members, takeStreams(half, "--config", writeFile(t, folder, "member.yaml", fleetMember)))
	}
	alone := filepath.Join(folder, "alone.jsonl")
	setenv(t, "METRICS_FILE", alone)
	single := takeStreams(traffic.all)

	// Stopping sends the rest, such as streams without an end. The central one stops
	// last.
	for _, c := range append(members, single) {
		c.stop(t)
	}
	gateway.stop(t)

	fleet := lastPoints(t, central)
	require.Len(t, fleet, 2)
	merged := points{}
	shared := 0
	for _, member := range fleet {
		for key, p := range member {
			if _, known := merged[key]; known {
				shared++
			}
			merged.add(key, p)
		}
	}
	require.Greater(t, shared, len(merged)/2, "most series exist on both members")
	want := lastPoints(t, alone)
	require.Len(t, want, 1)
	requireSamePoints(t, want[""], merged)
	traffic.require(t, merged)
}

// fleetTraffic holds NDJSON events: those of all streams, and of each half of the
// streams. The counts are of all streams.
type fleetTraffic struct {
	all      []byte
	halves   [2][]byte
	streams  int
	gaps     int // between chunks
	zeroGaps int
}

// newFleetTraffic generates streams of every outcome. It adds one stream to each half
// whose two chunks arrive at the same time.
func newFleetTraffic(t *testing.T) *fleetTraffic {
	t.Helper()
	file := filepath.Join(t.TempDir(), "all.jsonl")
	run(t, built(t, "tokengen"), "generate", "--output", file, "--requests", "400", "--rate", "50", "--seed", "5",
		"--cancel-ratio", "0.1", "--error-ratio", "0.1", "--incomplete-ratio", "0.1",
		"--one-token-ratio", "0.1", "--reasoning-only-ratio", "0.1")
	all, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, id := range []string{"at-once-1", "at-once-2"} {
		all = fmt.Appendf(all, `{"event":"start","stream_id":%[1]q,"time_unix_nano":"1767225600000000000","resource":{"service.name":"at-once"}}
{"event":"chunk","stream_id":%[1]q,"time_unix_nano":"1767225601000000000"}
{"event":"chunk","stream_id":%[1]q,"time_unix_nano":"1767225601000000000"}
{"event":"end","stream_id":%[1]q,"time_unix_nano":"1767225602000000000"}
`, id)
	}

	traffic := &fleetTraffic{all: all, zeroGaps: 2}
	half, chunks := map[string]int{}, map[string]int{}
	for line := range bytes.Lines(all) {
		var event struct {
			Event    string
			StreamID string `json:"stream_id"`
		}
		require.NoError(t, json.Unmarshal(line, &event))
		switch event.Event {
		case "start":
			half[event.StreamID] = traffic.streams % 2
			traffic.streams++
		case "chunk":
			if chunks[event.StreamID]++; chunks[event.StreamID] > 1 {
				traffic.gaps++
			}
		}
		to := &traffic.halves[half[event.StreamID]]
		*to = append(*to, line...)
	}
	return traffic
}

// require checks that the points hold all of the traffic, because two sets of points
// that lack the same streams are also equal.
func (f *fleetTraffic) require(t *testing.T, all points) {
	t.Helper()
	requests, judged, gaps, zeroGaps := 0.0, 0.0, uint64(0), uint64(0)
	outcomes := map[string]bool{}
	for _, p := range all {
		switch p.metric {
		case "tokenpulse.requests":
			requests += p.sum
			outcomes[p.attributes["outcome"].(string)] = true
		case "tokenpulse.slo.requests":
			if p.attributes["slo"] == "all" {
				judged += p.sum
			}
		case "tokenpulse.inter_chunk_latency":
			gaps += p.count
			zeroGaps += p.zeros
		}
	}
	require.Equal(t, f.streams, int(requests))
	require.Equal(t, f.streams, int(judged))
	require.Len(t, outcomes, 4)
	require.Equal(t, f.gaps, int(gaps))
	require.Equal(t, f.zeroGaps, int(zeroGaps))
}

// point is the last cumulative point of a series: a sum or a distribution.
type point struct {
	metric     string
	attributes map[string]any
	time       pcommon.Timestamp
	sum        float64
	// For distributions only.
	count, zeros uint64
	min, max     float64
	buckets      map[int]uint64
}

// points are keyed by metric name and attributes.
type points map[string]*point

// lastPoints reads the last point of each series from a file, by instance id.
func lastPoints(t *testing.T, file string) map[string]points {
	t.Helper()
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	all := map[string]points{}
	for line := range bytes.Lines(written) {
		metrics, err := (&pmetric.JSONUnmarshaler{}).UnmarshalMetrics(line)
		require.NoError(t, err)
		for _, resource := range metrics.ResourceMetrics().All() {
			name, _ := resource.Resource().Attributes().AsRaw()["service.instance.id"].(string)
			if all[name] == nil {
				all[name] = points{}
			}
			for _, scope := range resource.ScopeMetrics().All() {
				for _, metric := range scope.Metrics().All() {
					all[name].read(t, metric)
				}
			}
		}
	}
	return all
}

// read keeps a metric's points that are later than the known ones.
func (all points) read(t *testing.T, metric pmetric.Metric) {
	t.Helper()
	keep := func(p *point, attributes pcommon.Map, at pcommon.Timestamp) {
		p.metric, p.attributes, p.time = metric.Name(), attributes.AsRaw(), at
		encoded, err := json.Marshal(p.attributes)
		require.NoError(t, err)
		key := p.metric + string(encoded)
		if known := all[key]; known == nil || known.time < at {
			all[key] = p
		}
	}
	switch metric.Type() {
	case pmetric.MetricTypeSum:
		require.Equal(t, pmetric.AggregationTemporalityCumulative, metric.Sum().AggregationTemporality())
		for _, from := range metric.Sum().DataPoints().All() {
			keep(&point{sum: float64(from.IntValue()) + from.DoubleValue()}, from.Attributes(), from.Timestamp())
		}
	case pmetric.MetricTypeExponentialHistogram:
		require.Equal(t, pmetric.AggregationTemporalityCumulative, metric.ExponentialHistogram().AggregationTemporality())
		for _, from := range metric.ExponentialHistogram().DataPoints().All() {
			require.EqualValues(t, 6, from.Scale(), "equal scales add up bucket by bucket")
			p := &point{
				count: from.Count(), zeros: from.ZeroCount(),
				sum: from.Sum(), min: from.Min(), max: from.Max(), buckets: map[int]uint64{},
			}
			for i, n := range from.Positive().BucketCounts().All() {
				if n > 0 {
					p.buckets[int(from.Positive().Offset())+i] = n
				}
			}
			keep(p, from.Attributes(), from.Timestamp())
		}
	default:
		require.Fail(t, "unexpected type of metric", "%s is a %s", metric.Name(), metric.Type())
	}
}

// add adds a point to that of the same series.
func (all points) add(key string, p *point) {
	into := all[key]
	if into == nil {
		all[key] = p
		return
	}
	into.sum += p.sum
	into.count += p.count
	into.zeros += p.zeros
	into.min, into.max = min(into.min, p.min), max(into.max, p.max)
	for index, n := range p.buckets {
		into.buckets[index] += n
	}
}

// requireSamePoints compares everything but times. Sums add floats in another order.
func requireSamePoints(t *testing.T, want, got points) {
	t.Helper()
	require.ElementsMatch(t, slices.Collect(maps.Keys(want)), slices.Collect(maps.Keys(got)))
	for key, w := range want {
		g := got[key]
		require.InDelta(t, w.sum, g.sum, 1e-9*w.sum, "sum of %s", key)
		if w.buckets == nil {
			continue
		}
		require.Equal(t, w.count, g.count, "count of %s", key)
		require.Equal(t, w.zeros, g.zeros, "zero count of %s", key)
		require.InDelta(t, w.min, g.min, 0, "min of %s", key)
		require.InDelta(t, w.max, g.max, 0, "max of %s", key)
		require.Equal(t, w.buckets, g.buckets, "buckets of %s", key)
		inBuckets := w.zeros
		for _, n := range w.buckets {
			inBuckets += n
		}
		require.Equal(t, w.count, inBuckets, "sum of the buckets of %s", key)
	}
}

func writeFile(t *testing.T, folder, name, content string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}
