// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package waterfall

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zaptest"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/config"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
)

var start = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

const traceID = "4bf92f3577b34da6a3ce929d0e0e4736"

// agent reads the batches of testdata/spans/agent.jsonl.
func agent(t *testing.T) (batches []ptrace.Traces) {
	t.Helper()
	text, err := os.ReadFile("../../../../testdata/spans/agent.jsonl")
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		batch, err := new(ptrace.JSONUnmarshaler).UnmarshalTraces(line)
		require.NoError(t, err)
		batches = append(batches, batch)
	}
	return batches
}

// trace returns a batch for spans of one trace.
func trace() (ptrace.Traces, ptrace.SpanSlice) {
	batch := ptrace.NewTraces()
	return batch, batch.ResourceSpans().AppendEmpty().ScopeSpans().AppendEmpty().Spans()
}

// add adds a span from and to some milliseconds after start. Parent 0 is none.
func add(spans ptrace.SpanSlice, id, parent byte, name string, from, to int) ptrace.Span {
	s := spans.AppendEmpty()
	s.SetTraceID([16]byte{0xab, 0xcd, 0xef, 1})
	s.SetSpanID([8]byte{0x11, 0x22, 0x33, id})
	if parent != 0 {
		s.SetParentSpanID([8]byte{0x11, 0x22, 0x33, parent})
	}
	s.SetName(name)
	s.SetStartTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(from) * time.Millisecond)))
	s.SetEndTimestamp(pcommon.NewTimestampFromTime(start.Add(time.Duration(to) * time.Millisecond)))
	return s
}

// example is the span of docs/timeline-attributes.md.
func example(t *testing.T) ptrace.Traces {
	t.Helper()
	batch, spans := trace()
	s := add(spans, 1, 0, "chat gpt-4o", 0, 950)
	s.SetKind(ptrace.SpanKindClient)
	require.NoError(t, s.Attributes().FromRaw(map[string]any{
		"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt-4o", "gen_ai.usage.output_tokens": 7,
		"tokenpulse.chunk.offsets":  []any{180_000, 200_000, 290_000, 900_000, 920_000},
		"tokenpulse.chunk.tokens":   []any{1, 1, 3, 1, 1},
		"tokenpulse.chunk.channels": []any{"reasoning", "content", "content", "content", "content"},
	}))
	return batch
}

// drawn draws a trace, as the command does.
func drawn(t *testing.T, columns int, spans ptrace.Traces, with func(*Trace)) string {
	t.Helper()
	trace := NewTrace(spans)
	if with != nil {
		with(trace)
	}
	settings := config.Default()
	settings.Latency.Timeline, settings.Latency.Join = "keep", true
	p, err := pipeline.New(t.Context(), pipeline.Settings{Latency: settings.Latency, SLI: settings.SLI, Logger: zaptest.NewLogger(t), Watch: trace.Watch})
	require.NoError(t, err)
	require.NoError(t, p.Consume(t.Context(), spans))
	require.NoError(t, p.Close(t.Context()))
	var out bytes.Buffer
	require.NoError(t, trace.Draw(&out, columns))
	return out.String()
}

// rows returns the lines of the picture, without the spaces at their ends.
func rows(picture string) []string {
	return strings.Split(strings.Split(picture, "\n\n")[1], "\n")
}

// marks makes a bar of so many columns of each mark.
func marks(of ...any) string {
	var bar strings.Builder
	for i := 0; i < len(of); i += 2 {
		bar.WriteString(strings.Repeat(of[i+1].(string), of[i].(int)))
	}
	return bar.String()
}

// With 95 columns for 950 ms, each column is 10 ms: tokens arrive in columns 18, 20, 29, 90 and 92.
func TestDraw_BarOfARequest(t *testing.T) {
	const label, vantage, duration = 11, 8, 10
	picture := drawn(t, label+1+vantage+95+duration, example(t), nil)
	require.Equal(t, []string{
		"                    |0        |100ms    |200ms    |300ms    |400ms    |500ms    |600ms    |700ms    |800ms",
		"chat gpt-4o client  " + marks(18, "▒", 1, "◆", 10, "▓", 61, "×", 2, "▓", 3, "─") + " 950ms",
		strings.Repeat(" ", 20) + marks(18, " ", 1, "▃", 1, " ", 1, "▃", 8, " ", 1, "█", 60, " ", 1, "▃", 1, " ", 1, "▃", 2, " ") + " 7 tok",
	}, rows(picture))
	require.Contains(t, picture, "Trace abcdef01000000000000000000000000: 1 span, 1 request, from 2026-11-01 12:00:00.000 UTC, 950ms\n")
	require.Contains(t, picture, "\n▒ prefill, ◆ first token, ▓ decode, × no token: a stall, or until the end, ─ other time, ▁▂▃▄▅▆▇█ tokens per column\n")
	require.Contains(t, picture, `
chat gpt-4o, span 1122330100000000: success, vantage client, model gpt-4o, source chunk_offsets
  duration 950ms, TTFT 180ms, TPOT 123ms, prefill ~180ms, decode 740ms, 7 output tokens, stalls 1 (610ms)
  longest gaps: 610ms after token 5 at 290ms (stall); 90ms after token 2 at 200ms; 20ms after token 1 at 180ms
`)
}

// With 240 columns for 2.4 s, each column is 10 ms. The client's request gets queue and prefill of the engine, and the
// rest of the 180 ms until its first token is network.
func TestDraw_TreeOfAnAgent(t *testing.T) {
	batches := agent(t)
	f := NewFinder(idOf(t, traceID))
	for _, batch := range batches {
		require.NoError(t, f.Add(batch))
	}
	spans, err := f.Found()
	require.NoError(t, err)
	const label, vantage, duration = 29, 8, 10
	var second strings.Builder // a chunk of two tokens each 18 ms from 1760 ms on
	arrived := map[int]int{}
	for i := range 31 {
		arrived[(1760+18*i)/10]++
	}
	for column := 176; column <= 230; column++ {
		second.WriteString([]string{" ", "█"}[arrived[column]])
	}
	got := rows(drawn(t, label+1+vantage+240+duration, spans, nil))
	for i := range got {
		got[i] = strings.TrimRight(got[i], " ")
	}
	at := func(column int) string { return strings.Repeat(" ", column) }
	row := func(label, vantage, bar, duration string) string {
		return terminal.Fit(label, 29) + " " + terminal.Fit(vantage, 7) + " " + terminal.Fit(bar, 240) + " " + duration
	}
	require.Equal(t, []string{
		row("invoke_agent shopping", "agent", marks(240, "─"), "2.4s"),
		row("├ chat gpt-oss-120b", "client", at(5)+marks(3, "┄", 3, "░", 12, "▒", 1, "◆", 10, "▓", 61, "×", 2, "▓", 3, "─"), "950ms"),
		row("│ │", "", at(23)+"▃ ▃        █"+at(60)+"▃ ▃", "7 tok"),
		row("│ └ POST /v1/chat/completions", "", at(5)+marks(95, "─"), "936ms"),
		// Its first token is at 216 ms, its decode ends at 958 ms, and its span at 981 ms.
		row("│   └ llm_request", "engine", at(6)+marks(3, "░", 12, "▒", 1, "◆", 74, "▓", 3, "─"), "915ms"),
		row("├ execute_tool search", "tool", at(101)+marks(49, "─"), "490ms"),
		row("│ └ SELECT products", "", at(104)+marks(43, "─"), "430ms"),
		row("└ chat gpt-oss-120b", "client", at(152)+marks(24, "▒", 1, "◆", 53, "▓", 8, "─"), "860ms"),
		row("", "", at(176)+second.String(), "62 tok"),
	}, got[1:])
}

func TestDraw_FitsTheWidth(t *testing.T) {
	for _, columns := range []int{0, 40, 59, 60, 80, 200} {
		batches := agent(t)
		for _, batch := range batches[1:] {
			batch.ResourceSpans().MoveAndAppendTo(batches[0].ResourceSpans())
		}
		picture := drawn(t, columns, batches[0], nil)
		for line := range strings.Lines(picture) {
			require.LessOrEqual(t, terminal.Cells(strings.TrimSuffix(line, "\n")), max(columns, 40), "%d: %s", columns, line)
		}
		require.Equal(t, columns >= 60, strings.Contains(strings.Join(rows(picture), "\n"), "engine"), "vantages need room")
	}
}

// A client cancelled or lost the request after 2 s without a token.
func TestDraw_MarksTheWaitOfARequestThatHung(t *testing.T) {
	batch := example(t)
	s := batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	s.SetEndTimestamp(s.StartTimestamp() + 2_000_000_000)
	s.Status().SetCode(ptrace.StatusCodeError)
	picture := drawn(t, 11+1+8+200+10, batch, nil) // 10 ms a column
	require.Contains(t, rows(picture)[1], marks(2, "▓", 108, "×")+" 2s !")
	require.Contains(t, picture, "no token for the last 1.08s")
	require.Contains(t, picture, "! failed")
}

// The stream went on after the program ended its span.
func TestDraw_TokensAfterTheEndOfTheSpan(t *testing.T) {
	batch := example(t)
	s := batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	s.SetEndTimestamp(s.StartTimestamp() + 500_000_000)
	picture := drawn(t, 11+1+8+92+10, batch, nil) // 10 ms a column: the last token is at 920 ms
	require.Contains(t, picture, "UTC, 920ms\n")
	require.Contains(t, rows(picture)[2], "█"+marks(60, " ")+"▃▃", "the tokens at 290, 900 and 920 ms")
}

// Another Collector annotated it by another clock.
func TestDraw_WaitThatIsLongerThanTheSpan(t *testing.T) {
	batch, spans := trace()
	add(spans, 1, 0, "root", 0, 1000)
	s := add(spans, 2, 1, "hung", 500, 1000)
	require.NoError(t, s.Attributes().FromRaw(map[string]any{
		"tokenpulse.source": "token_tap", "tokenpulse.outcome": "incomplete", "tokenpulse.request.duration": 0.9,
		"tokenpulse.time_to_first_token": 0.1, "tokenpulse.decode.duration": 0.1,
	}))
	row := rows(drawn(t, 60, batch, nil))[2]
	bar := strings.TrimPrefix(row, "└ hung         ")
	require.Equal(t, strings.Repeat(" ", 17), bar[:17], row)
	require.Contains(t, row, "××××")
}

// Names come from senders, attributes may hold prompts.
func TestDraw_EscapesNamesAndShowsNoText(t *testing.T) {
	batch := example(t)
	s := batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans().At(0)
	s.SetName("chat\x1b[2J\nforged 模型")
	s.Attributes().PutStr("gen_ai.input.messages", "secret")
	s.Attributes().PutStr("gen_ai.prompt.0.content", "secret")
	s.Attributes().PutStr("server.address", "host\x1b]0;x\a")
	s.Events().AppendEmpty().Attributes().PutStr("content", "secret")
	s.Status().SetMessage("secret")
	picture := drawn(t, 100, batch, nil)
	require.NotContains(t, picture, "\x1b")
	require.NotContains(t, picture, "secret")
	require.Contains(t, picture, `chat\x1b[2J\nforged 模型, span`)
	require.Contains(t, picture, `replica host\x1b]0;x\a`)
}

func TestDraw_NotesWhatIsOutOfPlace(t *testing.T) {
	batch, spans := trace()
	add(spans, 1, 0, "root", 100, 200)
	add(spans, 2, 1, "early", 88, 150)
	add(spans, 3, 1, "late", 150, 205)
	add(spans, 4, 1, "within", 100, 200)
	add(spans, 5, 99, "lost", 100, 200)
	picture := drawn(t, 100, batch, func(t *Trace) { t.Left, t.Partial = 3, true })
	require.Contains(t, picture, `
note: PART of the files: reading was interrupted
note: 3 more spans of this trace left out, beyond 10000 spans or 64 MiB
note: early (span 1122330200000000) starts 12ms before its parent: their clocks differ
note: late (span 1122330300000000) ends 5ms after its parent: their clocks differ, or the parent did
  not wait
note: 1 span without their parents, which the files do not have
`)
	require.Contains(t, rows(picture)[2], "├ early ")
}

func TestDraw_LimitsNotes(t *testing.T) {
	batch, spans := trace()
	add(spans, 1, 0, "root", 100, 200)
	for id := range byte(20) {
		add(spans, 2+id, 1, "early", 50, 150)
	}
	picture := drawn(t, 100, batch, nil)
	require.Equal(t, 5, strings.Count(picture, "before its parent"))
	require.Contains(t, picture, "note: 15 more spans outside their parents\n")
}

// Spans of any program, also of a hostile one: each is drawn once.
func TestDraw_TreesThatAreNone(t *testing.T) {
	for name, parents := range map[string][]byte{
		"its own parent":           {1},
		"each other's parents":     {2, 1},
		"a circle below a root":    {0, 4, 2, 3, 1},
		"spans above a circle":     {2, 3, 4, 3, 1},
		"a circle entered halfway": {3, 1, 2, 5, 2},
	} {
		batch, spans := trace()
		for i, parent := range parents {
			add(spans, byte(i+1), parent, fmt.Sprintf("span%d", i+1), 10-i, 20)
		}
		picture := strings.Join(rows(drawn(t, 100, batch, nil)), "\n")
		for i := range parents {
			require.Equal(t, 1, strings.Count(picture, fmt.Sprintf("span%d", i+1)), name)
		}
		if name == "each other's parents" {
			require.Contains(t, picture, "└ span1", "the other one is earlier")
		}
	}
}

func TestDraw_DeepTree(t *testing.T) {
	batch, spans := trace()
	for i := range uint32(5000) {
		s := add(spans, 0, 0, "deep", int(i), 10_000)
		s.SetSpanID([8]byte{1, byte(i >> 8), byte(i)})
		if i > 0 {
			s.SetParentSpanID([8]byte{1, byte((i - 1) >> 8), byte(i - 1)})
		}
	}
	picture := drawn(t, 80, batch, nil)
	require.Len(t, rows(picture), 5001)
	require.Contains(t, rows(picture)[9], strings.Repeat("  ", 7)+"└ deep")
}

// Times and numbers that no clock and no request has.
func TestDraw_NumbersThatCannotBeTrue(t *testing.T) {
	const far = pcommon.Timestamp(math.MaxInt64)
	times := []pcommon.Timestamp{0, 1, pcommon.NewTimestampFromTime(start), far, far + 1, math.MaxUint64}
	for _, from := range times {
		for _, to := range times {
			for _, number := range []any{math.MaxInt, -1, 1e300, math.NaN(), math.Inf(1), 0.5, "x"} {
				batch := example(t)
				spans := batch.ResourceSpans().At(0).ScopeSpans().At(0).Spans()
				add(spans, 2, 1, "other", 0, 10)
				s := spans.At(0)
				s.SetStartTimestamp(from)
				s.SetEndTimestamp(to)
				s.Attributes().Remove("tokenpulse.chunk.offsets")
				for _, name := range []string{"time_to_first_token", "queue.duration", "prefill.duration", "decode.duration", "network.duration", "transfer.duration", "stall.count", "request.duration"} {
					require.NoError(t, s.Attributes().PutEmpty("tokenpulse."+name).FromRaw(number))
				}
				s.Attributes().PutStr("tokenpulse.source", "token_stream") // annotated by another Collector
				s.Attributes().PutStr("tokenpulse.outcome", "cancelled")
				s.Attributes().PutEmptyBytes("tokenpulse.timeline").FromRaw([]byte{2, 2, 0, 0, 2, 4, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f})
				picture := drawn(t, 80, batch, nil)
				require.Contains(t, picture, "chat gpt-4o")
				require.Contains(t, picture, "other")
			}
		}
	}
}

func TestDraw_RandomTreesFitTheWidth(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // for a test
	for range 200 {
		batch, spans := trace()
		n := 1 + random.IntN(30)
		for i := range n {
			from := random.IntN(1000)
			add(spans, byte(i+1), byte(random.IntN(n+1)), fmt.Sprintf("<%d>", i), from, from+random.IntN(3)*random.IntN(500))
		}
		columns := 40 + random.IntN(100)
		picture := drawn(t, columns, batch, nil)
		for i, row := range rows(picture) {
			require.LessOrEqual(t, terminal.Cells(row), columns)
			if i > 0 {
				require.Contains(t, row, "─", "each span has a bar")
			}
		}
		require.Len(t, rows(picture), n+1)
	}
}
