// SPDX-License-Identifier: Apache-2.0

//go:build soak

package stories

import (
	"context"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/test/host"
)

const (
	controlName    = "control-1"
	controlAddress = "172.31.0.220"
	// checkout is where the administrator has what a checkout of muster has.
	checkout = "/root/muster"
)

// kubeadmCluster is a cluster that kubeadm made on one host, with nothing of muster's in it: its control plane runs as
// static pods.
type kubeadmCluster struct {
	t    *testing.T
	host *host.Host
}

// kubeadmInit is what `kubeadm init` is told. There is no registry, so the addons have no images. Nobody takes turns
// with the controllers of the only control plane, so they need not wait for their own lease when they start again. The
// API server verifies kubelets from the start, so until they have serving certificates it can reach none.
const kubeadmInit = `apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
nodeRegistration: {name: ` + controlName + `, imagePullPolicy: Never}
patches: {directory: /root/patches}
skipPhases: [addon/coredns, addon/kube-proxy, show-join-command]
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: %s
networking: {podSubnet: 10.244.0.0/16}
apiServer: {extraArgs: [{name: kubelet-certificate-authority, value: /etc/kubernetes/pki/ca.crt}]}
controllerManager: {extraArgs: [{name: leader-elect, value: "false"}]}
scheduler: {extraArgs: [{name: leader-elect, value: "false"}]}
---
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
`

// kubeadmPatch makes a pod of the control plane run the program that the host has, as there is no image of it.
const kubeadmPatch = `spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: %s
    image: muster.dev/workload:v1
    securityContext: {runAsUser: 0}
    env: [{name: PATH, value: "/programs:/programs/%s"}]
    volumeMounts: [{name: programs, mountPath: /programs, readOnly: true}]
  volumes: [{name: programs, hostPath: {path: ` + host.BinDir + `}}]
`

// newKubeadmCluster makes one, in a network of its own.
func newKubeadmCluster(t *testing.T) *kubeadmCluster {
	t.Helper()
	if err := host.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	network, err := vpc.New(vpc.Config{Dir: filepath.Join(t.TempDir(), "vpc"), CIDR: netip.MustParsePrefix("172.31.0.0/16")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := network.Delete(); err != nil {
			t.Error(err)
		}
	})
	if err := network.Ensure(); err != nil {
		t.Fatal(err)
	}
	h, err := host.Start(t.Context(), host.Config{
		Name: controlName, Of: "kubeadm", Address: netip.MustParseAddr(controlAddress), Network: network, Bin: programs(t), Install: host.KubeadmPrograms(),
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &kubeadmCluster{t: t, host: h}
	t.Cleanup(func() {
		if t.Failed() {
			k.tell()
		}
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := h.InstallKubeadm(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		k.write("/root/patches/"+name+".yaml", fmt.Sprintf(kubeadmPatch, name, release.Default().Folder))
	}
	k.write("/root/init.yaml", fmt.Sprintf(kubeadmInit, k.run("kubeadm version -o short")))
	k.run(strings.Join(append([]string{"kubeadm init --config=/root/init.yaml"}, h.KubeadmIgnored()...), " "))
	// Services are what pods reach the API server by. The kernel's settings for connections are not the host's to
	// change.
	k.run(`kubeadm kubeconfig user --client-name system:kube-proxy >/root/kube-proxy.conf
		systemd-run --quiet --unit=kube-proxy ` + release.Default().Program(host.BinDir, "kube-proxy") + ` --kubeconfig=/root/kube-proxy.conf --proxy-mode=nftables \
			--hostname-override=` + controlName + ` --conntrack-max-per-core=0 --conntrack-tcp-timeout-established=0s --conntrack-tcp-timeout-close-wait=0s`)
	return k
}

func (k *kubeadmCluster) in(t *testing.T) *kubeadmCluster {
	t.Helper()
	return &kubeadmCluster{t: t, host: k.host}
}

// try runs commands of the administrator, who is root on the node.
func (k *kubeadmCluster) try(script string) (string, error) {
	k.t.Helper()
	out, err := k.host.Run(k.t.Context(), "timeout", "90", "sh", "-c", "export KUBECONFIG=/etc/kubernetes/admin.conf; cd "+checkout+" 2>/dev/null; "+script)
	return strings.TrimSpace(out), err
}

func (k *kubeadmCluster) run(script string) string {
	k.t.Helper()
	out, err := k.try(script)
	if err != nil {
		k.t.Fatal(err)
	}
	return out
}

func (k *kubeadmCluster) write(path, content string) {
	k.t.Helper()
	if err := k.host.Write(path, content, 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// checkout puts what a checkout has in which the image was made where the administrator works.
func (k *kubeadmCluster) checkout() {
	k.t.Helper()
	const root = "../.."
	image := exec.CommandContext(k.t.Context(), "tools/image.sh") // as `make image` does when everything is built
	image.Dir = root
	if out, err := image.CombinedOutput(); err != nil {
		k.t.Fatalf("packing the image: %v\n%s", err, out)
	}
	for _, dir := range []string{"dist", "deploy/manifests", "deploy/static", "deploy/charts", "deploy/profiles"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			name, err := filepath.Rel(root, path)
			k.write(filepath.Join(checkout, name), string(content))
			return err
		})
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

// programs puts muster's programs where a checkout has them after `make build`.
func (k *kubeadmCluster) programs() {
	k.t.Helper()
	k.run("ln -s " + host.BinDir + " bin")
}

// tell logs what happened in a cluster whose story failed.
func (k *kubeadmCluster) tell() {
	out, err := k.host.Run(context.WithoutCancel(k.t.Context()), "timeout", "20", "sh", "-c", `export KUBECONFIG=/etc/kubernetes/admin.conf
		kubectl get pods -A -o wide; kubectl get csr; kubectl get events -A | tail -n 40
		tail -v -n 30 /var/log/pods/*/*/*.log; journalctl --no-pager --output=cat --lines=40 --unit=kubelet --unit=kube-proxy`)
	k.t.Logf("what there is at the end: %v\n%s", err, out)
}
