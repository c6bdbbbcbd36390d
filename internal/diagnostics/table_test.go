// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package diagnostics

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/tokenpulse/tokenpulse/internal/latency"
	"github.com/tokenpulse/tokenpulse/internal/source"
	"github.com/tokenpulse/tokenpulse/internal/testenv"
)

// section returns the part of a page below the heading before an anchor, which the page has once.
func section(t *testing.T, page, anchor string) string {
	t.Helper()
	text := read(t, "docs", page)
	anchor = `<a id="` + anchor + `"></a>`
	require.Equal(t, 1, strings.Count(text, anchor), "docs/%s has no %s, or several", page, anchor)
	for part := range strings.SplitSeq(text, "\n## ") {
		if strings.Contains(part, anchor) {
			return part
		}
	}
	return ""
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{testenv.Root(t)}, path...)...))
	require.NoError(t, err)
	return string(text)
}

// named has the keys and components that the pages of the components, and those given, write as code or in an example.
func named(t *testing.T, pages ...string) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for _, readme := range []string{
		"receiver/tokenstreamreceiver", "receiver/tokentapreceiver", "processor/tokenlatencyprocessor", "exporter/tokensliexporter", "connector/tokensliconnector",
	} {
		pages = append(pages, read(t, readme, "README.md"))
	}
	for _, page := range pages {
		for _, code := range regexp.MustCompile("(?m)`([a-z_:]+)`|^ *([a-z_]+):").FindAllStringSubmatch(page, -1) {
			all[code[1]+code[2]] = true
		}
	}
	return all
}

// Each row says what is wrong, and has a remedy that names a key or a component of the docs, or the line in the log names
// the place in the docs.
func TestRows_HaveMessageRemedyAndPage(t *testing.T) {
	sentence, headings := regexp.MustCompile(`^[A-Z]|\.( |$)`), map[string]string{
		operations: "^Mistakes in pipelines\n", sources: "^(Missing latencies|How spans are recognised)\n", "live-page.md": "^One request, one vantage\n",
	}
	for m := range rows {
		r := &rows[m]
		t.Run(fmt.Sprint(m, " ", r.key), func(t *testing.T) {
			require.Regexp(t, `^[a-z_]+$`, r.key)
			for _, text := range []string{r.says, r.remedy} {
				require.NotEmpty(t, text)
				require.NotRegexp(t, sentence, text)
			}
			about := section(t, r.page, r.key)
			require.Regexp(t, headings[r.page], about)
			if r.page == sources {
				return
			}
			keys, found := named(t, about), false
			for _, word := range regexp.MustCompile(`[a-z_:]+`).FindAllString(r.remedy, -1) {
				found = found || keys[word]
			}
			require.True(t, found, r.remedy)
		})
	}
}

// documented are the least facts that show a mistake, and what its page says about them. All others are seen at the first case.
var documented = map[Mistake]struct {
	shown Facts
	fewer []Facts
	says  string
}{
	SpansUnread:        {Facts{20, 20, 0}, []Facts{{19, 19, time.Hour}, {20, 21, 0}}, "of 20 spans that look like model calls, none has latency"},
	TracesInPieces:     {Facts{20, 200, 0}, []Facts{{19, 190, time.Hour}, {20, 201, 0}}, "at least 20 traces, and a tenth of all"},
	SLOUnapplied:       {Facts{100, 100, 15 * time.Minute}, []Facts{{99, 99, time.Hour}, {100, 101, time.Hour}, {100, 100, 15*time.Minute - 1}}, "an SLO matches none of 100 requests, after 15 minutes"},
	ObjectiveUndefined: {Facts{20, 20, 0}, []Facts{{19, 19, time.Hour}, {20, 21, 0}}, "after 20 requests if components of its Collector define SLOs but not this one"},
	ObjectiveUnseen:    {Facts{100, 100, 15 * time.Minute}, []Facts{{99, 99, time.Hour}, {100, 101, time.Hour}, {100, 100, 15*time.Minute - 1}}, "else after 15 minutes and 100 requests"},
	DimensionUnused:    {Facts{100, 100, 0}, []Facts{{99, 99, time.Hour}, {100, 101, 0}}, "none of 100 requests has a dimension"},
}

// Facts that show a mistake are one line in the log and one doubt, and fewer facts are none.
func TestRows_AreSeenFromTheirFactsOn(t *testing.T) {
	for m := range rows {
		r, m := &rows[m], Mistake(m)
		if r.reason != latency.Present {
			continue // TestRows_OfReasonsAreLoggedOnce
		}
		t.Run(r.key, func(t *testing.T) {
			core, logs := observer.New(zapcore.DebugLevel)
			d := NewDoubts(zap.New(core), time.Now)
			facts, ok := documented[m]
			if !ok {
				facts.shown, facts.fewer = Facts{Cases: 1}, []Facts{{}, {All: 1000, Ran: time.Hour}}
			}
			require.Contains(t, section(t, r.page, r.key), facts.says)
			for _, fewer := range facts.fewer {
				d.Report(m, fewer, "something")
			}
			require.Zero(t, logs.Len())
			require.Empty(t, d.Current())
			d.Report(m, facts.shown, "something")
			d.Report(m, facts.shown, "something")
			require.Equal(t, 1, logs.Len())
			require.Equal(t, r.says+"; "+r.remedy, logs.All()[0].Message)
			require.Equal(t, zapcore.WarnLevel, logs.All()[0].Level)
			require.Equal(t, map[string]any{"see": "docs/" + r.page + "#" + r.key}, logs.All()[0].ContextMap())
			require.Len(t, d.Current(), 1)
			require.Equal(t, r.says+"; "+r.remedy, d.Current()[0].Message)
		})
	}
}

// Each row of a reason is logged for a source, and none without a reason.
func TestRows_OfReasonsAreLoggedOnce(t *testing.T) {
	core, logs := observer.New(zapcore.DebugLevel)
	report := func(notify func(*Notices)) { // each with a limit of its own, which may confuse two messages of many
		n := NewNotices(zap.New(core), source.Names())
		notify(n)
		notify(n)
	}
	service := func() string { return "chat" }
	for reader := range source.Names() {
		for reason := latency.Present + 1; reason < NumReasons; reason++ {
			report(func(n *Notices) { n.Unmeasured(reader, reason, service, "scope") })
		}
	}
	report(func(n *Notices) { n.Unclaimed(service, "scope") })
	require.Equal(t, 1+10*len(source.Names()), logs.Len())
	for m := range rows {
		r, found := &rows[m], 0
		for _, entry := range logs.All() {
			if strings.HasSuffix(entry.Message, "; remedy: "+r.remedy+"; see docs/sources.md#"+r.key) && entry.Level == r.level() {
				found++
			}
		}
		switch {
		case r.page != sources:
			require.Zero(t, found, r.key)
		case r.source != "" || Mistake(m) == SpanUnclaimed:
			require.Equal(t, 1, found, r.key)
		default:
			require.GreaterOrEqual(t, found, len(source.Names())-1, r.key)
		}
	}
}

// A count that ended at maxLacking is enough for each row.
func TestLacking_CountsAsManyAsRowsNeed(t *testing.T) {
	for m := range rows {
		require.LessOrEqual(t, rows[m].seen.cases, int64(maxLacking))
	}
	var l Lacking
	for range 2 * maxLacking {
		l.Lacks()
	}
	require.Equal(t, Facts{Cases: maxLacking, All: maxLacking}, l.Facts())
	l.Has()
	l.Lacks()
	require.Equal(t, Facts{Cases: maxLacking, All: maxLacking + 1}, l.Facts())
}
