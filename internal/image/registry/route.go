// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"strconv"
	"strings"
)

type kind int

const (
	kindOther kind = iota
	kindBase
	kindManifest
	kindBlob
	kindUploads
	kindUpload
	kindTags
)

// String is the kind as metrics have it.
func (k kind) String() string {
	return [...]string{"other", "base", "manifest", "blob", "uploads", "upload", "tags"}[k]
}

// route is what a path is about. Nothing of it is checked.
type route struct {
	kind       kind
	repository string
	reference  string // a tag, a digest or the id of an upload
}

// parse reads a path of the distribution protocol. The name of a repository may have slashes, and parts that look like
// the rest of a path: what comes last counts.
func parse(path string) route {
	rest, ok := strings.CutPrefix(path, "/v2")
	if !ok || rest != "" && rest[0] != '/' {
		return route{}
	}
	rest = strings.TrimPrefix(rest, "/")
	if rest == "" {
		return route{kind: kindBase}
	}
	if name, ok := strings.CutSuffix(rest, "/tags/list"); ok {
		return route{kindTags, name, ""}
	}
	for _, end := range []string{"/blobs/uploads/", "/blobs/uploads"} {
		if name, ok := strings.CutSuffix(rest, end); ok {
			return route{kindUploads, name, ""}
		}
	}
	parts := strings.Split(rest, "/")
	last, n := parts[len(parts)-1], len(parts)
	switch {
	case n > 3 && parts[n-2] == "uploads" && parts[n-3] == "blobs":
		return route{kindUpload, strings.Join(parts[:n-3], "/"), last}
	case n > 2 && parts[n-2] == "manifests":
		return route{kindManifest, strings.Join(parts[:n-2], "/"), last}
	case n > 2 && parts[n-2] == "blobs":
		return route{kindBlob, strings.Join(parts[:n-2], "/"), last}
	}
	return route{}
}

// method is a request's for metrics, which are to have few values.
func method(name string) string {
	switch name {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return name
	}
	return "other"
}

func code(n int) string { return strconv.Itoa(n) }
