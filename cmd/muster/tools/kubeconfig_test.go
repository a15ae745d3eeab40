// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/platform/statedir"
)

func kubeconfigOf(name string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: " + name + "\nclusters:\n- name: " + name + "\n  cluster: {server: 'https://172.31.0.4:443'}\n" +
		"users:\n- name: " + name + "\n  user: {token: x}\ncontexts:\n- name: " + name + "\n  context: {cluster: " + name + ", user: " + name + "}\n"
}

// kubectl goes to another cluster after `muster kubeconfig`, and nobody should have to find that out.
func TestKubeconfigSaysThatItSwitches(t *testing.T) {
	dir := statedir.Dir(privateDir(t))
	for path, content := range map[string]string{dir.Layout(): "", dir.Cluster("muster").Kubeconfig(): kubeconfigOf("muster"), dir.ManagementKubeconfig(): kubeconfigOf("muster-management")} {
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
	said := func(file string, add func(*terminal.Options, string) error) string {
		t.Helper()
		var out bytes.Buffer
		if err := add(&terminal.Options{Streams: terminal.Streams{Out: &out, Err: &out}, StateDir: string(dir)}, file); err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(out.String(), file, "FILE")
	}
	byIAM := func(o *terminal.Options, file string) error { return iamKubeconfig(o, dir, file, "", false) }
	plain := func(o *terminal.Options, file string) error { return MergeKubeconfig(o, dir, file, "", true) }
	kept := func(o *terminal.Options, file string) error { return MergeKubeconfig(o, dir, file, "", false) }
	for _, step := range []struct {
		add  func(*terminal.Options, string) error
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

func TestContextByIAM(t *testing.T) {
	from := clientcmdapi.NewConfig()
	from.CurrentContext = "lab"
	from.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "lab"}
	from.Clusters["lab"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1", CertificateAuthorityData: []byte("ca")}
	from.AuthInfos["lab"] = &clientcmdapi.AuthInfo{ClientKeyData: []byte("key")}
	got, err := withIAM(from, "/opt/muster", "/var/lib/muster", "arn:aws:iam::000000000000:role/r")
	if err != nil {
		t.Fatal(err)
	}
	user := got.AuthInfos["lab-iam"]
	if len(got.AuthInfos) != 1 || len(user.ClientKeyData) > 0 || got.CurrentContext != "lab-iam" || got.Clusters["lab-iam"].Server != "https://127.0.0.1:1" {
		t.Errorf("%+v", got)
	}
	want := []string{"token", "get", "--state-dir", "/var/lib/muster", "--cluster", "lab", "--role-arn", "arn:aws:iam::000000000000:role/r", "--cache"}
	if diff := cmp.Diff(want, user.Exec.Args); diff != "" || user.Exec.Command != "/opt/muster" || user.Exec.APIVersion != "client.authentication.k8s.io/v1" {
		t.Errorf("%+v (-want +got):\n%s", user.Exec, diff)
	}
	from.CurrentContext = "gone"
	if _, err := withIAM(from, "/opt/muster", "/var/lib/muster", ""); err == nil {
		t.Error("a context that is not there was used")
	}
}

// privateDir is a directory that may be a state directory.
func privateDir(t *testing.T) string {
	t.Helper()
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
