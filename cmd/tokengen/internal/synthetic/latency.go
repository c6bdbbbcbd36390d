package synthetic

import (
	"math"
	"math/rand/v2"
	"time"
)

// The latency of a synthetic stream, in the order in which it passes:
//
//	queue    exponential, mean 8 ms
//	prefill  lognormal; its median grows in a straight line with the prompt:
//	         a fifth of Prefill, and the rest per input token, so that a prompt
//	         of the median length has the median Prefill
//	decode   each step takes TPOT times a lognormal jitter of mean 1
//	         and yields one token, or a bundle of them: two, and one more as
//	         long as a coin falls right, as speculative decoding does
//	stall    before a step, with probability StallRatio: half a second to two
//	finish   1 ms between the last token and the end
//
// Prefill and decode are divided by the model's speed. Prompt and answer lengths
// are lognormal too, as in production traces: most short, some very long.
const (
	queueMean = 8 * time.Millisecond

	prefillBaseShare = 0.2
	prefillSigma     = 0.3

	stepSigma = 0.25

	stallMin, stallMax = 500 * time.Millisecond, 2 * time.Second

	bundleGrowth = 0.5 // the chance of one more token in a bundle
	bundleMax    = 8

	finish = time.Millisecond

	inputMedian, inputSigma, inputMax    = 400, 1.0, 32_000
	outputMedian, outputSigma, outputMax = 150, 0.7, 4_000
)

// lognormal returns a sample of the lognormal distribution with this median.
func lognormal(random *rand.Rand, median, sigma float64) float64 {
	return median * math.Exp(sigma*random.NormFloat64())
}

func tokenCount(random *rand.Rand, median, sigma float64, most int) int {
	return min(max(int(math.Round(lognormal(random, median, sigma))), 1), most)
}

func queueTime(random *rand.Rand) time.Duration {
	return time.Duration(random.ExpFloat64() * float64(queueMean))
}

// prefillTime returns a sample of the time that a prompt of so many tokens takes
// on a model of speed 1, where a median prompt takes median.
func prefillTime(random *rand.Rand, median time.Duration, input int) time.Duration {
	perToken := (1 - prefillBaseShare) / inputMedian
	ofThisPrompt := float64(median) * (prefillBaseShare + perToken*float64(input))
	return time.Duration(lognormal(random, ofThisPrompt, prefillSigma))
}

// stepTime returns a sample of the time of one decode step, with this mean.
func stepTime(random *rand.Rand, mean time.Duration) time.Duration {
	// The mean of a lognormal is its median times exp(sigma^2/2).
	median := float64(mean) * math.Exp(-stepSigma*stepSigma/2)
	return time.Duration(lognormal(random, median, stepSigma))
}

func stallTime(random *rand.Rand) time.Duration {
	return stallMin + time.Duration(random.Int64N(int64(stallMax-stallMin)))
}

// bundleSize returns how many tokens a bundled step yields.
func bundleSize(random *rand.Rand) int {
	n := 2
	for n < bundleMax && random.Float64() < bundleGrowth {
		n++
	}
	return n
}
