// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
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

	"muster.dev/muster/internal/state"
)

// Of a cluster that is not in the state directory nobody is told to start it with muster, and one that was named is the one that counts.
func TestAnotherCluster(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	t.Setenv("HOME", dir)
	t.Setenv(state.Env, "")
	dead := filepath.Join(dir, "dead")
	kubeconfig := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c, user: c}}]\n" +
		"clusters: [{name: c, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: c, user: {}}]\n"
	if err := os.WriteFile(dead, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	if (&options{stateDir: state.Default()}).named() || !(&options{stateDir: open}).named() {
		t.Error("the default is named, or another one is not")
	}
	none := filepath.Join(dir, "s")
	for _, command := range []string{"csr list", "token list", "certs issued", "auth check"} {
		for _, test := range []struct{ flags, want string }{
			{"--state-dir " + none + " --kubeconfig " + dead, "Error: nothing answers at 127.0.0.1:1, where the kubeconfig says that the cluster is\n"},
			{"--state-dir " + none, "nothing is set up in " + none + ", and kubectl knows no cluster either; `muster up` makes one\n"},
			{"--state-dir " + open, "is open to others"},
		} {
			var out, talk bytes.Buffer
			code := run(strings.Fields(command+" "+test.flags), streams{out: &out, err: &talk})
			if code != 1 || !strings.Contains(talk.String(), test.want) {
				t.Errorf("%s %s: exit %d, said %q", command, test.flags, code, &talk)
			}
		}
	}
}

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
			"/apis/muster.dev/v1alpha1/iamroles":                      `{"apiVersion":"muster.dev/v1alpha1","kind":"IAMRoleList","metadata":{},"items":[{"spec":{"name":"team"}}]}`,
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
	command := b.create()
	command.SetContext(t.Context())
	if roles, _ := (&createCommand{options: b.o, planes: b.planes}).completeRoles(command, nil, ""); !slices.Equal(roles, []string{"team"}) {
		t.Errorf("completed %q", roles)
	}
	want := []string{
		"GET /apis/muster.dev/v1alpha1/nodegroups",
		"GET /api/v1/nodes",
		"GET /apis/certificates.k8s.io/v1/certificatesigningrequests",
		"GET /apis/muster.dev/v1alpha1/nodegroups",
		`PATCH /apis/muster.dev/v1alpha1/nodegroups/default {"spec":{"scalingConfig":{"desiredSize":3}}}`,
		"GET /apis/muster.dev/v1alpha1/iamroles",
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
}
