// SPDX-License-Identifier: Apache-2.0

package join

import (
	"bytes"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/hostjoin"
)

// Files that a join would write may hold the password of a registry: no form of --dry-run shows it.
func TestNoPlanShowsSecrets(t *testing.T) {
	plan := hostjoin.Plan{Endpoint: "https://172.31.0.4:443", Files: []hostjoin.PlannedFile{
		{Path: "/etc/containerd/config.toml", Mode: "0600", Content: "[a.auth]\npassword = \"hunter2\"\n"},
		{Path: "/etc/eks/kubelet/proxy", Mode: "0600", Content: "HTTPS_PROXY=http://me:hunter2@proxy:3128\n"},
		{Path: "/x", Mode: "0600", Content: "abcdef.hunter2hunter2hu\n"},
	}}
	for _, format := range []string{terminal.FormatTable, terminal.FormatJSON, terminal.FormatYAML} {
		var out bytes.Buffer
		j := joinCommand{format: format, Options: &terminal.Options{Streams: terminal.Streams{Out: &out}}}
		if err := j.printPlan(plan); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, "hunter2") || strings.Count(got, "(not shown)") != 3 {
			t.Errorf("%s:\n%s", format, got)
		}
	}
	if !strings.Contains(plan.Files[0].Content, "hunter2") {
		t.Error("the plan itself was changed")
	}
}

func TestServerURL(t *testing.T) {
	for endpoint, want := range map[string]string{"10.0.0.1:6443": "https://10.0.0.1:6443", "https://10.0.0.1:6443": "https://10.0.0.1:6443", "[::1]:1": "https://[::1]:1"} {
		if got := serverURL(endpoint); got != want {
			t.Errorf("%s is %s", endpoint, got)
		}
	}
}
