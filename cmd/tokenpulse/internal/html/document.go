// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package html

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"

	"github.com/tokenpulse/tokenpulse/internal/page"
)

// document is what the page reads in place of a Collector: internal/page/web/src/report.ts.
type document struct {
	Partial bool                       `json:"partial"`
	Files   int                        `json:"files"`
	Notes   []string                   `json:"notes"`
	Answers map[string]json.RawMessage `json:"answers"`
}

// layout is the document. Its policy allows the script and the style inside, by their hashes, and no network. In JSON,
// encoding/json escapes what would end the element.
var layout = template.Must(template.New("").Parse(`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{{.Policy}}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<meta name="description" content="Latency of LLM token streams.">
<title>tokenpulse report</title>
<link rel="icon" href="{{.Icon}}" type="image/svg+xml">
{{.Style}}
</head>
<body>
<a class="skip" href="#content">Skip to the numbers</a>
<header id="header"></header>
<div id="filters" class="filters" role="group" aria-label="Filters"></div>
<main id="content" tabindex="-1"><p class="notice">This report needs JavaScript.</p></main>
<footer id="footer"></footer>
{{.Data}}
{{.Script}}
</body>
</html>
`))

func write(out io.Writer, d *document) error {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	style := "\n/*\n" + string(page.Asset("licenses.txt")) + "*/\n" + string(page.Asset("style.css"))
	script := string(page.Asset("page.js"))
	return layout.Execute(out, map[string]any{
		"Policy": fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data:; base-uri 'none'; form-action 'none'", hash(script), hash(style)),
		"Icon":   template.URL("data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(page.Asset("favicon.svg"))), //nolint:gosec // own file
		"Style":  template.HTML("<style>" + style + "</style>"),                                                             //nolint:gosec // own file
		"Data":   template.HTML(`<script type="application/json" id="report">` + string(data) + "</script>"),                //nolint:gosec // encoding/json escapes < and >
		"Script": template.HTML(`<script type="module">` + script + "</script>"),                                            //nolint:gosec // own file
	})
}

func hash(content string) string {
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
