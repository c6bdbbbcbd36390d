// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"errors"
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"

	"github.com/tokenpulse/tokenpulse/exporter/tokensliexporter/internal/exposition"
	"github.com/tokenpulse/tokenpulse/internal/keeper"
)

// gatherer is a prometheus.Gatherer that writes series directly into Prometheus'
// messages. A prometheus.Registry would cost several times as much, for it allocates an
// object per metric, and would require the same labels on all metrics of a family,
// while labels without a value are absent here.
type gatherer struct {
	keeper               *keeper.Keeper
	compared             *comparisons
	capacities           *capacities
	dimensions           []string // as labels
	standard             []string // attributes of the metrics of conventions
	percentiles, windows []string // label values
	zeroFor              time.Duration
}

func newGatherer(k *keeper.Keeper, config *Config, compared *comparisons, capacities *capacities) (*gatherer, error) {
	dimensions, err := dimensionLabels(config.Shared.Series.Dimensions.Names())
	g := &gatherer{keeper: k, compared: compared, capacities: capacities, dimensions: dimensions, standard: config.Shared.Conventions.Labels(), zeroFor: config.ZeroFor}
	for _, p := range config.Percentiles {
		g.percentiles = append(g.percentiles, strconv.FormatFloat(p, 'f', -1, 64))
	}
	for _, w := range config.Windows {
		g.windows = append(g.windows, model.Duration(w).String())
	}
	return g, err
}

// render renders the current series in a variant. It returns early, with any result, once unused returns true.
func (g *gatherer) render(v variant, unused func() bool) (*exposition.Body, error) {
	s := &scrape{
		gatherer: g, variant: v, unused: unused, builder: exposition.NewBuilder(v.Format),
		headers: map[string]*dto.MetricFamily{}, pairs: map[[2]string]*dto.LabelPair{}, now: time.Now(), untilHalf: g.keeper.Engine.Held() / 2,
	}
	keeper.Collect(g.keeper, s.now, s)
	g.compared.collect(s, s.now)
	g.capacities.collect(s, s.now)
	body, err := s.builder.Body()
	return body, errors.Join(s.err, err)
}

// companyPerSeries is a tenth of the time that a series takes to render.
const companyPerSeries = 5 * time.Microsecond

// company returns how long a rendering waits for further scrapes, in proportion to what they would cost.
func (g *gatherer) company() time.Duration {
	return time.Duration(g.keeper.Engine.Held()) * companyPerSeries
}
