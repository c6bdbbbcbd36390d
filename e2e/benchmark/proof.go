package main

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// proof is a counter of the Collector that says how much it has processed. The
// receivers answer when the pipeline is through, so it usually says so at once.
type proof struct {
	of        func(c *collectorProcess) (address string)
	metric    string
	perAction int
}

func accepted(spans int) proof {
	return proof{func(c *collectorProcess) string { return c.telemetry }, "otelcol_receiver_accepted_spans", spans}
}

func scraped(metric string, perAction int) proof {
	return proof{func(c *collectorProcess) string { return c.scrape }, metric, perAction}
}

// await returns when the counter says that so many actions were processed, no
// more and no less.
func (p proof) await(c *collectorProcess, actions int) error {
	want := float64(p.perAction * actions)
	var got float64
	for range 200 {
		text, err := c.get(p.of(c), "text/plain;version=0.0.4")
		if err != nil {
			return err
		}
		if got = sum(text, p.metric); got == want {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	return fmt.Errorf("%s is %v and not %v: the Collector did something else than it was sent", p.metric, got, want)
}

// sum adds up all series of a metric in Prometheus' text format.
func sum(text []byte, metric string) (total float64) {
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		rest, found := strings.CutPrefix(lines.Text(), metric)
		if !found || !strings.HasPrefix(rest, "{") && !strings.HasPrefix(rest, " ") {
			continue
		}
		value, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err == nil {
			total += value
		}
	}
	return total
}
