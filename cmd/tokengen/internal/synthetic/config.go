// Package synthetic makes up streams that look like those of real services.
package synthetic

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Config says what the made-up traffic looks like.
type Config struct {
	// Seed decides everything: equal configs with equal seeds make equal streams.
	Seed uint64
	// Begin is the Unix time of the earliest start, in nanoseconds.
	Begin int64

	// Rate is how many requests start each second, at random moments (a Poisson
	// process). It is used where Concurrency is 0.
	Rate float64
	// Concurrency is how many requests are under way at any time: the next one
	// starts when one ends.
	Concurrency int
	// Requests is how many streams there are. 0: no limit.
	Requests int
	// Duration is how long streams keep starting. 0: no limit.
	Duration time.Duration

	Service, Provider string
	Models            []Model

	// Prefill is the median prefill time of a prompt of median length, TPOT the
	// mean time of a decode step, both on a model of speed 1.
	Prefill, TPOT time.Duration

	// The share of streams that the client cancels, that fail, and that nobody
	// tells the end of. No stream is two of these.
	CancelRatio, ErrorRatio, IncompleteRatio float64
	// The share of streams that reason before they answer, that reason and never
	// answer, and that answer with one token. No stream is two of these.
	ReasoningRatio, ReasoningOnlyRatio, OneTokenRatio float64
	// The share of streams with an answer that end in a tool call.
	ToolCallRatio float64
	// The share of decode steps that stall, and that yield several tokens.
	StallRatio, BundleRatio float64
}

// Model is a model and how many times faster than Config.Prefill and
// Config.TPOT it is.
type Model struct {
	Name  string
	Speed float64
}

// ParseModel reads "name" or "name=speed".
func ParseModel(text string) (Model, error) {
	name, speedText, given := strings.Cut(text, "=")
	model := Model{Name: name, Speed: 1}
	if given {
		speed, err := strconv.ParseFloat(speedText, 64)
		if err != nil || !(speed >= 0.001 && speed <= 1000) {
			return Model{}, fmt.Errorf("model %q: the speed after = is a number between 0.001 and 1000", text)
		}
		model.Speed = speed
	}
	if name == "" {
		return Model{}, fmt.Errorf("model %q has no name", text)
	}
	return model, nil
}

// Validate says what is wrong, in terms of tokengen's flags.
func (c *Config) Validate() error {
	for flag, ratio := range map[string]float64{
		"--cancel-ratio": c.CancelRatio, "--error-ratio": c.ErrorRatio, "--incomplete-ratio": c.IncompleteRatio,
		"--reasoning-ratio": c.ReasoningRatio, "--reasoning-only-ratio": c.ReasoningOnlyRatio, "--one-token-ratio": c.OneTokenRatio,
		"--tool-call-ratio": c.ToolCallRatio, "--stall-ratio": c.StallRatio, "--bundle-ratio": c.BundleRatio,
	} {
		if !(ratio >= 0 && ratio <= 1) {
			return fmt.Errorf("%s is %g: it is a share between 0 and 1", flag, ratio)
		}
	}
	switch {
	case c.CancelRatio+c.ErrorRatio+c.IncompleteRatio > 1:
		return errors.New("--cancel-ratio, --error-ratio and --incomplete-ratio add up to more than 1")
	case c.ReasoningRatio+c.ReasoningOnlyRatio+c.OneTokenRatio > 1:
		return errors.New("--reasoning-ratio, --reasoning-only-ratio and --one-token-ratio add up to more than 1")
	case c.Concurrency < 0:
		return errors.New("--concurrency is negative")
	case c.Concurrency == 0 && !(c.Rate > 0 && c.Rate <= 1e6):
		return fmt.Errorf("--rate is %g: it is above 0 and up to 1000000 requests a second", c.Rate)
	case c.Requests < 0:
		return errors.New("--requests is negative")
	case c.Duration < 0:
		return errors.New("--duration is negative")
	case c.Prefill <= 0 || c.Prefill > time.Hour:
		return errors.New("--prefill is above 0 and up to an hour")
	case c.TPOT <= 0 || c.TPOT > time.Minute:
		return errors.New("--tpot is above 0 and up to a minute")
	case len(c.Models) == 0:
		return errors.New("there is no --model")
	}
	return nil
}
