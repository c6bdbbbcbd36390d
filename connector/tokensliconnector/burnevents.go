// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliconnector

import (
	"fmt"

	"github.com/prometheus/common/model"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/publish"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// event adds an event of an alert with the attributes that all of its events have.
func (a *alerts) event(into plog.LogRecordSlice, name string, at pcommon.Timestamp, this alert, kind *slo.Alert) plog.LogRecord {
	event := into.AppendEmpty()
	event.SetEventName(name)
	event.SetTimestamp(at)
	event.SetObservedTimestamp(at)
	number, severity := plog.SeverityNumberWarn, names.SeverityTicket
	if kind.Page {
		number, severity = plog.SeverityNumberError, names.SeverityPage
	}
	if name == names.SLOBurnEndEvent {
		number = plog.SeverityNumberInfo
	}
	event.SetSeverityNumber(number)
	event.SetSeverityText(number.String())

	identity := series.LabelsOf(this.Series)
	attributes := event.Attributes()
	publish.SeriesAttributes(a.dimensions, names.Vantage, &identity).MoveTo(attributes)
	attributes.PutStr(names.SLOEventName, this.SLO)
	attributes.PutStr(names.SLOAlertName, kind.Name)
	attributes.PutStr(names.SLOAlertSeverity, severity)
	if kind.Factor > 0 {
		attributes.PutDouble(names.SLOAlertFactor, kind.Factor)
	}
	attributes.PutStr(names.SLOAlertLong, model.Duration(kind.LongWindow()).String())
	attributes.PutStr(names.SLOAlertShort, model.Duration(kind.ShortWindow()).String())
	return event
}

// startEvent adds the burn rates, the rest of the budget, and the cause of a near total breach.
func startEvent(event plog.LogRecord, of *slo.Budgets, b *slo.Budget, kind *slo.Alert) {
	objective := b.Objective.Objective
	long, _ := b.Recent.Burn[kind.Long].BurnRate(objective)
	short, _ := b.Recent.Burn[kind.Short].BurnRate(objective)
	attributes := event.Attributes()
	attributes.PutDouble(names.SLOObjective, objective)
	attributes.PutDouble(names.SLOAlertLongBurn, long)
	attributes.PutDouble(names.SLOAlertShortBurn, short)
	if left, ok := b.Recent.Budget.BudgetRemaining(objective); ok {
		attributes.PutDouble(names.SLOBudgetRemaining, left)
	}
	if kind.Name == slo.NearTotalBreach {
		recent, because := b.Recent.Burn[kind.Long], ""
		if 2*of.Failed > recent.Bad {
			attributes.PutStr(names.SLOAlertCause, names.CauseErrors)
			because = ", because requests fail"
		}
		event.Body().SetStr(fmt.Sprintf("SLO %s: %s, %d of %d requests of %v are bad%s",
			b.SLO, kind.Name, recent.Bad, recent.Good+recent.Bad, model.Duration(kind.LongWindow()), because))
		return
	}
	event.Body().SetStr(fmt.Sprintf("SLO %s: %s, the error budget burns %.3g times too fast over %v and %.3g times over %v",
		b.SLO, kind.Name, long, model.Duration(kind.LongWindow()), short, model.Duration(kind.ShortWindow())))
}
