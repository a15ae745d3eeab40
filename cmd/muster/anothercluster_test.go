// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/statedir"
)

// Of a cluster that is not in the state directory nobody is told to start it with muster, and one that was named is the
// one that counts.
func TestAnotherCluster(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("KUBECONFIG", filepath.Join(dir, "none"))
	t.Setenv("HOME", dir)
	t.Setenv(statedir.Env, "")
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
	if (&terminal.Options{StateDir: statedir.Default()}).Named() || !(&terminal.Options{StateDir: open}).Named() {
		t.Error("the default is named, or another one is not")
	}
	none := filepath.Join(dir, "s")
	for _, command := range []string{"csr list", "token list", "certs issued", "auth check"} {
		for _, test := range []struct{ flags, want string }{
			{"--state-dir " + none + " --kubeconfig " + dead, "Error: nothing answers at 127.0.0.1:1, where the kubeconfig says that the cluster is\n"},
			{"--state-dir " + none, "nothing is set up in " + none + ", and kubectl has no cluster either: `muster up` makes one\n"},
			{"--state-dir " + open, "is open to others"},
		} {
			var out, talk bytes.Buffer
			code := run(strings.Fields(command+" "+test.flags), terminal.Streams{Out: &out, Err: &talk})
			if code != 1 || !strings.Contains(talk.String(), test.want) {
				t.Errorf("%s %s: exit %d, said %q", command, test.flags, code, &talk)
			}
		}
	}
}
