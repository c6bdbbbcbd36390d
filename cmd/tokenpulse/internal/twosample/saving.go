// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package twosample

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tokenpulse/tokenpulse/internal/sketch"
)

// version is that of the JSON of an Arm.
const version = 1

// saved is the JSON of an Arm.
type saved struct {
	Version int `json:"version"`
	// BlockNanoseconds is the width of a block of time.
	BlockNanoseconds int64          `json:"block_nanoseconds"`
	SLOs             []string       `json:"slos"`
	Runs             []savedRun     `json:"runs"`
	Blocks           []savedBlock   `json:"blocks"`
	Replicas         []savedReplica `json:"replicas"`
	// Sample has hashes of requests, 8 bytes each.
	Sample []byte `json:"sample"`
	Folded uint64 `json:"folded"`
}

type savedRun struct {
	Name     string `json:"name"`
	Requests uint64 `json:"requests"`
	// The first start and the last end in nanoseconds since 1970, both 0 if they are unknown.
	First int64 `json:"first_unix_nano"`
	Last  int64 `json:"last_unix_nano"`
	// Seconds is the sum of the durations of the requests.
	Seconds float64 `json:"seconds"`
}

type savedBlock struct {
	Run   int         `json:"run"`   // place in Runs
	Index int64       `json:"index"` // start since 1970, over the width
	Cells []savedCell `json:"cells"`
}

type savedReplica struct {
	Name  string      `json:"name"`
	Cells []savedCell `json:"cells"`
}

// savedCell is requests with prompts of one range.
type savedCell struct {
	Prompts      string                  `json:"prompts"`
	Requests     uint64                  `json:"requests"`
	Unsuccessful uint64                  `json:"unsuccessful"`
	Latencies    map[string]savedLatency `json:"latencies"`
	SLOs         []trials                `json:"slos"` // in the order of saved.SLOs
}

// savedLatency is the requests with a value and those that should have one, and an encoded histogram of the values.
type savedLatency struct {
	Measured  uint64 `json:"measured"`
	Missing   uint64 `json:"missing"`
	Histogram []byte `json:"histogram,omitempty"`
}

// MarshalJSON encodes the arm, so that it can be compared later.
func (a *Arm) MarshalJSON() ([]byte, error) {
	s := saved{
		Version: version, BlockNanoseconds: int64(a.width), SLOs: a.sloNames.names, Folded: a.folded,
		Runs: []savedRun{}, Blocks: []savedBlock{}, Replicas: []savedReplica{},
	}
	for i, r := range a.runs {
		to := savedRun{Name: a.runNames.names[i], Requests: r.requests, Seconds: r.busy}
		if !r.first.IsZero() {
			to.First, to.Last = r.first.UnixNano(), r.last.UnixNano()
		}
		s.Runs = append(s.Runs, to)
	}
	for _, key := range slices.SortedFunc(maps.Keys(a.blocks), blockKey.compare) {
		s.Blocks = append(s.Blocks, savedBlock{key.run, key.index, a.blocks[key].save()})
	}
	for i, g := range a.replicas {
		s.Replicas = append(s.Replicas, savedReplica{a.replicaNames.names[i], g.save()})
	}
	for _, h := range a.sample {
		s.Sample = binary.BigEndian.AppendUint64(s.Sample, h)
	}
	return json.Marshal(s)
}

func (g *group) save() (all []savedCell) {
	for b, c := range g {
		if c == nil {
			continue
		}
		s := savedCell{Prompts: bandNames[b], Requests: c.requests, Unsuccessful: c.unsuccessful, SLOs: c.slos, Latencies: map[string]savedLatency{}}
		for i := range Indicators {
			l := savedLatency{Measured: c.measured[i], Missing: c.missing[i]}
			if l.Measured > 0 {
				l.Histogram = c.values[i].AppendBinary(nil)
			}
			if l.Measured+l.Missing > 0 {
				s.Latencies[i.String()] = l
			}
		}
		all = append(all, s)
	}
	return all
}

// UnmarshalJSON decodes an arm. On an error, it changes nothing.
func (a *Arm) UnmarshalJSON(encoded []byte) error {
	var s saved
	if err := json.Unmarshal(encoded, &s); err != nil {
		return err
	}
	decoded, err := s.arm()
	if err != nil {
		return fmt.Errorf("the saved comparison is damaged: %w; save the report again", err)
	}
	*a = *decoded
	return nil
}

func (s *saved) arm() (*Arm, error) {
	if s.Version != version {
		return nil, fmt.Errorf("its version is %d, and this build reads version %d", s.Version, version)
	}
	a := &Arm{width: time.Duration(s.BlockNanoseconds), folded: s.Folded}
	if len(s.Runs) > 0 && !isWidth(a.width) {
		return nil, fmt.Errorf("block_nanoseconds is %d, no power of two times 1000", s.BlockNanoseconds)
	}
	if len(s.Blocks) > maxBlocks {
		return nil, fmt.Errorf("it has %d blocks, more than %d", len(s.Blocks), maxBlocks)
	}
	for _, name := range s.SLOs {
		if a.sloNames.find(name) >= 0 || a.sloNames.add(name, maxSLOs) < 0 {
			return nil, fmt.Errorf("slo %q is there twice, or one of more than %d", name, maxSLOs)
		}
	}
	for _, r := range s.Runs {
		if a.runNames.find(r.Name) >= 0 || a.runNames.add(r.Name, maxRuns) < 0 || !(r.Seconds >= 0) || r.First > r.Last || r.First < 0 {
			return nil, fmt.Errorf("run %q is there twice, one of more than %d, or has impossible times", r.Name, maxRuns)
		}
		to := run{busy: r.Seconds, requests: r.Requests}
		if r.First > 0 {
			to.cover(time.Unix(0, r.First), time.Unix(0, r.Last))
		}
		a.runs = append(a.runs, to)
	}
	return a, s.loadGroups(a)
}

func isWidth(width time.Duration) bool {
	for w := time.Microsecond; w > 0; w *= 2 {
		if w == width {
			return true
		}
	}
	return false
}

// loadGroups decodes the blocks and the replicas, which have the same requests as the runs.
func (s *saved) loadGroups(a *Arm) error {
	inRuns, inReplicas := make([]uint64, len(a.runs)), uint64(0)
	a.blocks = map[blockKey]*group{}
	for i, b := range s.Blocks {
		key := blockKey{b.Run, b.Index}
		if b.Run < 0 || b.Run >= len(a.runs) || b.Index < 0 || a.blocks[key] != nil {
			return fmt.Errorf("block %d is of an unknown run, or is there twice", i)
		}
		g, n, err := loadGroup(b.Cells, len(s.SLOs))
		if err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
		a.blocks[key] = g
		inRuns[b.Run] += n
	}
	for _, r := range s.Replicas {
		if a.replicaNames.find(r.Name) >= 0 || a.replicaNames.add(r.Name, maxReplicas) < 0 {
			return fmt.Errorf("replica %q is there twice, or one of more than %d", r.Name, maxReplicas)
		}
		g, n, err := loadGroup(r.Cells, len(s.SLOs))
		if err != nil {
			return fmt.Errorf("replica %q: %w", r.Name, err)
		}
		a.replicas = append(a.replicas, g)
		inReplicas += n
	}
	for i, r := range a.runs {
		if inRuns[i] != r.requests {
			return fmt.Errorf("run %q has %d requests, and its blocks have %d", s.Runs[i].Name, r.requests, inRuns[i])
		}
		a.requests += r.requests
	}
	if a.requests != inReplicas {
		return fmt.Errorf("the runs have %d requests, and the replicas have %d", a.requests, inReplicas)
	}
	if len(s.Sample)%8 != 0 || len(s.Sample) > 8*maxSample {
		return errors.New("the sample has an impossible length")
	}
	for rest := s.Sample; len(rest) > 0; rest = rest[8:] {
		a.sample.insert(binary.BigEndian.Uint64(rest))
	}
	return nil
}

// loadGroup decodes cells, and returns how many requests they have.
func loadGroup(cells []savedCell, slos int) (g *group, requests uint64, err error) {
	g = &group{}
	for i := range cells {
		s := &cells[i]
		band := slices.IndexFunc(bandNames[:], func(name string) bool { return name == s.Prompts })
		if band < 0 || g[band] != nil {
			return nil, 0, fmt.Errorf("prompts %q is no range, or is there twice", s.Prompts)
		}
		if g[band], err = s.load(slos); err != nil {
			return nil, 0, fmt.Errorf("prompts %s: %w", s.Prompts, err)
		}
		requests += s.Requests
	}
	return g, requests, nil
}

// maxCount keeps sums of counts from overflowing.
const maxCount = 1 << 48

func (s *savedCell) load(slos int) (*cell, error) {
	c := &cell{requests: s.Requests, unsuccessful: s.Unsuccessful, slos: s.SLOs}
	if s.Requests > maxCount || s.Unsuccessful > s.Requests {
		return nil, fmt.Errorf("%d requests, of which %d are unsuccessful", s.Requests, s.Unsuccessful)
	}
	if len(s.SLOs) > slos {
		return nil, fmt.Errorf("counts of %d slos, and names of %d", len(s.SLOs), slos)
	}
	for _, t := range s.SLOs {
		if t.Bad > t.Eligible || t.Eligible > s.Requests {
			return nil, fmt.Errorf("%d of %d requests are eligible for an slo, and %d bad", t.Eligible, s.Requests, t.Bad)
		}
	}
	for i := range Indicators {
		l := s.Latencies[i.String()]
		if l.Measured > s.Requests || l.Missing > s.Requests || l.Measured+l.Missing > s.Requests {
			return nil, fmt.Errorf("%s: %d measured and %d missing of %d requests", i, l.Measured, l.Missing, s.Requests)
		}
		c.measured[i], c.missing[i] = l.Measured, l.Missing
		if l.Measured == 0 {
			continue
		}
		e, err := sketch.Parse(l.Histogram)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", i, err)
		case e.Count() < l.Measured || e.Count() > maxCount || i != InterTokenLatency && e.Count() != l.Measured:
			return nil, fmt.Errorf("%s: %d requests are measured, and the histogram has %d values", i, l.Measured, e.Count())
		}
		c.values[i].MergeEncoded(&e)
	}
	return c, nil
}
