package spanreader

import "go.opentelemetry.io/collector/pdata/pcommon"

// dimensions are the attributes that tell series apart.
type dimensions struct {
	names []string
	// lengths has a bit for each length of a name, modulo 64: it spares most
	// attributes the comparisons.
	lengths uint64
}

func newDimensions(names []string) dimensions {
	d := dimensions{names: names}
	for _, name := range names {
		d.lengths |= 1 << (len(name) % 64)
	}
	return d
}

// read takes an attribute into the values of the dimensions, if it is one. An empty
// value counts as none.
func (d *dimensions) read(values []string, key string, v pcommon.Value) {
	if d.lengths>>(len(key)%64)&1 == 0 {
		return
	}
	for i, name := range d.names {
		if key == name {
			if s := scalar(v); s != "" {
				values[i] = s
			}
			return
		}
	}
}

// scalar returns the value as a label shows it. Lists, maps and bytes make no
// label.
func scalar(v pcommon.Value) string {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		return v.Str()
	case pcommon.ValueTypeInt, pcommon.ValueTypeDouble, pcommon.ValueTypeBool:
		return v.AsString()
	default:
		return ""
	}
}
