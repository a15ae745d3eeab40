// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// result is what libcni v1.3.0 kept of a pod of containerd v2.4.2, without the configuration and the capabilities.
const result = `{"kind":"cniCacheV1","containerId":"0f1e","ifName":"eth0","networkName":"muster","netns":"/var/run/netns/cni-1",
"cniArgs":[["IgnoreUnknown","1"],["K8S_POD_NAMESPACE","shop"],["K8S_POD_NAME","web"],["K8S_POD_INFRA_CONTAINER_ID","0f1e"],["K8S_POD_UID","UID"]],
"result":{"cniVersion":"1.0.0","interfaces":[{"name":"veth1"}],"ips":[{"address":"ADDRESS/32","gateway":"10.244.0.1","interface":1}]}}`

func put(t *testing.T, dir, name, uid, address string) {
	t.Helper()
	text := strings.NewReplacer("UID", uid, "ADDRESS", address).Replace(strings.ReplaceAll(result, "K8S_POD_UID", "K8S_POD_\x00"))
	if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(text, "\x00", "UID")), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file is there before it is whole, and the directory does not change when it is.
func TestAddressesOfAFileThatIsBeingWritten(t *testing.T) {
	dir := t.TempDir()
	a := NewAddresses(dir)
	put(t, dir, "muster-0f1e-eth0", "uid-1", "10.244.0.2")
	file := filepath.Join(dir, "muster-2d3c-eth0")
	if err := os.WriteFile(file, []byte(`{"kind":"cniCacheV1","contai`), 0o600); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-time.Minute)
	for range 2 {
		if err := os.Chtimes(dir, old, old); err != nil {
			t.Fatal(err)
		}
		if got, err := a.Pod(netip.MustParseAddr("10.244.0.3")); got != "" || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
	}
	put(t, dir, "muster-2d3c-eth0", "uid-2", "10.244.0.3")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) { //nolint:forbidigo // it polls
		if got, err := a.Pod(netip.MustParseAddr("10.244.0.3")); got == "uid-2" {
			break
		} else if err != nil || time.Now().After(deadline) {
			t.Fatalf("%q, %v", got, err)
		}
	}
}

func TestAddresses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "results")
	a := NewAddresses(dir)
	pod := func(address string) string {
		t.Helper()
		uid, err := a.Pod(netip.MustParseAddr(address))
		if err != nil {
			t.Fatal(err)
		}
		return uid
	}
	if got := pod("10.244.0.2"); got != "" {
		t.Errorf("before there is a pod: %q", got)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, dir, "muster-0f1e-eth0", "uid-1", "10.244.0.2")
	put(t, dir, "cni-loopback-0f1e-lo", "uid-1", "127.0.0.1")
	if got := pod("10.244.0.2"); got != "uid-1" {
		t.Errorf("%q", got)
	}
	if got := pod("::ffff:10.244.0.2"); got != "uid-1" {
		t.Errorf("by its other form: %q", got)
	}
	if pod("127.0.0.1") != "" || pod("10.244.0.3") != "" {
		t.Error("an address of no pod has one")
	}
	put(t, dir, "muster-2d3c-eth0", "uid-2", "10.244.0.3")
	if got := pod("10.244.0.3"); got != "uid-2" {
		t.Errorf("a new pod: %q", got)
	}
	if err := os.Remove(filepath.Join(dir, "muster-0f1e-eth0")); err != nil {
		t.Fatal(err)
	}
	if got := pod("10.244.0.2"); got != "" {
		t.Errorf("a pod that is gone: %q", got)
	}
	put(t, dir, "muster-4b5a-eth0", "uid-3", "10.244.0.2")
	if got := pod("10.244.0.2"); got != "uid-3" {
		t.Errorf("the next pod with the address: %q", got)
	}
	put(t, dir, "muster-6978-eth0", "uid-4", "10.244.0.2")
	if got := pod("10.244.0.2"); got != "" {
		t.Errorf("of two with one address: %q", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "damaged"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := pod("10.244.0.3"); got != "uid-2" {
		t.Errorf("beside a damaged file: %q", got)
	}
	// Once the directory has rested it is not read again.
	old := time.Now().Add(-time.Minute)
	if err := os.Chtimes(dir, old, old); err != nil {
		t.Fatal(err)
	}
	pod("10.244.0.3")
	a.pods[netip.MustParseAddr("10.244.0.9")] = "kept"
	if got := pod("10.244.0.9"); got != "kept" {
		t.Error("it is read at each question")
	}
}

func FuzzReadResult(f *testing.F) {
	f.Add([]byte(result))
	f.Add([]byte(`{"result":{"ips":[{"address":"x"}]}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		uid, addresses, err := readResult(raw)
		if err != nil && (uid != "" || addresses != nil) {
			t.Errorf("%q, %v and %v", uid, addresses, err)
		}
		for _, a := range addresses {
			if !a.IsValid() || a.IsLoopback() {
				t.Errorf("%v", a)
			}
		}
	})
}

func FuzzReadToken(f *testing.F) {
	w := &world{at: time.Unix(1_790_000_000, 0)}
	f.Add(w.token("uid-web"))
	f.Add("a.b.c")
	f.Add("e30.e30.e30")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readToken(text)
		if (err == nil) != (got.podUID != "") {
			t.Errorf("%+v, %v", got, err)
		}
	})
}
