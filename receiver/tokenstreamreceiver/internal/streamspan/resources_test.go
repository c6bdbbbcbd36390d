// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package streamspan

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	resourcev1 "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tokenpulse/tokenpulse/internal/names"
	tokenpulsev1 "github.com/tokenpulse/tokenpulse/proto/tokenpulse/v1"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/assembly"
	"github.com/tokenpulse/tokenpulse/receiver/tokenstreamreceiver/internal/wire"
)

// t0 is when the streams of these tests start.
const t0 = 1_795_233_292_000_000_000

func textAttribute(key, value string) *commonv1.KeyValue {
	return &commonv1.KeyValue{Key: key, Value: &commonv1.AnyValue{Value: &commonv1.AnyValue_StringValue{StringValue: value}}}
}

// manyStreams returns streams without chunks that share a resource.
func manyStreams(n int, service string) *tokenpulsev1.ExportTokenStreamsRequest {
	all := &tokenpulsev1.ResourceTokenStreams{Resource: &resourcev1.Resource{Attributes: []*commonv1.KeyValue{textAttribute(names.ServiceName, service)}}}
	for i := range n {
		all.TokenStreams = append(all.TokenStreams, &tokenpulsev1.TokenStream{
			StreamId: strconv.Itoa(i), Start: &tokenpulsev1.StreamStart{TimeUnixNano: t0}, End: &tokenpulsev1.StreamEnd{},
		})
	}
	return &tokenpulsev1.ExportTokenStreamsRequest{ResourceTokenStreams: []*tokenpulsev1.ResourceTokenStreams{all}}
}

// finishedStreams returns the streams of a request, which all have an end.
func finishedStreams(tb testing.TB, message *tokenpulsev1.ExportTokenStreamsRequest) []assembly.Finished {
	tb.Helper()
	encoded, err := proto.Marshal(message)
	require.NoError(tb, err)
	store := assembly.NewStore(assembly.Limits{
		MaxStreams: 10_000, MaxStreamsPerClient: 10_000, MaxChunksPerStream: 10_000, MaxStreamBytes: 64 << 10, MaxMemory: 1 << 30,
	}, func() time.Duration { return 0 })
	batch := store.NewBatch()
	var decoder wire.TokenStreams
	require.NoError(tb, decoder.Decode(encoded, batch, func(_ int, id string, err error) { require.NoError(tb, err, id) }))
	tx, err := store.Begin(tb.Context(), batch)
	require.NoError(tb, err)
	return tx.Finished
}

func TestResources_SharedOneIsHashedOnce(t *testing.T) {
	finished := finishedStreams(t, manyStreams(1000, strings.Repeat("r", 60_000)))
	groups := newResources("unknown_service")
	first := groups.of(finished[0].Resource)
	for _, stream := range finished {
		require.Same(t, first, groups.of(stream.Resource))
	}
	require.Equal(t, 1, groups.digests)

	// Equal resources of other requests share a ResourceSpans, others do not.
	equal := finishedStreams(t, manyStreams(1, strings.Repeat("r", 60_000)))[0].Resource
	require.Same(t, first, groups.of(equal))
	other, none := groups.of(finishedStreams(t, manyStreams(1, "other"))[0].Resource), groups.of(nil)
	require.NotSame(t, first, other)
	require.NotSame(t, first, none)
	require.Equal(t, 4, groups.digests)
	for _, used := range []*resource{first, other, first} {
		groups.addSpan(used)
	}
	require.Equal(t, 2, groups.traces.ResourceSpans().Len(), "one without a span takes none")
	require.Equal(t, 3, groups.traces.SpanCount())
}

// BenchmarkSharedResource converts streams that share a resource of 60 kB.
func BenchmarkSharedResource(b *testing.B) {
	finished := finishedStreams(b, manyStreams(1000, strings.Repeat("r", 60_000)))
	maker := New(&Settings{})
	for b.Loop() {
		maker.Make(finished, nil)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(finished)), "ns/stream")
}
