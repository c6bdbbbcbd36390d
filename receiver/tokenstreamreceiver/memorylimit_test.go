// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenstreamreceiver

import (
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDefaultMemory_IsAQuarterOfTheLimit(t *testing.T) {
	const v2, v1, unlimitedV1 = "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  int
	}{
		"version 2":                    {map[string]string{v2: "1073741824\n"}, 256},
		"version 1":                    {map[string]string{v1: "209715200\n"}, 50},
		"version 2 without a limit":    {map[string]string{v2: "max\n"}, 512},
		"version 1 without a limit":    {map[string]string{v1: unlimitedV1}, 512},
		"no cgroups":                   {nil, 512},
		"content of another format":    {map[string]string{v2: "?", v1: "-1"}, 512},
		"under 4 MiB":                  {map[string]string{v2: "1000"}, 1},
		"the smaller of both versions": {map[string]string{v2: "max", v1: "1073741824"}, 256},
	} {
		t.Run(name, func(t *testing.T) {
			limit := cgroupLimit(func(path string) ([]byte, error) {
				content, ok := tt.files[path]
				if !ok {
					return nil, os.ErrNotExist
				}
				return []byte(content), nil
			})
			require.Equal(t, tt.want, quarterMiB(limit))
		})
	}
	require.Equal(t, 512, quarterMiB(math.MaxInt64))

	before := debug.SetMemoryLimit(40 << 20)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	require.Equal(t, 10, defaultMemoryMiB(), "GOMEMLIMIT")
	require.Equal(t, 10, createDefaultConfig().(*Config).MaxMemoryMiB)
}
