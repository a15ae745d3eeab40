// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/internal/state"
)

// What goes over the wire: no question but the one that was asked, and a patch of nothing but the size.
func TestRequestsToAnAPIServer(t *testing.T) {
	t.Parallel()
	var mutex sync.Mutex
	var requests []string
	group := `{"apiVersion":"muster.dev/v1alpha1","kind":"NodeGroup","metadata":{"name":"default","uid":"1","resourceVersion":"7"},` +
		`"spec":{"clusterName":"default","provider":"local","scalingConfig":{"minSize":0,"maxSize":5,"desiredSize":2}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		requests = append(requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "mind the gap"`)
		answer := map[string]string{
			"/apis/muster.dev/v1alpha1/nodegroups":         `{"apiVersion":"muster.dev/v1alpha1","kind":"NodeGroupList","metadata":{"resourceVersion":"9"},"items":[` + group + `]}`,
			"/apis/muster.dev/v1alpha1/nodegroups/default": group,
			"/api/v1/nodes": `{"apiVersion":"v1","kind":"NodeList","metadata":{},"items":[]}`,
			"/apis/certificates.k8s.io/v1/certificatesigningrequests": `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequestList","metadata":{},"items":[]}`,
		}[r.URL.Path]
		if answer == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()

	b := newBench(t, interceptor.Funcs{})
	b.planes = realPlanes()
	dir := state.Dir(b.o.stateDir)
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: c, user: {}}]\n", server.URL)
	for path, content := range map[string]string{dir.Config(): "", dir.ClusterKubeconfig(): kubeconfig, dir.ManagementKubeconfig(): kubeconfig} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.run(t.Context(), b.get(), "nodegroups", "-o", "name"); err != nil || b.out.String() != "nodegroup.muster.dev/default\n" {
		t.Fatalf("printed %q (%v)", &b.out, err)
	}
	if b.err.String() != "Warning: mind the gap\n" {
		t.Fatalf("said %q", &b.err)
	}
	for _, kind := range []string{"nodes", "csr"} {
		if err := b.run(t.Context(), b.get(), kind); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.run(t.Context(), b.scale(), "default", "3"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"GET /apis/muster.dev/v1alpha1/nodegroups",
		"GET /api/v1/nodes",
		"GET /apis/certificates.k8s.io/v1/certificatesigningrequests",
		"GET /apis/muster.dev/v1alpha1/nodegroups",
		`PATCH /apis/muster.dev/v1alpha1/nodegroups/default {"spec":{"scalingConfig":{"desiredSize":3}}}`,
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
}
