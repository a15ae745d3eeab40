// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
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
		w.until("it waits", func() bool { return len(w.events.all()) == 1 })
		w.settled("a", "")
		w.at(12, 11) // now it is another's
		w.becomes("a", "Denied/address-assigned")
	})
	t.Run("while it is being signed", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.duringSigning(func() { w.at(11, 99) }) })
		w.create(serving(t, "a", 11, address(11)))
		w.until("it waits", func() bool { return len(w.events.all()) == 1 })
		w.settled("a", "Approved/AutoApproved")
		w.at(12, 11)
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
		w.becomes("a", wasIssued)
	})
	t.Run("of another machine", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.duringSigning(func() { w.at(12, 99) }) })
		w.create(serving(t, "a", 11, address(11)))
		w.becomes("a", wasIssued)
		if n := w.signer.Signed(); n != 1 {
			t.Errorf("signed %d times", n)
		}
	})
}

// deleting marks machine n as being deleted.
func (w *world) deleting(n int) {
	w.facts.Put(policy.Machine{ID: machineID(n), NodeName: nodeName(n), Addresses: []netip.Addr{netip.MustParseAddr(address(n))}, Deleting: true})
}

func TestAMachineThatGoesInFlight(t *testing.T) {
	for _, request := range []struct {
		name string
		make func(*testing.T, string, int) *certificatesv1.CertificateSigningRequest
	}{
		{"serving", func(t *testing.T, name string, n int) *certificatesv1.CertificateSigningRequest {
			t.Helper()
			return serving(t, name, n, address(n))
		}},
		{"client", bootstrap},
	} {
		for _, goes := range []struct {
			name           string
			how            func(*world)
			before, during string // the state that the request gets
		}{
			{"taken away", func(w *world) { w.facts.Remove(machineID(11)) }, "", "Approved/AutoApproved"},
			{"marked as being deleted", func(w *world) { w.deleting(11) }, "Denied/", "Approved/AutoApproved Failed/SignerValidationFailure"},
		} {
			ends := func(t *testing.T, w *world, want string) {
				t.Helper()
				w.until("it is told", func() bool { return len(w.events.all()) == 1 })
				w.until("it is settled", func() bool { return strings.HasPrefix(w.state("a"), want) })
				w.stays("a", w.state("a"))
				// A certificate goes on record after it is written.
				w.until("all passes have ended", w.resting)
				if all := w.register.List(); len(all) != 1 { // the probe's
					t.Errorf("on record: %v", all)
				}
			}
			t.Run(request.name+" "+goes.name+" before the approval", func(t *testing.T) {
				w := newWorld(t, func(w *world) {
					w.client.PrependReactor("update", "certificatesigningrequests", once("approval", func() error { goes.how(w); return conflict() }))
				})
				w.create(request.make(t, "a", 11))
				ends(t, w, goes.before)
			})
			t.Run(request.name+" "+goes.name+" while it is being signed", func(t *testing.T) {
				w := newWorld(t, func(w *world) { w.duringSigning(func() { goes.how(w) }) })
				w.create(request.make(t, "a", 11))
				ends(t, w, goes.during)
			})
		}
	}
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
		w.becomes("a", wasIssued)
	})
	t.Run("it is created while its certificate is being signed", func(t *testing.T) {
		w := newWorld(t, func(w *world) { w.duringSigning(func() { w.nodes.set(nodeName(11), true) }) })
		w.create(bootstrap(t, "a", 11))
		w.until("it waits", func() bool { return len(w.events.all()) == 1 })
		w.settled("a", "Approved/AutoApproved")
		w.nodes.set(nodeName(11), false)
		w.becomes("a", wasIssued)
	})
	t.Run("its machine is replaced", func(t *testing.T) {
		w := newWorld(t, nil)
		w.create(bootstrap(t, "first", 11))
		w.becomes("first", wasIssued)
		w.nodes.set(nodeName(11), true)
		w.create(bootstrap(t, "again", 11)) // the same machine, or a thief of its token
		w.until("it waits", func() bool { return len(w.events.all()) == 1 })
		w.facts.Remove(machineID(11))
		w.facts.Put(policy.Machine{ID: machineID(12), NodeName: nodeName(11), Addresses: []netip.Addr{netip.MustParseAddr(address(11))}})
		w.settled("again", "") // its token is the old machine's
		next := object("next", pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "system:bootstrap:123456", "system:bootstrappers", "system:bootstrappers:muster:"+machineID(12))
		w.create(next)
		w.becomes("next", wasIssued)
		if fact := w.register.LastMachine(nodeName(11)); fact.State != policy.Known {
			t.Errorf("last machine %+v", fact)
		}
	})
}

// asking is a request that a node makes with a certificate.
func (w *world) asking(csr *certificatesv1.CertificateSigningRequest, with string) *certificatesv1.CertificateSigningRequest {
	w.t.Helper()
	csr.Spec.Extra = map[string]certificatesv1.ExtraValue{
		"authentication.kubernetes.io/credential-id": {fmt.Sprintf("X509SHA256=%x", sha256.Sum256(w.certificate(with).Raw))},
	}
	return csr
}

// A thief with a machine's key gets nothing more when another machine is the node, and does not stand in its way.
func TestAKeyIsWorthlessWhenItsMachineIsReplaced(t *testing.T) {
	renewal := func(name string) *certificatesv1.CertificateSigningRequest {
		return object(name, pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "system:node:"+nodeName(11), "system:nodes")
	}
	for _, told := range []bool{true, false} {
		t.Run(fmt.Sprintf("API server tells of certificates %t", told), func(t *testing.T) {
			w := newWorld(t, nil)
			w.create(bootstrap(t, "first", 11))
			w.becomes("first", wasIssued)
			w.nodes.set(nodeName(11), true)
			w.create(w.asking(renewal("renewed"), "first"))
			w.becomes("renewed", wasIssued)
			w.facts.Remove(machineID(11))
			w.facts.Put(policy.Machine{ID: machineID(12), NodeName: nodeName(11), Addresses: []netip.Addr{netip.MustParseAddr(address(12))}})
			stolen, spying := renewal("stolen"), serving(t, "spying", 11, address(12))
			if told {
				w.create(w.asking(stolen, "renewed"), w.asking(spying, "renewed"))
				w.becomes("stolen", "Denied/credential")
				w.becomes("spying", "Denied/credential")
			} else { // an older one cannot tell them apart
				w.create(stolen)
				w.becomes("stolen", wasIssued)
			}
			next := object("next", pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "system:bootstrap:123456", "system:bootstrappers", "system:bootstrappers:muster:"+machineID(12))
			w.create(next)
			w.becomes("next", wasIssued)
			w.create(w.asking(serving(t, "serves", 11, address(12)), "next"))
			w.becomes("serves", wasIssued)
		})
	}
}

// A token makes a machine a node once, whether or not its Node is there.
func TestATokenMakesOneNodeOnce(t *testing.T) {
	w := newWorld(t, nil)
	w.create(bootstrap(t, "lost", 11)) // the answer
	w.becomes("lost", wasIssued)
	w.create(bootstrap(t, "first", 11))
	w.becomes("first", wasIssued)
	w.create(serving(t, "serving", 11, address(11)))
	w.becomes("serving", wasIssued)
	w.create(bootstrap(t, "thief", 11))
	w.until("it waits", func() bool { return len(w.events.all()) == 1 })
	if e := w.events.all()[0]; !strings.Contains(e, "Wait by rule bootstrap-spent") {
		t.Errorf("event %q", e)
	}
	fresh := bootstrap(t, "fresh", 11)
	fresh.Spec.Username = "system:bootstrap:fresh1"
	w.create(fresh)
	w.becomes("fresh", wasIssued)
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

// No Event is written for a fact that will be known in a moment. Events are written for an unknown fact and for the
// decision.
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
	w.becomes("a", wasIssued)
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
	w.becomes("a", wasIssued)
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
