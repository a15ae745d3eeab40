// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"fmt"
	"strings"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
)

func TestPruning(t *testing.T) {
	denied := func(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
		csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: "True"}}
		return csr
	}
	shared := func(name string, n int) *certificatesv1.CertificateSigningRequest {
		return object(name, pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(n)), "system:bootstrap:abcdef", "system:bootstrappers")
	}
	type requests = []*certificatesv1.CertificateSigningRequest
	for _, tc := range []struct {
		name   string
		change func(*world)
		made   func(n int) *certificatesv1.CertificateSigningRequest
		want   []int // which of five are left, in the order of their creation
	}{
		{"of a node that waits", nil, func(n int) *certificatesv1.CertificateSigningRequest { return serving(t, "", 12, address(12)) }, []int{3, 4}},
		{"of a denied node", nil, func(n int) *certificatesv1.CertificateSigningRequest { return serving(t, "", 11, address(12)) }, []int{3, 4}},
		{"of a node with certificates", nil, func(n int) *certificatesv1.CertificateSigningRequest { return serving(t, "", 11, address(11)) }, []int{3, 4}},
		{"of a machine's token", nil, func(n int) *certificatesv1.CertificateSigningRequest { return bootstrap(t, "", 12) }, []int{3, 4}},
		{"of a shared token, for one node", nil, func(n int) *certificatesv1.CertificateSigningRequest { return shared("", 12) }, []int{3, 4}},
		{"of a shared token, for many nodes", nil, func(n int) *certificatesv1.CertificateSigningRequest { return shared("", 20+n) }, []int{0, 1, 2, 3, 4}},
		{"of a person", nil, func(n int) *certificatesv1.CertificateSigningRequest {
			return denied(object("", pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "alice", "people"))
		}, []int{0, 1, 2, 3, 4}},
		{"of another signer", nil, func(n int) *certificatesv1.CertificateSigningRequest {
			csr := denied(serving(t, "", 11, address(11)))
			csr.Spec.SignerName = "example.com/mine"
			return csr
		}, []int{0, 1, 2, 3, 4}},
		{"of two signers", nil, func(n int) *certificatesv1.CertificateSigningRequest {
			csr := denied(serving(t, "", 11, address(11)))
			if n%2 == 0 {
				csr.Spec.SignerName = pki.SignerKubeletClient
			}
			return csr
		}, []int{1, 2, 3, 4}},
		{"keeping one", func(w *world) { w.config.Keep = 1 }, func(n int) *certificatesv1.CertificateSigningRequest { return serving(t, "", 12, address(12)) }, []int{4}},
		{"keeping all", func(w *world) { w.config.Keep = -1 }, func(n int) *certificatesv1.CertificateSigningRequest { return denied(serving(t, "", 12, address(12))) }, []int{0, 1, 2, 3, 4}},
		{"while observing", func(w *world) { w.config.Mode = Observe }, func(n int) *certificatesv1.CertificateSigningRequest {
			return denied(serving(t, "", 12, address(12)))
		}, []int{0, 1, 2, 3, 4}},
	} {
		for _, late := range []bool{false, true} { // all are there at the start, or come one after another
			t.Run(fmt.Sprintf("%s/late=%t", tc.name, late), func(t *testing.T) {
				var all requests
				var want []string
				for n := range 5 {
					csr := tc.made(n)
					csr.Name = fmt.Sprint("csr-", n)
					all = append(all, csr)
				}
				for _, n := range tc.want {
					want = append(want, fmt.Sprint("csr-", n))
				}
				w := newWorld(t, func(w *world) {
					if tc.change != nil {
						tc.change(w)
					}
					if !late {
						w.create(all...)
					}
				})
				if late {
					w.create(all...)
				}
				w.until("the superseded ones are gone", func() bool { return w.live("csr-") == strings.Join(want, " ") })
				w.until("all passes have ended", w.resting)
				if got := w.live("csr-"); got != strings.Join(want, " ") {
					t.Errorf("then %s are left", got)
				}
				if n := w.deletions(); n != 5-len(want) {
					t.Errorf("%d deletions of %d requests", n, 5-len(want))
				}
			})
		}
	}
}

// resting reports whether nothing is queued or in hand.
func (w *world) resting() bool {
	w.queue.mu.Lock()
	defer w.queue.mu.Unlock()
	return w.queue.count+len(w.queue.inHand) == 0
}

// deletions that were asked for, whatever came of them.
func (w *world) deletions() int {
	n := 0
	for _, a := range w.client.Actions() {
		if a.GetVerb() == "delete" {
			n++
		}
	}
	return n
}

// Later requests of a node supersede those of its bootstrap token.
func TestARenewalSupersedesTheFirstCertificate(t *testing.T) {
	w := newWorld(t, nil)
	w.create(bootstrap(t, "csr-first", 11))
	w.becomes("csr-first", wasIssued)
	for n := range 2 {
		name := fmt.Sprint("csr-renewal-", n)
		w.create(object(name, pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "system:node:"+nodeName(11), "system:nodes"))
		w.becomes(name, wasIssued)
	}
	w.until("two are left", func() bool { return w.live("csr-") == "csr-renewal-0 csr-renewal-1" })
}

// silent answers no access review.
type silent struct{}

func (silent) Review(context.Context, policy.Access) policy.Fact[bool] {
	return policy.DontKnow[bool]("test", "nobody answers")
}

// Of a node and the tokens that are good for it alone two live, whatever became of them.
func TestANodeAndItsTokensShareALineage(t *testing.T) {
	name, err := token.Scope{Kind: token.ScopeName, Value: nodeName(12)}.Group()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(w *world) {
		w.machine(12)
		w.config.Access = silent{}
	})
	refuse := func(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
		csr.Spec.Usages = append(csr.Spec.Usages, certificatesv1.UsageCodeSigning)
		return csr
	}
	made := func(user string, groups ...string) *certificatesv1.CertificateSigningRequest {
		return object("", pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(12)), user, groups...)
	}
	n := 0
	for range 3 {
		for _, csr := range []*certificatesv1.CertificateSigningRequest{
			refuse(made("system:node:"+nodeName(12), "system:nodes")),
			made("system:node:"+nodeName(12), "system:nodes"),
			refuse(bootstrap(t, "", 12)),
			bootstrap(t, "", 12),
			refuse(made("system:bootstrap:name00", "system:bootstrappers", name)),
			made("system:bootstrap:name00", "system:bootstrappers", name),
		} {
			csr.Name = fmt.Sprintf("csr-%02d", n)
			w.create(csr)
			n++
		}
	}
	w.until("two are left", func() bool { return w.live("csr-") == fmt.Sprint("csr-", n-2, " csr-", n-1) })
}

// Nobody prunes what a node asks for by asking for its certificate with a token that is another's.
func TestAStrangersTokenPrunesNothingOfANode(t *testing.T) {
	name, err := token.Scope{Kind: token.ScopeName, Value: nodeName(12)}.Group()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, func(w *world) { w.machine(13) })
	for n := range 2 {
		w.create(serving(t, fmt.Sprint("victim-serving-", n), 12, address(12)))
		w.create(object(fmt.Sprint("victim-", n), pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(12)), "system:node:"+nodeName(12), "system:nodes"))
	}
	n := 0
	for range 4 {
		for _, groups := range [][]string{
			nil, // unbound
			{"system:bootstrappers:muster:" + machineID(13)},
			{"system:bootstrappers:muster:" + machineID(14)}, // which is not there
			{"system:bootstrappers:muster:group:workers"},
			{name, "system:bootstrappers:muster:"}, // garbled
		} {
			user := fmt.Sprintf("system:bootstrap:%06d", len(groups))
			csr := object(fmt.Sprintf("thief-%02d", n), pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(12)), user, append(groups, "system:bootstrappers")...)
			if n%2 == 0 { // as kube-controller-manager approves for every token
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True", Reason: policy.ReasonAutoApproved}}
			}
			w.create(csr)
			n++
		}
	}
	w.stays("victim-0", "")
	w.until("all passes have ended", w.resting)
	if got := w.live("victim-"); got != "victim-0 victim-1 victim-serving-0 victim-serving-1" {
		t.Errorf("left are %s", got)
	}
}

// Exactly the object that was looked at is deleted.
func TestPruningIsPrecise(t *testing.T) {
	w := newWorld(t, nil)
	for n := range 3 {
		w.create(serving(t, fmt.Sprint("csr-", n), 12, address(12)))
	}
	w.until("one is gone", func() bool { return w.live("csr-") == "csr-1 csr-2" })
	for _, a := range w.client.Actions() {
		if d, ok := a.(clienttesting.DeleteActionImpl); ok {
			if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID == "" || p.ResourceVersion == nil {
				t.Errorf("deleted with %+v", p)
			}
		}
	}
}

// Whatever wakes a request up after it was deleted, it is not deleted again while the informer still shows it.
func TestPruningHappensOnce(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.client.PrependReactor("delete", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			w.store.hush(true)
			return false, nil, nil
		})
	})
	for n := range 3 {
		w.create(serving(t, fmt.Sprint("csr-", n), 12, address(12)))
	}
	w.until("one is gone", func() bool { return w.live("csr-") == "csr-1 csr-2" })
	o, _, err := w.informer.GetStore().GetByKey("csr-0")
	h, ok := o.(*held)
	if err != nil || !ok {
		t.Fatal("the informer does not show it any more", err)
	}
	w.queue.add(h.item)
	w.until("all passes have ended", w.resting)
	if got := w.deletions(); got != 1 {
		t.Errorf("deleted %d times", got)
	}
	w.store.hush(false)
	w.until("nothing more is remembered than lives", func() bool {
		w.ledger.mu.Lock()
		defer w.ledger.mu.Unlock()
		return len(w.ledger.entries) == 2 && len(w.ledger.finished) == 0
	})
}

func TestPruningIsTriedAgain(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Retry = Backoff{1, 1}
		w.client.PrependReactor("delete", "certificatesigningrequests", onceDeleted(apierrors.NewServiceUnavailable("not now")))
	})
	for n := range 3 {
		w.create(serving(t, fmt.Sprint("csr-", n), 12, address(12)))
	}
	w.until("one is gone", func() bool { return w.live("csr-") == "csr-1 csr-2" })
}

func onceDeleted(err error) clienttesting.ReactionFunc { return once("", func() error { return err }) }

// A flood of one requester is pruned while another is served.
func TestAFloodIsPruned(t *testing.T) {
	const flood = 300
	w := newWorld(t, func(w *world) { w.machine(12) })
	for n := range flood {
		w.create(serving(t, fmt.Sprintf("flood-%03d", n), 11, address(99)))
	}
	w.create(serving(t, "honest", 12, address(12)))
	w.becomes("honest", wasIssued)
	w.until("two are left", func() bool { return w.live("flood-") == fmt.Sprint("flood-", flood-2, " flood-", flood-1) })
	list, err := w.client.CertificatesV1().CertificateSigningRequests().List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("%d are left, %v", len(list.Items), err)
	}
	w.until("nothing more is remembered than lives", func() bool {
		w.ledger.mu.Lock()
		defer w.ledger.mu.Unlock()
		w.lineages.mu.Lock()
		defer w.lineages.mu.Unlock()
		return len(w.ledger.entries) == 3 && len(w.lineages.of) == 3 && len(w.ledger.finished) == 0
	})
}
