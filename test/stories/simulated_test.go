// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster.dev/muster/internal/platform/release"
)

// nobody is the user id of Debian's ordinary user that owns nothing.
const nobody = 65534

// TestSimulatedNodesAsOrdinaryUser runs a cluster without root: local machines are refused in one line that names both
// ways out, and simulated ones join by real requests, and go on after the simulator is killed.
//
//story:about machine/machine/simulated
func TestSimulatedNodesAsOrdinaryUser(t *testing.T) {
	t.Parallel()
	i := newInstallation(t)
	i.becomeOrdinary()

	_, talk, err := i.try("up")
	if err == nil || strings.Count(talk, "\n") != 1 || !strings.Contains(talk, "sudo") || !strings.Contains(talk, "--provider simulated") {
		t.Fatalf("local machines without root (%v): %s", err, talk)
	}
	i.muster("up", "--provider", "simulated", "--nodes", "20")
	i.ready()
	if nodes := strings.Fields(i.mustKubectl("get", "nodes", "-o", "name")); len(nodes) != 20 {
		t.Errorf("%d nodes, not 20", len(nodes))
	}
	i.eventually("every node has a client and a serving certificate", func() error {
		out, err := i.kubectl("get", "csr", "-o", `jsonpath={range .items[*]}{.spec.signerName} {.status.conditions[0].type} {.status.certificate}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for _, signer := range []string{"kube-apiserver-client-kubelet", "kubelet-serving"} {
			if issued := strings.Count(out, "kubernetes.io/"+signer+" Approved LS0"); issued < 20 {
				return fmt.Errorf("%d of 20 certificates of %s are issued", issued, signer)
			}
		}
		return nil
	})
	i.eventually("every node has a lease", func() error {
		leases, err := i.kubectl("-n", "kube-node-lease", "get", "leases", "-o", "name")
		if n := len(strings.Fields(leases)); err == nil && n != 20 {
			err = fmt.Errorf("%d leases, not 20", n)
		}
		return err
	})
	if status, _ := i.muster("status"); !strings.Contains(status, "\nNote: API servers run without a memory limit: that takes root, and muster does not run as root.\n") {
		t.Errorf("the status says nothing of memory limits:\n%s", status)
	}
	loopbackIsRefused(t, i, "the cluster has no VPC")
	requests := i.mustKubectl("get", "csr", "-o", "name")
	old := i.kill("simulator")
	i.eventually("the simulator is back", func() error {
		if p, ok := i.processes()["simulator"]; !ok || p.PID == old.PID {
			return errors.New("not started again")
		}
		return nil
	})
	i.ready()
	if after := i.mustKubectl("get", "csr", "-o", "name"); after != requests {
		t.Errorf("nodes asked for new certificates although they had theirs on disk:\n%s", after)
	}
	i.muster("scale", "nodegroup", "default", "5", "--wait")
	i.eventually("five nodes are left", func() error {
		nodes, err := i.kubectl("get", "nodes", "-o", "name")
		if n := len(strings.Fields(nodes)); err == nil && n != 5 {
			err = fmt.Errorf("%d nodes", n)
		}
		return err
	})
}

// becomeOrdinary makes every later call run as nobody, with programs and a state directory that nobody may use.
func (i *installation) becomeOrdinary() {
	i.t.Helper()
	home := filepath.Dir(string(i.dir))
	bin := filepath.Join(home, "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		i.t.Fatal(err)
	}
	kubernetes := release.Default()
	if err := os.MkdirAll(filepath.Join(bin, kubernetes.Folder), 0o755); err != nil {
		i.t.Fatal(err)
	}
	for _, name := range []string{"muster", "muster-certificate-controller", "muster-plane-front", "muster-registry", "muster-token-signer", "muster-webhook-proxy", "etcd", "kubernetes", "kubectl"} {
		copyProgram(i.t, kubernetes.Program(programs(i.t), name), kubernetes.Program(bin, name))
	}
	for name, target := range map[string]string{
		kubernetes.Program(bin, "generic-apiserver"): "kubernetes", kubernetes.Program(bin, "kube-apiserver"): "kubernetes",
		kubernetes.Program(bin, "kube-controller-manager"): "kubernetes", kubernetes.Program(bin, "kube-scheduler"): "kubernetes",
		filepath.Join(bin, "kubectl"): kubernetes.Program("", "kubectl"),
	} {
		if err := os.Symlink(target, name); err != nil {
			i.t.Fatal(err)
		}
	}
	if err := os.Chown(home, nobody, nobody); err != nil {
		i.t.Fatal(err)
	}
	i.bin = bin
	i.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

func copyProgram(t *testing.T, from, to string) {
	t.Helper()
	source, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = source.Close() }()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}
