// SPDX-License-Identifier: Apache-2.0

package kubeletcert

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/platform/statedir"
)

// TestNodeCertificates reads the disks of machines, honest ones and others.
func TestNodeCertificates(t *testing.T) {
	dir := statedir.Dir(t.TempDir())
	store := authority.NewStore(dir.PKI())
	now := time.Now()
	if _, err := store.Ensure(nil, now); err != nil {
		t.Fatal(err)
	}
	if err := store.StartRotation(now); err != nil {
		t.Fatal(err)
	}
	authorities := map[string]*x509.Certificate{}
	pems := map[string]string{}
	var ends time.Time
	for _, name := range []string{"kubelet-1", "kubelet-2"} {
		ca, err := store.KubeletAuthority(name)
		if err != nil {
			t.Fatal(err)
		}
		authorities[name] = ca
		probe, err := store.Probe(name, now)
		if err != nil {
			t.Fatal(err)
		}
		pems[name], ends = "some words\n"+string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: probe.Leaf.Raw})), probe.Leaf.NotAfter
	}
	if nodes, err := Read(dir, "Blue", authorities); err != nil || len(nodes) != 0 {
		t.Errorf("no machines: %v, %v", nodes, err)
	}
	const pki = "root/var/lib/kubelet/pki"
	local := newMachine(t, dir, "i-00000000000000001", "local-1")
	write(t, filepath.Join(local, pki, "kubelet-client-2026.pem"), pems["kubelet-1"])
	link(t, "/var/lib/kubelet/pki/kubelet-client-2026.pem", filepath.Join(local, pki, "kubelet-client-current.pem"))
	write(t, filepath.Join(local, pki, "kubelet-server-2027.pem"), pems["kubelet-2"])
	link(t, "kubelet-server-2027.pem", filepath.Join(local, pki, "kubelet-server-current.pem"))

	simulated := newMachine(t, dir, "i-00000000000000002", "simulated-1")
	write(t, filepath.Join(simulated, "kubelet/kubelet-client.pem"), pems["kubelet-2"])
	write(t, filepath.Join(simulated, "kubelet/kubelet-server.pem"), pems["kubelet-2"])

	newMachine(t, dir, "i-00000000000000003", "joining")
	newMachineOf(t, dir, "Green", "i-00000000000000007", "of-another-cluster")

	// A machine's root may put anything where its kubelet's files are.
	hostile := newMachine(t, dir, "i-00000000000000004", "hostile")
	secret := filepath.Join(t.TempDir(), "kubelet-client-current.pem")
	write(t, secret, pems["kubelet-1"])
	if err := os.MkdirAll(filepath.Join(hostile, pki), 0o700); err != nil {
		t.Fatal(err)
	}
	link(t, secret, filepath.Join(hostile, pki, "kubelet-client-current.pem"))
	if err := syscall.Mkfifo(filepath.Join(hostile, pki, "kubelet-server-current.pem"), 0o600); err != nil {
		t.Fatal(err)
	}
	escaping := newMachine(t, dir, "i-00000000000000005", "escaping")
	link(t, filepath.Dir(secret), filepath.Join(escaping, "kubelet"))
	write(t, filepath.Join(filepath.Dir(secret), "kubelet-client.pem"), pems["kubelet-1"])
	write(t, filepath.Join(escaping, pki, "kubelet-server-current.pem"), "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")

	write(t, filepath.Join(dir.Machines(), "lock"), "")
	if err := os.Mkdir(dir.Machine("i-00000000000000006"), 0o700); err != nil { // it has no record yet
		t.Fatal(err)
	}
	certificate := func(name string) *rotation.Certificate { return &rotation.Certificate{Authority: name, Ends: ends} }
	want := []rotation.Node{
		{Name: "local-1", Client: certificate("kubelet-1"), Serving: certificate("kubelet-2")},
		{Name: "simulated-1", Client: certificate("kubelet-2"), Serving: certificate("kubelet-2")},
		{Name: "joining"},
		{Name: "hostile"},
		{Name: "escaping"},
	}
	got, err := Read(dir, "Blue", authorities)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	delete(authorities, "kubelet-2")
	if got, err := Read(dir, "Blue", authorities); err != nil || got[1].Client.Authority != "" {
		t.Errorf("of an authority that is not asked for: %+v, %v", got[1].Client, err)
	}
	write(t, filepath.Join(dir.Machine("i-00000000000000006"), "instance.json"), "{")
	if _, err := Read(dir, "Blue", authorities); err == nil {
		t.Error("a damaged record: no error")
	}
}

func newMachine(t *testing.T, dir statedir.Dir, id, name string) string {
	t.Helper()
	return newMachineOf(t, dir, "Blue", id, name)
}

func newMachineOf(t *testing.T, dir statedir.Dir, cluster, id, name string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]string{"id": id, "cluster": cluster, "privateIP": "192.168.64.11", "privateDNSName": name, "zone": "us-east-1a"})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir.Machine(id), "instance.json"), string(raw))
	return dir.Machine(id)
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// That a machine has no certificates is not believed of a disk that is not mounted.
func TestReadDiskNotMounted(t *testing.T) {
	t.Parallel()
	dir := statedir.Dir(t.TempDir())
	path := newMachine(t, dir, "i-00000000000000001", "local-1")
	write(t, dir.MachineDisk("i-00000000000000001"), "")
	if err := os.Mkdir(filepath.Join(path, "root"), 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(dir, "Blue", nil); err == nil || !strings.Contains(err.Error(), "i-00000000000000001") {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := Read(dir, "green", nil); err != nil || len(got) > 0 {
		t.Errorf("of another cluster: %+v, %v", got, err)
	}
}
