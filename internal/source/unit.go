// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// unitlessFirstTokens are attributes with a time to first token that senders write in different units.
var unitlessFirstTokens = [...]string{"gen_ai.response.time_to_first_token", "gen_ai.server.time_to_first_token"}

// firstTokenUnits has the unit of each sender that is known, by a part of its scope's name or of its provider.
var firstTokenUnits = []struct {
	sender string
	unit   time.Duration
}{
	{"strands", time.Millisecond},
	{"rtp_llm", time.Millisecond},
	{"rtp-llm", time.Millisecond},
	{"loongsuite", time.Nanosecond},
	{"bifrost", time.Nanosecond},
	{"openlit", time.Second},
}

// shortestFirstToken is the shortest time to first token that is believed where the unit is unknown: no engine is faster.
const shortestFirstToken = time.Millisecond

// readUnitlessFirstToken reads the time to first token that a sender wrote without a known unit. A wrong factor of 1,000
// is worse than no value: a value that could be two units is not read.
func (o *Observation) readUnitlessFirstToken(r *reader, c candidate) {
	if !c.mayHave("gen_ai.") {
		return
	}
	for _, name := range unitlessFirstTokens {
		v, ok := c.get(name)
		if !ok {
			continue
		}
		if unit := firstTokenUnit(r, c); unit > 0 {
			o.setFirstChunk(durationIn(unit, v, &o.Unusable), readerRank)
			continue
		}
		o.guessFirstToken(v)
	}
}

// firstTokenUnit returns the unit that the sender of a span uses, or 0 if it is unknown.
func firstTokenUnit(r *reader, c candidate) time.Duration {
	if r.name == names.SourceOpenLIT {
		return time.Second
	}
	scope := strings.ToLower(c.scope)
	provider, system := strings.ToLower(c.text(names.GenAIProviderName)), strings.ToLower(c.text(names.GenAISystem))
	for _, known := range firstTokenUnits {
		if strings.Contains(scope, known.sender) || strings.HasPrefix(provider, known.sender) || strings.HasPrefix(system, known.sender) {
			return known.unit
		}
	}
	return 0
}

// guessFirstToken reads a value that can be of one unit only.
func (o *Observation) guessFirstToken(v pcommon.Value) {
	n, ok := attributes.Number(v)
	if !ok {
		o.Unusable++
		return
	}
	var fit optional.Value[time.Duration]
	fits, tooLong := 0, int64(0) // a unit in which the value overflows is no mistake of the sender
	for _, unit := range [...]time.Duration{time.Second, time.Millisecond, time.Microsecond, time.Nanosecond} {
		if d := durationOf(unit, n, &tooLong); d.Known && shortestFirstToken <= d.Value && d.Value <= o.Request.Duration {
			fit = d
			fits++
		}
	}
	switch fits {
	case 0:
		o.setFirstChunk(durationOf(time.Second, n, &o.Unusable), readerRank) // counts as rejected, or is 0
	case 1:
		o.setFirstChunk(fit, readerRank)
	default:
		o.Request.AmbiguousUnit = true
	}
}

// timeKnown reports whether a time of the first token is known.
func (o *Observation) timeKnown() bool {
	if o.Standard[names.TimeToFirstChunk].Known {
		return true
	}
	for _, m := range o.Request.FirstToken {
		if m.Known {
			return true
		}
	}
	return o.Timeline.Left() > 0
}
