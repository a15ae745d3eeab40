// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Whatever changes kubelet.service is found wherever systemd would, but for muster's own and what systemd would not
// heed.
func TestDropIns(t *testing.T) {
	root := t.TempDir()
	put := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host := System(Config{Root: root})
	if found, err := host.DropIns(); err != nil || len(found) > 0 {
		t.Fatalf("where nothing is: %v, %v", found, err)
	}
	const usr, etc = "/usr/lib/systemd/system/kubelet.service.d/", "/etc/systemd/system/kubelet.service.d/"
	put(usr+"10-kubeadm.conf", "[Service]\nExecStart=\nExecStart=/usr/bin/kubelet $ARGS\n")
	put(usr+"20-masked.conf", "[Service]\nExecStart=/bin/false\n")
	put(etc+"20-masked.conf", "")
	put(etc+"limits.conf", "[Service]\n# Environment=X\nLimitNOFILE=65536\n")
	put(etc+"notes.txt", "[Service]\nExecStart=/bin/false\n")
	put(etc+"environment.conf", "[Service]\nEnvironmentFile=/etc/muster/environment/kubelet\n")
	put(defaultLedger, `{"version": 1, "files": ["`+etc+`environment.conf"]}`)
	found, err := host.DropIns()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]DropIn{{Path: etc + "limits.conf"}, {Path: usr + "10-kubeadm.conf", Decides: true}}, found); diff != "" {
		t.Errorf("drop-ins (-want +got):\n%s", diff)
	}
	put(defaultLedger, "{")
	if _, err := host.DropIns(); err == nil {
		t.Error("a ledger that cannot be read is passed over")
	}
}
