// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package synthetic

import (
	"math"
	"math/rand/v2"
	"time"
)

// The latency model of a synthetic stream, in the order of its phases:
//
//	queue    exponential, mean 8 ms
//	prefill  lognormal; its median is linear in the prompt length:
//	         0.2 Prefill for an empty prompt, Prefill for one of median length
//	decode   each step takes TPOT times a lognormal jitter of mean 1
//	         and yields one token, or with probability BundleRatio a bundle of
//	         2 to 8 tokens (geometric), as speculative decoding does
//	stall    0.5 to 2 s before a step, with probability StallRatio
//	finish   1 ms between the last token and the end
//
// Prefill and decode times are divided by the model's speed. Prompt and answer
// lengths are lognormal too, as in production traces: most short, some very long.
const (
	// DefaultPrefill and DefaultTPOT are usual values of Config.
	DefaultPrefill = 300 * time.Millisecond
	DefaultTPOT    = 25 * time.Millisecond

	queueMean = 8 * time.Millisecond

	prefillBaseShare = 0.2
	prefillSigma     = 0.3

	stepSigma = 0.25

	stallMin, stallMax = 500 * time.Millisecond, 2 * time.Second

	bundleGrowth = 0.5 // probability of one more token in a bundle
	bundleMax    = 8

	finish = time.Millisecond

	inputMedian, inputSigma, inputMax    = 400, 1.0, 32_000
	outputMedian, outputSigma, outputMax = 150, 0.7, 4_000
)

// lognormal returns a sample of a lognormal distribution.
func lognormal(random *rand.Rand, median, sigma float64) float64 {
	return median * math.Exp(sigma*random.NormFloat64())
}

func tokenCount(random *rand.Rand, median, sigma float64, limit int) int {
	return min(max(int(math.Round(lognormal(random, median, sigma))), 1), limit)
}

func queueTime(random *rand.Rand) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(queueMean))
}

// prefillTime returns a sample of the prefill time of a prompt with input tokens, at
// speed 1. median is the median time for a prompt of median length.
func prefillTime(random *rand.Rand, median time.Duration, input int) time.Duration {
	perToken := (1 - prefillBaseShare) / inputMedian
	promptMedian := float64(median) * (prefillBaseShare + perToken*float64(input))
	return time.Duration(lognormal(random, promptMedian, prefillSigma))
}

// stepTime returns a sample of the time of one decode step.
func stepTime(random *rand.Rand, mean time.Duration) time.Duration {
	// The mean of a lognormal is its median times exp(sigma^2/2).
	median := float64(mean) * math.Exp(-stepSigma*stepSigma/2)
	return time.Duration(lognormal(random, median, stepSigma))
}

func stallTime(random *rand.Rand) time.Duration {
	return stallMin + time.Duration(random.Int64N(int64(stallMax-stallMin)))
}

// bundleSize returns a sample of the number of tokens in a bundle.
func bundleSize(random *rand.Rand) int {
	n := 2
	for n < bundleMax && random.Float64() < bundleGrowth {
		n++
	}
	return n
}
