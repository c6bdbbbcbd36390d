// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package tokensliexporter

import (
	"io"
	"net/http"
)

// links answers a browser that opens the address without a path.
func links(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = io.WriteString(w, linksPage) // the client went away
}

const linksPage = `<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>tokenpulse token_sli</title></head>
<body>
<h1>tokenpulse token_sli</h1>
<ul>
<li><a href="` + metricsPath + `">Metrics</a> for Prometheus</li>
<li><a href="https://github.com/tokenpulse/tokenpulse/blob/main/docs/metrics.md">What each metric means</a></li>
</ul>
</body>
</html>
`
