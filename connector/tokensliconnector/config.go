package tokensliconnector

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/collector/component"

	"github.com/tokenpulse/tokenpulse/internal/series"
)

// Config of the connector.
type Config struct {
	// Series decides which requests share a series.
	Series series.SeriesConfig `mapstructure:",squash"`
	// FlushInterval is the time between two batches of metrics, between two looks at
	// the conditions of alerts, and between two saves of error budgets.
	FlushInterval time.Duration `mapstructure:"metrics_flush_interval"`
	// Temporality says what a data point of a metric covers.
	Temporality Temporality `mapstructure:"temporality"`

	// Objectives are those that burn rates and error budgets are sent for.
	Objectives []series.Objective `mapstructure:"objectives"`
	// StorageID is the extension that keeps burn rates and error budgets while the
	// Collector restarts. Without one they begin anew.
	StorageID *component.ID `mapstructure:"storage"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// Temporality says what a data point covers.
type Temporality string

const (
	// Cumulative data points cover all since their series began.
	Cumulative Temporality = "cumulative"
	// Delta data points cover what came since the flush before.
	Delta Temporality = "delta"
)

func createDefaultConfig() component.Config {
	return &Config{
		Series:        series.NewDefaultSeriesConfig(),
		FlushInterval: 15 * time.Second,
		Temporality:   Cumulative,
	}
}

// minFlushInterval turns away a number that was given without its unit.
const minFlushInterval = 10 * time.Millisecond

// Validate names the keys at fault, and the remedies.
func (c *Config) Validate() error {
	errs := slices.Concat(c.Series.Problems(), series.ObjectiveProblems(c.Objectives))
	switch expiration := c.Series.SeriesExpiration; {
	case c.FlushInterval < minFlushInterval:
		errs = append(errs, fmt.Errorf("`metrics_flush_interval` is %v: it must be at least %v, such as 15s", c.FlushInterval, minFlushInterval))
	case expiration >= time.Second && expiration <= c.FlushInterval:
		errs = append(errs, fmt.Errorf("`series_expiration` is %v, and `metrics_flush_interval` is %v: a series must live longer than that to be sent at all; raise the former", expiration, c.FlushInterval))
	}
	if c.Temporality != Cumulative && c.Temporality != Delta {
		errs = append(errs, fmt.Errorf("`temporality` is %q: it is %s or %s", c.Temporality, Cumulative, Delta))
	}
	return errors.Join(errs...)
}
