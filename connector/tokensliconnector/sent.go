package tokensliconnector

import (
	"encoding/binary"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/sli"
)

// sent is what the next consumer has of each series, by the series' identity. A
// flush makes the next one from it and changes nothing: so a flush that is
// refused has no trace. It has no more entries than the engine has series.
type sent map[string]*sentSeries

// sentSeries is what the next consumer has of one series.
type sentSeries struct {
	// began tells a series from one that expired and had the same identity.
	began      time.Time
	requests   [len(sli.OutcomeNames)]sentSum
	histograms [len(sli.OutcomeNames)][len(sli.Histograms)]sentHistogram
	counts     [len(sli.Counters)]sentSum
	slos       map[string][len(sli.VerdictNames)]sentSum // by name
}

// sentSum is what the next consumer has of one sum. The zero value is nothing.
type sentSum struct {
	start pcommon.Timestamp // of cumulative points
	total float64           // of delta points
}

// sentHistogram is what the next consumer has of one distribution. The zero value
// is nothing.
type sentHistogram struct {
	start pcommon.Timestamp // of cumulative points
	// Of delta points: an encoded sketch is a tenth the size of one in memory.
	count  uint64
	sketch []byte
}

// nothing is what the next consumer has of a series that it never saw.
var nothing sentSeries

// of returns what was sent of a series, which has this key.
func (s sent) of(key []byte, snapshot *sli.Snapshot) *sentSeries {
	if known := s[string(key)]; known != nil && known.began.Equal(snapshot.Start) {
		return known
	}
	return &nothing
}

// appendKey appends a series' identity: each value after its length. The overflow
// series has none, and nobody else does.
func appendKey(key []byte, s *sli.Snapshot) []byte {
	if s.Overflow {
		return key
	}
	for _, v := range s.Dimensions {
		key = appendValue(key, v)
	}
	return appendValue(key, s.Vantage)
}

func appendValue(key []byte, v string) []byte {
	key = binary.AppendUvarint(key, uint64(len(v)))
	return append(key, v...)
}
