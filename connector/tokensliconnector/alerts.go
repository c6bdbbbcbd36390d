// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// alerts finds burn-rate alerts that start or end. The number of series with budgets
// limits its entries.
type alerts struct {
	dimensions []string
	// limit is the largest number of active alerts that can have been saved.
	limit int

	mu sync.Mutex
	// active holds the alerts whose start event the next consumer accepted. The map does
	// not change once it is set.
	active map[alert]bool
}

func newAlerts(config *keeper.Config) alerts {
	return alerts{
		dimensions: config.Series.Dimensions,
		limit:      (2*config.Series.MaxSeries + 1) * slo.MaxSLOs * len(slo.Alerts),
	}
}

func (a *alerts) set(active map[alert]bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active = active
}

func (a *alerts) get() map[alert]bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.active
}

// alert is one burn-rate alert for one objective of one series.
type alert struct {
	Series string // key of the series; binary
	SLO    string
	Name   string // slo.Alert.Name
}

// check returns an event for each alert that started or ended, and all alerts that are
// active afterwards. It does not change a.active.
func (a *alerts) check(tracker *slo.Tracker, now time.Time) (logs plog.Logs, active map[alert]bool) {
	before := a.get()
	logs, active = plog.NewLogs(), map[alert]bool{}
	into := recordsOf(logs.ResourceLogs().AppendEmpty())
	at := pcommon.NewTimestampFromTime(now)
	tracker.Visit(now, func(b *slo.Budgets) {
		for i := range b.Each {
			budget := &b.Each[i]
			for j := range slo.Alerts {
				kind := &slo.Alerts[j]
				if !kind.Fires(&budget.Recent, budget.Objective.Objective) {
					continue
				}
				this := alert{b.Key, budget.SLO, kind.Name}
				active[this] = true
				if !before[this] {
					startEvent(a.event(into, names.SLOBurnStartEvent, at, this, kind), budget, kind)
				}
			}
		}
	})
	for this := range before { // includes alerts whose objective or budget is gone
		if !active[this] {
			event := a.event(into, names.SLOBurnEndEvent, at, this, alertNamed(this.Name))
			event.Body().SetStr(fmt.Sprintf("SLO %s: %s ended", this.SLO, this.Name))
		}
	}
	return logs, active
}

func alertNamed(name string) *slo.Alert {
	for i := range slo.Alerts {
		if slo.Alerts[i].Name == name {
			return &slo.Alerts[i]
		}
	}
	return &slo.Alert{Name: name} // saved by another release
}

// savedAlert is the stored form of an alert.
type savedAlert struct {
	Series []byte `json:"series"`
	SLO    string `json:"slo"`
	Alert  string `json:"alert"`
}

// encode returns the active alerts in the form that decode reads.
func (a *alerts) encode() []byte {
	active := a.get()
	if len(active) == 0 {
		return nil
	}
	var all []savedAlert
	for this := range active {
		all = append(all, savedAlert{[]byte(this.Series), this.SLO, this.Name})
	}
	slices.SortFunc(all, func(x, y savedAlert) int {
		return cmp.Or(bytes.Compare(x.Series, y.Series), cmp.Compare(x.SLO, y.SLO), cmp.Compare(x.Alert, y.Alert))
	})
	encoded, _ := json.Marshal(all) // strings and bytes cannot fail
	return encoded
}

// largestNotes limits the notes that decode reads, in bytes.
const largestNotes = 64 << 20

// decode restores the active alerts. The storage can be damaged: alerts that the connector
// cannot have saved are skipped.
func (a *alerts) decode(encoded []byte) error {
	if len(encoded) == 0 {
		return nil
	}
	if len(encoded) > largestNotes {
		return fmt.Errorf("%d bytes of saved alerts; the maximum is %d", len(encoded), largestNotes)
	}
	var all []savedAlert
	err := json.Unmarshal(encoded, &all)
	active := map[alert]bool{}
	for _, saved := range all {
		key := string(saved.Series)
		if len(active) >= a.limit {
			return fmt.Errorf("more than %d saved alerts", a.limit)
		}
		if series.IsKey(key, len(a.dimensions)) && isName(saved.SLO) && isName(saved.Alert) {
			active[alert{key, saved.SLO, saved.Alert}] = true
		}
	}
	a.set(active)
	return err
}

func isName(text string) bool { return text != "" && text == series.CleanLabel(text) }
