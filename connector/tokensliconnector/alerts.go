// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// alerts finds burn-rate alerts that start or end. The number of series with budgets
// limits its entries.
type alerts struct {
	dimensions []string
	// active holds the alerts whose start event the next consumer accepted.
	active map[alert]bool
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
				if !a.active[this] {
					startEvent(a.event(into, names.SLOBurnStartEvent, at, this, kind), budget, kind)
				}
			}
		}
	})
	for this := range a.active { // includes alerts whose objective or budget is gone
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
	if len(a.active) == 0 {
		return nil
	}
	var all []savedAlert
	for this := range a.active {
		all = append(all, savedAlert{[]byte(this.Series), this.SLO, this.Name})
	}
	slices.SortFunc(all, func(x, y savedAlert) int {
		return cmp.Or(bytes.Compare(x.Series, y.Series), cmp.Compare(x.SLO, y.SLO), cmp.Compare(x.Alert, y.Alert))
	})
	encoded, _ := json.Marshal(all) // strings and bytes cannot fail
	return encoded
}

func (a *alerts) decode(encoded []byte) error {
	a.active = map[alert]bool{}
	if len(encoded) == 0 {
		return nil
	}
	var all []savedAlert
	err := json.Unmarshal(encoded, &all)
	for _, saved := range all {
		if series.IsKey(string(saved.Series), len(a.dimensions)) {
			a.active[alert{string(saved.Series), saved.SLO, saved.Alert}] = true
		}
	}
	return err
}
