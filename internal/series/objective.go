package series

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/slo/definition"
)

// Objective is the share of requests that are to be good for a service level
// objective. The token_sli exporter and connector have it in common.
type Objective struct {
	// SLO is the objective's name, or that which stands for all together.
	SLO string `mapstructure:"slo"`
	// Objective is the share, over 0 and under 1.
	Objective float64 `mapstructure:"objective"`
	// Window is the recent past that the error budget is for.
	Window time.Duration `mapstructure:"window"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Bounds of an objective's window, and its default.
const (
	minObjectiveWindow     = time.Hour
	maxObjectiveWindow     = 90 * 24 * time.Hour
	defaultObjectiveWindow = 30 * 24 * time.Hour
)

// Unmarshal sets the defaults of an entry in a list, which no default
// configuration can hold, and turns away keys that mean nothing.
func (o *Objective) Unmarshal(conf *confmap.Conf) error {
	o.Window = defaultObjectiveWindow
	if window, is := conf.Get("window").(string); is {
		if _, err := time.ParseDuration(window); err != nil { // days, mostly, which Go does not know
			return fmt.Errorf("`window` is %q: give hours, such as 720h for 30 days", window)
		}
	}
	return conf.Unmarshal(o)
}

// ObjectiveProblems names the keys at fault, and the remedies.
func ObjectiveProblems(objectives []Objective) (errs []error) {
	if len(objectives) > MaxSLOs {
		errs = append(errs, fmt.Errorf("`objectives` has %d entries: at most %d are possible", len(objectives), MaxSLOs))
	}
	taken := map[string]int{}
	for i, o := range objectives {
		slo := clean(o.SLO)
		first, twice := taken[slo]
		switch {
		case slo == "":
			errs = append(errs, fmt.Errorf("`objectives::%d::slo` is empty: it needs a name from `slos` of token_latency, or %q for all of them together", i, names.SLOAll))
		case twice:
			errs = append(errs, fmt.Errorf("`objectives::%d::slo` is %q, which has an objective at `objectives::%d`: leave one out", i, o.SLO, first))
		default:
			taken[slo] = i
		}
		if !(o.Objective > 0 && o.Objective < 1) {
			errs = append(errs, fmt.Errorf("`objectives::%d::objective` is %v: it is the share of requests that are to be good, over 0 and under 1, such as 0.95", i, o.Objective))
		}
		if o.Window < minObjectiveWindow || o.Window > maxObjectiveWindow {
			errs = append(errs, fmt.Errorf("`objectives::%d::window` is %v: it must be from 1h to 2160h, such as 720h for 30 days", i, o.Window))
		}
	}
	return errs
}

// UndefinedObjectives names the objectives that no token_latency processor of this
// Collector defines, and the remedies. Without such a processor it names none: the
// verdicts then come from another Collector. It is for when components start.
func UndefinedObjectives(objectives []Objective) error {
	defined, anyProcessor := definition.Defined()
	if !anyProcessor {
		return nil
	}
	there := "has no `slos`"
	if len(defined) > 0 {
		there = "has " + strings.Join(defined, ", ")
	}
	var errs []error
	for i, o := range objectives {
		if o.SLO != names.SLOAll && !slices.Contains(defined, o.SLO) {
			errs = append(errs, fmt.Errorf("`objectives::%d::slo` is %q, which nobody defines: token_latency %s; correct the name, or define it there", i, o.SLO, there))
		}
	}
	return errors.Join(errs...)
}
