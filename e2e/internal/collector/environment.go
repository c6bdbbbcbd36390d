// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// environment holds the variables that setenv set, by the name of the test.
var environment = struct {
	sync.Mutex
	of map[string][][2]string
}{of: map[string][][2]string{}}

// Setenv sets an environment variable for the programs that a test and its sub-tests start. Unlike
// t.Setenv, it allows t.Parallel, because other tests do not see the variable.
func Setenv(t *testing.T, name, value string) {
	t.Helper()
	environment.Lock()
	defer environment.Unlock()
	if environment.of[t.Name()] == nil {
		t.Cleanup(func() {
			environment.Lock()
			defer environment.Unlock()
			delete(environment.of, t.Name())
		})
	}
	environment.of[t.Name()] = append(environment.of[t.Name()], [2]string{name, value})
}

// variables returns what setenv set for a test and for those that it is a sub-test of. The last
// one of a name counts.
func variables(t *testing.T) (all [][2]string) {
	t.Helper()
	environment.Lock()
	defer environment.Unlock()
	for end, c := range t.Name() + "/" {
		if c == '/' {
			all = append(all, environment.of[t.Name()[:end]]...)
		}
	}
	return all
}

// environ returns the environment of the programs of a test.
func environ(t *testing.T) []string {
	t.Helper()
	all := os.Environ()
	for _, v := range variables(t) {
		all = append(all, v[0]+"="+v[1])
	}
	return all
}

// Getenv returns a variable that setenv has set.
func Getenv(t *testing.T, name string) (value string) {
	t.Helper()
	found := false
	for _, v := range variables(t) {
		if v[0] == name {
			value, found = v[1], true
		}
	}
	require.True(t, found, "%s is not set", name)
	return value
}
