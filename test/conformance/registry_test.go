// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

func TestRegistry(t *testing.T) {
	blobs := t.TempDir()
	text := `{"schemaVersion": 2}`
	known := digest.FromString(text)
	if err := os.WriteFile(filepath.Join(blobs, known.Encoded()), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(blobs), "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(registry(ocispec.Index{Manifests: []ocispec.Descriptor{{
		MediaType: ocispec.MediaTypeImageManifest, Digest: known, Size: int64(len(text)),
		Annotations: map[string]string{nameAnnotation: "registry.k8s.io/e2e-test-images/kitten:1.8"},
	}}}, blobs))
	defer server.Close()
	manifests := "/v2/e2e-test-images/kitten/manifests/"
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodGet, "/v2/", http.StatusOK},
		{http.MethodGet, manifests + "1.8", http.StatusOK},
		{http.MethodHead, manifests + "1.8", http.StatusOK},
		{http.MethodGet, manifests + known.String(), http.StatusOK},
		{http.MethodGet, "/v2/e2e-test-images/kitten/blobs/" + known.String(), http.StatusOK},
		{http.MethodGet, manifests + "1.9", http.StatusNotFound},
		{http.MethodGet, "/v2/kitten/manifests/1.8", http.StatusNotFound},
		{http.MethodGet, manifests + digest.FromString("another").String(), http.StatusNotFound},
		{http.MethodGet, manifests + "sha256:..%2fsecret", http.StatusNotFound},
		{http.MethodPut, manifests + "1.8", http.StatusNotFound},
		{http.MethodGet, "/", http.StatusNotFound},
	} {
		request, err := http.NewRequestWithContext(t.Context(), c.method, server.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if response.StatusCode != c.status {
			t.Errorf("%s %s: %s, want %d", c.method, c.path, response.Status, c.status)
		}
		if c.status != http.StatusOK || c.path == "/v2/" {
			continue
		}
		if got := response.Header; got.Get("Docker-Content-Digest") != known.String() || got.Get("Content-Type") != ocispec.MediaTypeImageManifest {
			t.Errorf("%s %s: headers %v", c.method, c.path, got)
		}
		if c.method == http.MethodGet && string(body) != text {
			t.Errorf("%s %s: %s", c.method, c.path, body)
		}
	}
}

func TestRegistryWithoutAnIndex(t *testing.T) {
	if err := serveRegistry(t.Context(), strings.NewReader("no index")); err == nil {
		t.Error("a registry served an index that is none")
	}
}
