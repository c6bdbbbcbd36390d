package series

import (
	"cmp"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/slo"
)

// budgets holds the recent past of one identity's objectives. It outlives the
// series: error budgets are for weeks, and a model that nobody calls for an hour
// has spent what it has spent.
type budgets struct {
	// added counts the verdicts in them that came since the engine was made.
	added uint64
	// latest is when the last of them came, since the Unix epoch.
	latest    time.Duration
	histories map[string]*slo.History // by the objective's name
}

// history returns the recent past of an objective, which has a configuration.
func (b *budgets) history(o *Objective, name string) *slo.History {
	h := b.histories[name]
	if h == nil {
		h = slo.NewHistory(o.Window)
		if b.histories == nil {
			b.histories = map[string]*slo.History{}
		}
		b.histories[name] = h
	}
	return h
}

// appendBinary appends what decodeBudgets reads: when the last verdict came, then
// each history after its name, both after their lengths.
func (b *budgets) appendBinary(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(b.latest))
	var encoded []byte
	for _, name := range slices.Sorted(maps.Keys(b.histories)) {
		encoded = b.histories[name].AppendBinary(encoded[:0])
		to = appendBytes(appendBytes(to, name), encoded)
	}
	return to
}

var errMalformedBudgets = errors.New("malformed error budgets")

// decodeBudgets reads what appendBinary made. Objectives that there are no more are
// left out.
func (e *Engine) decodeBudgets(encoded []byte, now time.Duration) (*budgets, error) {
	latest, n := binary.Uvarint(encoded)
	if n <= 0 {
		return nil, errMalformedBudgets
	}
	b := &budgets{latest: min(time.Duration(latest&(1<<63-1)), now), histories: map[string]*slo.History{}}
	for rest := encoded[n:]; len(rest) > 0; {
		var name, history []byte
		var whole bool
		if name, rest, whole = cutBytes(rest); whole {
			history, rest, whole = cutBytes(rest)
		}
		if !whole {
			return nil, errMalformedBudgets
		}
		o := e.objectives[string(name)]
		if o == nil {
			continue
		}
		h, err := slo.DecodeHistory(history, o.Window, now)
		if err != nil {
			return nil, err
		}
		b.histories[string(name)] = h
	}
	return b, nil
}

func appendBytes[T string | []byte](to []byte, v T) []byte {
	return append(binary.AppendUvarint(to, uint64(len(v))), v...)
}

func cutBytes(from []byte) (v, rest []byte, whole bool) {
	length, n := binary.Uvarint(from)
	if n <= 0 || length > uint64(len(from)-n) {
		return nil, nil, false
	}
	return from[n : n+int(length)], from[n+int(length):], true
}

// remembered holds the budgets of identities that have no series, at most so many
// after each Expire.
type remembered struct {
	most int
	by   map[string]*budgets // key
}

// keep takes the budgets of a series that is gone.
func (r *remembered) keep(key string, b *budgets) {
	if b != nil {
		r.by[key] = b
	}
}

// trim forgets budgets where there are too many, those that have been quiet for
// longest, and returns how many these were.
func (r *remembered) trim() int {
	tooMany := len(r.by) - r.most
	if tooMany <= 0 {
		return 0
	}
	keys := slices.SortedFunc(maps.Keys(r.by), func(a, b string) int { return cmp.Compare(r.by[a].latest, r.by[b].latest) })
	for _, key := range keys[:tooMany] {
		delete(r.by, key)
	}
	return tooMany
}

// take gives the budgets of a series that is back.
func (r *remembered) take(key string) *budgets {
	b := r.by[key]
	delete(r.by, key)
	return b
}

// forgetBefore drops budgets that are empty by now.
func (r *remembered) forgetBefore(quietSince time.Duration) {
	maps.DeleteFunc(r.by, func(_ string, b *budgets) bool { return b.latest < quietSince })
}
