// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func pemOf(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

func sample() Ledger {
	return Ledger{
		Version: ledgerVersion, Asked: "10.0.0.1:6443", Endpoint: "https://10.0.0.1:6443", Authorities: []string{"sha256:00"}, NodeName: "worker-1",
		NodeUID: "u", TokenID: "abcdef", Began: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), OwnContainerd: true,
		Directories: []string{"/etc/kubernetes"}, Files: []string{"/etc/kubernetes/pki/ca.crt"}, Units: []string{"kubelet.service"},
		Trees: []Tree{{Path: "/var/lib/kubelet", Keep: true}}, Settings: []Setting{{Name: "net.ipv4.ip_forward", Before: "0"}},
	}
}

func TestLedgerComesBack(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, dataDir), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := sample().save(root); err != nil {
		t.Fatal(err)
	}
	got, err := ReadLedger(root)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sample(), got); diff != "" {
		t.Errorf("ledger (-written +read):\n%s", diff)
	}
}

func TestLedgersThatAreRefused(t *testing.T) {
	for content, want := range map[string]string{
		``:                                   "unexpected end",
		`{}`:                                 "its version is 0",
		`{"version": 1, "fils": []}`:         "unknown field",
		`{"version": 1} {"version": 1}`:      "after top-level value",
		`{"version": 1, "files": ["/"]}`:     "no join makes",
		`{"version": 1, "files": ["a/b/c"]}`: "no join makes",
		`{"version": 1, "files": ["/etc/x/../../home/y"]}`:   "no join makes",
		`{"version": 1, "directories": ["/home"]}`:           "no join makes",
		`{"version": 1, "trees": [{"path": "/home/alice"}]}`: "not a node's alone",
		`{"version": 1, "settings": [{"name": "../x"}]}`:     "which is none",
	} {
		if _, err := parseLedger([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", content, err, want)
		}
	}
	root := t.TempDir()
	path := filepath.Join(root, LedgerPath)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(`{"version": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLedger(root); err == nil || !strings.Contains(err.Error(), "only its owner can write") {
		t.Errorf("error %v", err)
	}
}

func FuzzParseLedger(f *testing.F) {
	f.Add([]byte(`{"version": 1, "files": ["/etc/kubernetes/pki/ca.crt"], "trees": [{"path": "/var/lib/kubelet"}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		l, err := parseLedger(raw)
		if err != nil {
			return
		}
		for _, path := range append(l.Files, l.Directories...) {
			if !strings.HasPrefix(path, "/") || strings.Contains(path, "..") && filepath.Clean(path) != path {
				t.Errorf("%q is listed", path)
			}
		}
	})
}

func TestPins(t *testing.T) {
	a, _ := newAuthority(t)
	b, _ := newAuthority(t)
	both, err := PinsOf(append(pemOf(a), pemOf(b)...))
	if err != nil || len(both) != 2 {
		t.Fatalf("%v, %v", both, err)
	}
	one, err := PinsOf(pemOf(b))
	if err != nil || !(Ledger{Authorities: both}).sameCluster(one) {
		t.Errorf("%v, %v", one, err)
	}
	c, _ := newAuthority(t)
	if other, err := PinsOf(pemOf(c)); err != nil || (Ledger{Authorities: both}).sameCluster(other) {
		t.Errorf("%v, %v", other, err)
	}
	if _, err := PinsOf([]byte("nothing")); err == nil {
		t.Error("nothing has a pin")
	}
}

func TestMounts(t *testing.T) {
	const mountinfo = `22 1 0:21 / /proc rw - proc none rw
30 1 8:1 / /var/lib/kubelet rw - ext4 /dev/sda1 rw
31 30 0:50 / /var/lib/kubelet/pods/a/volumes/token rw - tmpfs none rw
32 30 0:51 / /var/lib/kubelet/pods/a\040b rw - tmpfs none rw
33 1 0:52 / /var/lib/kubelet-other rw - tmpfs none rw
bad line
`
	want := []string{"/var/lib/kubelet/pods/a b", "/var/lib/kubelet/pods/a/volumes/token"}
	if diff := cmp.Diff(want, parseMounts(mountinfo, "/var/lib/kubelet")); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
}

func FuzzUnescape(f *testing.F) {
	f.Add(`a\040b\`)
	f.Fuzz(func(t *testing.T, path string) {
		if got := unescape(path); len(got) > len(path) {
			t.Errorf("%q grew to %q", path, got)
		}
	})
}
