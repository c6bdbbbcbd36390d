// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokentapreceiver

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"

	"github.com/tokenpulse/tokenpulse/internal/diagnostics"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/outcome"
	"github.com/tokenpulse/tokenpulse/receiver/tokentapreceiver/internal/llmstream"
)

// Values of error.type for failures that neither side reports.
const (
	errorUpstreamUnreachable = "upstream_unreachable"
	errorForeignUpgrade      = "unexpected_upgrade"
	errorUpstreamCut         = "upstream_cut"
)

// Values of part for failures of the tap itself.
const (
	partMemory = "memory" // max_memory_mib was reached
	partPanic  = "panic"
)

// Values of the attribute limit.
const (
	limitChunks         = "max_chunks_per_stream"
	limitEventBytes     = "max_event_bytes"
	limitMemory         = "max_memory_mib"
	limitStreamDuration = "max_stream_duration"
	limitOpenResponses  = "open_responses" // on a connection
)

// ending is how a call ended.
type ending struct {
	outcome string
	// kind is the error.type, or empty.
	kind string
	// cut is set if the receiver ended the call or its observation, limit if it did so at a limit.
	cut   bool
	limit string
	// unparsed says what could not be read.
	unparsed []string
}

// ending says how the call ended: as the transport or the answer reports it, else by the rules that all paths share.
func (d *decoding) ending(o *llmstream.Observation, refused bool) (e ending) {
	e.unparsed = d.unparsed(o, refused)
	unread := e.unparsed != nil || d.panicked.Load() // tokens, and the end, may be among what could not be read
	facts := outcome.Facts{
		Token:     o.TokenChunks > 0 || unread,
		Tokenless: d.mayBeTokenless(o),
	}
	for _, reason := range o.FinishReasons {
		facts.Reason = facts.Reason.Worse(reason)
	}
	failed := d.answered.status >= http.StatusBadRequest
	switch {
	case o.Error != "" && (!failed || o.Error != llmstream.ErrorMessageOnly):
		facts.Reported, facts.ErrorType = names.OutcomeError, o.Error
	case failed:
		facts.Reported, facts.ErrorType = names.OutcomeError, strconv.Itoa(d.answered.status)
	case o.Cancelled, facts.Reason.Meaning == outcome.Aborted && d.clientGone(): // the engine stopped for its client
		facts.Reported = names.OutcomeCancelled
	case !refused && d.isUnexpected(o):
		facts.Reported, facts.ErrorType = names.OutcomeError, outcome.UnexpectedAnswer
	case o.Ended:
	case o.Evicted:
		facts.Reported, e.cut, e.limit = names.OutcomeIncomplete, true, limitOpenResponses
	case d.answered.expired:
		facts.Reported, e.cut, e.limit = names.OutcomeIncomplete, true, limitStreamDuration
	case d.receiver.closing.Load():
		facts.Reported, e.cut = names.OutcomeIncomplete, true
	case d.clientGone():
		facts.Reported = names.OutcomeCancelled
	case d.answered.status == 0:
		facts.Reported, facts.ErrorType = names.OutcomeError, d.unreachable()
	case d.answered.complete && unread:
	case d.answered.complete && (!d.answered.received || o.Format == "" || o.Events == 0) && d.upgraded == nil:
		facts.Reported, facts.ErrorType = names.OutcomeError, outcome.EmptyAnswer
	default:
		e.outcome, e.kind = names.OutcomeIncomplete, errorUpstreamCut
		return e
	}
	e.outcome, e.kind = outcome.Of(&facts)
	return e
}

// mayBeTokenless reports whether a complete answer may have no token.
func (d *decoding) mayBeTokenless(o *llmstream.Observation) bool {
	loads := slices.Equal(o.FinishReasons, []string{"load"}) || slices.Equal(o.FinishReasons, []string{"unload"}) // of Ollama
	return o.Usage().Output.Value > 0 || o.OtherOutput || o.ChunksOf(llmstream.Audio) > 0 || d.asked.facts.NoTokens || loads
}

// isUnexpected reports whether the answer is not of the format that it was asked for, such as a web page.
func (d *decoding) isUnexpected(o *llmstream.Observation) bool {
	return d.answered.complete && d.upgraded == nil && o.Foreign && !d.unread(o)
}

// unread reports whether a part of the answer could not be read.
func (d *decoding) unread(o *llmstream.Observation) bool {
	return o.Unparsed.Any() || d.reader.unknownContent || d.panicked.Load()
}

// unreachable returns the error.type of a request without an answer.
func (d *decoding) unreachable() string {
	if _, broken := d.asked.copied.state(); broken != nil {
		return refusalOfBody(broken).reason
	}
	if errors.Is(d.answered.upstreamError, errForeignUpgrade) {
		return errorForeignUpgrade
	}
	return errorUpstreamUnreachable
}

// clientGone reports whether the client closed first.
func (d *decoding) clientGone() bool {
	_, broken := d.asked.copied.state() // then the upstream's error may be that of the request's body
	return d.answered.clientClosed ||
		d.asked.request.Context().Err() != nil && (d.answered.upstreamError == nil || broken != nil || errors.Is(d.answered.upstreamError, context.Canceled))
}

// unparsed returns what could not be read of an answer. refused says whether data found no room.
func (d *decoding) unparsed(o *llmstream.Observation, refused bool) (parts []string) {
	for _, part := range []struct {
		name  string
		found bool
	}{
		{"content_encoding", d.reader.unknownContent},
		{"corrupt", o.Unparsed.Corrupt > 0},
		{"format", o.Error == "" && !refused && d.answered.status < http.StatusBadRequest && d.isUnexpected(o)},
		{"invalid", o.Unparsed.Invalid > 0},
		{partMemory, refused},
		{"too_long", o.Unparsed.TooLong > 0 && !refused},
	} {
		if part.found {
			parts = append(parts, part.name)
		}
	}
	return parts
}

// count counts what could not be read of an answer.
func (d *decoding) count(unparsed []string) {
	for _, part := range unparsed {
		d.receiver.telemetry.ReceiverTokenTapUnparsed.Add(context.Background(), 1, diagnostics.Label("part", part))
	}
}
