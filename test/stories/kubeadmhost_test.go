// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/vpc"
	"muster.dev/muster/test/host"
)

// kubeadmHost is a host that muster did not make, prepared as by packages, on which kubeadm is run.
type kubeadmHost struct {
	*host.Host
	t *testing.T
}

// newKubeadmHost starts a host in the cluster's VPC. The story must end before the cluster does.
func newKubeadmHost(t *testing.T, i *installation, name, address string) *kubeadmHost {
	t.Helper()
	network, err := vpc.New(vpc.Config{Dir: i.dir.VPC(), CIDR: netip.MustParsePrefix("192.168.64.0/18")})
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.Start(t.Context(), host.Config{
		Name: name, Address: netip.MustParseAddr(address), Network: network, Bin: i.bin,
		Install: host.KubeadmPrograms(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &kubeadmHost{Host: h, t: t}
	t.Cleanup(func() {
		if t.Failed() {
			w.tell()
		}
		if err := h.Close(); err != nil {
			t.Errorf("closing host %s: %v", name, err)
		}
	})
	if err := h.InstallKubeadm(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w
}

// tell logs what happened on a host whose story failed.
func (w *kubeadmHost) tell() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(w.t.Context()), 10*time.Second)
	defer cancel()
	for _, args := range [][]string{
		{"systemctl", "status", "--no-pager", "kubelet", "containerd"},
		{"journalctl", "--no-pager", "--output=cat", "--lines=60", "--unit=kubelet"},
	} {
		out, err := w.Run(ctx, args...)
		w.t.Logf("%s:\n%s%v", strings.Join(args, " "), out, err)
	}
}

func (w *kubeadmHost) must(args ...string) string {
	w.t.Helper()
	out, err := w.Run(w.t.Context(), args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// join runs kubeadm as its documentation says. patience is how long discovery may take.
func (w *kubeadmHost) join(ctx context.Context, token, hash string, patience time.Duration) (string, error) {
	command, err := w.KubeadmCommand(host.KubeadmJoin{Endpoint: privateServer, Token: token, Hash: hash, Discovery: patience})
	if err != nil {
		return "", err
	}
	return w.Run(ctx, command...)
}
