// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/nodeconfig"
)

func TestIgnoredChecksExist(t *testing.T) {
	for _, good := range [][]string{nil, {"swap"}, {"Swap", "Container Runtime"}, {"ALL"}, {"clock", "port 10250"}} {
		j := joinCommand{ignorePreflight: good}
		if err := j.checkIgnored(); err != nil {
			t.Errorf("%q: %v", good, err)
		}
		if len(good) > 0 && !j.ignores("swap") && good[0] != "clock" {
			t.Errorf("%q does not ignore swap", good)
		}
	}
	for _, bad := range [][]string{{"swapp"}, {"swap", "NumCPU"}, {""}} {
		err := (&joinCommand{ignorePreflight: bad}).checkIgnored()
		var usage terminal.UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), "there are: all, root, ") || !strings.Contains(err.Error(), "clock") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	// It is told before anything is asked.
	cmd := NewCommand(&terminal.Options{Streams: terminal.Streams{In: strings.NewReader("")}})
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"10.0.0.1:6443", "--ignore-preflight-errors", "swapp"})
	if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), `"swapp"`) {
		t.Errorf("got %v", err)
	}
}

// With a file that says where the cluster is, the server is asked, and its clock compared, as with an address.
func TestPreflightByADiscoveryFile(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Date", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat))
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "cluster.conf")
	text := "apiVersion: v1\nkind: Config\nclusters: [{name: a, cluster: {server: '" + server.URL + "'}}]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	j := joinCommand{file: file, nodeName: "worker-1", ignorePreflight: []string{"Systemd", "root", "swap"}, Options: &terminal.Options{Streams: terminal.Streams{Err: &said}}}
	_, err := j.preflight(t.Context(), nodeconfig.Spec{})
	if err == nil || !strings.Contains(err.Error(), "clock") || !strings.Contains(said.String(), "FAIL  clock: ") || !strings.Contains(said.String(), "behind the server's") {
		t.Errorf("%v; said:\n%s", err, said.String())
	}
	// A file that is not there is discovery's to complain of.
	said.Reset()
	j.file += "x"
	if _, err := j.preflight(t.Context(), nodeconfig.Spec{}); err != nil && strings.Contains(err.Error(), "clock") || strings.Contains(said.String(), "endpoint:") {
		t.Errorf("%v; said:\n%s", err, said.String())
	}
}
