// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/tokenpulse/tokenpulse/e2e/internal/collector"
	"github.com/tokenpulse/tokenpulse/e2e/internal/exposition"
	"github.com/tokenpulse/tokenpulse/e2e/internal/markdown"
)

const migrationPage = "docs/migration.md"

var (
	// ourMetric matches the name of a metric of ours, in full or without `tokenpulse_` and the unit.
	ourMetric = regexp.MustCompile("`(tokenpulse_[a-z_]+|[a-z]+_[a-z_]+)`")
	// labelValues matches a selection of label values behind a metric.
	labelValues = regexp.MustCompile("with `[a-z]+` = `[a-z_]+`(, `[a-z_]+`)*")
	code        = regexp.MustCompile("`([^`]+)`")
	quoted      = regexp.MustCompile(`"([^"\n]+)"`)
)

// Metrics that a dashboard switches to exist in a scrape, and the attributes that they come from have readers.
func TestMigration_OurMetricsExist(t *testing.T) {
	t.Parallel()
	c := collector.Start(t, collector.Example(t, "quickstart.yaml"),
		append([]string{"--config", collector.WriteFile(t, t.TempDir(), "every.yaml", collector.EveryMetric)}, collector.FullDetail...)...)
	response, err := http.Post("http://"+c.HTTP+"/v1/tokens", "application/x-ndjson", strings.NewReader(
		fmt.Sprintf(`{"event":"start","stream_id":"open","time_unix_nano":%d}`, time.Now().UnixNano())))
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	collector.Replay(t, c, collector.DemoRecording(t))
	emitted := exposition.WaitForRequests(t, c, collector.DemoRequests(t))

	read := map[string]bool{} // texts in the code of the readers
	sources(t, func(name string) bool { return strings.HasSuffix(name, ".go") }, func(file string, content []byte) {
		if strings.HasPrefix(file, "internal/source/") {
			for _, match := range quoted.FindAllSubmatch(content, -1) {
				read[string(match[1])] = true
			}
		}
	})
	metrics, attributes := 0, 0
	for _, cell := range columnsOfOurs(markdown.Read(t, migrationPage)) {
		named, from, _ := strings.Cut(labelValues.ReplaceAllString(cell, ""), ", from ")
		for _, match := range ourMetric.FindAllStringSubmatch(named, -1) {
			metrics++
			name := match[1]
			if !strings.HasPrefix(name, "tokenpulse_") {
				name = "tokenpulse_" + name + "_seconds"
			}
			require.NotNil(t, emitted[name], "%s says %s: the exporter emits no %s", migrationPage, match[1], name)
		}
		for _, match := range code.FindAllStringSubmatch(from, -1) {
			attributes++
			require.True(t, read[match[1]], "%s says that we read %s", migrationPage, match[1])
		}
	}
	require.Greater(t, metrics, 60)
	require.Greater(t, attributes, 6)
}

// columnsOfOurs returns the cells below the heads that begin with "ours".
func columnsOfOurs(page string) (cells []string) {
	ours, inTable := false, false
	for line := range strings.Lines(page) {
		if !strings.HasPrefix(line, "|") {
			inTable = false
			continue
		}
		cell := strings.TrimSpace(strings.Split(line, "|")[2])
		if !inTable {
			ours, inTable = strings.HasPrefix(cell, "ours"), true
		} else if ours && !strings.HasPrefix(cell, "---") {
			cells = append(cells, cell)
		}
	}
	return cells
}

// What is said of other projects can be looked up as it was.
func TestMigration_SourcesAreOfACommit(t *testing.T) {
	t.Parallel()
	links := regexp.MustCompile(`https://github\.com/[\w.-]+/[\w.-]+/(\S*?)\)`).FindAllStringSubmatch(markdown.Read(t, migrationPage), -1)
	for _, link := range links {
		require.Regexp(t, `^blob/[0-9a-f]{7,40}/`, link[1], link[0])
	}
	require.Greater(t, len(links), 10)
}
