// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// maxRunBytes bounds one run of benchRuns, whose numbers are held at once. It is a variable for tests.
var maxRunBytes int64 = 1 << 30

// benchRun is the result of one run of `vllm bench serve` or SGLang's bench_serving: a JSON object with a list for each
// number of the requests. Several runs may follow each other.
type benchRun struct {
	model, date, backend string
	duration             seconds

	inputLens, outputLens []count
	ttfts                 []seconds
	itls                  [][]seconds
	starts                []seconds // of a clock that does not begin in 1970
	latencies             []seconds
	cached                []count
	errors                []*stream.End // nil for a request without an error
}

// benchFormat is how the runs of a tool differ.
type benchFormat struct {
	tool string
	// noDetails is the error for a run without requests.
	noDetails string
	// failed is what the chunks of a failed request are.
	failed stream.Arrivals
	// stream completes a stream of which the times of start and end are known.
	stream func(run *benchRun, i int, s *stream.Stream)
}

func (s *Scanner) benchRuns(r io.Reader, format *benchFormat) error {
	document := newDocument(r, maxRunBytes)
	for number := 1; ; number++ {
		if !document.decoder.More() {
			if _, err := document.decoder.Token(); !errors.Is(err, io.EOF) {
				return fmt.Errorf("run %d: %w", number, document.located(err))
			}
			return nil
		}
		run := &benchRun{}
		if err := run.read(document); err != nil {
			return fmt.Errorf("run %d: %w", number, err)
		}
		document.renew()
		if err := run.check(format); err != nil {
			if err := s.damaged(fmt.Errorf("run %d: %w", number, err)); err != nil {
				return err
			}
			continue
		}
		if err := s.benchRequests(run, number, format); err != nil {
			return err
		}
	}
}

func (s *Scanner) benchRequests(run *benchRun, number int, format *benchFormat) error {
	if len(run.starts) == 0 {
		s.warn("run %d has no start_times: all requests start at once", number)
	}
	for i := range run.ttfts {
		one, err := run.request(i, number, format)
		if err == nil {
			err = s.emit(one)
		} else {
			err = s.damaged(fmt.Errorf("run %d: request %d: %w", number, i+1, err))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// read reads a run. Texts are skipped.
func (run *benchRun) read(d *document) error {
	return d.object(func(key string) error {
		err := run.field(d, key)
		if err != nil {
			err = fmt.Errorf("%s: %w", key, err)
		}
		return err
	})
}

func (run *benchRun) field(d *document, key string) error {
	switch key {
	case "model_id":
		return d.value(&run.model)
	case "date":
		return d.value(&run.date)
	case "backend":
		return d.value(&run.backend)
	case "server_info":
		return run.server(d)
	case "duration":
		return d.value(&run.duration)
	case "input_lens":
		return column(d, &run.inputLens)
	case "output_lens":
		return column(d, &run.outputLens)
	case "ttfts":
		return column(d, &run.ttfts)
	case "itls":
		return column(d, &run.itls)
	case "start_times":
		return column(d, &run.starts)
	case "latencies":
		return column(d, &run.latencies)
	case "cached_tokens":
		return column(d, &run.cached)
	case "errors":
		return d.list(func(int) error {
			var message string
			if err := d.value(&message); err != nil {
				return err
			}
			var end *stream.End
			if message != "" {
				end = failure(message)
			}
			run.errors = append(run.errors, end)
			return nil
		})
	case "generated_texts": // element by element, since all of them together may be large
		return d.list(func(int) error { return d.skip() })
	default:
		return d.skip()
	}
}

// column reads the list of a number.
func column[T any](d *document, to *[]T) error {
	return d.list(func(i int) error {
		var v T
		if err := d.value(&v); err != nil {
			return fmt.Errorf("request %d: %w", i+1, err)
		}
		*to = append(*to, v)
		return nil
	})
}

// server reads the model from SGLang's description of the server.
func (run *benchRun) server(d *document) error {
	var info struct {
		Model  any `json:"model_path"`
		Served any `json:"served_model_name"`
	}
	err := d.value(&info)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) { // not an object
		return nil
	}
	model, _ := info.Model.(string)
	served, _ := info.Served.(string)
	run.model = cmp.Or(run.model, served, model)
	return err
}

// check returns an error for a run whose requests are missing, or whose lists differ in length.
func (run *benchRun) check(format *benchFormat) error {
	n := len(run.ttfts)
	if n == 0 {
		return errors.New(format.noDetails)
	}
	for _, list := range [...]struct {
		name string
		n    int
	}{
		{"itls", len(run.itls)},
		{"input_lens", len(run.inputLens)},
		{"output_lens", len(run.outputLens)},
		{"start_times", len(run.starts)},
		{"latencies", len(run.latencies)},
		{"cached_tokens", len(run.cached)},
		{"errors", len(run.errors)},
	} {
		if list.n != n && list.n != 0 {
			return fmt.Errorf("%s has %d requests, ttfts has %d; the file is damaged", list.name, list.n, n)
		}
	}
	return nil
}

// epoch replaces the start of clocks that do not begin in 1970, such as time.perf_counter: 2026-01-01. Files that one
// machine wrote without a restart keep their order.
var epoch = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).UnixNano()

// begin returns the Unix time of the zero of the run's clock. The date is local time and the run's end; the time zone is
// unknown.
func (run *benchRun) begin() int64 {
	date, err := time.Parse("20060102-150405", run.date)
	if err != nil {
		return epoch
	}
	begin := date.UnixNano() - int64(max(run.duration, 0))
	if len(run.starts) > 0 {
		begin -= int64(slices.Min(run.starts))
	}
	return begin
}

func (run *benchRun) request(i, number int, format *benchFormat) (*stream.Stream, error) {
	s := &stream.Stream{
		ID:         fmt.Sprintf("%s %s run %d request %d", format.tool, cmp.Or(run.date, "undated"), number, i+1),
		Vantage:    timeline.VantageClient,
		Attributes: stream.Attributes{names.GenAIOperationName: run.operation()},
		Start:      run.begin(),
		End:        &stream.End{},
	}
	if run.model != "" {
		s.Attributes[names.GenAIRequestModel] = run.model
	}
	if len(run.starts) > 0 {
		s.Start += int64(run.starts[i])
	}
	if s.Start <= 0 {
		return nil, wrongValue("start_times is %s before 1970", time.Duration(-s.Start))
	}
	if err := run.chunks(i, s); err != nil {
		return nil, err
	}
	if len(run.latencies) > 0 && run.latencies[i] > 0 {
		latency, err := run.latencies[i].latency("latencies")
		if err != nil {
			return nil, err
		}
		s.End.Time = max(s.Start+latency, s.LastTime())
	}
	if len(run.errors) > 0 && run.errors[i] != nil {
		failed := *run.errors[i]
		failed.Time = s.End.Time
		s.End = &failed
		if s.Arrivals = format.failed; s.End.Time == 0 && len(s.Chunks) == 0 {
			s.Arrivals = stream.Unknown
		}
		return s, nil
	}
	s.End.Usage = &stream.Usage{}
	if len(run.inputLens) > 0 {
		s.End.Usage.InputTokens = run.inputLens[i].pointer()
	}
	if len(run.outputLens) > 0 {
		s.End.Usage.OutputTokens = run.outputLens[i].pointer()
	}
	if len(run.cached) > 0 {
		s.End.Usage.CachedInputTokens = run.cached[i].pointer()
	}
	format.stream(run, i, s)
	return s, nil
}

// operation returns the operation of the conventions.
func (run *benchRun) operation() string {
	if strings.Contains(run.backend, "chat") {
		return "chat"
	}
	return "text_completion"
}

// chunks adds a chunk of one token for the time to first token, and one for each gap. A request without either has none.
func (run *benchRun) chunks(i int, s *stream.Stream) error {
	var gaps []seconds
	if len(run.itls) > 0 {
		gaps = run.itls[i]
	}
	if run.ttfts[i] == 0 && len(gaps) == 0 {
		return nil
	}
	first, err := run.ttfts[i].latency("ttfts")
	if err != nil {
		return err
	}
	s.Chunks = make([]stream.Chunk, 1, 1+len(gaps))
	s.Chunks[0] = stream.Chunk{Time: s.Start + first, Tokens: 1}
	at := s.Chunks[0].Time
	for k, gap := range gaps {
		gap, err := gap.latency("itls")
		if err != nil {
			return fmt.Errorf("gap %d: %w", k+1, err)
		}
		at += gap
		s.Chunks = append(s.Chunks, stream.Chunk{Time: at, Tokens: 1})
	}
	return nil
}
