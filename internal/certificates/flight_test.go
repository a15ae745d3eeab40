// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/x509"
	"net/netip"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/facts"
	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/pki/pkitest"
	"muster.dev/muster/internal/policy"
)

// duringSigning runs something while the first signature is being made.
func (w *world) duringSigning(do func()) {
	var once sync.Once
	for name := range w.config.Signers {
		w.issuance(name, func(i *Issuance) { i.Signer = &interrupted{Fake: w.signer, before: func() { once.Do(do) }} })
	}
}

type interrupted struct {
	Fake
	before func()
}

func (s *interrupted) Sign(ctx context.Context, p pki.Prepared) ([]byte, error) {
	s.before()
	return s.Fake.Sign(ctx, p)
}

func (s *interrupted) Issuer(ctx context.Context) (*x509.Certificate, error) {
	return s.Fake.Issuer(ctx)
}

// at gives machine n the address of another number.
func (w *world) at(n, a int) {
	w.facts.Put(policy.Machine{ID: machineID(n), NodeName: nodeName(n), Addresses: []netip.Addr{netip.MustParseAddr(address(a))}})
}

func TestAnAddressThatChangesInFlight(t *testing.T) {
	t.Run("before the approval", func(t *testing.T) {
		w := newWorld(t, func(w *world) {
			w.client.PrependReactor("update", "certificatesigningrequests", once("approval", func() error { w.at(11, 99); return conflict() }))
		})
		w.create(serving(t, "a", 11, address(11)))
		w.becomes("a", "Denied/address-assigned")
	})
	t.Run("while it is being signed", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.duringSigning(func() { w.at(11, 99) }) })
		w.create(serving(t, "a", 11, address(11)))
		w.becomes("a", "Approved/AutoApproved Failed/SignerValidationFailure")
		if n := len(w.register.List()); n != 0 {
			t.Errorf("%d certificates on record", n)
		}
		if strings.Contains(w.log.String(), "not handled") {
			t.Errorf("it was taken for an error\n%s", w.log)
		}
	})
	t.Run("and back", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.duringSigning(func() { w.at(11, 99); w.at(11, 11) }) })
		w.create(serving(t, "a", 11, address(11)))
		w.becomes("a", issued)
	})
	t.Run("of another machine", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.duringSigning(func() { w.at(12, 99) }) })
		w.create(serving(t, "a", 11, address(11)))
		w.becomes("a", issued)
		if n := w.signer.Signed(); n != 1 {
			t.Errorf("signed %d times", n)
		}
	})
}

// once does something at the first write of a subresource and gives its error.
func once(subresource string, do func() error) clienttesting.ReactionFunc {
	var first sync.Once
	return func(a clienttesting.Action) (handled bool, _ runtime.Object, err error) {
		if a.GetSubresource() == subresource {
			first.Do(func() { err = do() })
		}
		return err != nil, nil, err
	}
}

func TestANodeThatComesAndGoes(t *testing.T) {
	t.Run("an existing node is not a token's", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.nodes.set(nodeName(11), true) })
		w.create(bootstrap(t, "a", 11))
		w.until("it waits", func() bool { return len(w.events.all()) == 1 })
		if e := w.events.all()[0]; !strings.Contains(e, "Wait by rule existing-node") {
			t.Errorf("event %q", e)
		}
		w.nodes.set(nodeName(11), false) // deleted: an event wakes the request up
		w.becomes("a", issued)
	})
	t.Run("it is created while its certificate is being signed", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.duringSigning(func() { w.nodes.set(nodeName(11), true) }) })
		w.create(bootstrap(t, "a", 11))
		w.until("it waits", func() bool { return len(w.events.all()) == 1 })
		w.settled("a", "Approved/AutoApproved")
		w.nodes.set(nodeName(11), false)
		w.becomes("a", issued)
	})
	t.Run("its machine is replaced", func(t *testing.T) {
		w := newWorld(t, nil)
		w.create(bootstrap(t, "first", 11))
		w.becomes("first", issued)
		w.nodes.set(nodeName(11), true)
		w.create(bootstrap(t, "again", 11)) // the same machine, or a thief of its token
		w.until("it waits", func() bool { return len(w.events.all()) == 1 })
		w.facts.Remove(machineID(11))
		w.facts.Put(policy.Machine{ID: machineID(12), NodeName: nodeName(11), Addresses: []netip.Addr{netip.MustParseAddr(address(11))}})
		w.settled("again", "") // its token is the old machine's
		next := object("next", pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "system:bootstrap:123456", "system:bootstrappers", "system:bootstrappers:muster:"+machineID(12))
		w.create(next)
		w.becomes("next", issued)
		if fact := w.register.LastMachine(nodeName(11)); fact.State != policy.Known {
			t.Errorf("last machine %+v", fact)
		}
	})
}

// A request that is deleted and made again, by another, between judging and writing.
func TestARequestThatIsAnothersByNow(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.machine(12)
		w.client.PrependReactor("update", "certificatesigningrequests", once("approval", func() error {
			// Not by the client, which is locked while it reacts.
			w.store.replace(serving(w.t, "a", 12, address(11)))
			return nil
		}))
	})
	w.create(serving(t, "a", 11, address(11)))
	w.becomes("a", "Denied/address-assigned")
	if user := w.get("a").Spec.Username; user != "system:node:"+nodeName(12) {
		t.Errorf("it is %s's", user)
	}
}

// What will be known in a moment is not told; what is not known is, and so is what comes of it.
func TestAFactThatComesLater(t *testing.T) {
	w := newWorld(t, func(w *world) { w.facts.Ask() })
	w.create(serving(t, "a", 11, address(11)))
	w.until("it waits", func() bool { return w.ledger.waiting() == 1 })
	w.settled("a", "")
	if e := w.events.all(); len(e) != 0 || strings.Contains(w.log.String(), "decided") {
		t.Errorf("it was told: %q", e)
	}
	w.facts.Break("10.0.0.2:53 has not answered within 2s")
	w.Changed(changeAll())
	w.until("that is told", func() bool { return len(w.events.all()) == 1 })
	if e := w.events.all()[0]; !strings.Contains(e, "CertificateWaiting") || !strings.Contains(e, "10.0.0.2:53") {
		t.Errorf("event %q", e)
	}
	if got := w.state("a"); got != "" {
		t.Fatalf("a timeout made it %q", got)
	}
	w.facts.Break("")
	w.becomes("a", issued)
}

// Two requests for two nodes with one key, at the same time: one of them gets it.
func TestOneKeyForTwoNodesAtOnce(t *testing.T) {
	key := pkitest.Key(t)
	with := func(name string, n int) *certificatesv1.CertificateSigningRequest {
		csr := serving(t, name, n, address(n))
		csr.Spec.Request = pkitest.Encode(t, key, pkitest.Template(nodeName(n), address(n)))
		return csr
	}
	w := newWorld(t, func(w *world) {
		w.machine(12)
		w.duringSigning(func() {
			w.create(with("b", 12))
			w.until("the second was judged", func() bool {
				w.queue.mu.Lock()
				defer w.queue.mu.Unlock()
				return len(w.queue.later) == 1 // it waits
			})
		})
	})
	w.create(with("a", 11))
	w.becomes("a", issued)
	w.becomes("b", "Denied/key-owner")
	if all := w.register.List(); len(all) != 1 {
		t.Errorf("on record: %v", all)
	}
	w.until("the key is given back", func() bool {
		w.claims.mu.Lock()
		defer w.claims.mu.Unlock()
		return len(w.claims.held) == 0
	})
}

func changeAll() facts.Change { return facts.Change{All: true} }
