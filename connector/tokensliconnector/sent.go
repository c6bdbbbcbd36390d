package tokensliconnector

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// sent is what the next consumer has of each series, by the series' key. A
// flush makes the next one from it and changes nothing: so a flush that is
// refused has no trace. It has no more entries than the engine has series.
type sent map[string]*sentSeries

// sentSeries is what the next consumer has of one series.
type sentSeries struct {
	// began tells a series from one that expired and had the same identity.
	began      time.Time
	requests   [len(series.OutcomeNames)]sentSum
	histograms [len(series.OutcomeNames)][len(series.Histograms)]sentHistogram
	counts     [len(series.Counters)]sentSum
	slos       map[string][len(series.VerdictNames)]sentSum // by name
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

// of returns what was sent of a series.
func (s sent) of(snapshot *series.Snapshot) *sentSeries {
	if known := s[snapshot.Key]; known != nil && known.began.Equal(snapshot.Start) {
		return known
	}
	return &nothing
}
