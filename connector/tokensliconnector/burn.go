package tokensliconnector

import (
	"fmt"
	"maps"
	"time"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/sli"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// watch knows which conditions of burn-rate alerts hold. It has no more entries than
// the engine's series have objectives, times the alerts.
type watch struct {
	dimensions []string
	holding    map[condition]pcommon.Map // the attributes that its events have in common
}

// condition is that of one alert for one objective of one series.
type condition struct {
	series, slo string
	alert       int
}

// look returns events for the conditions that hold at a time and did not before, and
// the other way round, and those that hold now. It changes nothing.
func (w *watch) look(engine *sli.Engine, now time.Time) (plog.Logs, map[condition]pcommon.Map) {
	logs := plog.NewLogs()
	into := scopeOf(logs.ResourceLogs().AppendEmpty())
	at := pcommon.NewTimestampFromTime(now)
	holding, over := map[condition]pcommon.Map{}, maps.Clone(w.holding)
	engine.Collect(now, func(s *sli.Snapshot) {
		for i := range s.SLOs {
			o := &s.SLOs[i]
			for alert := range slo.Alerts {
				a, c := &slo.Alerts[alert], condition{s.Key, o.Name, alert}
				if !a.Holds(&o.Recent, o.Objective) { // without an objective Recent is empty
					continue
				}
				delete(over, c)
				var told bool
				if holding[c], told = w.holding[c]; !told {
					holding[c] = alertAttributes(w.dimensions, s, o, a)
					event := burnEvent(into, names.SLOBurnStartEvent, at, a, holding[c])
					putBurn(event, o, a)
				}
			}
		}
	})
	for c, attributes := range over { // also where the series is gone
		event := burnEvent(into, names.SLOBurnEndEvent, at, &slo.Alerts[c.alert], attributes)
		event.Body().SetStr(fmt.Sprintf("SLO %s: %s is over", c.slo, slo.Alerts[c.alert].Name))
	}
	return logs, holding
}

// alertAttributes returns what the events of a condition have in common.
func alertAttributes(dimensions []string, s *sli.Snapshot, o *sli.SLOSnapshot, a *slo.Alert) pcommon.Map {
	attributes := seriesAttributes(dimensions, s)
	attributes.PutStr(names.SLOAttribute, o.Name)
	attributes.PutDouble(names.SLOObjective, o.Objective)
	attributes.PutStr(names.SLOAlertName, a.Name)
	severity := names.SeverityTicket
	if a.Page {
		severity = names.SeverityPage
	}
	attributes.PutStr(names.SLOAlertSeverity, severity)
	attributes.PutDouble(names.SLOAlertFactor, a.Factor)
	attributes.PutStr(names.SLOAlertLong, model.Duration(a.LongWindow()).String())
	attributes.PutStr(names.SLOAlertShort, model.Duration(a.ShortWindow()).String())
	return attributes
}

func burnEvent(into plog.LogRecordSlice, name string, now pcommon.Timestamp, a *slo.Alert, attributes pcommon.Map) plog.LogRecord {
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
	attributes.CopyTo(event.Attributes())
	return event
}

// putBurn tells how fast the budget burns, and what is left of it.
func putBurn(event plog.LogRecord, o *sli.SLOSnapshot, a *slo.Alert) {
	long, _ := o.Recent.Burn[a.Long].BurnRate(o.Objective)
	short, _ := o.Recent.Burn[a.Short].BurnRate(o.Objective)
	event.Attributes().PutDouble(names.SLOAlertLongBurn, long)
	event.Attributes().PutDouble(names.SLOAlertShortBurn, short)
	if left, known := o.Recent.Budget.BudgetRemaining(o.Objective); known {
		event.Attributes().PutDouble(names.SLOBudgetRemaining, left)
	}
	event.Body().SetStr(fmt.Sprintf("SLO %s: %s, the error budget burns %.3g times too fast over %v and %.3g times over %v",
		o.Name, a.Name, long, model.Duration(a.LongWindow()), short, model.Duration(a.ShortWindow())))
}
