package tokensliconnector

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// watch tells of the conditions of burn-rate alerts. It has no more entries than
// there are budgets of series, held and remembered, times the alerts.
type watch struct {
	dimensions []string
	// told are the conditions that hold, as whoever takes the events knows.
	told map[condition]bool
}

// condition is that of one alert for one objective of one series.
type condition struct {
	// Series is the key of the series, as bytes: it is no text.
	Series string
	SLO    string
	// Alert is the alert's name.
	Alert string
}

// look returns events for the conditions that hold at a time and were not told of,
// and for those that were and hold no more; and all that are told of then. It changes
// nothing.
func (w *watch) look(engine *series.Engine, now time.Time) (logs plog.Logs, told map[condition]bool) {
	logs, told = plog.NewLogs(), map[condition]bool{}
	into := scopeOf(logs.ResourceLogs().AppendEmpty())
	at := pcommon.NewTimestampFromTime(now)
	engine.Recent(now, func(key string, o *series.Objective, recent *slo.Recent) {
		for i := range slo.Alerts {
			a := &slo.Alerts[i]
			c := condition{key, o.SLO, a.Name}
			if !a.Holds(recent, o.Objective) {
				continue
			}
			told[c] = true
			if !w.told[c] {
				putBurn(w.event(into, names.SLOBurnStartEvent, at, c, a), o, recent, a)
			}
		}
	})
	for c := range w.told { // also where the objective is gone, or its budget forgotten
		if !told[c] {
			w.event(into, names.SLOBurnEndEvent, at, c, alertNamed(c.Alert)).Body().SetStr(fmt.Sprintf("SLO %s: %s is over", c.SLO, c.Alert))
		}
	}
	return logs, told
}

func alertNamed(name string) *slo.Alert {
	for i := range slo.Alerts {
		if slo.Alerts[i].Name == name {
			return &slo.Alerts[i]
		}
	}
	return &slo.Alert{Name: name} // of another release
}

// savedCondition is a condition as it is saved.
type savedCondition struct {
	Series []byte `json:"series"`
	SLO    string `json:"slo"`
	Alert  string `json:"alert"`
}

// encode returns what decode reads: what has been told of.
func (w *watch) encode() []byte {
	if len(w.told) == 0 {
		return nil
	}
	var all []savedCondition
	for c := range w.told {
		all = append(all, savedCondition{[]byte(c.Series), c.SLO, c.Alert})
	}
	slices.SortFunc(all, func(a, b savedCondition) int {
		return cmp.Or(bytes.Compare(a.Series, b.Series), cmp.Compare(a.SLO, b.SLO), cmp.Compare(a.Alert, b.Alert))
	})
	encoded, _ := json.Marshal(all) // text and bytes: it cannot fail
	return encoded
}

func (w *watch) decode(encoded []byte) error {
	w.told = map[condition]bool{}
	if len(encoded) == 0 {
		return nil
	}
	var all []savedCondition
	err := json.Unmarshal(encoded, &all)
	for _, c := range all {
		w.told[condition{string(c.Series), c.SLO, c.Alert}] = true
	}
	return err
}

// event begins an event of a condition.
func (w *watch) event(into plog.LogRecordSlice, name string, now pcommon.Timestamp, c condition, a *slo.Alert) plog.LogRecord {
	event := burnEvent(into, name, now, a)
	of := series.IdentityOf(c.Series)
	attributes := event.Attributes()
	seriesAttributes(w.dimensions, names.Vantage, &of).MoveTo(attributes)
	attributes.PutStr(names.SLOAttribute, c.SLO)
	attributes.PutStr(names.SLOAlertName, a.Name)
	severity := names.SeverityTicket
	if a.Page {
		severity = names.SeverityPage
	}
	attributes.PutStr(names.SLOAlertSeverity, severity)
	attributes.PutDouble(names.SLOAlertFactor, a.Factor)
	attributes.PutStr(names.SLOAlertLong, model.Duration(a.LongWindow()).String())
	attributes.PutStr(names.SLOAlertShort, model.Duration(a.ShortWindow()).String())
	return event
}

func burnEvent(into plog.LogRecordSlice, name string, now pcommon.Timestamp, a *slo.Alert) plog.LogRecord {
	event := into.AppendEmpty()
	event.SetEventName(name)
	event.SetTimestamp(now)
	event.SetObservedTimestamp(now)
	severity := plog.SeverityNumberInfo
	switch {
	case name == names.SLOBurnStartEvent && a.Page:
		severity = plog.SeverityNumberError
	case name == names.SLOBurnStartEvent:
		severity = plog.SeverityNumberWarn
	}
	event.SetSeverityNumber(severity)
	event.SetSeverityText(severity.String())
	return event
}

// putBurn tells how fast the budget burns, and what is left of it.
func putBurn(event plog.LogRecord, o *series.Objective, recent *slo.Recent, a *slo.Alert) {
	long, _ := recent.Burn[a.Long].BurnRate(o.Objective)
	short, _ := recent.Burn[a.Short].BurnRate(o.Objective)
	attributes := event.Attributes()
	attributes.PutDouble(names.SLOObjective, o.Objective)
	attributes.PutDouble(names.SLOAlertLongBurn, long)
	attributes.PutDouble(names.SLOAlertShortBurn, short)
	if left, known := recent.Budget.BudgetRemaining(o.Objective); known {
		attributes.PutDouble(names.SLOBudgetRemaining, left)
	}
	event.Body().SetStr(fmt.Sprintf("SLO %s: %s, the error budget burns %.3g times too fast over %v and %.3g times over %v",
		o.SLO, a.Name, long, model.Duration(a.LongWindow()), short, model.Duration(a.ShortWindow())))
}
