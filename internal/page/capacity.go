// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"net/http"
	"strconv"

	"github.com/tokenpulse/tokenpulse/internal/capacity"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// capacityOf is the limit of the replicas of one series, and the load that they are offered.
type capacityOf struct {
	SLO        string            `json:"slo"`
	Objective  number            `json:"objective"`
	Vantage    string            `json:"vantage"`
	Dimensions map[string]string `json:"dimensions"`

	Limit          kinds         `json:"limit"`
	Load           *kinds        `json:"load"` // like Utilization and Room nil if it is unknown
	Utilization    number        `json:"utilization"`
	Room           *kinds        `json:"room"`
	ReplicasNeeded number        `json:"replicas_needed"`
	Replicas       []replicaLoad `json:"replicas"`
	Stale          bool          `json:"stale"`
	MissedAt       number        `json:"missed_at"`
}

type replicaLoad struct {
	Replica     string `json:"replica"`
	Load        kinds  `json:"load"`
	Utilization number `json:"utilization"`
}

// kinds is a load of each kind, per second.
type kinds struct {
	Requests     number `json:"requests"`
	OutputTokens number `json:"output_tokens"`
	PromptTokens number `json:"prompt_tokens"`
}

func newKinds(load capacity.Load) kinds {
	return kinds{number(load[capacity.Requests]), number(load[capacity.OutputTokens]), number(load[capacity.PromptTokens])}
}

func (p *Page) newCapacityOf(s *capacity.State) *capacityOf {
	id := series.LabelsOf(s.Series)
	of := &capacityOf{
		SLO: s.SLO, Objective: number(s.Objective.Objective), Vantage: id.Vantage, Dimensions: map[string]string{},
		Limit: newKinds(s.Limit), Utilization: missing, ReplicasNeeded: number(s.ReplicasNeeded(s.Load)), Replicas: []replicaLoad{}, Stale: s.Stale, MissedAt: seconds(s.MissedAt),
	}
	if s.Known() {
		load, room := newKinds(s.Load), newKinds(s.Sized(s.Room()))
		of.Load, of.Room, of.Utilization = &load, &room, number(s.TotalUtilization())
	}
	for i, name := range p.dimensions {
		of.Dimensions[name] = id.Dimensions[i]
	}
	for _, r := range s.Replicas {
		of.Replicas = append(of.Replicas, replicaLoad{r.Replica, newKinds(r.Load), number(s.Utilization(r.Load))})
	}
	return of
}

// Parameters of the endpoint, besides paramSLO and those of the page.
const paramLoad = "load"

// capacity answers with the limit of one series for one SLO. Without a limit it fails with 503, so that autoscalers hold what they have.
func (p *Page) capacity(q *query) (any, error) {
	if p.Capacities == nil {
		return nil, &failure{Status: http.StatusNotFound, Message: "`capacity` is not configured", Remedy: "add `capacity: [{slo: all, objective: 0.95}]` to token_sli"}
	}
	objective, err := p.parseCapacity(q)
	if err != nil {
		return nil, err
	}
	load, err := q.parseLoad()
	if err != nil {
		return nil, err
	}
	p.chooseVantage(q)
	states := p.capacitiesOf(q, p.Capacities.Objectives()[objective].SLO)
	switch {
	case len(states) == 0:
		return nil, absent(capacity.TooFew, "no request of this selection has been seen; check `where` and `vantage`")
	case len(states) > 1:
		return nil, invalid(p.distinction(states), "%d series match, each with a limit of its own", len(states))
	}
	s := &states[0]
	switch {
	case s.Reason != "":
		return nil, absent(s.Reason, reasonRemedies[s.Reason])
	case len(s.Replicas) == 0 && load == nil:
		return nil, absent(capacity.TooFew, "the present load is unknown: no request ended in the last five minutes, or the Collector has just started")
	}
	of := p.newCapacityOf(s)
	if load != nil {
		of.ReplicasNeeded = number(s.ReplicasNeeded(s.Sized(*load)))
	}
	return of, nil
}

// absent is the failure without a limit.
func absent(reason capacity.Reason, remedy string) error {
	return &failure{Status: http.StatusServiceUnavailable, Message: "no limit is known", Remedy: remedy, Reason: string(reason)}
}

var reasonRemedies = map[capacity.Reason]string{
	capacity.TooFew:      "wait for more requests that meet the objective; if they never do, lower the objective or raise the threshold of the SLO; usage has to be reported",
	capacity.KneeNotSeen: "the objective was not missed in 20 slots at a higher load yet, so that the limit is above all loads so far",
	capacity.MixChanged:  "prompts or answers became more than twice as long or short; wait until their limit is learned",
}

// parseCapacity returns the index of the objective.
func (p *Page) parseCapacity(q *query) (int, error) {
	var slos []string
	for _, o := range p.Capacities.Objectives() {
		slos = append(slos, o.SLO)
	}
	if len(slos) > 1 && !q.values.Has(paramSLO) {
		return 0, invalid(remedyOf("valid values", slos), "`%s` is missing", paramSLO)
	}
	return q.choice(paramSLO, slos, 0)
}

// parseLoad returns the requests per second of the parameter, or nil.
func (q *query) parseLoad() (*float64, error) {
	if !q.values.Has(paramLoad) {
		return nil, nil //nolint:nilnil // the parameter is optional
	}
	v, err := strconv.ParseFloat(q.values.Get(paramLoad), 64)
	if err != nil || !(v >= 0) || math.IsInf(v, 0) {
		return nil, invalid("give requests per second, such as 12.5", "`%s` is %q", paramLoad, q.values.Get(paramLoad))
	}
	return &v, nil
}

// capacitiesOf returns the states of the selected series for an SLO, of the vantage that the query has chosen.
func (p *Page) capacitiesOf(q *query, slo string) (states []capacity.State) {
	p.Capacities.Visit(q.asked, func(s *capacity.State) {
		if id := series.LabelsOf(s.Series); s.SLO == slo && q.filter.selects(&id) {
			states = append(states, *s)
		}
	})
	return states
}

// distinction says how to choose between states: by a dimension in which they differ, or else by the vantage.
func (p *Page) distinction(states []capacity.State) string {
	first, second := series.LabelsOf(states[0].Series), series.LabelsOf(states[1].Series)
	for i, name := range p.dimensions {
		if first.Dimensions[i] != second.Dimensions[i] {
			return fmt.Sprintf("give `where`, such as %s=%s or %s=%s", name, first.Dimensions[i], name, second.Dimensions[i])
		}
	}
	return fmt.Sprintf("give `vantage`, such as %s or %s", first.Vantage, second.Vantage)
}

// loadCapacity is what the load curve shows of the capacity for one SLO: of all replicas together, in the present.
type loadCapacity struct {
	SLO string `json:"slo"`
	// Reason says why there is no limit, or is null.
	Reason *string `json:"reason"`
	Limit  *kinds  `json:"limit"`
	// Room are further requests per second, of mean size.
	Room  number `json:"room"`
	Stale bool   `json:"stale"`
}

// severalSeries is the reason if the selection has more than one limit.
const severalSeries = "several_series"

// loadCapacities returns what is known for each SLO of `capacity`, or nothing about the past, or a selection without requests.
func (p *Page) loadCapacities(q *query) []loadCapacity {
	all := []loadCapacity{}
	if p.Capacities == nil || q.ended {
		return all
	}
	for _, o := range p.Capacities.Objectives() {
		states := p.capacitiesOf(q, o.SLO)
		if len(states) == 0 {
			continue
		}
		of, s := loadCapacity{SLO: o.SLO, Room: missing}, &states[0]
		reason := string(s.Reason)
		switch {
		case len(states) > 1:
			reason = severalSeries
		case reason == "" && !s.Known():
			reason = string(capacity.TooFew)
		}
		if reason == "" {
			limit := newKinds(s.TotalLimit())
			of.Limit, of.Room, of.Stale = &limit, number(s.Room()), s.Stale
		} else {
			of.Reason = &reason
		}
		all = append(all, of)
	}
	return all
}
