// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/platform/statedir"
)

// Data is not followed by a sentence: what reads both streams reads JSON. The exit code says that something is not as
// configured.
func TestStatusAsData(t *testing.T) {
	t.Parallel()
	dir := statedir.Dir(t.TempDir())
	if err := os.Chmod(string(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir.Layout(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(dir.Socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", dir.Socket())
	if err != nil {
		t.Fatal(err)
	}
	status := servicestatus.Status{Clusters: []servicestatus.Cluster{{Name: "blue", Message: "starting etcd"}}}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(status) }))
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	for _, test := range []struct {
		format string
		talk   string
	}{
		{"json", ""},
		{"yaml", ""},
		{"table", "Error: cluster blue is not yet as configured: starting etcd\n"},
	} {
		var out, talk bytes.Buffer
		code := run([]string{"--state-dir", string(dir), "status", "-o", test.format}, terminal.Streams{In: bytes.NewReader(nil), Out: &out, Err: &talk})
		if code != 1 || out.Len() == 0 || talk.String() != test.talk {
			t.Errorf("%s: exit %d, printed %q, said %q, want %q", test.format, code, &out, &talk, test.talk)
		}
		if test.format == "json" {
			decoder := json.NewDecoder(io.MultiReader(&out, &talk))
			if err := decoder.Decode(&servicestatus.Status{}); err != nil || decoder.More() {
				t.Errorf("both streams together are no JSON: %v", err)
			}
		}
	}
}
