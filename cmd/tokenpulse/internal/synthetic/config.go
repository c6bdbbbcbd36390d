// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package synthetic generates streams with realistic times: lognormal prefill, decode steps with
// jitter, stalls and bundled chunks.
package synthetic

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Config describes the traffic. Shares are from 0 to 1.
type Config struct {
	// Seed makes traffic repeatable: equal configs give equal streams.
	Seed uint64
	// Begin is the Unix time of the earliest start, in nanoseconds.
	Begin int64

	// Rate is the mean number of requests that start per second (a Poisson process).
	// It is ignored if Concurrency is set and QueueLimit is not.
	Rate float64
	// PeakRate makes the rate rise from Rate to it and fall again, once per Period. 0 means
	// a constant rate.
	PeakRate float64
	Period   time.Duration
	// Engines is the number of simulated engines that serve the requests of Rate: see
	// replicas.go. 0 means that times do not depend on other requests.
	Engines int
	// Concurrency is the number of requests in flight: the next one starts when one
	// ends.
	Concurrency int
	// QueueLimit makes the requests of Rate queue for one of Concurrency slots, by default
	// defaultSlots. A request that finds QueueLimit others waiting fails. 0 means no queue.
	QueueLimit int
	// Requests limits the number of streams. 0 means no limit.
	Requests int
	// Duration limits the time in which streams start. 0 means no limit.
	Duration time.Duration

	Service, Provider string
	Models            []Model
	// Attributes are added to each stream: of each key, one of the values at random.
	Attributes []Attribute

	// Prefill is the median prefill time of a prompt of median length, TPOT the mean
	// time of a decode step. Both are for a model of speed 1.
	Prefill, TPOT time.Duration

	// Shares of streams that the client cancels, that fail, and that have no end.
	// They exclude each other.
	CancelRatio, ErrorRatio, IncompleteRatio float64
	// Shares of streams that reason before the answer, that reason and have no
	// answer, and that answer with one token. They exclude each other.
	ReasoningRatio, ReasoningOnlyRatio, OneTokenRatio float64
	// ToolCallRatio is the share of answers that end in a tool call.
	ToolCallRatio float64
	// Shares of decode steps that stall, and that yield several tokens.
	StallRatio, BundleRatio float64
}

// Closed reports whether a request starts when another one ends.
func (c *Config) Closed() bool { return c.Concurrency > 0 && c.QueueLimit == 0 }

// MeanRate returns the mean of the rate over a period.
func (c *Config) MeanRate() float64 {
	if c.PeakRate == 0 {
		return c.Rate
	}
	return (c.Rate + c.PeakRate) / 2
}

// Attribute is a key with the values that streams can have.
type Attribute struct {
	Key    string
	Values []string
}

// AddAttribute parses "key=value".
func (c *Config) AddAttribute(text string) error {
	key, value, found := strings.Cut(text, "=")
	if key == "" || !found {
		return fmt.Errorf("--attribute %q has no value; give key=value", text)
	}
	i := slices.IndexFunc(c.Attributes, func(a Attribute) bool { return a.Key == key })
	if i < 0 {
		i = len(c.Attributes)
		c.Attributes = append(c.Attributes, Attribute{Key: key})
	}
	c.Attributes[i].Values = append(c.Attributes[i].Values, value)
	return nil
}

// Model is a model name and its speed. Prefill and decode times are divided by Speed.
type Model struct {
	Name  string
	Speed float64
}

// ParseModel parses "name" or "name=speed".
func ParseModel(text string) (Model, error) {
	name, speedText, hasSpeed := strings.Cut(text, "=")
	model := Model{Name: name, Speed: 1}
	if hasSpeed {
		speed, err := strconv.ParseFloat(speedText, 64)
		if err != nil || !(speed >= 0.001 && speed <= 1000) {
			return Model{}, fmt.Errorf("--model %q has the speed %q; give a number from 0.001 to 1000", text, speedText)
		}
		model.Speed = speed
	}
	if name == "" {
		return Model{}, fmt.Errorf("--model %q has no name; give name or name=speed", text)
	}
	return model, nil
}

// Validate returns an error that names the flag of tokenpulse.
func (c *Config) Validate() error {
	for flag, ratio := range map[string]float64{
		"--cancel-ratio": c.CancelRatio, "--error-ratio": c.ErrorRatio, "--incomplete-ratio": c.IncompleteRatio,
		"--reasoning-ratio": c.ReasoningRatio, "--reasoning-only-ratio": c.ReasoningOnlyRatio, "--one-token-ratio": c.OneTokenRatio,
		"--tool-call-ratio": c.ToolCallRatio, "--stall-ratio": c.StallRatio, "--bundle-ratio": c.BundleRatio,
	} {
		if !(ratio >= 0 && ratio <= 1) {
			return fmt.Errorf("%s is %g; give a share from 0 to 1", flag, ratio)
		}
	}
	ends := c.CancelRatio + c.ErrorRatio + c.IncompleteRatio
	answers := c.ReasoningRatio + c.ReasoningOnlyRatio + c.OneTokenRatio
	switch {
	case ends > 1:
		return fmt.Errorf("--cancel-ratio, --error-ratio and --incomplete-ratio add up to %.6g; lower them to at most 1", ends)
	case answers > 1:
		return fmt.Errorf("--reasoning-ratio, --reasoning-only-ratio and --one-token-ratio add up to %.6g; lower them to at most 1", answers)
	case c.Concurrency < 0:
		return fmt.Errorf("--concurrency is %d; give a positive number, or 0 to use --rate", c.Concurrency)
	case c.QueueLimit < 0:
		return fmt.Errorf("--queue-limit is %d; give a positive number, or 0 for no queue", c.QueueLimit)
	case !c.Closed() && !(c.Rate > 0 && c.Rate <= 1e6):
		return fmt.Errorf("--rate is %g; give a number above 0 and at most 1000000", c.Rate)
	case c.PeakRate != 0 && !(c.PeakRate > 0 && c.PeakRate <= 1e6):
		return fmt.Errorf("--peak-rate is %g; give a number above 0 and at most 1000000, or 0 for a constant --rate", c.PeakRate)
	case c.PeakRate != 0 && c.Period <= 0:
		return fmt.Errorf("--period is %s; give a positive duration", c.Period)
	case c.Engines < 0 || c.Engines > maxEngines:
		return fmt.Errorf("--engines is %d; give a number up to %d, or 0 for times that do not depend on load", c.Engines, maxEngines)
	case c.Requests < 0:
		return fmt.Errorf("--requests is %d; give a positive number, or 0 for no limit", c.Requests)
	case c.Duration < 0:
		return fmt.Errorf("--duration is %s; give a positive duration, or 0 for no limit", c.Duration)
	case c.Prefill <= 0 || c.Prefill > time.Hour:
		return fmt.Errorf("--prefill is %s; give a duration above 0 and at most 1h", c.Prefill)
	case c.TPOT <= 0 || c.TPOT > time.Minute:
		return fmt.Errorf("--tpot is %s; give a duration above 0 and at most 1m", c.TPOT)
	case len(c.Models) == 0:
		return errors.New("--model is missing; give at least one model")
	case c.Engines > 0 && len(c.Models) > 1:
		return fmt.Errorf("--engines serve one model, not %d; give one --model", len(c.Models))
	}
	return nil
}
