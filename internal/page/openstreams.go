// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"cmp"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/attributes"
	"github.com/tokenpulse/tokenpulse/internal/inprocess"
	"github.com/tokenpulse/tokenpulse/internal/names"
	"github.com/tokenpulse/tokenpulse/internal/series"
	"github.com/tokenpulse/tokenpulse/internal/spanreader"
)

// openStreams are the open streams that the filters select. They have no outcome, so a filter on it does not apply. Without a
// filter on the vantage, those of all count: what hangs must not be hidden by what another vantage sees.
type openStreams struct {
	open, waiting, silent int
	longest               []inprocess.OpenStream // by their silence, at most maxSilentStreams
}

// silentStream is one of the open streams that have been silent longest.
type silentStream struct {
	Dimensions map[string]string `json:"dimensions"`
	Model      *string           `json:"model"`
	Replica    *string           `json:"replica"`
	Vantage    string            `json:"vantage"`
	Phase      string            `json:"phase"`
	Silent     number            `json:"silent"`
	Age        number            `json:"age"`
	Tokens     int64             `json:"tokens"`
}

// maxSilentStreams limits the list of silent streams.
const maxSilentStreams = 10

// setOpenStreams sets the numbers of open streams of all receivers in this process. Without a receiver, they stay null.
func (n *now) setOpenStreams(p *Page, q *query) {
	receivers := p.OpenStreams.All()
	if len(receivers) == 0 {
		return
	}
	selected := filter{dimensions: q.filter.dimensions, vantages: anyVantage}
	if q.namesVantage() {
		selected.vantages = q.filter.vantages
	}
	var all openStreams
	for _, receiver := range receivers {
		receiver(&p.streamLabels, func(s *inprocess.OpenStream) {
			if labels := (series.Labels{Dimensions: s.Dimensions, Vantage: s.Vantage}); selected.selects(&labels) {
				all.add(s)
			}
		})
	}
	n.OpenStreams, n.WaitingStreams, n.SilentStreams, n.LongestSilent = &all.open, &all.waiting, &all.silent, []silentStream{}
	for i := range all.longest {
		n.LongestSilent = append(n.LongestSilent, p.silentStream(&all.longest[i]))
	}
}

// add counts a stream, and lists it if few have been silent for longer.
func (o *openStreams) add(s *inprocess.OpenStream) {
	o.open++
	if !s.IsSilent() {
		return
	}
	if s.Hangs() {
		o.silent++
	} else {
		o.waiting++
	}
	listed := *s
	if last := maxSilentStreams - 1; len(o.longest) > last {
		if s.Silent <= o.longest[last].Silent {
			return
		}
		listed.Dimensions, o.longest = o.longest[last].Dimensions[:0], o.longest[:last]
	} else {
		listed.Dimensions = nil
	}
	listed.Dimensions = append(listed.Dimensions, s.Dimensions...)
	at, _ := slices.BinarySearchFunc(o.longest, s.Silent, func(o inprocess.OpenStream, silent time.Duration) int { return cmp.Compare(silent, o.Silent) })
	o.longest = slices.Insert(o.longest, at, listed)
}

// moreOfStreams are the attributes that name the model and the replica of an open stream.
var moreOfStreams = append([]string{names.GenAIRequestModel}, attributes.OfReplica...)

func streamLabels(dimensions series.Dimensions) spanreader.Dimensions {
	return spanreader.NewDimensions(append(slices.Clip(dimensions), series.DimensionsOf(moreOfStreams...)...))
}

func (p *Page) silentStream(s *inprocess.OpenStream) silentStream {
	listed := silentStream{
		Dimensions: map[string]string{}, Vantage: s.Vantage, Phase: s.Phase(),
		Silent: number(s.Silent.Seconds()), Age: number(s.Age.Seconds()), Tokens: s.Tokens,
	}
	more := map[string]string{}
	for i, value := range s.Dimensions[len(p.dimensions):] {
		more[moreOfStreams[i]] = value
	}
	listed.Model = known(more[names.GenAIRequestModel])
	listed.Replica = known(attributes.Replica(s.Vantage, func(name string) string { return more[name] }))
	for i, name := range p.dimensions {
		if value := s.Dimensions[i]; value != "" && value != series.UnknownBand { // those at the end are not known yet
			listed.Dimensions[name] = value
		}
	}
	return listed
}
