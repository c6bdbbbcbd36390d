// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"

	"github.com/tokenpulse/tokenpulse/internal/httpguard"
)

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

// withoutForeignLinks refuses links on pages of other sites that would make a comparison begin anew: no other GET
// drops what was counted.
func withoutForeignLinks(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if httpguard.IsForeignLink(r) && r.URL.Query().Has(paramSince) {
			fail(w, &failure{http.StatusForbidden, "a link on a page of another site cannot begin a comparison anew", "enter the address in the browser, or leave `since` out"})
			return
		}
		next(w, r)
	}
}
