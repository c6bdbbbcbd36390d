package series

import (
	"time"

	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// RecentVisitor looks at the recent past of one objective of one series. It is valid
// during the visit only, and the visitor does not call the engine.
type RecentVisitor func(key string, o *Objective, recent *slo.Recent)

// Recent visits the recent past of each objective of every series, as it is at a
// time: also of those that have expired and are remembered, for what their budgets
// say still holds.
func (e *Engine) Recent(now time.Time, visit RecentVisitor) {
	at := e.position(now)
	for _, s := range e.all() {
		s.visitRecent(at, visit)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for key, b := range e.remembered.by {
		b.visitRecent(key, at, e, visit)
	}
}

func (s *series) visitRecent(at time.Duration, visit RecentVisitor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.slos.budgets; b != nil && !s.expired {
		b.visitRecent(s.key, at, s.engine, visit)
	}
}

func (b *budgets) visitRecent(key string, at time.Duration, e *Engine, visit RecentVisitor) {
	for name, h := range b.histories {
		recent := h.Recent(at)
		visit(key, e.objectives[name], &recent)
	}
}
