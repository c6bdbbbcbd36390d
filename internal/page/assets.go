// Copyright The tokenpulse Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

//go:embed assets
var embedded embed.FS

// Asset returns a file of the page, such as page.js.
func Asset(name string) []byte { return files[name].content }

// file is a file of the page.
type file struct {
	content           []byte
	contentType, etag string
}

// files holds the files by path, after the slash.
var files = func() map[string]file {
	all := map[string]file{}
	err := fs.WalkDir(embedded, "assets", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(name)
		sum := sha256.Sum256(content)
		all[strings.TrimPrefix(name, "assets/")] = file{content, contentTypes[path.Ext(name)], `"` + hex.EncodeToString(sum[:8]) + `"`}
		return err
	})
	if err != nil {
		panic(err) // the files are part of the program
	}
	return all
}()

// contentTypes do not depend on the types that the operating system knows.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// asset serves a file of the page. A browser asks again each time, and gets it only if it
// changed.
func asset(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.Error(w, "use GET", http.StatusMethodNotAllowed)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	f, ok := files[name]
	if !ok {
		http.Error(w, "not found: the page is at /, its API at "+root+"openapi.yaml, metrics at /metrics", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", f.contentType)
	w.Header().Set("ETag", f.etag)
	w.Header().Set("Cache-Control", "no-cache")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(f.content))
}
