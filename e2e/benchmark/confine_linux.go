package main

import (
	"errors"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// confine has this process run on so many cores, until restore. To tell Go alone is not
// enough: while one thread is in the kernel, for the network, Go runs another.
func confine(cores int) (restore func() error, err error) {
	var all, few unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, err
	}
	for core := 0; few.Count() < cores && few.Count() < all.Count(); core++ {
		if all.IsSet(core) {
			few.Set(core)
		}
	}
	before := runtime.GOMAXPROCS(cores)
	return func() error {
		runtime.GOMAXPROCS(before)
		return runOn(&all)
	}, runOn(&few)
}

// runOn moves all threads of this process. Later ones begin where theirs do that make
// them.
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
		if err != nil && !errors.Is(err, unix.ESRCH) { // has ended meanwhile
			return err
		}
	}
	return nil
}
