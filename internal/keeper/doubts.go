// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package keeper

import (
	"maps"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

const (
	overflowMessage = "requests or open streams of new series go to one series, `otel.metric.overflow`, because `max_series` or, in token_stream, " +
		"`max_share_per_client` is reached; remove a dimension with many values, or raise the limit"
	unseenMessage           = "no request had a verdict for these objectives; check the spelling of `objectives::slo` against `slos` of token_latency"
	standardOverflowMessage = "requests with new attributes of `conventions` go to one series, `otel.metric.overflow`, because `max_series` is reached; " +
		"narrow `conventions::attributes`, or raise the limit"
	doubledMessage = "two vantages of one trace count under the same names of `conventions`, so their requests count twice; " +
		"name one of client and gateway, and one of server and engine, in `conventions::vantages`"
	withoutChunksMessage = "the time per output chunk of `conventions` is missing, because spans carry no gaps between chunks; " +
		"set `detail: full` of token_latency"
	dimensionMessage = "no request has this dimension; check its spelling in `dimensions`, and that the senders set the attribute"
)

// doubtObjectives raises a doubt about objectives without a verdict: after a few requests if components of this
// process define SLOs but not these, else much later, as another Collector may define them.
func (k *Keeper) doubtObjectives() {
	objectives, slos := k.Tracker.Unseen(k.settings.Now())
	if len(objectives) == 0 {
		if slos = definedSLOs(); len(slos) > 0 {
			objectives = k.Tracker.Undefined(slos)
		}
	}
	if len(objectives) > 0 {
		k.doubts.Raise(unseenMessage, strings.Join(objectives, ", "), zap.Strings("objectives", objectives), zap.Strings("slos_seen", slos))
	}
}

// definedSLOs returns the names of the SLOs that components of this process define, sorted.
func definedSLOs() []string {
	all := map[string]bool{}
	for _, component := range inprocess.SLOs.All() {
		for _, d := range component {
			all[series.CleanLabel(d.Name)] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// minRequests is the number of requests of which one has a dimension that is spelled right. Failures are rarer.
const minRequests = 100

// doubtDimensions raises a doubt about each dimension without a value. The default ones are spelled right.
func (k *Keeper) doubtDimensions() {
	if k.Engine == nil {
		return
	}
	defaults := series.NewDefaultConfig().Dimensions.Names()
	unused, requests := k.Engine.UnusedDimensions()
	for _, i := range unused {
		name := k.settings.Config.Series.Dimensions[i].Attribute
		if requests >= minRequests && name != names.ErrorType && !slices.Contains(defaults, name) {
			k.doubts.Raise(dimensionMessage, name, zap.String("dimension", name))
		}
	}
}

// doubtConventions raises a doubt about requests that the metrics of conventions misrepresent.
func (k *Keeper) doubtConventions() {
	if k.Engine == nil || k.Engine.Standard == nil {
		return
	}
	faults := k.Engine.Standard.Faults()
	for _, fault := range [...]struct {
		found   bool
		message string
	}{
		{faults.Overflow, standardOverflowMessage}, {faults.Doubled, doubledMessage}, {faults.WithoutChunks, withoutChunksMessage},
	} {
		if fault.found {
			k.doubts.Raise(fault.message, "")
		}
	}
}
