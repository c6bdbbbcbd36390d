// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/publish"
)

// world is everything around the components, and the model of what they should do.
//
// The goroutine that makes the decisions holds mu, except when it lets the components run.
type world struct {
	mu sync.Mutex
	profile
	sampling
	seed        uint64
	folder      string // of sockets
	temporality publish.Temporality
	began       time.Time

	disk *disk
	// streamDisk is that of open streams, if they are durable.
	streamDisk *disk
	process    *process // nil while none runs
	processes  int
	clients    []*client
	lives      []*live
	late       []*message // copies that the network still holds
	sinks      sinks
	gateway    gateway
	streams    int
	messages   int

	trace   []string
	failure string

	// The pipeline.
	weather  weather
	calls    []*call // held
	flights  []*flight
	stopping time.Time // when the shutdown began
	// refusedAt is when the pipeline last refused a batch temporarily, and startsRefused is set
	// if it was one of a request, and no other was accepted since.
	refusedAt     time.Time
	startsRefused bool
	releasedAt    time.Time // when a batch was last held

	// The model.
	open      map[string]*content
	keys      map[string]requestKey // of all streams
	counters  map[string]int        // of this process, as in the self-metrics
	emitted   int                   // units of streams that are no longer open
	presented int
	backend   int
	exporter  *aggregate
	onDisk    map[string]map[seriesKey]budget // by file: the budgets of the last save
	breached  map[requestKey]bool

	scrapedAt struct {
		presented int
		time      time.Time
	}
}

// client sends streams, and sends messages again until they are answered.
type client struct {
	number  int
	pending []*message
}

// flight is a message on its way.
type flight struct {
	message   *message
	predicted *prediction
	answer    chan reply
	cancel    context.CancelFunc
	live      *live // of which the message is a write
	resend    bool  // the client sends it again if it is not acknowledged
}

const clients = 3

func newWorld(seed uint64, folder string) *world {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		seed: seed, folder: folder, profile: newProfile(r), sampling: newSampling(seed), began: time.Now(), gateway: newGateway(),
		temporality: pick(r, publish.Cumulative, publish.Delta),
		disk:        &disk{files: map[string]map[string][]byte{}},
		streamDisk:  &disk{files: map[string]map[string][]byte{}},
		open:        map[string]*content{},
		onDisk:      map[string]map[seriesKey]budget{},
		keys:        map[string]requestKey{}, breached: map[requestKey]bool{},
	}
	for i := range clients {
		w.clients = append(w.clients, &client{number: i})
	}
	if w.path != viaSpans {
		w.maxShare = 1 // otherwise the order in which streams expire together would decide which series open
	}
	w.logf("profile %+v %+v", w.profile, w.sampling)
	return w
}

func (w *world) logf(format string, args ...any) {
	w.trace = append(w.trace, fmt.Sprintf("%12.6fs ", time.Since(w.began).Seconds())+fmt.Sprintf(format, args...))
}

// notef adds a line to the trace that depends on random numbers of the components, such as
// the delay before a retry. Two runs of a seed may differ in these lines.
func (w *world) notef(format string, args ...any) { w.logf(noteMark+format, args...) }

const noteMark = "~ "

// failf notes the first violation of an invariant.
func (w *world) failf(format string, args ...any) {
	w.logf("FAILED: "+format, args...)
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

// let lets the components run while the world waits.
func (w *world) let(wait func()) {
	w.mu.Unlock()
	defer w.mu.Lock()
	wait()
}

// budgetsFile is where the budgets are stored that the model knows.
const budgetsFile = "Exporter/token_sli/"

// begin starts a process and the model of it.
func (w *world) begin() {
	if !w.durable {
		w.open = map[string]*content{}
	}
	w.counters, w.emitted, w.presented = map[string]int{}, 0, 0
	w.startsRefused, w.refusedAt, w.releasedAt, w.stopping = false, time.Time{}, time.Time{}, time.Time{}
	w.exporter = w.newAggregate(cloneBudgets(w.onDisk[budgetsFile]))
	w.breached = map[requestKey]bool{}
	w.gateway.before += w.sinks.total()
	w.sinks = sinks{values: map[string]float64{}, events: map[requestKey]int{}, owed: map[requestKey]bool{}}
	var err error
	w.let(func() { err = w.startProcess() })
	if err != nil {
		w.failf("start: %v", err)
		return
	}
	w.exporter.since = w.process.since
	for _, c := range w.open { // their timeouts start anew
		c.lastActive, c.lastToken = time.Now(), time.Now()
		w.counters["streams_restored"]++
		w.counters["events_restored"] += c.units
	}
	w.logf("process %d started", w.process.number)
	if w.path != viaSpans {
		w.let(func() { time.Sleep(phase) }) // no data point covers a time of 0
	}
}

func cloneBudgets(from map[seriesKey]budget) map[seriesKey]budget {
	to := map[seriesKey]budget{}
	maps.Copy(to, from)
	return to
}

// saved notes that a component saved its budgets.
func (w *world) saved(file string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if file == budgetsFile && w.exporter != nil {
		w.onDisk[file] = cloneBudgets(w.exporter.budgets)
	}
}

// step makes one decision of the world. Each has random numbers of its own, so that one that
// depends on what the components answered does not change the later ones.
func (w *world) step(n int) {
	r := rand.New(rand.NewPCG(w.seed, uint64(n)+1))
	switch at := r.IntN(100); {
	case at < 38:
		w.talk(r)
	case at < 42 && !w.bulky: // a long line arrives in several pieces
		w.openLive(r)
	case at < 52:
		w.useLive(r)
	case at < 70:
		w.pass(pick(r, 3*time.Millisecond, 3*time.Millisecond, 300*time.Millisecond, 300*time.Millisecond,
			time.Second, 2*time.Second, 7*time.Second, 20*time.Second, 90*time.Second))
	case at < 79:
		w.change(r)
	case at < 83:
		state := pick(r, diskFine, diskFine, diskFull, diskStuck)
		w.disk.set(state)
		w.logf("the disk is %v", state)
	case at < 88:
		w.releaseOne(r)
	case at < 96:
		w.deliverLate(r)
	case at < 98:
		w.abandon(r)
	case at < 99:
		w.crash()
		w.begin()
	default:
		w.shutdown()
		w.begin()
	}
	w.poll()
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.logf("%v pass", d)
	w.let(func() { time.Sleep(d + 11*time.Microsecond) }) // not at the instant of a tick
	w.poll()
}

// change changes the weather.
func (w *world) change(r *rand.Rand) {
	to := pick(r, fair, fair, fair, refusing, rejecting, holding, backendRefuses)
	if to != refusing && to != backendRefuses && (w.weather == refusing || w.weather == backendRefuses) {
		w.calm()
	}
	w.weather, w.sinks.refuse = to, chance(r, 40)
	w.logf("the pipeline is %v, the consumers of the connector refuse: %v", to, w.sinks.refuse)
}

// calm ends an outage, and waits until all retries with a random delay are over.
func (w *world) calm() {
	if !w.profile.settle {
		return
	}
	w.weather = fair
	w.pass(longestRetry + refusalHold)
}

// talk lets a client send some of its messages.
func (w *world) talk(r *rand.Rand) {
	c := w.clients[r.IntN(len(w.clients))]
	if len(c.pending) == 0 || len(c.pending) < 4 && chance(r, 60) {
		w.newStreams(r, c)
	}
	for range 1 + r.IntN(4) {
		if len(c.pending) > 0 {
			w.send(r, c, r.IntN(len(c.pending)))
		}
	}
}

// newStreams gives a client messages to send.
func (w *world) newStreams(r *rand.Rand, c *client) {
	var streams []*stream
	for range 1 + r.IntN(3) {
		w.streams++
		s := newStream(r, &w.profile, fmt.Sprintf("s%d", w.streams), time.Now())
		if w.path != viaSpans && chance(r, 30) {
			s.makeUsual()
		}
		streams = append(streams, s)
		if s.traceID != [16]byte{} && chance(r, 30) {
			streams = append(streams, s.twin())
		}
	}
	var next *message
	for _, s := range streams {
		if next == nil || chance(r, 50) {
			next = w.newMessage(c, r.IntN(encodings))
		}
		if chance(r, 40) || s.usual {
			next.parts = append(next.parts, part{s, 0, s.events()})
			continue
		}
		cut := 1 + r.IntN(max(1, s.events()-2))
		next.parts = append(next.parts, part{s, 0, cut})
		if chance(r, 10) { // the sender stops
			continue
		}
		for cut < s.events()-2 && chance(r, 70) {
			to := cut + 1 + r.IntN(s.events()-2-cut)
			w.newMessage(c, r.IntN(encodings)).parts = []part{{s, cut, to}}
			cut = to
		}
		w.newMessage(c, r.IntN(encodings)).parts = []part{{s, cut, s.events()}}
	}
	c.pending = slices.DeleteFunc(c.pending, func(m *message) bool { return len(m.parts) == 0 })
}

func (w *world) newMessage(c *client, encoding int) *message {
	w.messages++
	m := &message{number: w.messages, client: c.number, encoding: encoding}
	c.pending = append(c.pending, m)
	return m
}

// waits reports whether a message may not be sent yet: a client sends the events of a stream
// in order, and one message at a time touches a stream.
func (w *world) waits(m *message) bool {
	for _, p := range m.parts {
		if w.claimed(p.id) {
			return true
		}
		for _, earlier := range w.clients[m.client].pending {
			if earlier == m {
				break
			}
			if slices.ContainsFunc(earlier.parts, func(e part) bool { return e.id == p.id }) {
				return true
			}
		}
	}
	return false
}

// claimed reports whether a batch that is held has a stream.
func (w *world) claimed(id string) bool {
	for _, f := range w.flights {
		if slices.ContainsFunc(f.message.parts, func(p part) bool { return p.id == id }) {
			return true
		}
	}
	for _, c := range w.calls {
		if slices.ContainsFunc(c.spans, func(s sent) bool { return s.content.id == id }) {
			return true
		}
	}
	return false
}

// send sends a message. The network may lose it, lose its answer, deliver it again later, or
// deliver only a copy later.
func (w *world) send(r *rand.Rand, c *client, i int) {
	m := c.pending[i]
	if w.waits(m) {
		return
	}
	fate := r.IntN(100)
	middle := len(m.parts) == 1 && !m.parts[0].hasStart() && !m.parts[0].hasEnd()
	switch {
	case fate < 6:
		w.logf("%v: lost", m)
		return
	case (fate < 12 || middle && fate < 35) && len(w.late) < 10:
		w.logf("%v: delayed", m)
		w.late = append(w.late, m)
		if middle {
			c.pending = slices.Delete(c.pending, i, i+1) // the client goes on, so it arrives out of order
		}
		return
	case (fate < 22 || middle) && len(w.late) < 10:
		w.late = append(w.late, m)
	}
	f := w.deliver(m)
	f.resend = fate >= 22 && fate < 32 // the answer is lost
	w.poll()
	if middle && chance(r, 60) {
		w.overtaken(m)
	}
}

// overtaken delivers what the network held of a stream after a later message.
func (w *world) overtaken(by *message) {
	for i, m := range w.late {
		if m != by && len(m.parts) == 1 && m.parts[0].id == by.parts[0].id {
			w.arriveLate(i)
			return
		}
	}
}

// deliver brings a message to the receiver.
func (w *world) deliver(m *message) *flight {
	body, contentType := m.encode()
	ctx, cancel := context.WithCancel(context.Background())
	f := &flight{message: m, predicted: w.predict(m), answer: make(chan reply, 1), cancel: cancel}
	w.flights = append(w.flights, f)
	network := w.process.network
	go func() { f.answer <- network.post(ctx, m.client, contentType, bytes.NewReader(body)) }()
	return f
}

// poll waits until nothing moves, and takes the answers that have arrived.
func (w *world) poll() {
	w.let(synctest.Wait)
	w.flights = slices.DeleteFunc(w.flights, func(f *flight) bool {
		select {
		case r := <-f.answer:
			f.cancel()
			w.answered(f, &r)
			return true
		default:
			held := slices.ContainsFunc(f.predicted.calls, func(c *call) bool { return c.held })
			switch {
			case held:
			case f.live != nil:
				w.answered(f, &reply{})
				return true
			default:
				w.failf("%v: no answer, and the pipeline does not hold it", f.message)
			}
			return false
		}
	})
	w.pollLives()
}

// answered takes the answer to a message.
func (w *world) answered(f *flight, r *reply) {
	w.logf("%v: %v", f.message, r)
	w.settle(f, r)
	if l := f.live; l != nil {
		if r.status != 0 { // the receiver broke the body off
			l.abort()
			w.lives = slices.DeleteFunc(w.lives, func(other *live) bool { return other == l })
			w.resume(l, false)
		} else {
			l.accepted += f.predicted.accepted
			l.rejected += f.predicted.rejected
		}
		return
	}
	c := w.clients[f.message.client]
	retry := f.resend || r.status == 0 || r.status == 429 || r.status == 503
	switch i := slices.Index(c.pending, f.message); {
	case i < 0:
	case !retry:
		c.pending = slices.Delete(c.pending, i, i+1)
	case r.status == 429 && len(f.message.parts) > 1: // it may never fit as a whole
		var each []*message
		for _, p := range f.message.parts {
			w.messages++
			each = append(each, &message{number: w.messages, client: c.number, encoding: f.message.encoding, parts: []part{p}})
		}
		c.pending = slices.Replace(c.pending, i, i+1, each...)
	}
}

// deliverLate delivers a copy that the network held.
func (w *world) deliverLate(r *rand.Rand) {
	if len(w.late) == 0 {
		return
	}
	w.arriveLate(r.IntN(len(w.late)))
}

func (w *world) arriveLate(i int) {
	m := w.late[i]
	for _, p := range m.parts {
		if w.claimed(p.id) {
			return
		}
	}
	w.late = slices.Delete(w.late, i, i+1)
	w.logf("%v: arrives late", m)
	w.deliver(m).resend = true
	w.poll()
}

// releaseOne decides on a batch that is held.
func (w *world) releaseOne(r *rand.Rand) {
	if len(w.calls) == 0 {
		return
	}
	c := w.calls[r.IntN(len(w.calls))]
	verdict := pick(r, fair, fair, refusing, rejecting, backendRefuses)
	if c.expired && w.profile.settle { // a refusal starts retries with a random delay
		verdict = pick(r, fair, rejecting)
	}
	w.logf("the pipeline is %v to a batch that it held", verdict)
	c.release <- verdict
	w.poll()
}

// abandon lets a client give up a message that the pipeline holds.
func (w *world) abandon(r *rand.Rand) {
	if len(w.flights) == 0 {
		return
	}
	f := w.flights[r.IntN(len(w.flights))]
	if f.live != nil {
		return
	}
	w.logf("%v: the client gives up", f.message)
	f.cancel()
	w.poll()
}

// crash ends the process at once.
func (w *world) crash() {
	w.logf("process %d crashes", w.process.number)
	w.let(w.process.crash)
	w.endFlights()
}

// endFlights forgets the messages in progress, whose answers nobody gets.
func (w *world) endFlights() {
	w.let(func() {
		for _, f := range w.flights {
			if f.live == nil {
				f.cancel()
				<-f.answer
			}
		}
		for _, l := range w.lives {
			l.abort()
			<-l.answer
		}
		synctest.Wait()
	})
	w.flights, w.calls = nil, nil
	for _, l := range w.lives {
		w.resume(l, false)
	}
	w.lives = nil
}

// shutdownPatience is far longer than a shutdown may take.
const shutdownPatience = time.Minute

// shutdown ends the process as the Collector does.
func (w *world) shutdown() {
	w.logf("process %d shuts down", w.process.number)
	w.stopping = time.Now()
	p, stopped := w.process, make(chan struct{})
	go func() {
		defer close(stopped)
		p.stop(context.Background())
	}()
	// How long a shutdown takes depends on random delays of net/http.
	w.let(func() { time.Sleep(shutdownPatience) })
	select {
	case <-stopped:
	default:
		w.failf("the shutdown takes longer than %v", shutdownPatience)
		close(p.dead)
		w.let(func() { <-stopped })
	}
	w.let(synctest.Wait)
	w.flights = slices.DeleteFunc(w.flights, func(f *flight) bool {
		select {
		case r := <-f.answer:
			w.answered(f, &r)
			return true
		default:
			return false
		}
	})
	w.pollLives()
	if !p.isDead() {
		w.checkCounters(true)
		if !w.sinks.refuse {
			w.checkSinks(true)
		}
	}
	w.endFlights()
}

// run runs a seed to its end.
func (w *world) run(steps int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begin()
	defer func() {
		if w.process != nil && !w.process.isDead() {
			w.crash()
		}
	}()
	for n := 0; n < steps && w.failure == ""; n++ {
		w.step(n)
		w.check()
	}
	if w.failure == "" {
		w.finish(steps)
	}
}

// finish ends all faults, and lets the clients and the components come to an end.
func (w *world) finish(steps int) {
	w.weather, w.sinks.refuse = fair, false
	w.disk.set(diskFine)
	for len(w.calls) > 0 {
		w.releaseOne(rand.New(rand.NewPCG(w.seed, 0)))
		w.check()
	}
	for n := 0; w.failure == ""; n++ {
		r := rand.New(rand.NewPCG(w.seed, uint64(steps+n)+1))
		busy := false
		for _, c := range w.clients {
			if len(c.pending) > 0 {
				busy = true
				w.send(r, c, 0)
			}
		}
		w.deliverLate(r)
		w.pass(longestRetry)
		w.check()
		if !busy && len(w.late) == 0 {
			break
		}
		if n > 500 {
			w.failf("clients still have messages to send")
		}
	}
	w.pass(w.firstToken + w.idle + longestRetry)
	w.check()
	w.checkSinks(true)
	if len(w.open) > 0 {
		w.failf("%d streams are still open", len(w.open))
	}
	if w.failure == "" {
		w.shutdown()
		w.process = nil
	}
}

// report returns the failure with the last steps.
func (w *world) report(last int) string {
	from := max(0, len(w.trace)-last)
	return fmt.Sprintf("%s\n%s\n... %d lines before\n%s", w.failure, w.trace[0], from, strings.Join(w.trace[from:], "\n"))
}
