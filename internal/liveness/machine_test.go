// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package liveness

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/testenv/simulated"
)

// scheduler decides what an engine computes in a step.
type scheduler int

const (
	chunked      scheduler = iota // a step decodes all streams and prefills a chunk
	prefillFirst                  // nothing is decoded while a prompt waits
	decodeFirst                   // prompts wait until all streams have ended
	shared                        // as chunked, and up to four prompts share the chunk
	pools                         // other machines prefill
	schedulers
)

var schedulerNames = [...]string{"chunked prefill", "prefill first", "decode first", "prompts prefilled together", "prefill and decode pools"}

// fault is how a simulated engine fails.
type fault int

const (
	healthy fault = iota
	allStops
	prefillStops
	streamHangs
	tenth
	saysNothing
	faults
)

var faultNames = [...]string{"healthy", "all stops", "prefill stops", "one stream hangs", "a tenth of the speed", "accepts and says nothing"}

// machine is an engine, simulated by steps. Times are in seconds.
type machine struct {
	*rand.Rand
	scheduler scheduler
	prefill   float64 // seconds per token of a prompt
	quadratic float64 // additional, per token and token before it
	step      float64 // of decoding
	perStream float64 // of decoding, per stream
	tokens    float64 // per step: above 1 with speculative decoding
	chunk     float64
	batch     int
	memory    float64 // tokens of context
	context   float64 // longest prompt
	loading   float64 // seconds until the model is loaded
	reload    float64 // seconds to load the model after 5 idle minutes, or 0
	pauseRate float64 // pauses per second
	reports   bool    // usage has cached tokens

	now      float64
	queue    []*job
	partial  []*job
	decoding []*job
	steps    float64
	used     float64 // tokens of context in memory
	idle     float64 // idle since
	fault    fault
	factor   float64

	load    *load
	next    arrival
	leaves  []*job // that have patience, by time
	watched []*watcher
}

type job struct {
	arrival
	left     float64 // tokens to prefill
	finish   float64 // value of steps at the end
	first    bool
	firstAt  float64
	done     bool
	hangs    bool
	handles  []*Request
	prefills float64 // seconds that are left in the pool
}

// longest silence that a prompt of a healthy engine causes, unless a test is about longer ones.
const longest = 90

func newMachine(services simulated.Services, seed uint64, longest float64) *machine {
	r := rand.New(rand.NewPCG(seed, 40))
	m := &machine{Rand: r, scheduler: scheduler(seed % uint64(schedulers)), factor: 1}
	log := func(from, to float64) float64 { return from * math.Exp(r.Float64()*math.Log(to/from)) }
	m.prefill, m.step = log(2e-5, 4e-4), log(0.008, 0.05)
	if r.IntN(3) == 0 {
		m.quadratic = m.prefill / log(20e3, 200e3) // as much as the linear part at this position
	}
	m.perStream = m.step * log(0.002, 0.02)
	m.tokens = []float64{1, 1, 1.8, 3}[r.IntN(4)]
	m.chunk = []float64{512, 2048, 8192}[r.IntN(3)]
	m.batch = []int{16, 64, 256}[r.IntN(3)]
	m.context = 500e3
	together := 1.0
	if m.scheduler == shared {
		together = 4
	}
	for m.cost(0, m.context)*1.3*together > longest {
		m.context *= 0.9
	}
	m.memory = max(m.context*1.3, log(100e3, 2e6))
	if r.IntN(6) == 0 {
		m.reload = log(3, 60)
	}
	m.pauseRate = []float64{0, 1, 5}[r.IntN(3)] / 86400
	m.reports = r.IntN(2) == 0
	m.load = newLoad(services, rand.New(rand.NewPCG(seed, 41)), m)
	m.next = m.load.take()
	return m
}

// cost is the time to prefill tokens from a position on.
func (m *machine) cost(from, n float64) float64 {
	return n*m.prefill + m.quadratic*n*(from+n/2)
}

// capacity is about how many requests per second the engine can serve.
func (m *machine) capacity(prompt, output float64) float64 {
	streams := min(float64(m.batch), m.memory/(prompt+output))
	return 1 / (m.cost(0, prompt) + m.step/math.Max(1, m.chunk/prompt) + output/m.tokens*(m.step+m.perStream*streams)/streams)
}

func duration(s float64) time.Duration { return time.Duration(s * 1e9) }

// advance moves the time on, while clients come and go.
func (m *machine) advance(to float64) {
	for {
		comes, goes := m.next.at, math.Inf(1)
		for len(m.leaves) > 0 && (m.leaves[0].first || m.leaves[0].done) {
			m.leaves = m.leaves[1:]
		}
		if len(m.leaves) > 0 {
			goes = m.leaves[0].at + m.leaves[0].patience
		}
		if min(comes, goes) > to {
			break
		}
		m.now = max(m.now, min(comes, goes))
		m.check()
		if goes < comes {
			m.abandon(m.leaves[0])
			continue
		}
		m.arrive()
	}
	m.now = max(m.now, to)
}

func (m *machine) arrive() {
	j := &job{arrival: m.next, left: math.Ceil(m.next.prompt * (1 - m.next.cached))}
	m.next = m.load.take()
	if len(m.queue) > 300 {
		return // the engine is full: the gateway before it sends elsewhere
	}
	for _, w := range m.watched {
		j.handles = append(j.handles, w.Begin(duration(m.now), j.bytes, j.witness))
	}
	if len(m.queue)+len(m.partial)+len(m.decoding) == 0 && m.reload > 0 && m.now-m.idle > 300 {
		m.loading = m.reload
	}
	m.queue = append(m.queue, j)
	if j.patience > 0 {
		i, _ := slices.BinarySearchFunc(m.leaves, j.at+j.patience, func(o *job, at float64) int { return cmp.Compare(o.at+o.patience, at) })
		m.leaves = slices.Insert(m.leaves, i, j)
	}
	for _, w := range m.watched {
		w.opened(m.now, j)
	}
}

func (m *machine) abandon(j *job) {
	j.done = true
	if i := slices.Index(m.partial, j); i >= 0 {
		m.partial = slices.Delete(m.partial, i, i+1)
		m.used -= j.prompt + j.output
	}
	m.queue = slices.DeleteFunc(m.queue, func(o *job) bool { return o == j })
	m.end(j, Abandoned)
	m.rest()
}

func (m *machine) end(j *job, outcome Outcome) {
	usage := Usage{}
	if outcome == Completed {
		usage.Input = int64(j.prompt)
		if m.reports {
			usage.Cached = int64(j.prompt * j.cached)
		}
		missed := (m.now-j.firstAt)/math.Max(1, j.output/m.tokens) > 5*(m.step+m.perStream*float64(m.batch))
		for _, w := range m.watched {
			if j.output > 5 {
				w.Judge(duration(m.now), missed)
			}
		}
	}
	for i, w := range m.watched {
		j.handles[i].End(duration(m.now), outcome, usage)
		w.closed(j)
	}
}

// token notes tokens of all streams.
func (m *machine) token() {
	for _, j := range m.decoding {
		if !j.hangs {
			for _, h := range j.handles {
				h.Token(duration(m.now))
			}
		}
	}
	for _, w := range m.watched {
		w.token = m.now
	}
}

func (m *machine) check() {
	for _, w := range m.watched {
		w.check(m.now)
	}
}

// admit moves requests from the queue into the batch.
func (m *machine) admit() {
	together := 1
	if m.scheduler == shared {
		together = 4
	}
	for len(m.queue) > 0 && len(m.partial) < together && len(m.partial)+len(m.decoding) < m.batch {
		j := m.queue[0]
		if m.used+j.prompt+j.output > m.memory && len(m.partial)+len(m.decoding) > 0 && m.used+j.prompt > 0.95*m.memory {
			return
		}
		m.queue = m.queue[1:]
		m.used += j.prompt
		m.partial = append(m.partial, j)
	}
}

// run simulates until a time.
func (m *machine) run(until float64) {
	for m.now < until {
		switch {
		case m.fault == allStops || m.fault == saysNothing:
			m.advance(min(until, m.now+0.5))
			m.check()
			continue
		case m.fault == prefillStops:
			if len(m.decoding) > 0 {
				m.decode(until)
			} else {
				m.advance(min(until, m.now+0.5))
			}
			m.check()
			continue
		case m.fault != healthy:
			m.check()
		}
		if m.scheduler == decodeFirst && len(m.decoding) > 0 && len(m.partial) == 0 && m.steps > 0 && !m.filling() {
			m.decode(until)
			continue
		}
		m.admit()
		switch {
		case len(m.partial) > 0 && m.scheduler == pools:
			m.pool(until)
		case len(m.partial) > 0:
			m.mixed()
		case len(m.decoding) > 0:
			m.decode(until)
		default:
			m.advance(min(until, m.next.at))
		}
	}
}

// filling reports whether a batch that waits for all its streams has started no decoding yet.
func (m *machine) filling() bool {
	for _, j := range m.decoding {
		if j.finish-j.output/m.tokens < m.steps-0.5 {
			return false
		}
	}
	return len(m.queue) > 0
}

func (m *machine) slowness() float64 {
	f := m.factor * math.Exp(0.1*m.NormFloat64())
	return f
}

// pause is a short stop, as of a compilation.
func (m *machine) pause(dt float64) float64 {
	if m.pauseRate > 0 && m.Float64() < m.pauseRate*dt {
		return 0.5 + 3.5*m.Float64()
	}
	return 0
}

// mixed is a step with prefill.
func (m *machine) mixed() {
	m.idle = m.now
	budget, dt := m.chunk, m.step
	var done []*job
	if m.scheduler == shared {
		part := budget / float64(len(m.partial))
		for _, j := range m.partial {
			n := min(part, j.left)
			dt += m.cost(j.prompt-j.left, n)
			j.left -= n
			if j.left <= 0 {
				done = append(done, j)
			}
		}
		m.partial = slices.DeleteFunc(m.partial, func(j *job) bool { return j.left <= 0 })
	} else {
		for budget > 0 && len(m.partial) > 0 {
			j := m.partial[0]
			n := min(budget, j.left)
			dt += m.cost(max(0, j.prompt-j.left), n)
			j.left -= n
			budget -= n
			if j.left > 0 {
				break
			}
			done = append(done, j)
			m.partial = m.partial[1:]
			m.admit()
		}
	}
	decodes := len(m.decoding) > 0 && (m.scheduler == chunked || m.scheduler == shared)
	if decodes {
		dt += m.perStream * float64(len(m.decoding))
	}
	dt *= m.slowness()
	dt, m.loading = dt+m.loading, 0
	m.advance(m.now + dt + m.pause(dt))
	if decodes {
		m.check()
		m.decoded(1)
	}
	for _, j := range done {
		m.start(j)
	}
}

// start gives a request its first token.
func (m *machine) start(j *job) {
	if j.done {
		return
	}
	m.check()
	if !j.first {
		j.first, j.firstAt = true, m.now
		missed := m.now-j.at > 5+5*m.cost(0, j.prompt)
		for i, w := range m.watched {
			j.handles[i].Token(duration(m.now))
			w.Judge(duration(m.now), missed)
		}
	}
	j.finish = m.steps + math.Ceil((j.output-1)/m.tokens)
	m.decoding = append(m.decoding, j)
	m.token()
	if j.output <= 1 {
		m.finish()
	}
}

// decoded ends steps.
func (m *machine) decoded(n float64) {
	m.steps += n
	m.used += n * m.tokens * float64(len(m.decoding))
	m.token()
	m.finish()
	for m.used > m.memory && len(m.decoding) > 1 { // preempted: computed again later
		last := len(m.decoding) - 1
		j := m.decoding[last]
		m.decoding = m.decoding[:last]
		j.output = max(1, (j.finish-m.steps)*m.tokens)
		j.left = j.prompt
		m.queue = slices.Insert(m.queue, 0, j)
		m.recount()
	}
}

func (m *machine) finish() {
	for i := 0; i < len(m.decoding); i++ {
		if j := m.decoding[i]; j.finish <= m.steps && !j.hangs {
			m.decoding = slices.Delete(m.decoding, i, i+1)
			i--
			m.end(j, Completed)
			m.recount()
		}
	}
	m.rest()
}

// rest notes when the engine becomes idle.
func (m *machine) rest() {
	if len(m.queue)+len(m.partial)+len(m.decoding) == 0 {
		m.idle = m.now
	}
}

// recount adds up the memory after a stream left.
func (m *machine) recount() {
	m.used = 0
	for _, j := range m.decoding {
		m.used += j.prompt + max(0, j.output-(j.finish-m.steps)*m.tokens)
	}
	for _, j := range m.partial {
		m.used += j.prompt
	}
}

// decode is as many steps without prefill as nothing happens.
func (m *machine) decode(until float64) {
	m.decodeUntil(until, math.Inf(1))
}

func (m *machine) decodeUntil(until, event float64) {
	dt := (m.step + m.perStream*float64(len(m.decoding))) * m.slowness()
	n := math.Inf(1)
	for _, j := range m.decoding {
		if !j.hangs {
			n = min(n, j.finish-m.steps)
		}
	}
	happens := min(until, event, m.next.at)
	if len(m.leaves) > 0 {
		happens = min(happens, m.leaves[0].at+m.leaves[0].patience)
	}
	n = min(n, math.Ceil((happens-m.now)/dt), math.Ceil((m.memory-m.used)/(m.tokens*float64(len(m.decoding)))))
	if math.IsInf(n, 1) || slices.IndexFunc(m.decoding, func(j *job) bool { return !j.hangs }) < 0 {
		m.advance(min(happens, m.now+0.5))
		return
	}
	n = max(n, 1)
	if n > 1 {
		m.now += (n - 1) * dt
		m.token()
	}
	m.advance(m.now + dt + m.pause(n*dt))
	m.check()
	m.decoded(n)
}

// pool prefills elsewhere, while streams are decoded.
func (m *machine) pool(until float64) {
	j := m.partial[0]
	if j.prefills == 0 {
		j.prefills = m.now + m.loading + (m.step+m.cost(max(0, j.prompt-j.left), j.left))*m.slowness()
		m.loading = 0
	}
	if len(m.decoding) > 0 && m.now < j.prefills {
		m.decodeUntil(until, j.prefills)
	} else {
		m.advance(min(until, j.prefills))
	}
	if m.now >= j.prefills && len(m.partial) > 0 && m.partial[0] == j {
		m.partial = m.partial[1:]
		j.prefills = 0
		m.start(j)
	}
}

// remaining is the prefill that waits.
func (m *machine) remaining() (s float64) {
	for _, j := range slices.Concat(m.queue, m.partial) {
		s += m.cost(max(0, j.prompt-j.left), j.left)
	}
	return s
}

// largest is the largest prefill that waits.
func (m *machine) largest() (s float64) {
	for _, j := range slices.Concat(m.queue, m.partial) {
		s = max(s, m.cost(max(0, j.prompt-j.left), j.left))
	}
	return s
}

// fail makes the engine fail.
func (m *machine) fail(f fault) {
	m.fault = f
	switch f {
	case tenth:
		m.factor = 10
	case streamHangs:
		if len(m.decoding) > 0 {
			m.decoding[0].hangs = true
		}
	case saysNothing:
		for _, j := range slices.Concat(m.queue, m.partial, m.decoding) {
			j.done = true
			m.end(j, Broken)
		}
		m.queue, m.partial, m.decoding = nil, nil, nil
	case allStops, prefillStops, healthy, faults:
	}
}

// watcher is an Engine, and what it says about a machine.
type watcher struct {
	*Engine
	token   float64 // last one
	witness int     // open witnesses
	open    float64 // a witness was open first at or after this time
	stuck   bool
	alarms  []float64
	beyond  int     // of the alarms: the silence was longer than MaxBound, whatever was learned
	slowAt  float64 // first time; not asked for while it is below 0
	report  func(now float64, v Verdict)
}

func newWatcher(s Settings) *watcher { return &watcher{Engine: New(s), slowAt: -1} }

func (w *watcher) opened(now float64, j *job) {
	if j.witness {
		w.witness++
		if w.open > now || w.open < 0 {
			w.open = now
		}
	}
}

func (w *watcher) closed(j *job) {
	if j.witness {
		w.witness--
	}
}

// watch forgets alarms, and begins to look for slowness too.
func (w *watcher) watch(now float64) {
	w.alarms, w.slowAt, w.open = nil, 0, -1
	if w.witness > 0 {
		w.open = now
	}
}

// check asks where the answer may change.
func (w *watcher) check(now float64) {
	base := w.settings.Base.Seconds()
	if w.witness == 0 || now-w.token < base && now-w.lastFirst.Seconds() < base && !w.stuck && w.slowAt != 0 {
		return
	}
	v := w.Verdict(duration(now))
	if v.State == Stuck && !w.stuck {
		w.alarms = append(w.alarms, now)
		if v.Reason == NoToken && v.Silence > w.settings.MaxBound {
			w.beyond++
		}
		if w.report != nil {
			w.report(now, v)
		}
	}
	if v.State == Slow && w.slowAt == 0 {
		w.slowAt = now
	}
	w.stuck = v.State == Stuck
}
