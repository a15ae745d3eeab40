// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/state"
)

func kubeconfigOf(name string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: " + name + "\nclusters:\n- name: " + name + "\n  cluster: {server: 'https://192.168.64.2:443'}\n" +
		"users:\n- name: " + name + "\n  user: {token: x}\ncontexts:\n- name: " + name + "\n  context: {cluster: " + name + ", user: " + name + "}\n"
}

// kubectl goes to another cluster after `muster kubeconfig`, and nobody should have to find that out.
func TestKubeconfigSaysThatItSwitches(t *testing.T) {
	dir := state.Dir(t.TempDir())
	for path, content := range map[string]string{dir.ClusterKubeconfig(): kubeconfigOf("muster"), dir.ManagementKubeconfig(): kubeconfigOf("muster-management")} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(own, []byte(kubeconfigOf("work two")), 0o600); err != nil {
		t.Fatal(err)
	}
	said := func(file string, add func(*options, string) error) string {
		t.Helper()
		var out bytes.Buffer
		if err := add(&options{streams: streams{out: &out, err: &out}}, file); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(out.String(), file, "FILE")
	}
	byIAM := func(o *options, file string) error { return iamKubeconfig(o, dir, file, "", false) }
	plain := func(o *options, file string) error { return mergeKubeconfig(o, dir, file, true) }
	kept := func(o *options, file string) error { return mergeKubeconfig(o, dir, file, false) }
	for _, step := range []struct {
		add  func(*options, string) error
		want string
	}{
		{kept, "Wrote contexts to FILE\n"},
		{byIAM, "Wrote contexts to FILE\nThe current context is now \"muster-iam\"; back to the one before: kubectl config use-context \"work two\"\n"},
		{byIAM, ""},
		{plain, "Wrote contexts to FILE\nThe current context is now \"muster\"; back to the one before: kubectl config use-context muster-iam\n"},
	} {
		if got := said(own, step.add); got != step.want {
			t.Errorf("got %q, want %q", got, step.want)
		}
	}
	if got, want := said(filepath.Join(t.TempDir(), "new"), byIAM), "Wrote contexts to FILE\nThe current context is now \"muster-iam\"\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
