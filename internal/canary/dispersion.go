// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package canary

// test adds up windows for one idea of a bad request.
type test struct {
	likelihood likelihood
	spreads    [len(blockLengths)]spread
}

// blockLengths are the lengths in seconds of the blocks in which the baseline's replicas are
// compared: queues that last seconds show in short ones, load that lasts minutes in long ones.
var blockLengths = [...]int64{shortWindow, 60, 300}

// block holds the closed windows of both arms that started in a block.
type block struct {
	start int64
	arms  [arms][]entry[observation]
}

func (b *block) add(arm Arm, replica uint64, o *observation) {
	list := &b.arms[arm]
	at(list, replica).merge(o)
	if known(*list) > maxReplicas {
		fold(list)
	}
}

// spread sums up how far the bad requests of the baseline's replicas are apart in finished blocks.
type spread struct {
	chiSquare float64
	freedom   uint64 // the expected chiSquare if requests are independent
}

// maxDispersion is the largest dispersion with which a test decides.
const maxDispersion = 4

// dispersion returns by how much the bad requests of a replica vary more than independent ones
// would: a factor of the variance, and at least 1.
func (t *test) dispersion() float64 {
	largest := 1.0
	for _, s := range t.spreads {
		if s.freedom > 0 {
			largest = max(largest, s.chiSquare/float64(s.freedom))
		}
	}
	return largest
}

// turnBlocks finishes the blocks to which a window does not belong. A block is finished
// before a later window is added, so that a window never changes its own weight.
func (p *Pair) turnBlocks(windowStart int64) {
	origin := floor(p.since.Unix(), longWindow)
	for i := range p.blocks {
		b := &p.blocks[i]
		start := origin + floor(windowStart-origin, blockLengths[i])
		if start == b.start {
			continue
		}
		for j := range p.tests {
			p.tests[j].spreads[i].add(b.arms[Baseline], j)
		}
		if i == len(p.blocks)-1 && hasBad(b.arms[Baseline]) {
			p.badBlocks++
		}
		*b = block{start: start}
	}
}

func hasBad(replicas []entry[observation]) bool {
	for i := range replicas {
		if replicas[i].value[judged].bad > 0 {
			return true
		}
	}
	return false
}

// add adds a finished block, as one test sees it: the chi-square of the bad requests over the
// replicas given their total, scaled to have its degrees of freedom as its mean.
func (s *spread) add(replicas []entry[observation], test int) {
	var all trials
	var groups uint64
	for i := range replicas {
		t := replicas[i].value[test]
		all.add(t)
		if t.n > 0 {
			groups++
		}
	}
	if all.bad == 0 || all.bad == all.n || groups < 2 {
		return
	}
	n := float64(all.n)
	share := float64(all.bad) / n
	var sum float64
	for i := range replicas {
		if t := replicas[i].value[test]; t.n > 0 {
			expected := float64(t.n) * share
			distance := float64(t.bad) - expected
			sum += distance * distance / expected
		}
	}
	s.chiSquare += sum / (1 - share) * (n - 1) / n
	s.freedom += groups - 1
}
