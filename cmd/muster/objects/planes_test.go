// SPDX-License-Identifier: Apache-2.0

package objects

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"muster.dev/muster/cmd/muster/clitest"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/platform/statedir"
)

// Requests on the wire: only the request that is needed, and a patch of only the size.
func TestRequestsToAnAPIServer(t *testing.T) {
	t.Parallel()
	var mutex sync.Mutex
	var requests []string
	group := `{"apiVersion":"muster.dev/v1alpha1","kind":"NodeGroup","metadata":{"namespace":"home","name":"default","uid":"1","resourceVersion":"7"},` +
		`"spec":{"name":"default","provider":"local","scalingConfig":{"minSize":0,"maxSize":5,"desiredSize":2}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mutex.Lock()
		requests = append(requests, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
		mutex.Unlock()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", `299 - "mind the gap"`)
		answer := map[string]string{
			"/apis/muster.dev/v1alpha1/clusters":                           `{"apiVersion":"muster.dev/v1alpha1","kind":"ClusterList","metadata":{},"items":[{"metadata":{"namespace":"home","name":"home"},"spec":{"name":"home"}}]}`,
			"/apis/muster.dev/v1alpha1/nodegroups":                         `{"apiVersion":"muster.dev/v1alpha1","kind":"NodeGroupList","metadata":{"resourceVersion":"9"},"items":[` + group + `]}`,
			"/apis/muster.dev/v1alpha1/namespaces/home/nodegroups":         `{"apiVersion":"muster.dev/v1alpha1","kind":"NodeGroupList","metadata":{"resourceVersion":"9"},"items":[` + group + `]}`,
			"/apis/muster.dev/v1alpha1/namespaces/home/nodegroups/default": group,
			"/api/v1/nodes": `{"apiVersion":"v1","kind":"NodeList","metadata":{},"items":[]}`,
			"/apis/certificates.k8s.io/v1/certificatesigningrequests": `{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequestList","metadata":{},"items":[]}`,
			"/apis/muster.dev/v1alpha1/iamroles":                      `{"apiVersion":"muster.dev/v1alpha1","kind":"IAMRoleList","metadata":{},"items":[{"spec":{"name":"team"}}]}`,
		}[r.URL.Path]
		if answer == "" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answer)
	}))
	defer server.Close()

	b := clitest.NewBench(t, interceptor.Funcs{})
	b.Planes = kinds.NewDialers()
	dir := statedir.Dir(b.O.StateDir)
	kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n"+
		"clusters: [{name: c, cluster: {server: %q}}]\nusers: [{name: c, user: {}}]\n", server.URL)
	for path, content := range map[string]string{dir.Layout(): "", dir.Cluster("muster").Kubeconfig(): kubeconfig, dir.ManagementKubeconfig(): kubeconfig} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Run(t.Context(), getOf(b), "nodegroups", "-o", "name"); err != nil || b.Out.String() != "nodegroup.muster.dev/default\n" {
		t.Fatalf("printed %q (%v)", &b.Out, err)
	}
	if b.Err.String() != "Warning: mind the gap\n" {
		t.Fatalf("said %q", &b.Err)
	}
	for _, kind := range []string{"nodes", "csr"} {
		if err := b.Run(t.Context(), getOf(b), kind); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Run(t.Context(), scaleOf(b), "default", "3"); err != nil {
		t.Fatal(err)
	}
	command := createOf(b)
	command.SetContext(t.Context())
	if roles, _ := (&createCommand{Options: b.O, planes: b.Planes}).completeRoles(command, nil, ""); !slices.Equal(roles, []string{"team"}) {
		t.Errorf("completed %q", roles)
	}
	want := []string{
		"GET /apis/muster.dev/v1alpha1/nodegroups",
		"GET /api/v1/nodes",
		"GET /apis/certificates.k8s.io/v1/certificatesigningrequests",
		"GET /apis/muster.dev/v1alpha1/clusters",
		"GET /apis/muster.dev/v1alpha1/namespaces/home/nodegroups",
		"GET /apis/muster.dev/v1alpha1/nodegroups", // for the claims of all local machines
		`PATCH /apis/muster.dev/v1alpha1/namespaces/home/nodegroups/default {"spec":{"scalingConfig":{"desiredSize":3}}}`,
		"GET /apis/muster.dev/v1alpha1/iamroles",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
}
