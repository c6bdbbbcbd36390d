package series

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tokenpulse/tokenpulse/internal/names"
)

// SeriesConfig decides which requests share a series, and how many series there
// are. The token_sli exporter and connector have it in common.
type SeriesConfig struct {
	// Dimensions are the attributes whose values tell series apart. Each is
	// looked up on the span, then on its resource.
	Dimensions []string `mapstructure:"dimensions"`
	// MaxSeries is the most series held at a time. Requests of further ones go
	// to the overflow series.
	MaxSeries int `mapstructure:"max_series"`
	// SeriesExpiration is how long a series is held without a request. Zero means
	// for ever.
	SeriesExpiration time.Duration `mapstructure:"series_expiration"`

	// prevent unkeyed literal initialization
	_ struct{}
}

// NewDefaultSeriesConfig returns the defaults.
func NewDefaultSeriesConfig() SeriesConfig {
	return SeriesConfig{
		Dimensions:       []string{names.ServiceName, names.GenAIProviderName, names.GenAIRequestModel, names.GenAIOperationName},
		MaxSeries:        2000,
		SeriesExpiration: time.Hour,
	}
}

// Problems names the keys at fault, and the remedies. It is not called Validate:
// the Collector would then show the path of a key that users do not write.
func (c *SeriesConfig) Problems() []error {
	errs := validateDimensions(c.Dimensions)
	if c.MaxSeries <= 0 {
		errs = append(errs, fmt.Errorf("`max_series` is %d: it must be at least 1; requests past it go to the overflow series", c.MaxSeries))
	}
	if c.SeriesExpiration != 0 && c.SeriesExpiration < time.Second {
		errs = append(errs, fmt.Errorf("`series_expiration` is %v: it must be at least 1s, or 0 to hold series for ever", c.SeriesExpiration))
	}
	return errs
}

// maxDimensions bounds the labels of a series.
const maxDimensions = 32

// ourLabels are the labels that metrics have besides their dimensions, with `le`,
// which Prometheus gives to histograms.
var ourLabels = []string{
	names.LabelVantage, names.LabelOutcome, names.LabelPhase, names.LabelType,
	names.LabelQuantile, names.LabelWindow, names.LabelSLO, names.LabelVerdict,
	names.LabelOverflow, "le",
}

func validateDimensions(dimensions []string) (errs []error) {
	if len(dimensions) > maxDimensions {
		errs = append(errs, fmt.Errorf("`dimensions` has %d entries: at most %d are possible", len(dimensions), maxDimensions))
	}
	labels := map[string]string{}
	for _, own := range ourLabels {
		labels[normalized(own)] = own
	}
	for i, dimension := range dimensions {
		label := normalized(dimension)
		switch taken, clash := labels[label]; {
		case strings.Trim(label, "_") == "":
			errs = append(errs, fmt.Errorf("`dimensions` entry %d is %q: it needs the name of an attribute, such as %s", i+1, dimension, names.GenAIRequestModel))
		case clash && slices.Contains(ourLabels, taken):
			errs = append(errs, fmt.Errorf("`dimensions` has %q, but tokenpulse sets the label %q itself: leave it out", dimension, taken))
		case clash:
			errs = append(errs, fmt.Errorf("`dimensions` has both %q and %q, which make one label: leave one out", taken, dimension))
		default:
			labels[label] = dimension
		}
	}
	return errs
}

// normalized returns what is left of a name where only ASCII letters, digits and
// single underscores are allowed: names that Prometheus takes for the same.
func normalized(name string) string {
	parts := strings.FieldsFunc(name, func(c rune) bool {
		return c > unicode.MaxASCII || !unicode.IsLetter(c) && !unicode.IsDigit(c)
	})
	return strings.Join(parts, "_")
}
