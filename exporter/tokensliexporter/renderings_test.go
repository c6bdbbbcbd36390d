// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
)

// rendered is a renderings whose renderings take a time. It notes when each began.
type rendered struct {
	*renderings
	mu    sync.Mutex
	began map[*exposition.Body]time.Time
	most  int // renderings that ran at a time
	now   int
}

func newRendered(takes, company time.Duration) *rendered {
	r := &rendered{began: map[*exposition.Body]time.Time{}}
	r.renderings = newRenderings(func(_ variant, unused func() bool) (*exposition.Body, error) {
		body, end := new(exposition.Body), time.Now().Add(takes)
		r.mu.Lock()
		r.began[body] = time.Now()
		r.now++
		r.most = max(r.most, r.now)
		r.mu.Unlock()
		for time.Now().Before(end) && !unused() {
			time.Sleep(time.Millisecond)
		}
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
		return body, nil
	}, func() time.Duration { return company })
	return r
}

// variants are all: three formats, compressed or not, with young zeros or without.
func variants() (all []variant) {
	for _, kind := range []expfmt.FormatType{expfmt.TypeTextPlain, expfmt.TypeOpenMetrics, expfmt.TypeProtoDelim} {
		for _, gzip := range []bool{false, true} {
			all = append(all, variant{exposition.Format{Type: kind, Gzip: gzip}, false}, variant{exposition.Format{Type: kind, Gzip: gzip}, true})
		}
	}
	return all
}

// No scrape gets a rendering that is older than itself, or that is of another variant, whenever scrapes come.
func TestRenderings_BeginAfterTheScrapesThatShareThem(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			r := newRendered(time.Duration(random.IntN(50))*time.Millisecond, time.Duration(random.IntN(3))*time.Millisecond)
			var of sync.Map // the variant of each body
			var group sync.WaitGroup
			for range 300 {
				v := variants()[random.IntN(1+int(seed)%12)]
				wait := time.Duration(random.IntN(500)) * time.Millisecond
				group.Go(func() {
					time.Sleep(wait)
					arrived := time.Now()
					body, err := r.get(t.Context(), v)
					if err != nil {
						t.Error(err)
						return
					}
					r.mu.Lock()
					defer r.mu.Unlock()
					if r.began[body].Before(arrived) {
						t.Errorf("a rendering of %v for a scrape of %v", r.began[body], arrived)
					}
					if other, loaded := of.LoadOrStore(body, v); loaded && other != v {
						t.Errorf("%v got a rendering of %v", v, other)
					}
				})
			}
			group.Wait()
			require.Equal(t, 1, r.most, "renderings take turns")
			require.Empty(t, r.waiting)
		})
	}
}

// Scrapes at once share one rendering of each variant, even if the first has begun to wait for company.
func TestRenderings_OneForScrapesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRendered(time.Second, 100*time.Millisecond)
		var group sync.WaitGroup
		for i := range 60 {
			group.Go(func() {
				time.Sleep(time.Duration(i) * time.Millisecond)
				_, err := r.get(t.Context(), variants()[i%3])
				if err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		require.Len(t, r.began, 3)
	})
}

// A scrape that gives up leaves the others their rendering. Without any, it does not begin, or ends.
func TestRenderings_EndWithTheLastUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRendered(time.Minute, 10*time.Millisecond)
		v := variants()[0]
		get := func(timeout time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			_, err := r.get(ctx, v)
			return err
		}
		start := time.Now()
		var group sync.WaitGroup
		for _, timeout := range []time.Duration{time.Second, time.Hour, 2 * time.Second} {
			group.Go(func() {
				if err := get(timeout); (timeout == time.Hour) != (err == nil) {
					t.Errorf("%v: %v", timeout, err)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		require.ErrorIs(t, get(time.Second), context.DeadlineExceeded, "waits for its turn")
		group.Wait()
		require.Equal(t, time.Minute+10*time.Millisecond, time.Since(start))
		synctest.Wait()
		require.Len(t, r.began, 1, "the second rendering has lost its user before it began")

		require.ErrorIs(t, get(time.Second), context.DeadlineExceeded)
		ended := time.Now()
		r.close()
		require.Less(t, time.Since(ended), time.Second, "the rendering ended early")
		require.ErrorIs(t, get(time.Hour), errClosed)
		require.Len(t, r.began, 2)
	})
}

func TestRenderings_SurviveAPanic(t *testing.T) {
	var panics atomic.Bool
	panics.Store(true)
	r := newRenderings(func(variant, func() bool) (*exposition.Body, error) {
		if panics.Load() {
			panic("broken")
		}
		return new(exposition.Body), nil
	}, func() time.Duration { return 0 })
	for range 3 {
		_, err := r.get(t.Context(), variant{})
		require.ErrorContains(t, err, "broken")
	}
	panics.Store(false)
	_, err := r.get(t.Context(), variant{})
	require.NoError(t, err)
	r.close()
}
