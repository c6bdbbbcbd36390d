package names

// SLOPrefix is what the attributes of verdicts begin with.
const SLOPrefix = Prefix + "slo."

// Attributes that the token_latency processor writes for service level
// objectives: the names of those that apply to the request, by their verdict.
const (
	SLOMet         = "tokenpulse.slo.met"
	SLOBreached    = "tokenpulse.slo.breached"
	SLONotEligible = "tokenpulse.slo.not_eligible"
)

// Attributes that go with SLOBreached, an entry for each of its names: the
// indicator, which is an attribute of ours without its prefix, and the threshold
// that this request had, in the indicator's unit. What was measured is the
// indicator's own attribute.
const (
	SLOBreachedIndicator = "tokenpulse.slo.breached.indicator"
	SLOBreachedThreshold = "tokenpulse.slo.breached.threshold"
)

// Log events about service level objectives: a request that breached some, and a
// burn-rate alert whose condition begins or ceases to hold.
const (
	SLOBreachEvent    = "tokenpulse.slo.breach"
	SLOBurnStartEvent = "tokenpulse.slo.burn.start"
	SLOBurnEndEvent   = "tokenpulse.slo.burn.end"
)

// Attributes of these events. SLOBreaches is a list, with an entry of the next four
// for each objective that was breached; the value is absent where none was measured.
const (
	SLOBreaches  = "tokenpulse.slo.breaches"
	SLOName      = "slo"
	SLOIndicator = "indicator"
	SLOValue     = "value"
	SLOThreshold = "threshold"

	SLOAttribute      = "tokenpulse.slo.name"
	SLOAlertName      = "tokenpulse.slo.alert.name"
	SLOAlertSeverity  = "tokenpulse.slo.alert.severity"
	SLOAlertFactor    = "tokenpulse.slo.alert.factor"
	SLOAlertLong      = "tokenpulse.slo.alert.long_window"
	SLOAlertShort     = "tokenpulse.slo.alert.short_window"
	SLOAlertLongBurn  = "tokenpulse.slo.alert.long_window.burn_rate"
	SLOAlertShortBurn = "tokenpulse.slo.alert.short_window.burn_rate"
)

// Values of SLOAlertSeverity.
const (
	SeverityPage   = "page"
	SeverityTicket = "ticket"
)

// Metrics of service level objectives.
const (
	SLORequests        = "tokenpulse.slo.requests"
	SLOObjective       = "tokenpulse.slo.objective"
	SLOBurnRate        = "tokenpulse.slo.burn_rate"
	SLOBudgetRemaining = "tokenpulse.slo.error_budget.remaining"
)

// Labels of the metrics of service level objectives.
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

// SLOAll is the value of LabelSLO that stands for every objective that applies to
// a request. No objective has this name.
const SLOAll = "all"
