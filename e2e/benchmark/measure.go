package main

import (
	"fmt"
	"time"
)

const (
	// turns of each path in a round.
	turns = 5
	// actions between two looks at the CPU time.
	actionsPerLook = 4
)

// measure has all paths of a group take turns, so that a noisy machine is noisy
// for all of them, in as many rounds.
func measure(group []*path, rounds int, atLeast time.Duration) (map[string][]measurement, error) {
	measured := map[string][]measurement{}
	for round := range rounds {
		if err := measureRound(group, atLeast, measured); err != nil {
			return nil, fmt.Errorf("round %d: %w", round+1, err)
		}
	}
	return measured, nil
}

// measureRound starts a Collector for each path: none inherits the heap of another
// round, and the peak memory is the path's. Those that wait for their turn use no
// CPU. Before the turns comes a warm-up, in which connections and the heap settle.
func measureRound(group []*path, atLeast time.Duration, into map[string][]measurement) error {
	var running []*measuring
	defer func() {
		for _, m := range running {
			m.stop()
		}
	}()
	for _, p := range group {
		c, err := start(p.binary, p.config)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		m := &measuring{collectorProcess: c, path: p}
		running = append(running, m)
		if err := m.warmUp(atLeast / turns); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	for range turns {
		for _, m := range running {
			if err := m.spend(atLeast / turns); err != nil {
				return fmt.Errorf("%s: %w", m.path.name, err)
			}
		}
	}
	for _, m := range running {
		result, err := m.finish()
		if err != nil {
			return fmt.Errorf("%s: %w", m.path.name, err)
		}
		into[m.path.name] = append(into[m.path.name], result)
	}
	return nil
}

// measuring is one path in one round.
type measuring struct {
	*collectorProcess
	path *path

	warm    int // actions that do not count
	actions int
	used    time.Duration
}

func (m *measuring) warmUp(atLeast time.Duration) error {
	if m.path.prepare != nil {
		if err := m.path.prepare(m.collectorProcess); err != nil {
			return err
		}
	}
	err := m.spend(atLeast)
	m.warm, m.actions, m.used = m.warm+m.actions, 0, 0
	return err
}

// spend acts until the Collector has used that much CPU: a fixed amount of work
// would be too little for one path or too much for another. The kernel counts in
// hundredths of a second, and so it is measured from one step to another.
func (m *measuring) spend(atLeast time.Duration) error {
	before, err := m.cpuTime()
	if err != nil {
		return err
	}
	begin, err := m.act(&m.warm, before+1)
	if err != nil {
		return err
	}
	end, err := m.act(&m.actions, begin+atLeast)
	m.used += end - begin
	return err
}

// act goes on until the CPU time is that, and returns what it is then.
func (m *measuring) act(actions *int, until time.Duration) (now time.Duration, err error) {
	for now < until && err == nil {
		if err = m.path.do.repeat(m.collectorProcess, actionsPerLook); err != nil {
			return 0, err
		}
		*actions += actionsPerLook
		now, err = m.cpuTime()
	}
	return now, err
}

func (m *measuring) finish() (result measurement, err error) {
	for _, proof := range m.path.proofs {
		if err := proof.await(m.collectorProcess, m.warm+m.actions); err != nil {
			return result, err
		}
	}
	result.nanos = float64(m.used.Nanoseconds()) / float64(m.actions*m.path.units)
	result.memory, err = m.peakMemory()
	return result, err
}
