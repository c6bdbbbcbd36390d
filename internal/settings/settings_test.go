// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"io/fs"
	"net"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/confmap"
)

type config struct {
	Server   confighttp.ServerConfig          `mapstructure:",squash"`
	Client   confighttp.ClientConfig          `mapstructure:"client"`
	Section  configoptional.Optional[section] `mapstructure:"section"`
	Numbers  map[string][]float64             `mapstructure:"numbers" use:"a number above 0"`
	Sections []*section                       `mapstructure:"sections"`
	Storage  *component.ID                    `mapstructure:"storage"`
	Any      any                              `mapstructure:"any"`
	MaxShare int                              `mapstructure:"max_share_per_client"`
}

type section struct {
	Wait  time.Duration `mapstructure:"wait"`
	Names []string      `mapstructure:"names"`
}

// What the Collector decodes is never rejected.
func TestUnmarshal_AcceptsWhatTheCollectorDecodes(t *testing.T) {
	for name, yaml := range map[string]string{
		"nothing":                "",
		"sections without keys":  "{section: , client: , sections: [], numbers: {}, storage: , any: }",
		"optional switched off":  "{section: {enabled: false, wait: 1s}}",
		"names with commas":      "{section: {names: 'a,b'}}",
		"nanoseconds":            "{section: {wait: 1000}}",
		"whole numbers":          "{numbers: {a: [1, 2.5]}}",
		"headers as a map":       "{client: {endpoint: 'http://a', headers: {a: b}}, response_headers: {a: b}}",
		"headers as a list":      "{client: {headers: [{name: a, value: b}]}}",
		"ID":                     "{storage: file_storage/a}",
		"anything":               "{any: {a: [1, {b: c}]}}",
		"keys of the server":     "{endpoint: 'localhost:1', tls: {cert_file: a, key_file: b}, cors: {allowed_origins: ['*']}, idle_timeout: 1s}",
		"middlewares and dialer": "{middlewares: [{id: a}], transport: tcp, read_timeout: 1s}",
	} {
		t.Run(name, func(t *testing.T) {
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			require.NoError(t, conf.Unmarshal(new(config)), "the Collector itself")
			require.NoError(t, Unmarshal(conf, new(config)))
		})
	}
}

func TestUnmarshal_NamesKeyAndRemedy(t *testing.T) {
	for yaml, message := range map[string]string{
		"{wait: 1s}":                           "unknown key \"wait\"; use `section::wait`; valid keys: ",
		"{max_streams_per_client: 1}":          "unknown key \"max_streams_per_client\"; use `max_share_per_client`; valid keys: ",
		"{section: {max_per_client: 1}}":       "unknown key \"max_per_client\" in `section`; use `max_share_per_client`; valid keys: wait, names",
		"{per_client: 1}":                      "unknown key \"per_client\"; valid keys: ",
		"{ignored: 1}":                         "unknown key \"ignored\"; valid keys: ",
		"{tls: {file: a}}":                     "unknown key \"file\" in `tls`; valid keys: ca_file, ca_pem,",
		"{sections: [{}, {enabled: true}]}":    "unknown key \"enabled\" in `sections::1`; valid keys: wait, names",
		"{sections: {}}":                       "`sections` is a section with keys; use a list, in brackets",
		"{section: 1s}":                        "`section` is \"1s\"; use a section with the keys wait, names",
		"{section: {wait: soon, names: [[]]}}": "`section::names::0` is a list; use text, in quotes if it looks like something else\n`section::wait` is \"soon\"; use a duration with its unit, such as 30s",
		"{numbers: [1]}":                       "`numbers` is a list; use keys with a value each",
		"{numbers: {a: 1}}":                    "`numbers::a` is 1; use a list, in brackets",
		"{numbers: {a: [x]}}":                  "`numbers::a::0` is \"x\"; use a number above 0",
		"{storage: [a]}":                       "`storage` is a list; use text",
		"{storage: a b}":                       "in \"a b\" id",
	} {
		t.Run(yaml, func(t *testing.T) {
			retrieved, err := confmap.NewRetrievedFromYAML([]byte(yaml))
			require.NoError(t, err)
			conf, err := retrieved.AsConf()
			require.NoError(t, err)
			require.ErrorContains(t, Unmarshal(conf, new(config)), message)
		})
	}
}

func TestStartError_NamesTheKey(t *testing.T) {
	require.NoError(t, StartError("a", nil))
	other := errors.New("other")
	taken := &net.OpError{Op: "listen", Err: syscall.EADDRINUSE}
	for _, test := range []struct {
		section string
		err     error
		message string
	}{
		{"", taken, "`endpoint`: listen: address already in use; stop what listens there, or choose another port"},
		{"a::b", &net.OpError{Op: "listen", Err: other}, "`a::b::endpoint`: listen: other"},
		{"a", fs.ErrPermission, "`a::tls`: permission denied; enter the path of a file that the Collector may read"},
		{"a", other, "`a`: other"},
		{"", other, "other"},
	} {
		err := StartError(test.section, test.err)
		require.ErrorIs(t, err, test.err)
		require.EqualError(t, err, test.message)
	}
}
