// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package html

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.uber.org/zap/zaptest"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/pipeline"
	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/report"
	"github.com/tokenpulse/tokenpulse/internal/history"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/sketch"
	"github.com/tokenpulse/tokenpulse/processor/tokenlatencyprocessor"
)

const model, service = "gen_ai.request.model", "service.name"

// begin is the start of the first request.
var begin = time.Date(2026, 1, 12, 10, 7, 2, 0, time.UTC)

// request is a streamed answer with tokens at equal gaps after the first.
type request struct {
	model, service string
	kind           ptrace.SpanKind
	at, first, gap time.Duration
	tokens         int
	fails          bool
}

// spans returns one span for each request, in their order.
func spans(requests []request) ptrace.Traces {
	traces := ptrace.NewTraces()
	for i, r := range requests {
		resource := traces.ResourceSpans().AppendEmpty()
		resource.Resource().Attributes().PutStr(service, r.service)
		span := resource.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		id := [16]byte{1}
		binary.BigEndian.PutUint64(id[8:], uint64(i)+uint64(r.at))
		span.SetTraceID(id)
		span.SetSpanID([8]byte(id[8:]))
		span.SetKind(r.kind)
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(begin.Add(r.at)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(begin.Add(r.at + r.first + time.Duration(r.tokens-1)*r.gap)))
		attributes := span.Attributes()
		attributes.PutStr("gen_ai.operation.name", "chat")
		attributes.PutStr(model, r.model)
		attributes.PutStr("gen_ai.input.messages", "a secret prompt")
		offsets := attributes.PutEmptySlice("tokenpulse.chunk.offsets")
		for token := range r.tokens {
			offsets.AppendEmpty().SetInt((r.first + time.Duration(token)*r.gap).Microseconds())
		}
		attributes.PutInt("gen_ai.usage.input_tokens", int64(10+10*r.tokens))
		attributes.PutInt("gen_ai.usage.output_tokens", int64(r.tokens))
		if r.fails {
			span.Status().SetCode(ptrace.StatusCodeError)
		}
	}
	return traces
}

// random returns requests of some models, of two services and at random times of an hour.
func random(requests, models int) (all []request) {
	random := rand.New(rand.NewPCG(1, 2))
	for range requests {
		m := random.IntN(models)
		all = append(all, request{
			model: fmt.Sprint("model-", m), service: []string{"chat", "search"}[random.IntN(2)], kind: ptrace.SpanKindClient,
			at: time.Duration(random.Int64N(int64(time.Hour))), first: time.Duration(float64(100*time.Millisecond) * math.Exp(random.NormFloat64())),
			gap: time.Duration(10+m%7) * time.Millisecond, tokens: 1 + random.IntN(60), fails: random.IntN(50) == 0,
		})
	}
	return all
}

// made returns a report of requests, and its document, judged by TTFT of at most 200 ms.
func made(t testing.TB, p *Page, sli *keeper.Config, requests []request) (*report.Report, string) {
	t.Helper()
	latency := tokenlatencyprocessor.NewFactory().CreateDefaultConfig().(*tokenlatencyprocessor.Config)
	latency.SLOs = []tokenlatencyprocessor.SLOConfig{{Name: "ttft", Indicator: "time_to_first_token", Threshold: "200ms"}}
	latency.Timeline = "keep"
	require.NoError(t, latency.SLOs[0].Validate())
	pipe, err := pipeline.New(t.Context(), pipeline.Settings{Latency: latency, SLI: sli, Logger: zaptest.NewLogger(t), Watch: p.Watch})
	require.NoError(t, err)
	for len(requests) > 0 {
		n := min(len(requests), 100)
		require.NoError(t, pipe.Consume(t.Context(), spans(requests[:n])))
		requests = requests[n:]
	}
	require.NoError(t, pipe.Close(t.Context()))
	r := report.New(pipe, sli.Series.Dimensions.Names())
	r.SLOs = []report.SLO{{Name: "ttft", Indicator: "time_to_first_token", Threshold: 0.2, Objective: 0.9}}
	r.Input.Files = 1
	var out bytes.Buffer
	require.NoError(t, p.Write(&out, r))
	return r, out.String()
}

func settings() *keeper.Config {
	sli := keeper.NewDefaultConfig()
	sli.Series.Dimensions = series.DimensionsOf(model, service)
	sli.Objectives = []keeper.Objective{{SLO: "ttft", Objective: 0.9, Window: time.Hour}}
	return &sli
}

// inside returns the data of a document.
func inside(t testing.TB, out string) (d document) {
	t.Helper()
	_, data, ok := strings.Cut(out, `<script type="application/json" id="report">`)
	require.True(t, ok)
	data, _, _ = strings.Cut(data, "</script>")
	require.NoError(t, json.Unmarshal([]byte(data), &d))
	return d
}

// answer returns the answer of a document to a question.
func answer[T any](t testing.TB, d *document, question string) (a T) {
	t.Helper()
	require.Contains(t, d.Answers, question)
	require.NoError(t, json.Unmarshal(d.Answers[question], &a))
	return a
}

type summary struct {
	Count               uint64
	Mean, P50, P95, P99 float64
}

type nowAnswer struct {
	From, To   float64
	Rate       float64 `json:"requests_per_second"`
	Requests   map[string]uint64
	Indicators map[string]summary
	SLOs       []struct {
		SLO                   string
		Good, Bad             uint64
		Attainment, Objective float64
		Threshold             float64
	}
}

// The page's numbers come from the history, and the report's from the series.
func TestWrite_NumbersEqualThoseOfTheReport(t *testing.T) {
	sli := settings()
	r, out := made(t, New(sli), sli, random(3000, 5))
	d := inside(t, out)
	now := answer[nowAnswer](t, &d, "now?")
	requests, good := uint64(0), uint64(0)
	all := map[numbers.ID]*sketch.Sketch{}
	indicators := []numbers.ID{numbers.TimeToFirstToken, numbers.TimePerOutputToken, numbers.InterTokenLatency, numbers.RequestDuration, numbers.DecodeDuration}
	for _, id := range indicators {
		all[id] = new(sketch.Sketch)
	}
	for i := range r.Groups {
		requests, good = requests+r.Groups[i].Requests(), good+r.Groups[i].SLOs["ttft"].Good
		for _, id := range indicators {
			all[id].Merge(r.Groups[i].Values(id))
		}
	}
	require.Equal(t, uint64(3000), requests)
	require.Equal(t, requests, now.Requests["success"]+now.Requests["error"])
	for _, id := range indicators {
		q := []float64{0.5, 0.95, 0.99}
		all[id].Quantiles(q)
		shown := now.Indicators[id.APIName()]
		require.Equal(t, summary{Count: all[id].Count(), Mean: shown.Mean, P50: q[0], P95: q[1], P99: q[2]}, shown, id.APIName())
		require.InEpsilon(t, all[id].Sum()/float64(all[id].Count()), shown.Mean, 1e-9)
	}
	require.Equal(t, float64(r.Begin.UnixMilli())/1e3, now.From)
	require.Equal(t, float64(r.End.UnixMilli())/1e3, now.To)
	require.InEpsilon(t, 3000/r.Duration().Seconds(), now.Rate, 1e-9)
	require.Equal(t, "ttft", now.SLOs[1].SLO)
	require.Equal(t, good, now.SLOs[1].Good)
	require.InDelta(t, 0.9, now.SLOs[1].Objective, 0)
	require.InDelta(t, 0.2, now.SLOs[1].Threshold, 0, "as configured, though no breach has told it")

	groups := answer[struct {
		Groups []struct {
			Value      string
			Requests   uint64
			Indicators map[string]summary
		}
	}](t, &d, "distributions?by=gen_ai.request.model&groups=6")
	require.Len(t, groups.Groups, 5)
	for _, g := range groups.Groups {
		count, ttft := uint64(0), new(sketch.Sketch)
		for i := range r.Groups {
			if r.Groups[i].Labels[model] == g.Value {
				count += r.Groups[i].Requests()
				ttft.Merge(r.Groups[i].Values(numbers.TimeToFirstToken))
			}
		}
		require.Equal(t, count, g.Requests)
		require.Equal(t, ttft.Quantile(0.95), g.Indicators["time_to_first_token"].P95)
	}
}

func TestWrite_OffersTheFiltersThatThePageNames(t *testing.T) {
	sli := settings()
	requests := random(900, 60)
	for i := range requests[:200] {
		requests[i].model = "slow"
		requests[i].first *= 30
		requests[200+i].kind = ptrace.SpanKindServer
	}
	_, out := made(t, New(sli), sli, requests)
	d := inside(t, out)
	type groups struct{ Groups []struct{ Value string } }
	offered := 0
	for question := range d.Answers {
		if strings.HasPrefix(question, "now?") {
			offered++
		}
	}
	require.Equal(t, 1+maxFilters, offered)
	for _, by := range []string{model, service} {
		for _, g := range answer[groups](t, &d, "trends?"+url.Values{"by": {by}, "groups": {"6"}}.Encode()).Groups {
			for _, path := range []string{"meta", "now", "worst", "heatmap", "load", "prompts"} {
				require.Contains(t, d.Answers, path+"?"+url.Values{"where": {by + "=" + g.Value}}.Encode())
			}
		}
	}
	for _, filter := range []string{"vantage=all", "vantage=client", "vantage=server", "outcome=error", "outcome=success"} {
		require.Contains(t, d.Answers, "now?"+filter)
	}
	require.Contains(t, d.Answers, "trends?by=gen_ai.request.model&groups=6&rank=requests", "there are more models than the charts show")
	require.Contains(t, d.Answers, "trends?by=service.name&groups=6&where=gen_ai.request.model%3Dslow", "one model is split by service")
	require.NotEmpty(t, answer[struct{ Indicators map[string]any }](t, &d, "worst?vantage=all").Indicators)
}

// Whatever the names are, the document has the elements that it has without them.
func TestWrite_NamesEndNoElement(t *testing.T) {
	hostile := []string{`</script><script>alert(1)</script>`, `<!--<script>`, "]]>\u2028\u2029'\"&", `</style>`}
	var requests []request
	for i, name := range hostile {
		requests = append(requests, request{model: name, service: name, kind: ptrace.SpanKindClient, at: time.Duration(i) * time.Second, first: time.Second, gap: time.Second, tokens: 3})
	}
	sli := settings()
	_, out := made(t, New(sli), sli, requests)
	for tag, n := range map[string]int{"<script": 2, "</script": 2, "<style": 1, "</style": 1, "<!--": 0, "<![CDATA[": 0} {
		require.Equal(t, n, strings.Count(strings.ToLower(out), tag), tag)
	}
	d := inside(t, out)
	meta := answer[struct{ Dimensions []struct{ Values []string } }](t, &d, "meta?")
	require.ElementsMatch(t, hostile, meta.Dimensions[0].Values)
	require.NotContains(t, out, "a secret prompt")
}

var element = regexp.MustCompile(`(?s)<(style|script type="module")>(.*?)</(?:style|script)>`)

func TestWrite_PolicyAllowsWhatIsInsideOnly(t *testing.T) {
	sli := settings()
	_, out := made(t, New(sli), sli, random(3, 1))
	_, policy, _ := strings.Cut(out, `http-equiv="Content-Security-Policy" content="`)
	policy, _, _ = strings.Cut(policy, `"`)
	policy = html.UnescapeString(policy)
	found := element.FindAllStringSubmatch(out, -1)
	require.Len(t, found, 2)
	hashes := map[string]string{}
	for _, e := range found {
		sum := sha256.Sum256([]byte(e[2]))
		hashes[e[1]] = "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	require.Equal(t, "default-src 'none'; script-src "+hashes[`script type="module"`]+"; style-src "+hashes["style"]+"; img-src data:; base-uri 'none'; form-action 'none'", policy)
	require.Contains(t, out, "The MIT License", "uPlot's is in the file that has it")
}

// Long answers, long names and many series: the file stays within its limit, and has the numbers of all requests.
func TestWrite_SizeIsLimited(t *testing.T) {
	sli := settings()
	requests := random(480, 200)
	for i := range requests {
		requests[i].model = fmt.Sprintf("%s-%s", requests[i].model, strings.Repeat("x", 80))
		if i%8 == 0 {
			requests[i].tokens = 6000
		}
	}
	_, out := made(t, New(sli), sli, requests)
	d := inside(t, out)
	size, details, filters := 0, 0, 0
	for question, answer := range d.Answers {
		size += len(question) + len(answer)
		if strings.HasPrefix(question, "requests/") {
			details++
		} else if strings.HasPrefix(question, "now?where") {
			filters++
		}
	}
	require.LessOrEqual(t, size, maxBytes)
	require.Less(t, len(out), maxBytes+400_000)
	require.Positive(t, details)
	require.Positive(t, filters, "single requests leave room for filters")
	var listed struct{ Requests []struct{ ID string } }
	require.NoError(t, json.Unmarshal(d.Answers["requests?limit=12"], &listed))
	require.Len(t, listed.Requests, 12)
	missing := 0
	for question := range d.Answers {
		if !strings.HasPrefix(question, "requests?") {
			continue
		}
		require.NoError(t, json.Unmarshal(d.Answers[question], &listed))
		for _, r := range listed.Requests {
			if d.Answers["requests/"+r.ID+"?"] == nil {
				missing++
			}
		}
	}
	require.Positive(t, missing, "the limit bites")
}

func TestWrite_SaysWhatTheHistoryLost(t *testing.T) {
	sli := settings()
	p := New(sli)
	p.record(history.New(200 << 10))
	requests := random(3000, 3)
	for i := range requests {
		requests[i].at *= 24 * 90
	}
	r, out := made(t, p, sli, requests)
	d := inside(t, out)
	now := answer[nowAnswer](t, &d, "now?")
	kept := now.Requests["success"] + now.Requests["error"]
	require.Less(t, kept, uint64(3000))
	require.Greater(t, kept, uint64(50))
	require.Equal(t, []string{fmt.Sprintf("%d of the oldest requests are beyond the memory of the charts, and only in the table and the JSON", 3000-kept)}, d.Notes)
	require.Greater(t, now.From, float64(r.Begin.Unix()+24*3600), "the range is that of the requests that are left")
	require.InEpsilon(t, float64(kept)/(now.To-now.From), now.Rate, 1e-9)
}

func TestWrite_EmptyReport(t *testing.T) {
	sli := settings()
	_, out := made(t, New(sli), sli, nil)
	d := inside(t, out)
	require.Nil(t, answer[struct{ History struct{ Since *float64 } }](t, &d, "meta?").History.Since)
	require.Zero(t, answer[nowAnswer](t, &d, "now?").Requests["success"])
}

// The receiver of such requests counted them all, of which the files have a sample.
func TestWatch_LeavesOutRequestsThatTheirReceiverCounted(t *testing.T) {
	sli := settings()
	p := New(sli)
	traces := spans(random(10, 1))
	latency := tokenlatencyprocessor.NewFactory().CreateDefaultConfig().(*tokenlatencyprocessor.Config)
	pipe, err := pipeline.New(t.Context(), pipeline.Settings{Latency: latency, SLI: sli, Logger: zaptest.NewLogger(t), Watch: p.Watch})
	require.NoError(t, err)
	for i, resource := range traces.ResourceSpans().All() {
		if i < 4 {
			resource.ScopeSpans().At(0).Spans().At(0).Attributes().PutBool("tokenpulse.aggregated", true)
		}
	}
	require.NoError(t, pipe.Consume(t.Context(), traces))
	require.NoError(t, pipe.Close(t.Context()))
	p.engine.Fold(time.Now())
	_, requests := p.kept()
	require.Equal(t, uint64(6), requests)
	require.Equal(t, int64(4), pipe.Tally.Aggregated)
}
