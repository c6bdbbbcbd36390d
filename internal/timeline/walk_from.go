package timeline

// WalkFrom starts a walk over the chunks whose offsets count from the Unix time startUnixNano,
// in nanoseconds, as those of Decode do. It reads the timeline in place: the walk is valid until
// the timeline is appended to or reset.
func (t *Timeline) WalkFrom(startUnixNano int64) Walk {
	walk := t.Walk()
	walk.offset = t.first - startUnixNano
	walk.grid += walk.offset
	return walk
}
