// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/platform/systemd"
)

func TestRefusedBeforeAnythingChanges(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(*world, *JoinRequest)
		want    string
	}{
		"preflight": {func(_ *world, r *JoinRequest) {
			r.Preflight = func(context.Context) (string, error) { return "", errors.New("swap: on") }
		}, "swap: on"},
		"discovery": {func(_ *world, r *JoinRequest) {
			r.Discover = func(context.Context) (Found, error) { return Found{}, errors.New("not the pinned one") }
		}, "not the pinned one"},
		"token that the API server does not take": {func(w *world, _ *JoinRequest) { w.tokens = nil }, "does not take token abcdef.<redacted>: it has expired, was deleted"},
		"foreign program":                         {func(w *world, _ *JoinRequest) { w.write("/usr/local/bin/kubernetes", "theirs") }, "these files are here already and are not muster's: /usr/local/bin/kubernetes: undo what made them"},
		"foreign configuration":                   {func(w *world, _ *JoinRequest) { w.write("/etc/kubernetes/pki/ca.crt", "theirs") }, "/etc/kubernetes/pki/ca.crt: undo"},
		"foreign kubelet":                         {func(w *world, _ *JoinRequest) { w.write("/var/lib/kubelet/config.yaml", "theirs") }, "/var/lib/kubelet is not empty"},
		"containerd that does not answer": {func(w *world, _ *JoinRequest) {
			w.write("/usr/lib/systemd/system/containerd.service", "")
			mustRun(w.t, func() error { return w.units.Do(w.t.Context(), systemd.Reload) })
		}, "systemctl enable --now containerd"},
		"no networks": {func(w *world, _ *JoinRequest) {
			mustRun(w.t, func() error {
				return w.cluster.CoreV1().ConfigMaps("kube-system").Delete(w.t.Context(), "kubeadm-config", metav1.DeleteOptions{})
			})
		}, "--config-source"},
		"ledger of the future": {func(w *world, _ *JoinRequest) { w.write(LedgerPath, `{"version": 2}`) }, "its version is 2 and this muster knows 1"},
		"ledger of nonsense":   {func(w *world, _ *JoinRequest) { w.write(LedgerPath, `{"version": 1, "files": ["/etc"]}`) }, `it lists "/etc", which no join makes`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := w.request()
			c.prepare(w, &r)
			before := w.tree()
			_, err := w.host().Join(t.Context(), r)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error: %v\nwant: %s", err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "0123456789abcdef") {
				t.Errorf("the error shows the token: %v", err)
			}
			compare(t, "the host", before, w.tree())
			if len(w.changes) > 0 {
				t.Errorf("changes: %v", w.changes)
			}
		})
	}
}

func TestAnotherClusterIsRefused(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	before := w.tree()
	r := w.request()
	r.Endpoint = "10.0.0.1:6443"
	ca, _ := newAuthority(t)
	r.Discover = func(context.Context) (Found, error) {
		return Found{Endpoint: "https://10.0.0.1:6443", CA: pemOf(ca)}, nil
	}
	if _, err := w.host().Join(t.Context(), r); err == nil || !strings.Contains(err.Error(), "another cluster (https://192.168.64.2:443): `muster leave` first") {
		t.Errorf("error %v", err)
	}
	r = w.request()
	r.NodeName = "worker-2"
	if _, err := w.host().Join(t.Context(), r); err == nil || !strings.Contains(err.Error(), "has joined as node worker-1") {
		t.Errorf("error %v", err)
	}
	compare(t, "the host", before, w.tree())
}

func TestDenied(t *testing.T) {
	w := newWorld(t)
	w.decide = func(csr *certificatesv1.CertificateSigningRequest) {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Reason: "address-assigned", Message: "192.168.64.9 is not the machine's"}}
	}
	err := w.join()
	if err == nil || !strings.Contains(err.Error(), "was refused: address-assigned: 192.168.64.9 is not the machine's; the kubelet was stopped") ||
		!strings.Contains(err.Error(), "muster token create --node-name worker-1 --address 192.168.64.200") {
		t.Errorf("error %v", err)
	}
	if unit, err := w.units.Show(t.Context(), kubeletUnit); err != nil || unit.Active() {
		t.Errorf("kubelet %v, error %v", unit, err)
	}
	w.decide = nil
	mustRun(t, w.join) // with another key, so with another request
}

// A server that was just started knows nobody for a moment, however long it was away before.
func TestAServerThatComesBackRefusesAtFirst(t *testing.T) {
	w := newWorld(t)
	asked, away := 0, time.Duration(0)
	h := w.host()
	connect := h.Connect
	h.Connect = func(config *rest.Config) (kubernetes.Interface, error) {
		client, err := connect(config)
		if cluster, ok := client.(*fake.Clientset); ok && asked == 0 {
			cluster.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				switch asked++; asked {
				case 1:
					away = time.Minute
					return true, nil, errors.New("connection refused")
				case 2:
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "selfsubjectreviews"}, "", errors.New("RBAC knows no roles yet"))
				default:
					away = 0
					return false, nil, nil
				}
			})
		}
		return client, err
	}
	h.Now = func() time.Time { return time.Now().Add(away) }
	if _, err := h.Join(t.Context(), w.request()); err != nil || asked < 3 {
		t.Errorf("asked %d times: %v", asked, err)
	}
}

func TestWaitingIsSaid(t *testing.T) {
	w := newWorld(t)
	w.decide = func(*certificatesv1.CertificateSigningRequest) {}
	r := w.request()
	r.Timeout = 1500 * time.Millisecond
	_, err := w.host().Join(t.Context(), r)
	if err == nil || !strings.Contains(err.Error(), "not Ready after 1.5s; the kubelet goes on trying") {
		t.Errorf("error %v", err)
	}
	if !strings.Contains(w.said(), "waits for approval; an administrator sees why with `muster csr explain node-csr-") {
		t.Errorf("said:\n%s", w.said())
	}
	w.notReady = true
	w.decide = nil
	mustRun(t, func() error { return w.units.Do(t.Context(), systemd.Stop, kubeletUnit) })
	if _, err := w.host().Join(t.Context(), r); err == nil || !strings.Contains(w.said(), "not Ready yet: KubeletNotReady: cni plugin not initialized") {
		t.Errorf("error %v, said:\n%s", err, w.said())
	}
	w.notReady = false
	w.register()
	mustRun(t, w.join)
}
