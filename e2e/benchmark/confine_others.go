//go:build !linux

package main

import "runtime"

// confine has Go use so many cores, until restore. Threads that are in the kernel may be
// on others.
func confine(cores int) (restore func() error, err error) {
	before := runtime.GOMAXPROCS(cores)
	return func() error {
		runtime.GOMAXPROCS(before)
		return nil
	}, nil
}
