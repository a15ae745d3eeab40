// SPDX-License-Identifier: Apache-2.0

package plane_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/test/plane"
)

// It needs the programs that `make build` makes.
func TestPlaneServesAndLeavesNothing(t *testing.T) {
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	p, err := plane.Start(t.Context(), plane.Config{Bin: bin, Flow: plane.FlowBootstrap})
	if err != nil {
		t.Fatal(err)
	}
	processes := []*plane.Process{p.Etcd, p.APIServer}
	closed := false
	t.Cleanup(func() {
		if !closed {
			_ = p.Close()
		}
	})
	manager, err := p.RunControllerManager("--controllers=csrsigning")
	if err != nil {
		t.Fatal(err)
	}
	processes = append(processes, manager)

	// A bootstrap token may ask for certificates by kubeadm's rules, and for nothing else.
	token, err := p.Token(t.Context(), "abcdef", plane.GroupKubeadmTokens)
	if err != nil {
		t.Fatal(err)
	}
	config := p.Anonymous()
	config.BearerToken = token
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	who, err := client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(who.Items) != 0 {
		t.Errorf("a bootstrap token lists requests: %v, %v", who, err)
	}
	if _, err := client.CoreV1().Secrets("").List(t.Context(), metav1.ListOptions{}); err == nil {
		t.Error("a bootstrap token reads secrets")
	}
	for _, process := range processes {
		u, err := process.Usage()
		if err != nil || u.Peak < u.Resident || u.Resident < 1<<20 || process == p.APIServer && u.CPU <= 0 {
			t.Errorf("%s cost %+v, %v", process.Name, u, err)
		}
	}

	closed = true
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	for _, process := range processes {
		if err := syscall.Kill(process.PID, 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("%s, process %d, is still there: %v", process.Name, process.PID, err)
		}
	}
	if _, err := os.Stat(p.Dir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("its directory: %v", err)
	}
}
