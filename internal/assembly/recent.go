package assembly

import "encoding/binary"

// recentParts remembers where in a batch the parts are that were asked for last.
// Services tell of many streams in turns, token by token, and each token asks for
// its stream's part: what is here spares the batch's index a lookup.
//
// It is a guess and nothing else: a slot may hold the part of another stream with
// the same slot, or what an earlier batch left there. So it needs no emptying, and
// whoever follows it checks that the part is there and has the id.
type recentParts [1 << slotBits]uint32

// slotBits makes a thousand slots, for streams by the hundred to have one each.
const slotBits = 10

// slot returns where the part of an id is remembered. Eight bytes of its beginning, its
// middle and its end tell ids apart, mostly. Where they do not, the index is asked.
func (r *recentParts) slot(id []byte) *uint32 {
	const word = 8
	var mix uint64
	if len(id) >= word {
		first, middle, last := id, id[(len(id)-word)/2:], id[len(id)-word:]
		mix = 5*binary.LittleEndian.Uint64(first) + 3*binary.LittleEndian.Uint64(middle) + binary.LittleEndian.Uint64(last)
	} else {
		for _, b := range id {
			mix = mix<<8 | uint64(b)
		}
	}
	// The product's upper bits depend on all bits of mix. The factor is odd, large
	// and without a pattern: 2^64 divided by the golden ratio.
	return &r[mix*0x9e37_79b9_7f4a_7c15>>(64-slotBits)]
}
