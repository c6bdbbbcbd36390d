// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/stream"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

var guidellmGaps = []Gap{
	{"arrivals between the first token and the last", "there is no inter-token latency, stall or fluidity index; time per output token is exact. A replay spreads the chunks evenly"},
	{"which tokens are reasoning", "there is no time to first output token"},
	{"requests beyond --sample-requests", "the numbers are those of the sample"},
	{"whether a client cancelled an incomplete request, or the end of the run", "it counts as cancelled"},
	{"the queue", "prefill is time to first token"},
}

// maxYAMLBytes bounds a report in YAML, which is read whole.
const maxYAMLBytes = 256 << 20

// guidellm reads a report, benchmark by benchmark and request by request.
func (s *Scanner) guidellm(r io.Reader) error {
	r, err := jsonOf(r)
	if err != nil {
		return err
	}
	report := &guideReport{scanner: s, document: newDocument(r, maxRequestBytes)}
	err = report.document.object(func(key string) error {
		if key == "args" {
			return report.models(&report.model)
		}
		if key != "benchmarks" {
			return report.document.skip()
		}
		return report.document.list(report.benchmark)
	})
	if err == nil && !report.anyRequest {
		return errors.New("the report has no requests; let guidellm keep them: --sample-requests")
	}
	return err
}

// jsonOf returns the report as JSON.
func jsonOf(r io.Reader) (io.Reader, error) {
	var first [1]byte
	for {
		if _, err := io.ReadFull(r, first[:]); err != nil {
			return nil, err
		}
		if !strings.ContainsRune(" \t\r\n\xef\xbb\xbf", rune(first[0])) && first[0] < 0x80 {
			break
		}
	}
	r = io.MultiReader(bytes.NewReader(first[:]), r)
	if first[0] == '{' {
		return r, nil
	}
	text, err := io.ReadAll(io.LimitReader(r, maxYAMLBytes+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxYAMLBytes {
		return nil, fmt.Errorf("the report is larger than %d MiB; let guidellm write JSON", maxYAMLBytes>>20)
	}
	var report any
	if err := yaml.Unmarshal(text, &report); err != nil {
		return nil, errors.New("the report is not YAML") // yaml's message may quote a prompt
	}
	encoded, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("the report is not like JSON: %w", err)
	}
	return bytes.NewReader(encoded), nil
}

// guideReport is a report that is being read.
type guideReport struct {
	scanner  *Scanner
	document *document
	model    string // of the arguments
	// Of the current benchmark.
	index      int
	benchModel string
	made, held int // requests
	anyRequest bool
}

// models reads the model from an object: of the arguments, the configuration, or the worker.
func (r *guideReport) models(to *string) error {
	var v struct {
		Model        any `json:"model"`
		BackendModel any `json:"backend_model"`
		Backend      any `json:"backend"`
	}
	err := r.document.value(&v)
	var wrongType *json.UnmarshalTypeError
	if errors.As(err, &wrongType) {
		err = nil
	}
	model, _ := v.Model.(string)
	former, _ := v.BackendModel.(string)
	nested := ""
	if backend, ok := v.Backend.(map[string]any); ok {
		nested, _ = backend["model"].(string)
	}
	*to = cmp.Or(*to, model, former, nested)
	return err
}

func (r *guideReport) benchmark(i int) error {
	r.index, r.benchModel, r.made, r.held = i+1, "", 0, 0
	err := r.document.object(func(key string) error {
		switch key {
		case "config", "worker":
			return r.models(&r.benchModel)
		case "scheduler_metrics", "run_stats":
			return r.total()
		case "requests":
			return r.document.object(r.group)
		default:
			return r.document.skip()
		}
	})
	if err != nil {
		return fmt.Errorf("benchmark %d: %w", i+1, err)
	}
	if r.held < r.made {
		r.scanner.warn("benchmark %d has %d of %d requests: guidellm kept a sample of them (--sample-requests)", i+1, r.held, r.made)
	}
	return nil
}

// total reads how many requests the benchmark made.
func (r *guideReport) total() error {
	var v struct {
		Made struct {
			Total count `json:"total"`
		} `json:"requests_made"`
	}
	err := r.document.value(&v)
	if isValueError(err) {
		return nil
	}
	r.made = int(v.Made.Total)
	return err
}

// group reads the requests of one status.
func (r *guideReport) group(status string) error {
	switch status {
	case "successful", "incomplete", "errored":
	default:
		return r.document.skip()
	}
	return r.document.list(func(i int) error {
		var request guideRequest
		var one *stream.Stream
		err := r.document.value(&request)
		switch {
		case err == nil:
			one, err = request.stream(status, cmp.Or(r.benchModel, r.model))
		case !isValueError(err):
			return fmt.Errorf("%s request %d: %w", status, i+1, err)
		}
		r.document.renew()
		r.held++
		r.anyRequest = true
		if err != nil {
			return r.scanner.damaged(fmt.Errorf("benchmark %d: %s request %d: %w", r.index, status, i+1, err))
		}
		if one.ID == "" {
			one.ID = fmt.Sprintf("guidellm benchmark %d %s request %d", r.index, status, i+1)
		}
		return r.scanner.emit(one)
	})
}

// guideRequest is a request. The second half is of versions before 0.4.
type guideRequest struct {
	ID     string      `json:"request_id"`
	Type   string      `json:"request_type"`
	Args   head        `json:"request_args"`
	Info   *guideInfo  `json:"info"`
	Input  *guideUsage `json:"input_metrics"`
	Output *guideUsage `json:"output_metrics"`

	Start        *seconds `json:"start_time"`
	End          *seconds `json:"end_time"`
	First        *seconds `json:"first_token_time"`
	Last         *seconds `json:"last_token_time"`
	InputTokens  *count   `json:"prompt_tokens"`
	OutputTokens *count   `json:"output_tokens"`
	Error        string   `json:"error"`
}

type guideInfo struct {
	Timings   guideTimings `json:"timings"`
	Error     string       `json:"error"`
	Traceback tail         `json:"traceback"`
}

type guideTimings struct {
	Start        *seconds `json:"request_start"`
	ResolveStart *seconds `json:"resolve_start"`
	First        *seconds `json:"first_token_iteration"`
	Last         *seconds `json:"last_token_iteration"`
	Tokens       *count   `json:"token_iterations"`
	End          *seconds `json:"request_end"`
	ResolveEnd   *seconds `json:"resolve_end"`
	// Former names.
	FormerFirst  *seconds `json:"first_iteration"`
	FormerLast   *seconds `json:"last_iteration"`
	FormerChunks *count   `json:"iterations"`
}

type guideUsage struct {
	Total  *count `json:"total_tokens"`
	Text   *count `json:"text_tokens"`
	Cached *count `json:"cached_tokens"`
}

// flatten makes the request one of the older versions, with the number of its chunks, which these do not know.
func (r *guideRequest) flatten() (chunks *count, cached *count) {
	if r.Info == nil {
		return nil, nil
	}
	at := &r.Info.Timings
	r.Start, r.End = cmp.Or(at.Start, at.ResolveStart), cmp.Or(at.End, at.ResolveEnd)
	r.First, r.Last = cmp.Or(at.First, at.FormerFirst), cmp.Or(at.Last, at.FormerLast)
	r.Error = r.Info.Error
	r.InputTokens, r.OutputTokens = nil, nil // the tool's estimates where the service reports none
	if r.Input != nil {
		r.InputTokens, cached = cmp.Or(r.Input.Total, r.Input.Text), r.Input.Cached
	}
	if r.Output != nil {
		r.OutputTokens = cmp.Or(r.Output.Total, r.Output.Text)
	}
	return cmp.Or(at.Tokens, at.FormerChunks), cached
}

func (r *guideRequest) stream(status, model string) (*stream.Stream, error) {
	chunks, cached := r.flatten()
	if r.Start == nil || *r.Start <= 0 {
		return nil, errors.New("it has no start: info.timings.request_start, or the former start_time")
	}
	s := &stream.Stream{
		ID: r.ID, Vantage: timeline.VantageClient, Arrivals: stream.Ends,
		Attributes: stream.Attributes{names.GenAIOperationName: "chat"},
		Start:      int64(*r.Start),
		End:        &stream.End{Usage: &stream.Usage{InputTokens: r.InputTokens.pointer(), OutputTokens: r.OutputTokens.pointer(), CachedInputTokens: cached.pointer()}},
	}
	if strings.Contains(r.Type, "text_completions") {
		s.Attributes[names.GenAIOperationName] = "text_completion"
	}
	if model = cmp.Or(modelIn(r.Args), model); model != "" {
		s.Attributes[names.GenAIRequestModel] = model
	}
	switch status {
	case "errored":
		usage := s.End.Usage
		s.End = failed(exceptionOf(r.exception()), statusOf(r.Error))
		s.End.Usage = usage
	case "incomplete":
		s.End.Cancelled = true
	}
	if r.End != nil {
		duration, err := (*r.End - *r.Start).latency("end - start")
		if err != nil {
			return nil, err
		}
		s.End.Time = s.Start + duration
	}
	if r.First == nil || r.Last == nil {
		if status == "successful" {
			s.Attributes[names.GenAIRequestStream] = false
		}
		return s, nil
	}
	return s, r.spread(s, chunks)
}

// exception returns the text that names the exception of an error.
func (r *guideRequest) exception() string {
	if r.Info == nil || r.Info.Traceback == "" {
		return r.Error
	}
	return strings.ReplaceAll(string(r.Info.Traceback), `\n`, "\n")
}

// maxSpread bounds the chunks of a stream whose arrivals are spread.
const maxSpread = 1 << 20

// spread adds the first chunk and the last, and between them as many as the request had, evenly.
func (r *guideRequest) spread(s *stream.Stream, chunks *count) error {
	first, err := (*r.First - *r.Start).latency("first token - start")
	if err != nil {
		return err
	}
	decode, err := (*r.Last - *r.First).latency("last token - first token")
	if err != nil {
		return err
	}
	n := int64(1)
	if k := cmp.Or(chunks, r.OutputTokens); k != nil {
		n = min(max(int64(*k), 1), maxSpread)
	}
	if decode > 0 {
		n = max(n, 2)
	}
	s.Chunks = make([]stream.Chunk, n)
	for i := range n {
		s.Chunks[i] = stream.Chunk{Time: s.Start + first, Tokens: 1}
		if n > 1 {
			s.Chunks[i].Time += int64(float64(decode) * float64(i) / float64(n-1))
		}
	}
	s.Chunks[n-1].Time = s.Start + first
	if n > 1 {
		s.Chunks[n-1].Time += decode
	}
	return nil
}
