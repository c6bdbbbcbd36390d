// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package names

// SLOPrefix is the prefix of the attributes of verdicts.
const SLOPrefix = Prefix + "slo."

// Attributes with the verdicts on a request: the names of the service level
// objectives (SLOs) that apply to it, one list per verdict.
const (
	SLOMet         = "tokenpulse.slo.met"
	SLOBreached    = "tokenpulse.slo.breached"
	SLONotEligible = "tokenpulse.slo.not_eligible"
)

// Attributes parallel to SLOBreached: the indicator and the threshold of each
// breached SLO.
const (
	SLOBreachedIndicator = "tokenpulse.slo.breached.indicator"
	SLOBreachedThreshold = "tokenpulse.slo.breached.threshold"
)

// SLOVerdictPrefix and the name of an SLO are an attribute with the verdict of that SLO: a scalar, because
// few trace backends can search lists.
const SLOVerdictPrefix = "tokenpulse.slo.verdict."

// Values of attributes with SLOVerdictPrefix.
const (
	SLOVerdictMet         = "met"
	SLOVerdictBreached    = "breached"
	SLOVerdictNotEligible = "not_eligible"
)

// SLOOfTrace is an attribute that lists those of the SLOs above that judge the trace of
// a root span. They do not count toward SLOAll.
const SLOOfTrace = "tokenpulse.slo.of_trace"

// Log events of the token_sli connector: a request breached an SLO, and the condition
// of a burn-rate alert starts or stops to hold.
const (
	SLOBreachEvent    = "tokenpulse.slo.breach"
	SLOBurnStartEvent = "tokenpulse.slo.burn.start"
	SLOBurnEndEvent   = "tokenpulse.slo.burn.end"
)

// Attributes of these events.
const (
	// SLOBreaches is a list of maps. Their keys are the next four constants.
	SLOBreaches  = "tokenpulse.slo.breaches"
	SLOName      = "slo"
	SLOIndicator = "indicator"
	SLOValue     = "value"
	SLOThreshold = "threshold"

	SLOEventName      = "tokenpulse.slo.name"
	SLOAlertName      = "tokenpulse.slo.alert.name"
	SLOAlertSeverity  = "tokenpulse.slo.alert.severity"
	SLOAlertCause     = "tokenpulse.slo.alert.cause"
	SLOAlertFactor    = "tokenpulse.slo.alert.factor"
	SLOAlertLong      = "tokenpulse.slo.alert.long_window"
	SLOAlertShort     = "tokenpulse.slo.alert.short_window"
	SLOAlertLongBurn  = "tokenpulse.slo.alert.long_window.burn_rate"
	SLOAlertShortBurn = "tokenpulse.slo.alert.short_window.burn_rate"
)

// CauseErrors is the value of SLOAlertCause.
const CauseErrors = "errors"

// Values of SLOAlertSeverity.
const (
	SeverityPage   = "page"
	SeverityTicket = "ticket"
)

// Metrics of SLOs. SLOObjective and SLOBudgetRemaining are also attributes of
// SLOBurnStartEvent.
const (
	SLORequests        = "tokenpulse.slo.requests"
	SLOObjective       = "tokenpulse.slo.objective"
	SLOBurnRate        = "tokenpulse.slo.burn_rate"
	SLOBudgetRemaining = "tokenpulse.slo.error_budget.remaining"
)

// Labels of the metrics of SLOs.
const (
	LabelSLO     = "slo"
	LabelVerdict = "verdict"
)

// Values of LabelVerdict.
const (
	VerdictGood        = "good"
	VerdictBad         = "bad"
	VerdictNotEligible = "not_eligible"
)

// SLOAll is the value of LabelSLO for all SLOs that apply to a request together. It is
// not allowed as the name of an SLO.
const SLOAll = "all"
