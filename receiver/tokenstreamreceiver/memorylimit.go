// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
)

// fallbackMemoryMiB is the default of max_memory_mib without any memory limit.
const fallbackMemoryMiB = 512

// defaultMemoryMiB returns the default of max_memory_mib: a quarter of the memory that the
// Collector may use.
func defaultMemoryMiB() int {
	return quarterMiB(min(cgroupLimit(os.ReadFile), debug.SetMemoryLimit(-1)))
}

// unlimited is above all real limits. Version 1 of cgroups and GOMEMLIMIT have large
// numbers for no limit.
const unlimited = math.MaxInt64 / 2

// quarterMiB returns a quarter of a limit in bytes.
func quarterMiB(limit int64) int {
	if limit >= unlimited {
		return fallbackMemoryMiB
	}
	return int(max(1, limit/4>>20))
}

// cgroupLimit returns the memory limit of the container in bytes, or unlimited.
func cgroupLimit(readFile func(string) ([]byte, error)) int64 {
	limit := int64(unlimited)
	for _, path := range [...]string{
		"/sys/fs/cgroup/memory.max",                   // version 2
		"/sys/fs/cgroup/memory/memory.limit_in_bytes", // version 1
		"/sys/fs/cgroup/memory.limit_in_bytes",
	} {
		content, err := readFile(path)
		if err != nil {
			continue
		}
		if bytes, err := strconv.ParseInt(strings.TrimSpace(string(content)), 10, 64); err == nil && bytes > 0 {
			limit = min(limit, bytes)
		}
	}
	return limit
}
