package tokensliexporter

import (
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
)

// slo shows what a series keeps for one service level objective. All verdicts are
// there from the first request on: a counter that appears later has no increase
// to be seen.
func (s *scrape) slo(snapshot *series.SLOSnapshot, labels []*dto.LabelPair) {
	labels = s.with(labels, pair(names.LabelSLO, snapshot.Name))
	start := timestamppb.New(snapshot.Start)
	for verdict, n := range snapshot.Requests {
		s.counter(s.catalogue.sloRequests, s.with(labels, s.labels.verdict[verdict]), float64(n), start)
	}
	if snapshot.Objective == 0 {
		return
	}
	s.gauge(s.catalogue.sloObjective, labels, snapshot.Objective)
	for i, counts := range snapshot.Recent.Burn {
		if rate, known := counts.BurnRate(snapshot.Objective); known {
			s.gauge(s.catalogue.sloBurnRate, s.with(labels, s.labels.burnWindow[i]), rate)
		}
	}
	if left, known := snapshot.Recent.Budget.BudgetRemaining(snapshot.Objective); known {
		s.gauge(s.catalogue.sloBudget, labels, left)
	}
}
