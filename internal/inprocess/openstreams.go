// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package inprocess

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// OpenStream is an open stream at one moment.
type OpenStream struct {
	// Dimensions has the values of the labels that were asked for, empty where the stream has none. It is valid during
	// the call only.
	Dimensions []string
	Vantage    string
	// Decoding is set after the first token.
	Decoding bool
	// Silent is the time since the receiver got the last token or, before the first one, the start.
	Silent time.Duration
	// Age is the time since the start, as the stream reports it: the sender's clock may differ from this one.
	Age time.Duration
	// Tokens are those that have arrived. Chunks that a limit drops are not counted.
	Tokens int64
}

// Phase returns the value of names.LabelPhase.
func (s *OpenStream) Phase() string {
	phase, _ := s.Cell()
	return OpenStreamPhases[phase]
}

// Labels reads the values of a stream's dimensions, in their order, as clean labels.
type Labels interface {
	// Values returns those of a stream without attributes: numbers that are reported at the end are in the unknown band.
	Values() []string
	// Clear sets the values to these.
	Clear(values []string)
	// Read sets a value to an attribute, if it is a dimension.
	Read(values []string, attribute string, v pcommon.Value)
}

// VisitOpenStreams calls visit with each open stream of a receiver. Labels are read from what is known at the
// start of a stream, then from its resource.
type VisitOpenStreams func(labels Labels, visit func(*OpenStream))

// Hangs reports whether the stream has generated no token for so long that it may hang. A stream that waits for its
// first token does not: its prompt may be long.
func (s *OpenStream) Hangs() bool { return s.Decoding && s.IsSilent() }

// IsSilent reports whether that much time has passed, in either phase.
func (s *OpenStream) IsSilent() bool { return s.Silent > hangsAfter }

// hangsAfter is the bound below the bands that the alert TokenStreamsSilent selects.
const hangsAfter = 15 * time.Second

// bounds are the upper bounds of the bands of OpenStream.Silent. The last band has none.
var bounds = [...]time.Duration{time.Second, 5 * time.Second, hangsAfter, time.Minute}

const (
	bands  = len(bounds) + 1
	phases = 2
)

// OpenStreamBands are the values of names.LabelSilent.
var OpenStreamBands = [bands]string{"1s", "5s", "15s", "60s", "+Inf"}

// OpenStreamPhases are the values of names.LabelPhase.
var OpenStreamPhases = [phases]string{names.PhaseFirstToken, names.PhaseDecode}

// Cell is the place of a stream among the time series of one set of dimensions: indexes of OpenStreamPhases and
// OpenStreamBands.
func (s *OpenStream) Cell() (phase, band int) {
	if s.Decoding {
		phase = 1
	}
	for band < len(bounds) && s.Silent > bounds[band] {
		band++
	}
	return phase, band
}
