// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
)

// openStream is an open stream of a test, with its attributes.
type openStream struct {
	attributes map[string]string
	inprocess.OpenStream
}

// receive lets a receiver have these open streams. The clock of the page stands still.
func receive(page *Page, streams ...openStream) (end func()) {
	owner := &streams
	page.OpenStreams.Set(owner, func(labels inprocess.Labels, visit func(*inprocess.OpenStream)) {
		values := labels.Values() // of all streams, as receivers may do
		for _, s := range streams {
			labels.Clear(values)
			for name, value := range s.attributes {
				labels.Read(values, name, pcommon.NewValueStr(value))
			}
			s.Dimensions = values
			visit(&s.OpenStream)
		}
	})
	return func() { page.OpenStreams.Remove(owner) }
}

// open is an open stream of a model.
func open(model, vantage string, decoding bool, silent time.Duration) openStream {
	return openStream{map[string]string{"m": model}, inprocess.OpenStream{Vantage: vantage, Decoding: decoding, Silent: silent, Age: silent + time.Minute, Tokens: 7}}
}

// openReply has what an answer says of open streams.
type openReply struct {
	Open    *int `json:"open_streams"`
	Waiting *int `json:"waiting_streams"`
	Silent  *int `json:"silent_streams"`
	Longest []struct {
		Dimensions     map[string]string
		Model, Replica *string
		Vantage, Phase string
		Silent, Age    float64
		Tokens         int64
	} `json:"longest_silent"`
}

func openOf(t *testing.T, page *Page, path string) (r openReply) {
	t.Helper()
	get(t, page, path, &r)
	return r
}

func requireOpen(t *testing.T, page *Page, path string, open, waiting, silent int) {
	t.Helper()
	r := openOf(t, page, path)
	require.NotNil(t, r.Open, path)
	require.Equal(t, []int{open, waiting, silent}, []int{*r.Open, *r.Waiting, *r.Silent}, path)
}

func TestOpenStreams_AreTheSumOverTheReceiversOrNull(t *testing.T) {
	page, _ := pageAt(time.Now())
	require.Equal(t, openReply{}, openOf(t, page, "now"), "no receiver")
	stop := receive(page)
	requireOpen(t, page, "now?range=1m", 0, 0, 0)
	stop()
	const limit = 15 * time.Second
	stop = receive(page, open("a", "", true, limit), open("a", "", false, time.Hour))
	receive(page, open("a", "", true, limit+1), open("a", "", true, 0), open("a", "", true, time.Hour))
	requireOpen(t, page, "now?range=2m", 5, 1, 2)
	stop()
	requireOpen(t, page, "now?range=3m", 3, 0, 2)
	require.Equal(t, openReply{}, openOf(t, page, "now?range=4m&end=1"), "of the past, nothing is known")
}

func TestOpenStreams_ObeyTheFilters(t *testing.T) {
	page, _ := pageAt(time.Now())
	receive(page, open("a", "client", true, time.Minute), open("a", "engine", true, time.Minute), open("b", "client", false, time.Minute), open("b", "gateway", true, 0))
	requireOpen(t, page, "now", 4, 1, 2)
	requireOpen(t, page, "now?where=m=a", 2, 0, 2)
	requireOpen(t, page, "now?where=m=b", 2, 1, 0)
	requireOpen(t, page, "now?where=m=a&where=m=b", 4, 1, 2)
	requireOpen(t, page, "now?where=m=c", 0, 0, 0)
	requireOpen(t, page, "now?vantage=engine", 1, 0, 1)
	requireOpen(t, page, "now?vantage=engine&where=m=b", 0, 0, 0)
	requireOpen(t, page, "now?vantage=all", 4, 1, 2)
	requireOpen(t, page, "now?outcome=error", 4, 1, 2)
}

// The page shows the requests of the client, and the stream that hangs at the gateway.
func TestOpenStreams_OfEachVantageCountUnlessOneIsChosen(t *testing.T) {
	page := pageOf(observed{vantage: "client", requests: 9}, observed{vantage: "gateway", requests: 9})
	receive(page, open("llama", "gateway", true, time.Minute))
	requireShown(t, page, "now?range=4m", "client")
	requireOpen(t, page, "now?range=5m", 1, 0, 1)
	requireOpen(t, page, "now?vantage=client", 0, 0, 0)
}

// The list has those that are silent for longest, of both phases, at most ten, with what an operator needs to find them.
func TestOpenStreams_ListsTheLongestSilentOfBothPhases(t *testing.T) {
	page, _ := pageAt(time.Now())
	hung := openStream{
		map[string]string{"m": "b", "gen_ai.request.model": "llama", "server.address": "engine-4", "server.port": "8000", "service.instance.id": "not this"},
		inprocess.OpenStream{Vantage: "gateway", Silent: 90 * time.Second, Age: 90 * time.Second},
	}
	var streams []openStream
	for i := range 12 { // in no order
		streams = append(streams, open(fmt.Sprint("m", i), "server", true, time.Duration(20+i*5%12)*time.Second))
	}
	receive(page, streams[:6]...)
	receive(page, append(streams[6:], hung, open("brief", "server", true, 15*time.Second))...)
	listed := openOf(t, page, "now").Longest
	require.Len(t, listed, 10)
	engine := "engine-4:8000"
	require.Equal(t, map[string]string{"m": "b"}, listed[0].Dimensions)
	require.Equal(t, "llama", *listed[0].Model)
	require.Equal(t, &engine, listed[0].Replica)
	require.Equal(t, "gateway first_token 90 90 0", fmt.Sprint(listed[0].Vantage, " ", listed[0].Phase, " ", listed[0].Silent, " ", listed[0].Age, " ", listed[0].Tokens))
	require.Nil(t, listed[1].Replica)
	require.Nil(t, listed[1].Model)
	for i, s := range listed[1:] {
		require.InDelta(t, 31-i, s.Silent, 0) // 20 to 31 seconds
		require.InDelta(t, 60+31-i, s.Age, 0)
		require.Equal(t, "decode 7", fmt.Sprint(s.Phase, " ", s.Tokens))
	}
	listed = openOf(t, page, "now?where=m=m0").Longest
	require.Len(t, listed, 1)
	require.Equal(t, map[string]string{"m": "m0"}, listed[0].Dimensions)
	require.Empty(t, openOf(t, page, "now?where=m=brief").Longest)
}
