// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package assembly

// HasStart reports whether the part has a start, from an event or implied.
func (p *Part) HasStart() bool { return p.started() || p.implied.set }

// ImplyStart sets the start to use if the stream has no start event: start, at the
// time of the part's first chunk. A part without chunks does not start the stream.
// attributes and resource are encoded KeyValueLists and must not change any more. The
// part must not have a start.
func (p *Part) ImplyStart(start Start, attributes, resource []byte) error {
	if err := start.checkVantage(); err != nil {
		return err
	}
	if len(p.ID)+len(attributes)+len(resource) > p.batch.limits.MaxStreamBytes {
		return p.errTooLarge()
	}
	p.batch.starts = true
	p.implied = impliedStart{true, start, attributes, resource}
	return nil
}

// applyImpliedStart makes the implied start that of the part. It reports whether the
// part has an implied start and a chunk.
func (p *Part) applyImpliedStart() bool {
	first := p.Chunks.earliest()
	if !p.implied.set || first == 0 {
		return false
	}
	p.Start, p.Resource = p.implied.start, p.implied.resource
	p.Start.UnixNano, p.Start.Implied = first, true
	p.Attributes = append(p.Attributes, p.implied.attributes...)
	p.times.anchored = false
	p.anchor(first)
	return true
}

// undoImpliedStart reverts applyImpliedStart.
func (p *Part) undoImpliedStart() {
	if p.Start.Implied {
		p.Start, p.Resource, p.Attributes = Start{}, nil, p.Attributes[:0]
		p.times.anchored = false
	}
}
