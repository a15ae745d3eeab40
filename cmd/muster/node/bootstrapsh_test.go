// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/node/agent"
	"muster.dev/muster/internal/node/bootstrapsh"
	"muster.dev/muster/internal/node/nodeconfig"
)

func TestBootstrapScript(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "nodeadm.d")
	settings := filepath.Join(t.TempDir(), "containerd.toml")
	if err := os.WriteFile(settings, []byte("oom_score = -500\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	broken, large := filepath.Join(t.TempDir(), "broken.toml"), filepath.Join(t.TempDir(), "large.toml")
	for path, size := range map[string]int{broken: 3, large: maxContainerdConfig + 1} {
		if err := os.WriteFile(path, bytes.Repeat([]byte("="), size), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "40-bootstrap.yaml")
	for _, step := range []struct {
		args    string
		code    int
		out     string
		err     string
		written string
	}{
		{args: "--help", out: "--kubelet-extra-args"},
		{args: "", code: 2, err: "Error: the name of the cluster is missing"},
		{args: "c --node-labels a=b", code: 2, err: "unknown flag --node-labels"},
		{args: "c --containerd-config-file /does/not/exist", code: 1, err: "no such file"},
		{args: "c --containerd-config-file " + large, code: 1, err: "has more than 1 MiB"},
		{args: "c --containerd-config-file " + broken, code: 1, err: "TOML"},
		{args: "c --kubelet-extra-args --max-pods=-5", code: 1, err: "--max-pods must be a whole number, 1 or more"},
		{args: "c --kubelet-extra-args --node-labels=node-role.kubernetes.io/worker=true", code: 1, err: "the kubelet may not set this label on its own Node"},
		{args: "c --pause-container-version 3.5 --containerd-config-file " + settings, out: path + " is written", err: "Warning: --pause-container-version", written: "oom_score = -500"},
		{args: "d --kubelet-extra-args --max-pods=29", out: "spec.kubelet.flags --max-pods=29", written: "--max-pods=29"},
	} {
		var out, talk bytes.Buffer
		if code := RunBootstrapScript(strings.Fields(step.args), dir, terminal.Streams{Out: &out, Err: &talk}); code != step.code {
			t.Errorf("%s: exit code %d, want %d: %s", step.args, code, step.code, talk.String())
		}
		if !strings.Contains(out.String(), step.out) || !strings.Contains(talk.String(), step.err) {
			t.Errorf("%s: said %q and %q, want %q and %q", step.args, out.String(), talk.String(), step.out, step.err)
		}
		// A script may go on after an error; the agent must know all the same, until a call went well.
		refused, err := os.ReadFile(filepath.Join(dir, agent.RefusedBootstrap))
		if (err == nil) != (step.code != 0) || !strings.Contains(string(refused), strings.TrimPrefix(step.err, "Error: ")) && step.code != 0 {
			t.Errorf("%s: what is left for the agent is %q, %v", step.args, refused, err)
		}
		if step.written == "" {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil || info.Mode() != 0o600 || !strings.Contains(string(raw), step.written) {
			t.Errorf("%s: %s has mode %v and holds %s, %v; want 0600 and %q", step.args, path, info.Mode(), raw, err, step.written)
		}
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	merged, err := nodeconfig.Read([]nodeconfig.Source{{Name: path, Content: raw}}, false)
	if err != nil || merged.Spec.Cluster.Name != "d" || merged.Spec.Containerd.Config != "" {
		t.Errorf("the last call is not what is there: %+v, %v", merged.Spec, err)
	}
}

// The page's user data, run by a shell, says and writes what the page says; its table has every flag.
func TestPageOfBootstrapScript(t *testing.T) {
	page, err := os.ReadFile("../../../docs/bootstrap-sh.md")
	if err != nil {
		t.Fatal(err)
	}
	authority, err := os.ReadFile("../../../internal/node/bootstrapsh/testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	block := func(start string) string {
		_, after, ok := strings.Cut(string(page), "\n```"+start+"\n")
		text, _, closed := strings.Cut(after, "```\n")
		if !ok || !closed {
			t.Fatalf("the page has no block %q", start)
		}
		return strings.ReplaceAll(text, "AUTHORITY", base64.StdEncoding.EncodeToString(authority))
	}
	dir := t.TempDir()
	stub, noted := filepath.Join(dir, bootstrapScript), filepath.Join(dir, "noted")
	if err := os.WriteFile(stub, []byte("#!/bin/sh\nprintf '%s\\0' \"$@\" > "+noted+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	userData := strings.ReplaceAll(block("sh user-data"), "/etc/eks/bootstrap.sh", stub)
	if said, err := exec.Command("/bin/sh", "-c", userData).CombinedOutput(); err != nil {
		t.Fatalf("the page's user data: %v: %s", err, said)
	}
	raw, err := os.ReadFile(noted)
	if err != nil {
		t.Fatal(err)
	}
	var out, talk bytes.Buffer
	if code := RunBootstrapScript(strings.Split(strings.TrimSuffix(string(raw), "\x00"), "\x00"), dir, terminal.Streams{Out: &out, Err: &talk}); code != 0 {
		t.Fatalf("exit code %d: %s", code, talk.String())
	}
	if diff := cmp.Diff(block("text"), strings.ReplaceAll(out.String(), dir, "/etc/eks/nodeadm.d")); diff != "" {
		t.Errorf("it says something else (-page +said):\n%s", diff)
	}
	written, err := os.ReadFile(filepath.Join(dir, "40-bootstrap.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(block("yaml"), string(written)); diff != "" {
		t.Errorf("it writes something else (-page +written):\n%s", diff)
	}
	for line := range strings.SplitSeq(bootstrapsh.Usage(), "\n") {
		if flag, _, _ := strings.Cut(strings.TrimSpace(line), " "); strings.HasPrefix(flag, "--") && !strings.Contains(string(page), "| `"+flag+"` |") {
			t.Errorf("%s is not in the page's table", flag)
		}
	}
}

// Whoever calls the program by the script's name gets the script.
func TestCalledByTheNameOfTheScript(t *testing.T) {
	for name, want := range map[string]bool{"/etc/eks/bootstrap.sh": true, "bootstrap.sh": true, "/usr/local/bin/muster": false, "./muster": false} {
		if got := CalledBootstrapScript(name); got != want {
			t.Errorf("%s: %t, want %t", name, got, want)
		}
	}
}
