// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package exposition_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
)

// randomFamilies returns families in the order of their names, some with a single sample, some with more than fit into a block.
func randomFamilies(random *rand.Rand) (all []*dto.MetricFamily) {
	counter, gauge, histogram := dto.MetricType_COUNTER, dto.MetricType_GAUGE, dto.MetricType_HISTOGRAM
	created := timestamppb.New(time.Unix(1795233292, 5e8))
	exemplar := func() *dto.Exemplar {
		return &dto.Exemplar{Value: proto.Float64(random.Float64()), Timestamp: created, Label: []*dto.LabelPair{{Name: proto.String("trace_id"), Value: proto.String("0af7")}}}
	}
	for i := range 6 {
		f := &dto.MetricFamily{
			Name: proto.String(fmt.Sprintf("a%d_total", i)), Help: proto.String("Help with \\ and \"quotes\"\n# and what looks like a comment."),
			Type: []*dto.MetricType{&counter, &gauge, &histogram}[i%3],
		}
		if i%2 == 0 {
			f.Unit = proto.String("seconds")
		}
		for n := range []int{1, 15, 16, 17, 100, 700}[random.IntN(6)] {
			m := &dto.Metric{Label: []*dto.LabelPair{{Name: proto.String("model"), Value: proto.String(fmt.Sprintf("m%d \"#\\\n#", n))}, {Name: proto.String("x"), Value: proto.String("# é")}}}
			switch i % 3 {
			case 0:
				m.Counter = &dto.Counter{Value: proto.Float64(float64(n)), Exemplar: exemplar(), CreatedTimestamp: created}
			case 1:
				m.Gauge = &dto.Gauge{Value: proto.Float64(random.NormFloat64())}
			case 2:
				m.Histogram = &dto.Histogram{SampleCount: proto.Uint64(9), SampleSum: proto.Float64(random.Float64()), CreatedTimestamp: created}
				for bound := range 20 {
					m.Histogram.Bucket = append(m.Histogram.Bucket, &dto.Bucket{UpperBound: proto.Float64(float64(bound) / 7), CumulativeCount: proto.Uint64(uint64(bound)), Exemplar: exemplar()})
				}
				m.Histogram.Schema, m.Histogram.PositiveDelta = proto.Int32(6), []int64{9, -3}
				m.Histogram.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(3), Length: proto.Uint32(2)}}
			}
			f.Metric = append(f.Metric, m)
		}
		all = append(all, f)
	}
	return all
}

// built returns what a Builder makes of families whose samples come in another order, as those of a walk over series.
func built(t *testing.T, format exposition.Format, families []*dto.MetricFamily) []byte {
	t.Helper()
	b := exposition.NewBuilder(format)
	for n := range 700 {
		for i := range families {
			f := families[len(families)-1-i]
			if n < len(f.Metric) {
				b.Add(&dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Unit: f.Unit}, f.Metric[n])
			}
		}
	}
	body, err := b.Body()
	require.NoError(t, err)
	var out bytes.Buffer
	n, err := body.WriteTo(&out)
	require.NoError(t, err)
	require.EqualValues(t, out.Len(), n)
	require.InDelta(t, n, body.Size(), 100)
	if !format.Gzip {
		return out.Bytes()
	}
	r, err := gzip.NewReader(&out)
	require.NoError(t, err)
	r.Multistream(false) // some clients read the first stream only
	text, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Zero(t, out.Len(), "all in one stream")
	return text
}

// The encoders of Prometheus, which take whole families, are the truth.
func TestBody_EqualsWhatPrometheusEncodersMakeOfWholeFamilies(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 4 {
		families := randomFamilies(random)
		for _, kind := range []expfmt.FormatType{expfmt.TypeTextPlain, expfmt.TypeOpenMetrics, expfmt.TypeProtoDelim} {
			var want bytes.Buffer
			encoder := expfmt.NewEncoder(&want, expfmt.NewFormat(kind), expfmt.WithCreatedLines())
			for _, f := range families {
				require.NoError(t, encoder.Encode(f))
			}
			require.NoError(t, encoder.(expfmt.Closer).Close())
			for _, zipped := range []bool{false, true} {
				got := built(t, exposition.Format{Type: kind, Gzip: zipped}, families)
				if kind != expfmt.TypeProtoDelim { // fields of a message may have any order
					require.Equal(t, want.String(), string(got))
					continue
				}
				decoder := expfmt.NewDecoder(bytes.NewReader(got), expfmt.NewFormat(kind))
				for _, f := range families {
					var decoded dto.MetricFamily
					require.NoError(t, decoder.Decode(&decoded))
					require.True(t, proto.Equal(f, &decoded), f.GetName())
				}
				require.ErrorIs(t, decoder.Decode(new(dto.MetricFamily)), io.EOF)
			}
		}
	}
}

func TestBody_WithoutSamples(t *testing.T) {
	require.Empty(t, built(t, exposition.Format{Type: expfmt.TypeTextPlain}, nil))
	require.Empty(t, built(t, exposition.Format{Type: expfmt.TypeTextPlain, Gzip: true}, nil))
	require.Equal(t, "# EOF\n", string(built(t, exposition.Format{Type: expfmt.TypeOpenMetrics}, nil)))
}

func TestBuilder_ReportsWhatCannotBeEncoded(t *testing.T) {
	b := exposition.NewBuilder(exposition.Format{Type: expfmt.TypeTextPlain})
	kind := dto.MetricType_COUNTER
	b.Add(&dto.MetricFamily{Name: proto.String("a"), Type: &kind}, &dto.Metric{Gauge: &dto.Gauge{Value: proto.Float64(1)}})
	_, err := b.Body()
	require.ErrorContains(t, err, "expected counter")
}

// failing fails after some bytes.
type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errors.New("broken pipe")
	}
	return len(b), nil
}

func TestBody_WriteToEndsWithTheFirstError(t *testing.T) {
	b := exposition.NewBuilder(exposition.Format{Type: expfmt.TypeTextPlain})
	kind := dto.MetricType_GAUGE
	for range 100 {
		b.Add(&dto.MetricFamily{Name: proto.String("a"), Type: &kind}, &dto.Metric{
			Gauge: &dto.Gauge{Value: proto.Float64(1)}, Label: []*dto.LabelPair{{Name: proto.String("l"), Value: proto.String(strings.Repeat("x", 10_000))}},
		})
	}
	body, err := b.Body()
	require.NoError(t, err)
	n, err := body.WriteTo(&failing{left: 200_000})
	require.ErrorContains(t, err, "broken pipe")
	require.LessOrEqual(t, n, int64(200_000))
}
