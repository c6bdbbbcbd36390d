// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package sizing

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/tokenpulse/tokenpulse/cmd/tokenpulse/internal/terminal"
	"github.com/tokenpulse/tokenpulse/internal/capacity"
)

// Answer is what a command says.
type Answer struct {
	SLO string
	*Limit
	// Load is what a given load needs, and Trace what a workload needs. Nil if it was not asked for, or there is no limit.
	Load  *Needed
	Trace *OfTrace
}

// kinds is a load in JSON, as in the API of capacity.
type kinds struct {
	Requests     float64 `json:"requests"`
	OutputTokens float64 `json:"output_tokens"`
	PromptTokens float64 `json:"prompt_tokens"`
}

func newKinds(load capacity.Load) kinds {
	return kinds{load[capacity.Requests], load[capacity.OutputTokens], load[capacity.PromptTokens]}
}

// runJSON is a run in JSON.
type runJSON struct {
	Run      string  `json:"run"`
	Vantage  string  `json:"vantage"`
	Replicas int     `json:"replicas"`
	Seconds  float64 `json:"seconds"`
	Requests int     `json:"requests"`
	Load     kinds   `json:"load"`
	Eligible int     `json:"eligible"`
	Good     int     `json:"good"`
	// Attainment is null if no request was judged.
	Attainment *float64 `json:"attainment"`
	Low        float64  `json:"attainment_low"`
	High       float64  `json:"attainment_high"`
	Verdict    Verdict  `json:"verdict"`
	Reason     Reason   `json:"reason,omitempty"`
	// Needs is how long the run has to be for a verdict, if that is known.
	Needs float64 `json:"needs_seconds,omitempty"`
}

func newRunJSON(r *Run, objective float64) runJSON {
	j := runJSON{
		Run: r.Name, Vantage: r.Vantage, Replicas: r.Replicas, Seconds: r.Time.Seconds(), Requests: r.Requests, Load: newKinds(r.Load),
		Eligible: r.Eligible, Good: r.Eligible - r.Bad, Low: r.Low, High: r.High, Verdict: r.Verdict, Reason: r.Reason,
	}
	if good, ok := r.Good(); ok {
		j.Attainment = &good
	}
	if r.Reason == TooFew {
		j.Needs = r.Needs(objective).Seconds()
	}
	return j
}

// bound is a run beside the limit in JSON.
type bound struct {
	Run string `json:"run"`
	kinds
}

func newBound(r *Run) *bound {
	if r == nil {
		return nil
	}
	return &bound{r.Name, newKinds(r.Load)}
}

type neededJSON struct {
	Load     kinds `json:"load"`
	Replicas int   `json:"replicas_needed"`
}

func newNeededJSON(n *Needed) *neededJSON {
	if n == nil {
		return nil
	}
	return &neededJSON{newKinds(n.Load), n.Replicas}
}

type traceJSON struct {
	Requests  int         `json:"requests"`
	Seconds   float64     `json:"seconds"`
	Fits      bool        `json:"fits"`
	Sustained *neededJSON `json:"sustained"`
	Minute    *neededJSON `json:"minute"`
}

// MarshalJSON implements json.Marshaler. Loads are per second, and those of runs and limits are of one replica.
func (a *Answer) MarshalJSON() ([]byte, error) {
	out := struct {
		SLO       string      `json:"slo"`
		Objective float64     `json:"objective"`
		Limit     *bound      `json:"limit"`
		Missed    *bound      `json:"missed"`
		Reason    Reason      `json:"reason,omitempty"`
		Runs      []runJSON   `json:"runs"`
		Load      *neededJSON `json:"load,omitempty"`
		Workload  *traceJSON  `json:"workload,omitempty"`
	}{SLO: a.SLO, Objective: a.Objective, Limit: newBound(a.Met), Missed: newBound(a.Missed), Reason: a.Reason, Load: newNeededJSON(a.Load)}
	for i := range a.Runs {
		out.Runs = append(out.Runs, newRunJSON(&a.Runs[i], a.Objective))
	}
	if t := a.Trace; t != nil {
		out.Workload = &traceJSON{t.Requests, t.Duration.Seconds(), t.Fits, newNeededJSON(&t.Sustained), newNeededJSON(&t.Minute)}
	}
	return json.Marshal(out)
}

// WriteTable writes the answer for a terminal.
func (a *Answer) WriteTable(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "RUN\tREPLICAS\tREQUESTS/S\tOUTPUT TOKENS/S\tPROMPT TOKENS/S\tREQUESTS\tGOOD\t95%% INTERVAL\t%s\n", percent(a.Objective))
	for i := range a.Runs {
		r := &a.Runs[i]
		good, interval := "-", "-"
		if share, ok := r.Good(); ok {
			good, interval = percent(share), percent(r.Low)+" to "+percent(r.High)
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", terminal.Name(r.Name), r.Replicas, number(r.Load[capacity.Requests]),
			number(r.Load[capacity.OutputTokens]), number(r.Load[capacity.PromptTokens]), r.Requests, good, interval, r.verdict())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	a.needs(out)
	fmt.Fprintln(out, a.conclusion())
	if a.Load != nil {
		fmt.Fprintf(out, "%s requests/s need %s.\n", number(a.Load.Load[capacity.Requests]), a.replicas(a.Load.Replicas))
	}
	if a.Trace != nil {
		fmt.Fprintln(out, a.trace())
	}
	return nil
}

func (r *Run) verdict() string {
	if r.Reason == "" {
		return string(r.Verdict)
	}
	return fmt.Sprintf("%s (%s)", r.Verdict, r.Reason)
}

// needs says how long runs have to be.
func (a *Answer) needs(out io.Writer) {
	for i := range a.Runs {
		r := &a.Runs[i]
		if r.Reason != TooFew {
			continue
		}
		if needs := r.Needs(a.Objective); needs > 0 && r.Requests >= MinRequests {
			fmt.Fprintf(out, "%s is too short to decide: if its share of good requests stays, it takes %v.\n", terminal.Name(r.Name), needs.Round(time.Minute))
		}
	}
}

func (a *Answer) conclusion() string {
	switch a.Reason {
	case "":
		return fmt.Sprintf("The limit of a replica is at least %s, and below %s.", load(a.Met), load(a.Missed))
	case KneeNotSeen:
		return fmt.Sprintf("The limit of a replica is at least %s. No run missed the objective: run higher loads, or longer.", load(a.Met))
	case NeverMet:
		return fmt.Sprintf("The limit of a replica is below %s. No run met the objective: run lower loads, or longer.", load(a.Missed))
	case MixChanged:
		low, high := a.Between[0], a.Between[1]
		return fmt.Sprintf("No limit: the requests of runs differ. Means are %.0f output tokens and %.0f prompt tokens not cached in %s, %.0f and %.0f in %s.",
			low.Output, low.Prompt, terminal.Name(low.Name), high.Output, high.Prompt, terminal.Name(high.Name))
	case OtherView:
		low, high := a.Between[0], a.Between[1]
		return fmt.Sprintf("No limit: runs are seen by different vantages, which have different latencies: %s by %q, %s by %q.",
			terminal.Name(low.Name), low.Vantage, terminal.Name(high.Name), high.Vantage)
	case NotMonotone:
		return fmt.Sprintf("No limit: %s missed the objective, but %s met it at a higher load. Something else than load differs.",
			terminal.Name(a.Between[0].Name), terminal.Name(a.Between[1].Name))
	default:
		return "No limit: no run is decided. Run each load for longer."
	}
}

func load(r *Run) string {
	return fmt.Sprintf("%s requests/s (%s)", number(r.Load[capacity.Requests]), terminal.Name(r.Name))
}

// replicas names a number of replicas: fewer may do if the limit is higher than any run.
func (a *Answer) replicas(n int) string {
	text := strconv.Itoa(n) + " replicas"
	if n == 1 {
		text = "1 replica"
	}
	if a.Reason == KneeNotSeen && n > 1 {
		text += " or fewer"
	}
	return text
}

func (a *Answer) trace() string {
	t := a.Trace
	if !t.Fits {
		return fmt.Sprintf("The limit is not that of the workload, whose requests differ: means are %.0f output tokens and %.0f prompt tokens,\n"+
			"but %.0f and %.0f in the runs, cached ones included.", t.Output, t.Prompt, a.Met.Output, a.Met.Prompt+a.Met.Cached)
	}
	text := fmt.Sprintf("The workload needs %s for its highest load of 10 minutes, %s requests/s,\nand %s for that of a minute, %s requests/s.",
		a.replicas(t.Sustained.Replicas), number(t.Sustained.Load[capacity.Requests]), a.replicas(t.Minute.Replicas), number(t.Minute.Load[capacity.Requests]))
	if t.Duration < 10*time.Minute {
		text += fmt.Sprintf(" It lasts only %v.", t.Duration.Round(time.Second))
	}
	return text
}

// number formats a value with three digits, or all before the point.
func number(v float64) string {
	digits := 2 - int(math.Floor(math.Log10(max(v, 1e-3))))
	return strconv.FormatFloat(v, 'f', max(0, digits), 64)
}

// percent formats a share, and never rounds one below 1 up to 100%.
func percent(share float64) string {
	return strconv.FormatFloat(math.Floor(share*1e3+1e-6)/10, 'f', -1, 64) + "%"
}
