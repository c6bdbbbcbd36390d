// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokenlatencyprocessor

import (
	"encoding/hex"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/numbers"
	"github.com/tokenpulse/tokenpulse/internal/timeline"
)

// role is what an engine did of a request, as far as it is known.
type role uint8

const (
	unknownRole role = iota
	prefillRole
	decodeRole
)

var roles = map[string]role{"prefill": prefillRole, "decode": decodeRole}

// shared identifies a request that two engines may have worked on.
type shared struct {
	span spanKey // of the proxy or the call above both; of SGLang only the trace
	room string  // of SGLang
}

// handovers returns the pairs of engines of the tree. Only two that have the same request above them, or are marked as parts
// of one, are a pair.
func (t *tree) handovers() (all []handover) {
	byRequest, order := map[shared][]int{}, []shared(nil)
	paired := map[int]bool{}
	var engines []int
	for _, i := range t.calls {
		if t.nodes[i].vantage == timeline.VantageEngine && t.outermostEngine(i) == i {
			engines = append(engines, i)
		}
	}
	for _, i := range engines {
		if peer, ok := t.linkedPrefill(i); ok && !paired[peer] && !paired[i] {
			all = append(all, handover{peer, i})
			paired[i], paired[peer] = true, true
		}
	}
	for _, i := range engines {
		if key, ok := t.sharedBy(i); ok && !paired[i] {
			if byRequest[key] == nil {
				order = append(order, key)
			}
			byRequest[key] = append(byRequest[key], i)
		}
	}
	for _, key := range order { // in the order of the batch
		if of := byRequest[key]; len(of) == 2 {
			if h, ok := t.pair(of[0], of[1]); ok {
				all = append(all, h)
			}
		}
	}
	return all
}

// linkedPrefill returns the engine that Dynamo's worker of the decode names.
func (t *tree) linkedPrefill(i int) (peer int, ok bool) {
	if t.ofSpan(i, names.Source) != names.SourceDynamo {
		return noNode, false
	}
	peer, ok = t.spanWith(t.nodes[i].span.TraceID(), t.ofSpan(i, "prefill_span_id"))
	ok = ok && peer != i && t.nodes[peer].call && t.roleOf(peer) != decodeRole && t.nodes[peer].vantage == timeline.VantageEngine &&
		t.outermostEngine(peer) == peer && !t.failed(peer)
	return peer, ok
}

// spanWith returns the span of a trace that has an ID, in hexadecimal digits.
func (t *tree) spanWith(trace pcommon.TraceID, id string) (i int, ok bool) {
	b, err := hex.DecodeString(id)
	if err != nil || len(b) != len(pcommon.SpanID{}) {
		return noNode, false
	}
	i, ok = t.index[spanKey{trace, pcommon.SpanID(b)}]
	return i, ok
}

// sharedBy returns the request that an engine's span is a part of. ok is false if it may be a request of its own.
func (t *tree) sharedBy(i int) (key shared, ok bool) {
	n := &t.nodes[i]
	if attributes.Text(n.span.Attributes(), names.Source) == names.SourceSGLang {
		if room := attributes.Text(n.span.Attributes(), "bootstrap_room"); room != "" {
			return shared{spanKey{trace: n.span.TraceID()}, room}, true
		}
	}
	if proxy, _ := t.proxy(i); proxy != noNode {
		return shared{span: t.keyOf(proxy)}, true
	}
	if caller := t.leader(i); caller != i {
		return shared{span: t.keyOf(caller)}, true
	}
	return shared{}, false
}

func (t *tree) keyOf(i int) spanKey {
	return spanKey{t.nodes[i].span.TraceID(), t.nodes[i].span.SpanID()}
}

// proxy returns the outermost span of llm-d's proxy above an engine, and which part of the request the innermost one is for.
func (t *tree) proxy(i int) (proxy int, of role) {
	const prefix = "llm_d.pd_proxy."
	proxy = noNode
	for range maxDepth {
		t.steps++
		above, found := t.index[spanKey{t.nodes[i].span.TraceID(), t.nodes[i].span.ParentSpanID()}]
		if !found || t.nodes[above].agent || t.nodes[above].call && t.nodes[above].vantage == timeline.VantageClient {
			return proxy, of
		}
		i = above
		isOfProxy := false
		for name := range t.nodes[i].span.Attributes().All() {
			if isOfProxy = strings.HasPrefix(name, prefix); isOfProxy {
				break
			}
		}
		if !isOfProxy {
			continue
		}
		proxy = i
		if of == unknownRole {
			of = roles[strings.TrimPrefix(t.nodes[i].span.Name(), prefix)]
		}
	}
	return proxy, of
}

// roleOf returns what an engine did of its request, if a mark says so.
func (t *tree) roleOf(i int) role {
	span := t.nodes[i].span
	own := span.Attributes()
	mark := ""
	switch t.ofSpan(i, names.Source) {
	case names.SourceDynamo:
		mark = t.ofSpan(i, "disagg_role")
	case names.SourceSGLang:
		mark, _, _ = strings.Cut(span.Name(), " Req ")
	case names.SourceTensorRTLLM:
		if reasons, ok := reported(own, names.FinishReasons); ok && strings.Contains(reasons.AsString(), "not_finished") {
			return prefillRole
		}
	}
	if marked := roles[mark]; marked != unknownRole {
		return marked
	}
	_, of := t.proxy(i)
	return of
}

// pair returns which of two engines of a request did the prefill. It reports whether they are a handover: if the first one is
// not marked as the prefill, it has to have one token of the same prompt, and no more may have been asked for. Then both are of
// two processes, and a second answer of one token has to follow the first one: parallel answers are no handover.
func (t *tree) pair(a, b int) (h handover, ok bool) {
	roleA, roleB := t.roleOf(a), t.roleOf(b)
	if roleA == decodeRole || roleB == prefillRole || roleA == roleB && t.isEarlierPart(b, a) {
		a, b, roleA, roleB = b, a, roleB, roleA
	}
	h = handover{a, b}
	if roleA == decodeRole || roleB == prefillRole || t.ofSpan(a, names.Source) != t.ofSpan(b, names.Source) || t.modelsDiffer(a, b) {
		return h, false
	}
	if t.failed(a) {
		return h, false
	}
	if roleA == prefillRole || roleB == decodeRole {
		return h, true
	}
	if !t.isOneToken(a) || !t.samePrompt(h) || !t.areTwoProcesses(h) {
		return h, false
	}
	plausible := t.transfer(h).rejected == noReason
	if t.isOneToken(b) {
		return h, plausible && t.nodes[b].span.StartTimestamp() >= t.nodes[a].span.EndTimestamp()
	}
	return h, plausible || !t.sameClock(h)
}

// failed reports whether an engine did not finish its part of a request.
func (t *tree) failed(i int) bool {
	outcome := t.ofSpan(i, names.Outcome)
	return outcome == names.OutcomeError || outcome == names.OutcomeCancelled
}

// areTwoProcesses reports whether two engines' spans can be of two processes.
func (t *tree) areTwoProcesses(h handover) bool {
	a, b := t.ofResource(h.prefill, names.ServiceInstanceID), t.ofResource(h.decode, names.ServiceInstanceID)
	return t.nodes[h.prefill].resource != t.nodes[h.decode].resource && (a == "" || a != b)
}

func (t *tree) ofSpan(i int, name string) string {
	return attributes.Text(t.nodes[i].span.Attributes(), name)
}

// isEarlierPart reports whether a of two unmarked engines can only be the prefill.
func (t *tree) isEarlierPart(a, b int) bool {
	if one, other := t.isOneToken(a), t.isOneToken(b); one != other {
		return one
	}
	return t.nodes[a].span.StartTimestamp() < t.nodes[b].span.StartTimestamp()
}

// isOneToken reports whether an engine generated one token at most, and was not asked for more.
func (t *tree) isOneToken(i int) bool {
	own := t.nodes[i].span.Attributes()
	tokens := firstMeasured(request{spans: []ptrace.Span{t.nodes[i].span}}, []string{names.GenAIOutputTokens, numbers.TokenCount.Attribute()})
	asked, limited := attributes.Plausible(own, "gen_ai.request.max_tokens")
	return tokens.Known && tokens.Value <= 1 && !(limited && asked > 1)
}

// samePrompt reports whether both engines report the same number of input tokens, or that of the decode has the token of the
// prefill besides.
func (t *tree) samePrompt(h handover) bool {
	a, knownA := attributes.Plausible(t.nodes[h.prefill].span.Attributes(), names.GenAIInputTokens)
	b, knownB := attributes.Plausible(t.nodes[h.decode].span.Attributes(), names.GenAIInputTokens)
	return knownA && knownB && (a == b || a+1 == b)
}

func (t *tree) modelsDiffer(a, b int) bool {
	modelA, _ := t.model(a)
	modelB, _ := t.model(b)
	return modelA != "" && modelB != "" && modelA != modelB
}
