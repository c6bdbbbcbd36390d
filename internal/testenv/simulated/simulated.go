// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package simulated has what simulations of engines share: the requests of recorded services, many worlds at a time, and
// shares with their intervals.
package simulated

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// Request is a request of a recorded service.
type Request struct {
	At             float64 // seconds
	Prompt, Output float64 // tokens
}

// Services are a conversation and a code service.
type Services [2][]Request

// Recorded returns the requests of azure_llm_2023.
func Recorded(t testing.TB) (all Services) {
	t.Helper()
	folder := filepath.Join(testenv.Root(t), "internal", "liveness", "testdata", "azure_llm_2023")
	for i, name := range [...]string{"conv", "code"} {
		lines := bufio.NewScanner(bytes.NewReader(testenv.Unzip(t, filepath.Join(folder, name+".csv.gz"))))
		for lines.Scan() {
			var r Request
			if n, _ := fmt.Sscanf(lines.Text(), "%f,%f,%f", &r.At, &r.Prompt, &r.Output); n == 3 {
				r.At /= 1000
				all[i] = append(all[i], r)
			}
		}
	}
	require.Len(t, all[0], 19366)
	require.Len(t, all[1], 8819)
	return all
}

// Each runs a simulation for n seeds from the first one, on all processors, and returns the results in the order of the seeds.
func Each[T any](first uint64, n int, run func(seed uint64) T) []T {
	all, next := make([]T, n), make(chan int)
	var wait sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wait.Go(func() {
			for i := range next {
				all[i] = run(first + uint64(i))
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wait.Wait()
	return all
}

// Share returns a share in percent, with some decimals, and Wilson's 95% interval.
func Share(count, of, decimals int) string {
	if of == 0 {
		return "–"
	}
	n, p, z := float64(of), float64(count)/float64(of), 1.96
	middle, half := p+z*z/(2*n), z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))
	return fmt.Sprintf("%.*f%% (%.0f to %.0f)", decimals, 100*p, 100*max(0, middle-half)/(1+z*z/n), 100*min(1, (middle+half)/(1+z*z/n)))
}
