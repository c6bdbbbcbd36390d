// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package annotate

import (
	"errors"
	"hash/maphash"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/coldstart"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
	"github.com/tokenpulse/tokenpulse/internal/settings"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// ColdStartConfig says which requests of a replica are cold.
type ColdStartConfig struct {
	// Requests is the number of first requests that are cold, Duration how long requests are cold after the start of
	// the first one. Either is enough.
	Requests int           `mapstructure:"requests"`
	Duration time.Duration `mapstructure:"duration"`
	// Idle is the time without an open request after which a replica is cold again.
	Idle time.Duration `mapstructure:"idle"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// maxColdRequests limits ColdStartConfig.Requests, whose starts are kept for each replica.
const maxColdRequests = 100

// Validate reports every invalid setting.
func (c *ColdStartConfig) Validate() error {
	var errs settings.Problems
	errs.Unless(c.Requests >= 1 && c.Requests <= maxColdRequests, "`requests` is %d; use a number from 1 to %d", c.Requests, maxColdRequests)
	errs.Unless(c.Duration == 0 || c.Duration >= minDuration, "`duration` is %s; use a unit, such as 2m, or 0 to count requests only", c.Duration)
	errs.Unless(c.Idle >= time.Second, "`idle` is %s; use at least 1s, with a unit, such as 15m", c.Idle)
	return errors.Join(errs...)
}

// ColdStarts marks cold requests. It is safe for concurrent use. A nil one marks none.
type ColdStarts struct {
	table *coldstart.Table
	seed  maphash.Seed
}

// NewColdStarts returns the cold starts that the settings ask for, or nil.
func NewColdStarts(cfg *Config) *ColdStarts {
	cold := cfg.ColdStart.Get()
	if cold == nil {
		return nil
	}
	which := coldstart.Settings{Requests: cold.Requests, Duration: cold.Duration, Idle: cold.Idle}
	now := func() int64 { return time.Now().UnixNano() }
	return &ColdStarts{table: coldstart.NewTable(which, coldstart.MaxReplicas, now), seed: maphash.MakeSeed()}
}

// Evicted returns how many replicas were forgotten at the limit although they were not idle.
func (c *ColdStarts) Evicted() int64 { return c.table.Evicted() }

// Mark notes the request of a span for its replica, and writes whether it is cold.
func (c *ColdStarts) Mark(span ptrace.Span, resource pcommon.Map, vantage timeline.Vantage) {
	if c == nil {
		return
	}
	if c.Cold(c.ReplicaOf(span.Attributes(), resource, vantage), int64(span.StartTimestamp()), int64(span.EndTimestamp())) {
		span.Attributes().PutBool(names.Cold, true)
	}
}

// Cold notes a request of a replica, and reports whether it is cold. Times are nanoseconds since the Unix epoch.
func (c *ColdStarts) Cold(of Replica, start, end int64) bool {
	return of.Known && c.table.Cold(of.Value, start, end)
}

// Replica identifies a replica as one vantage sees it: a server and its engine may both have a span of the same
// request, under the same name.
type Replica = optional.Value[uint64]

// ReplicaOf returns the replica of a request with these attributes, if they name one.
func (c *ColdStarts) ReplicaOf(own, resource pcommon.Map, vantage timeline.Vantage) Replica {
	name := attributes.Replica(vantage.String(), func(name string) string { return attributes.Label(name, own, resource) })
	if name == "" {
		return Replica{}
	}
	var hash maphash.Hash
	hash.SetSeed(c.seed)
	_ = hash.WriteByte(byte(vantage)) // never fails, like the next
	_, _ = hash.WriteString(name)
	return optional.Of(hash.Sum64())
}
