// SPDX-License-Identifier: Apache-2.0

package issuer

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxAge is how long verifiers may keep a document: the max-age that kube-apiserver gives its own. A key is published
// that long before the first token is signed with it.
const MaxAge = time.Hour

// Lookup finds the documents of the cluster whose issuer has an id.
type Lookup func(id string) (Documents, bool)

// Handler answers with the documents of the issuers that lookup finds, to anybody: they are public. Every other path is
// a 404 that does not name the issuers that exist.
func Handler(lookup Lookup) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			refuse(w, http.StatusMethodNotAllowed, "only GET and HEAD are answered")
			return
		}
		id, path, ok := split(r.URL.EscapedPath())
		if !ok {
			refuse(w, http.StatusNotFound, "not found")
			return
		}
		documents, ok := lookup(id)
		if !ok {
			refuse(w, http.StatusNotFound, "not found")
			return
		}
		body, kind := documents.Discovery, "application/json"
		if path == keysPath {
			body, kind = documents.Keys, "application/jwk-set+json"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Cache-Control", "public, max-age="+strconv.Itoa(int(MaxAge/time.Second)))
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(body) // net/http leaves it out of the answer to HEAD
	})
}

// split reads a path as it came: nothing is decoded and nothing cleaned, so that each document has one path.
func split(escaped string) (id, path string, ok bool) {
	rest, ok := strings.CutPrefix(escaped, prefix)
	if !ok || len(rest) < 2*idBytes {
		return "", "", false
	}
	id, path = rest[:2*idBytes], rest[2*idBytes:]
	return id, path, validID(id) && (path == discoveryPath || path == keysPath)
}

func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`{"message":"` + message + `"}` + "\n"))
}
