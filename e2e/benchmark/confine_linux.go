// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// confine restricts this process to a number of cores, until restore is called.
// GOMAXPROCS is not enough: threads in system calls do not count toward it.
func confine(cores int) (restore func() error, err error) {
	var all, allowed unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	for core := 0; allowed.Count() < cores && allowed.Count() < all.Count(); core++ {
		if all.IsSet(core) {
			allowed.Set(core)
		}
	}
	before := runtime.GOMAXPROCS(cores)
	return func() error {
		runtime.GOMAXPROCS(before)
		return runOn(&all)
	}, runOn(&allowed)
}

// runOn moves all threads of this process. New threads inherit the cores.
func runOn(cores *unix.CPUSet) error {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(thread.Name())
		if err == nil {
			err = unix.SchedSetaffinity(id, cores)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // ESRCH: the thread has ended
			return err
		}
	}
	return nil
}
