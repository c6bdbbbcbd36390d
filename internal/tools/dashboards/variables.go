// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

type variable = cog.Builder[dashboard.VariableModel]

var dataSourceVariable = dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus").
	Description("The Prometheus that scrapes the Collectors")

var pageVariable = dashboard.NewTextBoxVariableBuilder("live_page").Label("Live page").
	Description("Where the token_sli exporter serves its page").
	DefaultValue(text("http://localhost:9464/")).Current(option("http://localhost:9464/", "http://localhost:9464/"))

// filters are the variables of everyRequest: the default dimensions and the vantage.
var filters = []variable{
	dimension("service", "Service", "service_name"),
	dimension("provider", "Provider", "gen_ai_provider_name"),
	dimension("model", "Model", "gen_ai_request_model"),
	dimension("operation", "Operation", "gen_ai_operation_name"),
	oneOf("vantage", "Vantage", "Observer of the requests. One at a time: a client and an engine may report the same request.",
		"label_values("+requests+", vantage)", dashboard.VariableSortAlphabeticalAsc),
}

var outcome = anyOf("outcome", "Outcome", "Outcome of the requests, for latencies", "label_values("+requests+", outcome)", option("success", "success"))

var percentile = choice("percentile", "Percentile", "Percentile of panels with one line per series", 2,
	[2]string{"p50", "0.5"}, [2]string{"p90", "0.9"}, [2]string{"p95", "0.95"}, [2]string{"p99", "0.99"}, [2]string{"p99.9", "0.999"})

// splitBy chooses the label by which panels split. Engine, version and host need
// dimensions that token_sli does not have by default.
func splitBy(selected int) variable {
	return choice("by", "Split by", "Label by which panels split. Engine, host and version need these dimensions in token_sli.", selected,
		[2]string{"model", "gen_ai_request_model"}, [2]string{"service", "service_name"}, [2]string{"provider", "gen_ai_provider_name"},
		[2]string{"operation", "gen_ai_operation_name"}, [2]string{"engine", "server_address"}, [2]string{"version", "service_version"},
		[2]string{"host", "host_name"}, [2]string{"Collector", "instance"})
}

const (
	byModel  = 0
	byEngine = 4
)

func dimension(name, label, key string) variable {
	return anyOf(name, label, "Values of the label "+key, fmt.Sprintf("label_values(%s, %s)", requests, key), allValues)
}

// allValues selects every series, also those without the label.
var allValues = option("All", "$__all")

// anyOf selects any number of values: at first those of an option.
func anyOf(name, label, about, query string, first dashboard.VariableOption) variable {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Description(about).Query(text(query)).Datasource(dataSource).
		Multi(true).IncludeAll(true).AllValue(".*").
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).Current(first)
}

// oneOf selects one value: at first that which is first in the given order.
func oneOf(name, label, about, query string, order dashboard.VariableSort) variable {
	return dashboard.NewQueryVariableBuilder(name).Label(label).Description(about).Query(text(query)).Datasource(dataSource).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(order)
}

// choice selects one of fixed texts, each with its value.
func choice(name, label, about string, selected int, options ...[2]string) variable {
	var values []string
	var all []dashboard.VariableOption
	for i, o := range options {
		values = append(values, o[0]+" : "+o[1])
		built := option(o[0], o[1])
		built.Selected = new(i == selected)
		all = append(all, built)
	}
	return dashboard.NewCustomVariableBuilder(name).Label(label).Description(about).Values(text(strings.Join(values, ", "))).
		Options(all).Current(all[selected])
}

func option(shown, value string) dashboard.VariableOption {
	return dashboard.VariableOption{
		Text:  dashboard.StringOrArrayOfString{String: &shown},
		Value: dashboard.StringOrArrayOfString{String: &value},
	}
}

func text(content string) dashboard.StringOrMap { return dashboard.StringOrMap{String: &content} }
