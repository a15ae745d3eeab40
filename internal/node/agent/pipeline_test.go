// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/node/kubeletcheck"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// bench is a machine that a pipeline makes a node, and what it saw.
type bench struct {
	pipeline
	did, said []string
}

// newBench is a machine with an instance-store disk and no systemd, which therefore refuses the disk as soon as it
// comes to that step. Left is how long its certificate, that of node a, is still good; 0: it has none.
func newBench(t *testing.T, left time.Duration) *bench {
	t.Helper()
	b := &bench{}
	root := t.TempDir()
	own := credential{dir: filepath.Join(root, "pki"), kubeconfig: filepath.Join(root, "kubeconfig")}
	if left != 0 {
		own = onDisk(t, left)
	}
	withDisk(t, root)
	b.pipeline = pipeline{
		credential: own, metadata: role{name: "muster-node"}, layout: render.MachineLayout(), root: root,
		self:  render.Instance{ID: "i-0000000000000000a", Type: "m5.large", PrivateDNSName: "a", PrivateIP: netip.MustParseAddr("192.168.64.11")},
		facts: facts,
		check: func(context.Context, []byte) ([]byte, int, error) { b.did = append(b.did, "check"); return nil, 0, nil },
		tool:  func(context.Context, string, ...string) (string, error) { return "", errors.New("no tool was wanted") },
		write: func([]render.File, bool, func(string)) error { b.did = append(b.did, "write"); return nil },
		say:   func(step step, text string) { b.said = append(b.said, string(step)+": "+text) },
	}
	return b
}

// withDisk gives a root the name that udev gives to an instance-store disk.
func withDisk(t *testing.T, root string) {
	t.Helper()
	names := filepath.Join(root, "dev/disk/by-id")
	if err := os.MkdirAll(names, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "dev/nvme1n1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../../nvme1n1", filepath.Join(names, "nvme-Amazon_EC2_NVMe_Instance_Storage_AWS0000000000000001")); err != nil {
		t.Fatal(err)
	}
}

const refusedDisk = "this machine has 1 instance-store disks, and no systemd to mount them at every boot"

// wantsDisks is a NodeConfig that asks for an array, and says so much of the kubelet that its own validation is asked.
func wantsDisks(t *testing.T) nodeconfig.Spec {
	t.Helper()
	spec := complete(t)
	spec.Instance.LocalStorage.Strategy = "RAID0"
	spec.Kubelet.Config = map[string]any{"maxPods": 20}
	return spec
}

// Whatever can be refused is refused before disks are touched: by package render, and by the kubelet's own validation.
func TestDisksComeAfterAllThatCanBeRefused(t *testing.T) {
	b := newBench(t, 0)
	spec := wantsDisks(t)
	spec.Containerd.Config = "not TOML"
	if _, err := b.carryOut(t.Context(), spec); err == nil || !strings.Contains(err.Error(), "spec.containerd.config") {
		t.Errorf("what cannot be rendered: %v", err)
	}
	b.check = func(context.Context, []byte) ([]byte, int, error) { return []byte("no such feature gate\n"), 1, nil }
	if _, err := b.carryOut(t.Context(), wantsDisks(t)); err == nil || !strings.Contains(err.Error(), "no such feature gate") {
		t.Errorf("what the kubelet refuses: %v", err)
	}
	b.check = func(context.Context, []byte) ([]byte, int, error) { b.did = append(b.did, "check"); return nil, 0, nil }
	if _, err := b.carryOut(t.Context(), wantsDisks(t)); err == nil || !strings.Contains(err.Error(), refusedDisk) {
		t.Errorf("what is good but for its disk: %v", err)
	}
	if !slices.Equal(b.did, []string{"check"}) {
		t.Errorf("did %q", b.did)
	}
}

// A node that has joined keeps its disks as they are, at whatever request and time; that is said, and not refused.
func TestANodeKeepsItsDisks(t *testing.T) {
	b := newBench(t, time.Hour)
	if _, err := b.carryOut(t.Context(), wantsDisks(t)); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(b.did, []string{"check", "write"}) || !slices.Contains(b.said, "disks: spec.instance.localStorage: this machine has joined, and its disks stay as they are") {
		t.Errorf("did %q, said %q", b.did, b.said)
	}
}

// A machine whose kubelet runs does not become another node, and keeps its certificate; when it boots it does.
func TestARunningMachineKeepsItsName(t *testing.T) {
	b := newBench(t, time.Hour)
	b.self.PrivateDNSName, b.keepsName = "b", true
	if _, err := b.carryOut(t.Context(), complete(t)); err == nil || !strings.Contains(err.Error(), "when it boots, and not before") || len(b.did) > 0 {
		t.Errorf("while it runs: %v, did %q", err, b.did)
	}
	if !b.credential.joined("a", time.Now()) {
		t.Error("its certificate was set aside")
	}
	b.keepsName = false
	if _, err := b.carryOut(t.Context(), complete(t)); err != nil || !slices.Equal(b.did, []string{"write"}) {
		t.Errorf("when it boots: %v, did %q", err, b.did)
	}
}

// muster node init judges its NodeConfig as a boot does: by the kubelet's own validation, and with regard to failed
// parts of the user data. On a machine it does not make the running kubelet another node's.
func TestInitJudgesAsABootDoes(t *testing.T) {
	good := wantsDisks(t)
	good.Instance.LocalStorage.Strategy = ""
	ignoring := good
	ignoring.Instance.UserDataFailurePolicy = nodeconfig.Ignore
	const refusal = "unknown flag --kubelet-extra-arg"
	refusing := func(context.Context, []byte) ([]byte, int, error) { return []byte("maxPods is too many\n"), 1, nil }
	willing := func(context.Context, []byte) ([]byte, int, error) { return nil, 0, nil }
	for name, test := range map[string]struct {
		spec     nodeconfig.Spec
		check    kubeletcheck.Run
		refused  bool // bootstrap.sh was
		systemd  bool
		wants    string // of the error
		says     string
		mimeType string // of another part
	}{
		"good":                          {spec: good, check: willing},
		"the kubelet refuses it":        {spec: good, check: refusing, wants: "maxPods is too many"},
		"nothing can ask the kubelet":   {spec: good, says: "not validated before the kubelet starts"},
		"bootstrap.sh was refused":      {spec: good, check: willing, refused: true, wants: refusal},
		"and that is to be ignored":     {spec: ignoring, check: willing, refused: true, says: refusal},
		"a part that nothing does":      {spec: good, check: willing, mimeType: "text/cloud-config", wants: "is text/cloud-config, which is not carried out here"},
		"a part that cloud-init does":   {spec: good, check: willing, mimeType: "text/cloud-config", systemd: true},
		"a NodeConfig of another type":  {spec: good, check: willing, mimeType: "text/yaml", systemd: true, wants: "looks like a NodeConfig and is ignored"},
		"a setting in another way here": {spec: ofOldContainerd(good), check: willing, says: "it is migrated from version 2 to version 3"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			if test.systemd {
				if err := os.MkdirAll(filepath.Join(root, "run/systemd/system"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			data := document(t, test.spec)
			if test.mimeType != "" {
				data = []byte("Content-Type: multipart/mixed; boundary=X\n\n--X\nContent-Type: " + test.mimeType + "\n\n# apiVersion: " + nodeconfig.APIVersion +
					"\n\n--X\nContent-Type: application/node.eks.aws\n\n" + string(data) + "\n--X--\n")
				if test.mimeType == "text/cloud-config" {
					data = []byte(strings.Replace(string(data), "# apiVersion: "+nodeconfig.APIVersion, "#cloud-config\nruncmd: [ls]", 1))
				}
			}
			l := &launched{data: data}
			wrote := false
			var said []string
			config := InitConfig{
				Sources: []string{"imds://user-data"}, Metadata: l.serve(t), DropInDir: t.TempDir(), Root: root, Facts: facts, Check: test.check,
				Say:     func(text string) { said = append(said, text) },
				Write:   func([]render.File, bool, func(string)) error { wrote = true; return nil },
				Restart: func(context.Context, render.Layout) error { return nil },
			}
			if test.refused {
				put(t, filepath.Join(config.DropInDir, RefusedBootstrap), []byte(refusal+"\n"))
			}
			err := Init(t.Context(), config)
			if wrote != (test.wants == "") || (err == nil) != wrote || err != nil && !strings.Contains(err.Error(), test.wants) {
				t.Errorf("wrote: %t, %v; want %q", wrote, err, test.wants)
			}
			if test.says != "" && !strings.Contains(strings.Join(said, "\n"), test.says) {
				t.Errorf("said %q; want %q", said, test.says)
			}
		})
	}
}

// ofOldContainerd has a setting as containerd 1.x knew it, which is carried over.
func ofOldContainerd(spec nodeconfig.Spec) nodeconfig.Spec {
	spec.Containerd.Config = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd]\n  discard_unpacked_layers = true\n"
	return spec
}
