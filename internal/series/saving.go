package series

import (
	"fmt"
	"time"
)

// BudgetsVersion tells whether error budgets have changed: as long as it is equal,
// so are they.
type BudgetsVersion struct {
	of    *budgets
	added uint64
}

func (b *budgets) version() BudgetsVersion { return BudgetsVersion{b, b.added} }

// Budgets visits the error budgets of every series that has some, held or
// remembered, for Restore to go on with them after a restart. The function that a
// visit gets appends them; it is valid during the visit only.
func (e *Engine) Budgets(visit func(key string, version BudgetsVersion, appendBinary func([]byte) []byte)) {
	for _, s := range e.all() {
		s.visitBudgets(visit)
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	for key, b := range e.remembered.by {
		visit(key, b.version(), b.appendBinary)
	}
}

// visitBudgets visits those of the series, unless it has expired.
func (s *series) visitBudgets(visit func(string, BudgetsVersion, func([]byte) []byte)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.slos.budgets; b != nil && !s.expired {
		visit(s.key, b.version(), b.appendBinary)
	}
}

// Restore goes on with error budgets that Budgets gave for a key. It comes before
// the first Record. A series that had a request lately is there again, and begins
// to count at zero; the budgets of another one are remembered. The dimensions and
// the objectives should be what they were: budgets whose objective is gone, or has
// another window, are left out.
func (e *Engine) Restore(key string, encoded []byte, now time.Time) error {
	if values, whole := valuesOf(key); key != overflowKey && (!whole || len(values) != e.dimensions+1) {
		return fmt.Errorf("malformed identity of a series: %q", key)
	}
	at := e.position(now)
	b, err := e.decodeBudgets(encoded, at)
	if err != nil || len(b.histories) == 0 {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.remembered.keep(key, b)
	quiet := at - b.latest
	if !e.isQuiet(quiet) && (key == overflowKey || e.held < e.maxSeries) {
		e.begin(key, now).lastSeen = now.Add(-quiet)
	}
	return nil
}
