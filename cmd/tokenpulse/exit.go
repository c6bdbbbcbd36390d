// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
)

// Exit codes. `compare` and `capacity` have more.
const (
	exitFailed    = 1
	exitUndecided = 2
	exitUsage     = 64 // EX_USAGE of sysexits.h
	// exitInterrupted follows output that is a part, because of Ctrl-C: 128 and the number of the signal, as shells have it.
	exitInterrupted = 130
)

// failure is an error of a command that began to run. cobra's own errors are those of the command line.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// usageError is an error of the command line that a command finds itself.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// verdict ends the process with a code that says what the output says.
type verdict int

func (v verdict) Error() string { return fmt.Sprintf("exit code %d", int(v)) }

// exitCode writes an error and returns the exit code of the process.
func exitCode(out io.Writer, err error) int {
	if err == nil {
		return 0
	}
	var code verdict
	if errors.As(err, &code) {
		return int(code)
	}
	fmt.Fprintln(out, "tokenpulse:", err)
	var failed failure
	var usage usageError
	if !errors.As(err, &failed) || errors.As(err, &usage) {
		return exitUsage
	}
	return exitFailed
}
