// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/image/registrystore"
)

func (g *registry) getManifest(q *request) error {
	m, content, err := g.Store.Manifest(q.repository, q.reference)
	if err != nil {
		return err
	}
	header := q.answer.Header()
	header.Set("Content-Type", m.MediaType)
	header.Set("Content-Length", strconv.Itoa(len(content)))
	header.Set("Docker-Content-Digest", m.Digest.String())
	q.answer.WriteHeader(http.StatusOK)
	if q.Method == http.MethodHead {
		return nil
	}
	_, err = q.answer.Write(content)
	return err
}

func (g *registry) putManifest(q *request) error {
	content, err := io.ReadAll(http.MaxBytesReader(q.answer, io.NopCloser(body{q}), registrystore.MaxManifest))
	if err != nil {
		return err
	}
	m, err := g.Store.PutManifest(q.Context(), q.repository, q.reference, q.Header.Get("Content-Type"), content)
	if err != nil {
		return err
	}
	header := q.answer.Header()
	header.Set("Location", "/v2/"+q.repository+"/manifests/"+m.Digest.String())
	header.Set("Docker-Content-Digest", m.Digest.String())
	q.answer.WriteHeader(http.StatusCreated)
	return nil
}

func (g *registry) getBlob(q *request) error {
	file, err := g.Store.OpenBlob(q.repository, digestOf(q.reference))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	header := q.answer.Header()
	header.Set("Content-Type", "application/octet-stream")
	header.Set("Docker-Content-Digest", q.reference)
	header.Set("Etag", `"`+q.reference+`"`)
	http.ServeContent(q.answer, q.Request, "", time.Time{}, file) // ranges, for pulls that go on after a break
	return nil
}

// defaultTags is how many tags a page has, unless the client says.
const defaultTags = 1000

func (g *registry) listTags(q *request) error {
	all, err := g.Store.Manifests(q.repository)
	if err != nil {
		return err
	}
	tags := []string{}
	for _, m := range all {
		tags = append(tags, m.Tags...)
	}
	slices.Sort(tags)
	query, size := q.URL.Query(), defaultTags
	if text := query.Get("n"); text != "" {
		if size, err = strconv.Atoi(text); err != nil || size < 1 {
			return &failure{http.StatusBadRequest, "UNSUPPORTED", fmt.Sprintf("n=%.20q: it must be a number above 0", text)}
		}
	}
	if last := query.Get("last"); last != "" {
		tags = tags[min(len(tags), after(tags, last)):]
	}
	if len(tags) > size {
		tags = tags[:size]
		next := url.Values{"n": {strconv.Itoa(size)}, "last": {tags[size-1]}}
		q.answer.Header().Set("Link", "</v2/"+q.repository+"/tags/list?"+next.Encode()+`>; rel="next"`)
	}
	q.answer.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(q.answer).Encode(map[string]any{"name": q.repository, "tags": tags})
}

// after returns the index of the first name that sorts behind last.
func after(sorted []string, last string) int {
	n, found := slices.BinarySearchFunc(sorted, last, strings.Compare)
	if found {
		n++
	}
	return n
}
