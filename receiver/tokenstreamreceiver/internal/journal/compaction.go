// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package journal

// A compaction rewrites all entries whose base is in a segment that existed when it began.
// Then those segments are deleted. Entries that change meanwhile are rewritten with the
// change (see IsStale), the others by the writer.
//
// It begins when the storage holds more than compactFactor times the memory of the entries.
// Then it rewrites at least twice the bytes that are added meanwhile. So the storage holds at
// most 4 times the memory of the entries, plus compactSlack and one segment.
const (
	compactFactor = 2
	compactSlack  = 4 << 20
	// minRewritten is the minimum number of bytes that are rewritten with one segment.
	minRewritten = 256 << 10
	// maxSkipped is the maximum number of entries that are looked at in vain for one segment.
	maxSkipped = 1000
)

func (j *Journal) isCompacting() bool { return j.threshold.Load() != 0 }

// rewrite adds entries in old segments to the pending changes, and returns their bytes.
func (j *Journal) rewrite() (bytes int64) {
	j.beginOrEndCompaction()
	threshold := j.threshold.Load()
	budget, skipped := max(minRewritten, 2*j.fresh), 0
	for e := entryAt(j.entries.Next()); e != nil && e.base.Load() < threshold && bytes < budget && skipped < maxSkipped; e = entryAt(e.place.Next()) {
		before := bytes
		j.contents.Rewrite(e.owner, func(content []byte) {
			changes := &Changes{}
			changes.Base(e, content)
			if _, err := j.enqueue(changes, false); err == nil {
				bytes += int64(len(content)) + 1
			}
		})
		if bytes == before {
			skipped++
		}
	}
	return bytes
}

func (j *Journal) beginOrEndCompaction() {
	held := j.stored.Load()
	j.settled = min(j.settled, held)
	if threshold := j.threshold.Load(); threshold != 0 {
		if first := entryAt(j.entries.Next()); (first == nil || first.base.Load() >= threshold) && j.deletable() == 0 {
			j.threshold.Store(0)
			j.settled = held
		}
		return
	}
	// The second condition keeps the cost in proportion if the entries are larger in the
	// storage than in memory.
	if held > compactFactor*j.contents.Size()+compactSlack && held > j.settled+j.settled/2 {
		j.threshold.Store(j.next)
	}
}
