// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

// Package engines judges every second whether the engines of a receiver produce tokens, with the statistics of package
// liveness. It has what they lack: a clock, the log, and a storage for what was learned.
package engines

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/liveness"
	"github.com/tokenpulse/tokenpulse/internal/storageclient"
)

// origin is shortly before the first question for the time, so that 0 is before all of them, also in a test whose clock
// began in the past. Durations since then are on a clock that does not jump.
var origin = sync.OnceValue(func() time.Time { return time.Now().Add(-time.Second) })

// Now returns the time for package liveness.
func Now() time.Duration { return At(time.Now()) }

// At returns when a time was, for package liveness. The time must have a monotonic clock reading.
func At(t time.Time) time.Duration { return t.Sub(origin()) }

// Watch judges the engines of one receiver.
type Watch struct {
	*liveness.Engines

	prepare func()
	fixed   bool // the receiver knows all engines before Start
	logger  *zap.Logger
	saved   *store
	stop    context.CancelFunc
	stopped sync.WaitGroup
}

type store = storageclient.Snapshots[string, uint64]

// New returns the engines of a receiver. limits has what config has not. If it keeps engines for ever, the receiver finds all
// of them before Start: others are not restored. Before each judgement, prepare passes on what the
// receiver has not read yet. It may be nil.
func New(config *Config, limits liveness.Limits, prepare func(), logger *zap.Logger) *Watch {
	limits.Engines = config.MaxEngines
	return &Watch{
		Engines: liveness.NewEngines(config.settings(), limits),
		prepare: prepare, fixed: limits.Keep == 0, logger: diagnostics.OnceAMinute(logger),
	}
}

// Start restores what was learned, if there is a storage, and begins to judge.
func (w *Watch) Start(ctx context.Context, host component.Host, storage *component.ID, receiver component.ID) (err error) {
	owner := storageclient.Owner{Kind: component.KindReceiver, ID: receiver, Name: "engines"}
	w.saved, _, err = storageclient.OpenSnapshots(ctx, host, storage, owner, w.values(), w.logger)
	if err != nil {
		return err
	}
	ctx, w.stop = context.WithCancel(context.Background())
	w.stopped.Go(func() { w.run(ctx) })
	inprocess.Engines.Set(w, w.Engines)
	watches.Add(1)
	return nil
}

// Shutdown ends the judgements, and saves what was learned.
func (w *Watch) Shutdown(ctx context.Context) error {
	inprocess.Engines.Remove(w)
	if w.stop != nil {
		watches.Add(-1)
		w.stop()
		w.stop = nil
	}
	w.stopped.Wait()
	return w.saved.Close(ctx, nil)
}

// saveInterval is the time between two saves.
const saveInterval = time.Minute

func (w *Watch) run(ctx context.Context) {
	judge, save := time.NewTicker(time.Second), time.NewTicker(saveInterval)
	defer judge.Stop()
	defer save.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-judge.C:
			w.judge(now)
		case <-save.C:
			if err := w.saved.Save(ctx, nil); err != nil && ctx.Err() == nil {
				w.logger.Warn("cannot save what was learned about engines; if this repeats, check the storage extension and its disk", zap.Error(err))
			}
		}
	}
}

func (w *Watch) judge(now time.Time) {
	if w.prepare != nil {
		w.prepare()
	}
	if full := w.Judge(At(now), w.changed); full {
		w.logger.Warn("more engines than `max_engines` have requests: the others have no state; raise it, or give replicas stable names")
	}
}

// changed logs that an engine began or ceased to fail. The message has its name, since each one is logged once a minute.
func (w *Watch) changed(before liveness.State, s liveness.Status) {
	fields := []zap.Field{zap.Stringer("state", s.State), zap.String("reason", Explain(&s))}
	switch fails := s.State == liveness.Stuck || s.State == liveness.Down; {
	case fails:
		w.logger.Warn("engine "+s.Engine+" produces no tokens", fields...)
	case before == liveness.Stuck || before == liveness.Down:
		w.logger.Info("engine "+s.Engine+" is not stuck or down any more", fields...)
	}
}

// Explain says in a sentence why an engine has its state, for people.
func Explain(s *liveness.Status) string {
	switch s.Reason {
	case liveness.NoToken:
		return fmt.Sprintf("no token for %s, though open requests explain at most %s", round(s.Silence), round(s.Bound))
	case liveness.NoFirstToken:
		return fmt.Sprintf("%d requests wait for their first token, though other streams go on and end", s.Waiting)
	case liveness.Refused:
		return "connections were refused or reset"
	case liveness.Errors:
		return "several clients got errors, and none an answer"
	case liveness.NoWitness:
		return "all open requests may be silent while the engine works"
	case liveness.NeverToken:
		return "no token was seen yet"
	case liveness.TooMany:
		return fmt.Sprintf("tokens of %d open requests cannot be seen", s.Untracked)
	case liveness.Trial:
		return "it was stuck, and gets another chance"
	}
	switch s.State {
	case liveness.Idle:
		return "no request is open"
	case liveness.Slow:
		return "most requests miss their objective"
	case liveness.Producing:
		if s.Silence < time.Second {
			return "tokens arrive"
		}
		return fmt.Sprintf("no token for %s; open requests explain up to %s", round(s.Silence), round(s.Bound))
	}
	return ""
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }

// rank orders states by what they say when several receivers see a part of an engine's traffic: one that sees
// tokens is right, and one without requests knows least.
var rank = [...]int{
	liveness.Producing: 0, liveness.Slow: 1, liveness.Stuck: 2, liveness.Down: 3, liveness.Unknown: 4, liveness.Idle: 5,
}

// Statuses returns the engines of all receivers of this process, in the order of names. It is nil if none judges engines.
func Statuses() (all []liveness.Status) {
	receivers := inprocess.Engines.All()
	if len(receivers) == 0 {
		return nil
	}
	all = []liveness.Status{}
	for _, of := range receivers {
		all = append(all, of.Statuses()...)
	}
	slices.SortFunc(all, func(a, b liveness.Status) int {
		if order := strings.Compare(a.Engine, b.Engine); order != 0 {
			return order
		}
		return rank[a.State] - rank[b.State]
	})
	return slices.CompactFunc(all, func(a, b liveness.Status) bool { return a.Engine == b.Engine })
}

// values are what the storage keeps: what was learned about each engine, since the last first token.
func (w *Watch) values() storageclient.Values[string, uint64] {
	now := Now()
	return storageclient.Values[string, uint64]{
		Name: "engines", Keys: "engines",
		Entry:      func(engine string) string { return "engine/" + engine },
		Unreadable: "cannot restore what was learned about some engines, which is learned again",
		Saved: func(visit func(string, uint64, func() []byte)) {
			w.Visit(func(name string, engine *liveness.Engine) {
				visit(name, engine.Learned(), func() []byte { return engine.AppendBinary(nil, Now()) })
			})
		},
		Restore: func(name string, encoded []byte) error {
			if w.fixed && !w.Knows(name) {
				return nil // it left the configuration
			}
			engine := w.Find(name)
			if engine == nil {
				return nil // max_engines was lowered
			}
			return engine.Restore(encoded, now)
		},
	}
}
