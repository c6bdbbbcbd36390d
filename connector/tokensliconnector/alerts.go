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
	// active holds the alerts whose start event the next consumer accepted, with the time at which
	// their condition held last. The map does not change once it is set.
	active map[alert]time.Time
}

func newAlerts(config *keeper.Config) alerts {
	return alerts{
		dimensions: config.Series.Dimensions.Names(),
		limit:      (2*config.Series.MaxSeries + 1) * slo.MaxSLOs * len(slo.Alerts),
	}
}

func (a *alerts) set(active map[alert]time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active = active
}

func (a *alerts) get() map[alert]time.Time {
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
func (a *alerts) check(tracker *slo.Tracker, now time.Time) (logs plog.Logs, active map[alert]time.Time) {
	before := a.get()
	logs, active = plog.NewLogs(), map[alert]time.Time{}
	into := recordsOf(logs.ResourceLogs().AppendEmpty())
	at := pcommon.NewTimestampFromTime(now)
	tracker.Visit(now, func(b *slo.Budgets) {
		for i := range b.Each {
			budget := &b.Each[i]
			for j := range slo.Alerts {
				kind := &slo.Alerts[j]
				this := alert{b.Key, budget.SLO, kind.Name}
				held, started := before[this]
				switch {
				case kind.Fires(budget):
					held = now
				case !started || now.Sub(held) >= kind.Keep || held.After(now): // saved by another clock
					continue
				}
				if _, inhibited := active[alert{b.Key, budget.SLO, slo.NearTotalBreach}]; inhibited && !started && kind.Name == slo.FastBurn {
					continue
				}
				active[this] = held
				if !started {
					startEvent(a.event(into, names.SLOBurnStartEvent, at, this, kind), b, budget, kind)
				}
			}
		}
	})
	for this := range before { // includes alerts whose objective or budget is gone
		if _, goesOn := active[this]; !goesOn {
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
	// Held is the Unix time in seconds at which the condition of an alert with slo.Alert.Keep held last.
	Held int64 `json:"held,omitempty"`
}

// encode returns the active alerts in the form that decode reads.
func (a *alerts) encode() []byte {
	active := a.get()
	if len(active) == 0 {
		return nil
	}
	var all []savedAlert
	for this, held := range active {
		saved := savedAlert{Series: []byte(this.Series), SLO: this.SLO, Alert: this.Name}
		if alertNamed(this.Name).Keep > 0 {
			saved.Held = held.Unix()
		}
		all = append(all, saved)
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
	active := map[alert]time.Time{}
	for _, saved := range all {
		key := string(saved.Series)
		if len(active) >= a.limit {
			return fmt.Errorf("more than %d saved alerts", a.limit)
		}
		if series.IsKey(key, len(a.dimensions)) && isName(saved.SLO) && isName(saved.Alert) {
			active[alert{key, saved.SLO, saved.Alert}] = time.Unix(saved.Held, 0)
		}
	}
	a.set(active)
	return err
}

func isName(text string) bool { return text != "" && text == names.CleanLabel(text) }
