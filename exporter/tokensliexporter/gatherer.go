// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/model"

	"github.com/tokenpulse/tokenpulse/internal/keeper"
)

// gatherer is a prometheus.Gatherer that writes series directly into Prometheus'
// messages. A prometheus.Registry would cost several times as much, for it allocates an
// object per metric, and would require the same labels on all metrics of a family,
// while labels without a value are absent here.
type gatherer struct {
	keeper               *keeper.Keeper
	compared             *comparisons
	dimensions           []string // as labels
	standard             []string // attributes of the metrics of conventions
	percentiles, windows []string // label values
	zeroFor              time.Duration
}

func newGatherer(k *keeper.Keeper, config *Config, compared *comparisons) (*gatherer, error) {
	dimensions, err := dimensionLabels(config.Shared.Series.Dimensions.Names())
	g := &gatherer{keeper: k, compared: compared, dimensions: dimensions, standard: config.Shared.Conventions.Labels(), zeroFor: config.ZeroFor}
	for _, p := range config.Percentiles {
		g.percentiles = append(g.percentiles, strconv.FormatFloat(p, 'f', -1, 64))
	}
	for _, w := range config.Windows {
		g.windows = append(g.windows, model.Duration(w).String())
	}
	return g, err
}

// exposition is what a scrape shows.
type exposition struct {
	families []*dto.MetricFamily // in the order of their names
	young    young
}

// gather returns the current metrics.
func (g *gatherer) gather() (exposition, error) {
	s := &scrape{gatherer: g, families: map[string]*dto.MetricFamily{}, pairs: map[[2]string]*dto.LabelPair{}, now: time.Now(), young: young{}}
	keeper.Collect(g.keeper, s.now, s)
	g.compared.collect(s, s.now)
	families := slices.SortedFunc(maps.Values(s.families), func(a, b *dto.MetricFamily) int { return strings.Compare(*a.Name, *b.Name) })
	return exposition{families, s.young}, s.err
}
