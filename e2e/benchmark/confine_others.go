// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "runtime"

// confine limits GOMAXPROCS until restore is called. Threads in system calls may use
// other cores.
func confine(cores int) (restore func() error, err error) {
	before := runtime.GOMAXPROCS(cores)
	return func() error {
		runtime.GOMAXPROCS(before)
		return nil
	}, nil
}
