package names

// Attributes that the token_latency processor writes for service level
// objectives: the names of those that apply to the request, by their verdict.
const (
	SLOMet         = "tokenpulse.slo.met"
	SLOBreached    = "tokenpulse.slo.breached"
	SLONotEligible = "tokenpulse.slo.not_eligible"
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
