// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import "net/http"

// contentSecurityPolicy allows the page's own files only: nothing inline, nothing from the
// network, no frame around it. A label value that became markup would do nothing.
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// secure sets the headers that limit what a browser does with a response.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cache-Control", "no-store") // assets replace it
		next.ServeHTTP(w, r)
	})
}

// refuseForeignChanges refuses requests that may change something, if a page of another origin made the browser send
// them. Even with authentication, they may have the user's credentials.
func refuseForeignChanges(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if protection.Check(r) != nil {
			fail(w, &failure{Status: http.StatusForbidden, Message: "a web page of another origin sent this request", Remedy: "send it from the live page of this Collector, or by a program such as curl"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
