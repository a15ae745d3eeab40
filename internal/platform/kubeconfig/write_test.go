// SPDX-License-Identifier: Apache-2.0

package kubeconfig

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
)

// Write makes a complete kubeconfig, readable by its owner alone.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	ca, credential, path := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "admin.pem"), filepath.Join(dir, "below", "kubeconfig")
	if err := Write(path, "blue", "https://127.0.0.1:6443", ca, credential); err == nil {
		t.Error("without an authority: no error")
	}
	for name, content := range map[string]string{ca: "authority", credential: "certificate and key"} {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(path, "blue", "https://127.0.0.1:6443", ca, credential); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info, err)
	}
	got, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	cluster, user := got.Clusters["blue"], got.AuthInfos["blue"]
	if got.CurrentContext != "blue" || cluster == nil || cluster.Server != "https://127.0.0.1:6443" || string(cluster.CertificateAuthorityData) != "authority" ||
		user == nil || string(user.ClientKeyData) != "certificate and key" || string(user.ClientCertificateData) != "certificate and key" {
		t.Errorf("%+v", got)
	}
}
