// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"strings"
	"sync"
)

// maxThresholds limits the SLOs whose threshold is known.
const maxThresholds = 128

// Thresholds holds the indicator and threshold of SLOs. Only a request that breaches an SLO
// says what they are. The zero value is empty.
type Thresholds struct {
	mu    sync.Mutex
	bySLO map[string]threshold
}

type threshold struct {
	indicator string
	value     float64
}

// Knows reports whether the threshold of an SLO is known, or will never be.
func (t *Thresholds) Knows(slo string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.bySLO[slo]
	return ok || len(t.bySLO) >= maxThresholds
}

// Set sets the indicator and threshold of an SLO: empty and NaN if they are unknown.
func (t *Thresholds) Set(slo, indicator string, value float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.bySLO == nil {
		t.bySLO = map[string]threshold{}
	}
	if len(t.bySLO) < maxThresholds {
		t.bySLO[strings.Clone(slo)] = threshold{strings.Clone(indicator), value}
	}
}

func (t *Thresholds) of(slo string) (indicator *string, value number) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.bySLO[slo]; of.indicator != "" {
		return &of.indicator, number(of.value)
	}
	return nil, missing
}
