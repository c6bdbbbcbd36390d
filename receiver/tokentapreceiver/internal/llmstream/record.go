// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package llmstream

import (
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/optional"
)

// maxChoices bounds the choices whose state is kept.
const maxChoices = 128

// A record collects the facts of an answer, one event after the other.
type record struct {
	observation Observation
	event       event // which is read
	eventFacts

	// carried counts reported tokens without visible text: they belong to the next chunk.
	carried int64
	// lastTotal is the running total at the last chunk, if that had one.
	lastTotal int64
	totalGap  bool
	noTotals  bool

	deltas    bool  // a delta carried tokens: a whole message repeats them
	uncounted int64 // chunks without a reported count
	choices   int   // the highest index of a choice that carried tokens, plus one
	finished  []string
	summed    []int // choices whose usage was added up

	byteRate      int64         // of audio that follows, in bytes per second; 0 if unknown
	spoken        time.Duration // length of the audio so far
	lengthUnknown bool          // of a part of it

	known   bool   // something is of the format, though it says nothing
	scratch []byte // a name that may be new
}

// eventFacts are those of the current event.
type eventFacts struct {
	channels Channels
	// marks counts the choices that carry tokens, a lower bound of the tokens. counts is the number of
	// reported tokens, and counted that of the choices that report them.
	marks, counted, counts int64
	inChoice               bool
	total                  int64
	hasTotal               bool

	lastText    value // the last string that was found not to be empty
	lastIsAudio bool
	lastLength  time.Duration // of the last text, if it is audio
	length      time.Duration // of all audio of the event
	adds        bool          // the event adds to the usage: read again, it would add less
}

func (r *record) begin() { r.eventFacts = eventFacts{} }

// choice begins the next choice of the event.
func (r *record) choice() { r.inChoice = false }

// seen says that the choice exists. With several, running totals are not of all of them.
func (r *record) seen(index int) {
	r.choices = max(r.choices, index+1)
	r.noTotals = r.noTotals || index > 0
}

// token says that the current choice carries tokens of a channel.
func (r *record) token(c Channels) {
	if r.channels |= c; !r.inChoice {
		r.inChoice = true
		r.marks++
	}
}

// text marks the channel if a string at the path is not empty. In a path, "*" stands for every
// element of an array.
func (r *record) text(c Channels, v value, path ...string) {
	for i, name := range path {
		if name == "*" {
			for element := range v.elements {
				r.text(c, element, path[i+1:]...)
			}
			return
		}
		v = v.get(name)
	}
	if v.hasText() {
		r.lastText, r.lastIsAudio = v, false
		r.token(c)
	}
}

// count says how many tokens the current choice has.
func (r *record) count(n int64) {
	if n > 0 {
		r.counts += n
		r.counted++
	}
}

// running says how many tokens the answer has so far.
func (r *record) running(total int64) { r.total, r.hasTotal = total, true }

// take returns the chunk of the event; ok is false if it carries neither tokens nor audio.
func (r *record) take() (c Chunk, ok bool) {
	o := &r.observation
	if r.channels&^Audio == 0 {
		r.carried += r.counts
		if r.channels == 0 {
			return c, false
		}
		o.ByChannel[numChannels-1]++
		r.spoken += r.length
		return Chunk{Channels: Audio}, true
	}
	c = Chunk{Channels: r.channels, Tokens: r.marks}
	if r.counts > 0 && r.counted >= r.marks {
		c.Tokens, c.Counted = r.counts+r.carried, true
	} else if grown := r.total - r.lastTotal; r.hasTotal && !r.totalGap && !r.noTotals && grown >= r.marks {
		c.Tokens, c.Counted = grown, true
	}
	r.carried = 0
	if r.totalGap = !r.hasTotal; r.hasTotal {
		r.lastTotal = r.total
	}
	if !c.Counted {
		r.uncounted++
	}
	o.TokenChunks++
	o.Tokens += c.Tokens
	for i := range o.ByChannel {
		o.ByChannel[i] += int64(r.channels >> i & 1)
	}
	r.spoken += r.length
	return c, true
}

// model and id keep the last name that is not empty: the first event may not know it.
func (r *record) model(v value) { r.keepName(&r.observation.Model, v) }
func (r *record) id(v value)    { r.keepName(&r.observation.ResponseID, v) }

// keepName allocates only if the name changes: most events repeat it.
func (r *record) keepName(name *string, v value) {
	raw := v.raw()
	if len(raw) == 0 || string(raw) == *name {
		return
	}
	if r.scratch = v.appendName(r.scratch[:0]); string(r.scratch) != *name {
		*name = string(r.scratch)
	}
}

// finish records why a choice ended, once.
func (r *record) finish(choice int, reason value) {
	name := reason.name()
	if name == "" || choice < 0 || choice >= maxChoices {
		return
	}
	for len(r.finished) <= choice {
		r.finished = append(r.finished, "")
	}
	if r.finished[choice] == name {
		return
	}
	r.finished[choice] = name
	r.observation.FinishReasons = slices.DeleteFunc(slices.Clone(r.finished), func(s string) bool { return s == "" })
}

// allFinished reports whether every choice that was seen has a finish reason.
func (r *record) allFinished() bool {
	return len(r.observation.FinishReasons) >= max(r.choices, 1)
}

// fail records the kind of an error, which is empty if it has none. The first kind stays.
func (r *record) fail(kind string) {
	if kind == "" {
		kind = ErrorMessageOnly
	}
	if r.observation.Error == "" || r.observation.Error == ErrorMessageOnly {
		r.observation.Error = kind
	}
}

// usage merges a report: what it leaves out stays.
func (r *record) usage(u Usage) {
	o := &r.observation
	o.Reported.merge(u)
	if u.Output.Known || u.Reasoning.Known {
		o.UsageFinal, o.seed = true, false
	}
}

// usageOf adds the usage of one choice to that of the others.
func (r *record) usageOf(choice int, u Usage) {
	r.adds = true
	if len(r.summed) > 0 && !slices.Contains(r.summed, choice) && len(r.summed) < maxChoices {
		u.add(r.observation.Reported)
	}
	if !slices.Contains(r.summed, choice) && len(r.summed) < maxChoices {
		r.summed = append(r.summed, choice)
	}
	r.usage(u)
}

// isPending reports whether the status of a whole answer says that the response is not finished: it was asked for in
// the background.
func isPending(status value) bool {
	switch string(status.raw()) {
	case "queued", "in_progress", "pending", "starting", "processing", "cancelling":
		return true
	}
	return false
}

// look looks for output that is neither text nor audio, until the first of either. Speech has no other.
func (r *record) look(v value) {
	if o := &r.observation; o.Format != OpenAISpeech && r.channels == 0 && o.TokenChunks == 0 && o.ChunksOf(Audio) == 0 && !o.OtherOutput {
		o.OtherOutput = holdsOther(v)
	}
}

// showedReasoning reports whether the answer streamed reasoning.
func (r *record) showedReasoning() bool {
	return r.channels&Reasoning != 0 || r.observation.ChunksOf(Reasoning) > 0
}

func (r *record) end() { r.observation.Ended = true }

// close completes the observation of an answer that ended or was cut.
func (r *record) close() {
	o := &r.observation
	if !o.Ended && len(o.FinishReasons) == 0 {
		o.UsageFinal = false // a running total
	}
	o.Counted = o.TokenChunks > 0 && r.uncounted == 0
	if o.ChunksOf(Audio) > 0 && !r.lengthUnknown && !o.Unparsed.Any() {
		o.AudioDuration = optional.Of(r.spoken)
	}
}
