// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/certificates/policy"
)

func TestIssuesWhatAMachineMayHave(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.issuance(pki.SignerKubeletServing, func(i *Issuance) { i.Duration = 24 * time.Hour })
	})
	w.create(bootstrap(t, "client", 11), serving(t, "serving", 11, nodeName(11), address(11)))
	w.becomes("client", wasIssued)
	w.becomes("serving", wasIssued)

	c := w.certificate("serving")
	if !slices.Equal(c.DNSNames, []string{nodeName(11)}) || len(c.IPAddresses) != 1 || c.IPAddresses[0].String() != address(11) {
		t.Errorf("names %v %v", c.DNSNames, c.IPAddresses)
	}
	if life := c.NotAfter.Sub(c.NotBefore); life != 24*time.Hour {
		t.Errorf("good for %s", life)
	}
	if life := time.Until(w.certificate("client").NotAfter).Round(time.Hour); life != 168*time.Hour {
		t.Errorf("client certificate good for %s", life)
	}
	for name, want := range map[string]string{
		"client":  "Auto approving kubelet client certificate after SubjectAccessReview.",
		"serving": "Auto approving self kubelet server certificate after SubjectAccessReview.",
	} {
		if got := w.get(name).Status.Conditions[0].Message; got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if n := w.updates("approval") + w.updates("status"); n != 4 {
		t.Errorf("%d writes for two requests, %d of them of an old version; %d signatures\n%s", n, w.store.refused(), w.signer.Signed(), w.log)
	}
	if e := w.events.all(); len(e) > 0 {
		t.Errorf("events %q", e)
	}
	for _, want := range []string{`"verdict":"Approve"`, "address-assigned=Pass", `"csr":"serving"`} {
		w.until(want+" is in the log", func() bool { return strings.Contains(w.log.String(), want) })
	}
}

// shows is an informer that shows a version of a request, and a moment later something else.
type shows struct {
	cache.SharedIndexInformer
	cache.Store
	now  *held
	then func()
}

func (s *shows) GetStore() cache.Store { return s }

func (s *shows) GetByKey(string) (any, bool, error) {
	defer s.then()
	return s.now, true, nil
}

// Our own change is forgotten once the informer shows it. A worker that has just read an older version there does it no
// second time.
func TestAPassThatBeginsAsTheInformerCatchesUp(t *testing.T) {
	approved := []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: "True", Reason: "AutoApproved"}}
	for name, did := range map[string]func(c *Controller, h *held) (shown func()){
		"issued": func(c *Controller, h *held) func() {
			c.ledger.markFinished(h.item, h.uid)
			later := &held{item: h.item, uid: h.uid, lineage: h.lineage, finished: true, issued: true}
			return func() { c.see(later) }
		},
		"issued and superseded": func(c *Controller, h *held) func() {
			c.ledger.markFinished(h.item, h.uid)
			supersede(c, h)
			later := &held{item: h.item, uid: h.uid, lineage: h.lineage, finished: true, issued: true}
			return func() { c.see(later) }
		},
		"deleted": func(c *Controller, h *held) func() {
			supersede(c, h)
			c.ledger.markDeleted(h.item, h.uid)
			return func() { c.remove(h) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := prepareWorld(t)
			w.config.Metrics = prometheus.NewRegistry()
			c, err := New(w.config)
			if err != nil {
				t.Fatal(err)
			}
			csr := serving(t, "a", 11, address(11))
			csr.UID, csr.Status.Conditions = "a", approved
			o, err := c.hold(csr)
			h, ok := o.(*held)
			if err != nil || !ok {
				t.Fatal(o, err)
			}
			c.see(h)
			c.informer = &shows{SharedIndexInformer: c.informer, now: h, then: did(c, h)}
			if _, err := c.handle(t.Context(), h.item); err != nil {
				t.Error(err)
			}
			if actions := w.client.Actions(); len(actions) > 0 || w.signer.Signed() > 0 {
				t.Errorf("it does %v and signs %d times", actions, w.signer.Signed())
			}
		})
	}
}

// supersede lets newer ones of its lineage be seen, as many as are kept.
func supersede(c *Controller, h *held) {
	for n := range c.config.Keep {
		c.see(&held{item: item{name: fmt.Sprint("newer-", n), signer: h.item.signer}, uid: types.UID(fmt.Sprint("newer-", n)), created: h.created + 1, lineage: h.lineage})
	}
}

func TestDeniesAndSaysWhy(t *testing.T) {
	w := newWorld(t, func(w *world) { w.machine(12) })
	w.create(serving(t, "greedy", 11, address(12)))
	w.becomes("greedy", "Denied/address-assigned")
	want := "the address 192.168.64.12 is not assigned to machine " + machineID(11) + " but to machine " + machineID(12) + "; it may ask for 192.168.64.11"
	if got := w.get("greedy").Status.Conditions[0].Message; got != want {
		t.Errorf("message %q", got)
	}
	w.until("an event tells", func() bool { return len(w.events.all()) == 1 })
	if got := w.events.all()[0]; got != "greedy Warning CertificateDenied Deny by rule address-assigned: "+want+" (M-TLS-38)" {
		t.Errorf("event %q", got)
	}
	if n := len(w.facts.Reviews()); n != 0 {
		t.Errorf("%d access reviews for a request that cannot pass", n)
	}
}

func TestLeavesOthersAlone(t *testing.T) {
	w := newWorld(t, nil)
	other := serving(t, "other", 11, address(11))
	other.Spec.SignerName = "example.com/mine"
	person := bootstrap(t, "person", 11)
	person.Spec.Username, person.Spec.Groups = "alice", nil
	unbound := bootstrap(t, "unbound", 11)
	unbound.Spec.Groups = []string{"system:bootstrappers"}
	w.create(other, person, unbound)
	w.stays("other", "")
	w.until("both events are there", func() bool { return len(w.events.all()) == 2 })
	w.stays("person", "")
	w.stays("unbound", "")
	for _, e := range w.events.all() {
		if !strings.Contains(e, " Normal CertificateLeftPending Ignore by rule requester: ") || !strings.Contains(e, "kubectl certificate approve") {
			t.Errorf("event %q", e)
		}
	}
}

func approved(csr *certificatesv1.CertificateSigningRequest) *certificatesv1.CertificateSigningRequest {
	csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
		{Type: certificatesv1.CertificateApproved, Status: "True", Reason: "KubectlApprove"},
	}
	return csr
}

func TestSignsWhatAPersonApprovedIfItsContentsPass(t *testing.T) {
	w := newWorld(t, func(w *world) { w.facts.Refuse(true); w.machine(12) })
	w.create(approved(serving(t, "own", 11, address(11))), approved(serving(t, "others", 11, address(12))))
	w.becomes("own", "Approved/KubectlApprove Issued")
	w.becomes("others", "Approved/KubectlApprove Failed/SignerValidationFailure")
	conditions := w.get("others").Status.Conditions
	if m := conditions[1].Message; !strings.HasPrefix(m, "address-assigned: the address 192.168.64.12 ") {
		t.Errorf("message %q", m)
	}
	if n := w.updates("approval"); n != 0 {
		t.Errorf("%d approvals written", n)
	}
	w.until("an event tells", func() bool { return len(w.events.all()) == 1 })
	if e := w.events.all()[0]; !strings.Contains(e, "Warning CertificateFailed") {
		t.Errorf("event %q", e)
	}
	// A person may approve what nobody here vouches for, after it was left.
	person := bootstrap(t, "person", 11)
	person.Spec.Username, person.Spec.Groups = "alice", nil
	w.create(person)
	w.until("it was left", func() bool { return len(w.events.all()) == 2 })
	if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), "person", approved(w.get("person")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("person", "Approved/KubectlApprove Issued")
}

func TestAMachineThatAppearsLaterWakesItsRequestsUp(t *testing.T) {
	w := newWorld(t, nil) // waits take an hour here: only an event can help
	w.create(bootstrap(t, "client", 12), serving(t, "serving", 13, address(13)))
	w.until("both wait", func() bool { return len(w.events.all()) == 2 })
	for _, e := range w.events.all() {
		if !strings.Contains(e, "Normal CertificateWaiting") {
			t.Errorf("event %q", e)
		}
	}
	w.facts.Put(policy.Machine{ID: machineID(12)})
	w.until("the next reason is told", func() bool { return len(w.events.all()) == 3 })
	if e := w.events.all()[2]; !strings.Contains(e, "has no node name yet") {
		t.Errorf("event %q", e)
	}
	w.machine(12)
	w.becomes("client", wasIssued)
	w.stays("serving", "")
	w.machine(13)
	w.becomes("serving", wasIssued)
}

func TestAnInventoryThatIsBackWakesEverybodyUp(t *testing.T) {
	w := newWorld(t, func(w *world) { w.facts.Break("no connection") })
	w.create(bootstrap(t, "a", 11), serving(t, "b", 11, address(11)))
	w.until("both wait", func() bool { return len(w.events.all()) == 2 })
	w.facts.Break("")
	w.becomes("a", wasIssued)
	w.becomes("b", wasIssued)
}

func TestWaitsAreAskedAgain(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.facts.Refuse(true)
		w.config.Wait = Backoff{time.Millisecond, 10 * time.Millisecond}
	})
	w.create(serving(t, "a", 11, address(11)))
	w.until("it was asked three times", func() bool { return len(w.facts.Reviews()) >= 3 })
	if e := w.events.all(); len(e) != 1 || !strings.Contains(e[0], "bind a role") {
		t.Errorf("the same was told more than once: %q", e)
	}
	w.facts.Refuse(false)
	w.becomes("a", wasIssued)
}

func TestErrorsAreTriedAgain(t *testing.T) {
	unavailable := apierrors.NewServiceUnavailable("not now")
	for _, tc := range []struct {
		name string
		harm func(*world)
	}{
		{"the approval", func(w *world) { w.fail("approval", unavailable, unavailable) }},
		{"the certificate", func(w *world) { w.fail("status", unavailable, unavailable) }},
		{"the signature", func(w *world) { w.signer.Fail(errors.New("no key"), errors.New("no key")) }},
		{"the approval conflicts", func(w *world) { w.fail("approval", conflict(), conflict()) }},
		{"the certificate conflicts", func(w *world) { w.fail("status", conflict(), conflict()) }},
		{"the signer panics", func(w *world) {
			w.issuance(pki.SignerKubeletServing, func(i *Issuance) { i.Signer = &panics{Fake: i.Signer} })
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, func(w *world) {
				w.config.Retry = Backoff{time.Millisecond, 10 * time.Millisecond}
				tc.harm(w)
			})
			w.create(serving(t, "a", 11, address(11)))
			w.becomes("a", wasIssued)
		})
	}
}

type panics struct {
	Fake
	times atomic.Int32
}

// Fake is the signer behind.
type Fake interface {
	Issuer(context.Context) (*x509.Certificate, error)
	Sign(context.Context, pki.Prepared) ([]byte, error)
}

func (p *panics) Sign(ctx context.Context, c pki.Prepared) ([]byte, error) {
	if p.times.Add(1) == 1 {
		panic("out of order")
	}
	return p.Fake.Sign(ctx, c)
}

func TestConflictsNeedNoBackoff(t *testing.T) {
	w := newWorld(t, func(w *world) { w.fail("approval", conflict()); w.fail("status", conflict()) }) // retries take an hour
	w.create(serving(t, "a", 11, address(11)))
	w.becomes("a", wasIssued)
}

// Somebody denies while we approve: the conflict makes the request be read and judged again.
func TestAConflictIsJudgedAgain(t *testing.T) {
	w := newWorld(t, nil)
	var once atomic.Bool
	w.client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.GetSubresource() != "approval" || !once.CompareAndSwap(false, true) {
			return false, nil, nil
		}
		update, ok := a.(clienttesting.UpdateAction)
		if !ok {
			return false, nil, nil
		}
		theirs := update.GetObject().DeepCopyObject().(*certificatesv1.CertificateSigningRequest) //nolint:forcetypeassert // of this resource
		theirs.Status.Conditions[0].Type, theirs.Status.Conditions[0].Reason = certificatesv1.CertificateDenied, "ByHand"
		if _, err := w.store.update(theirs, "approval"); err != nil {
			t.Error(err)
		}
		return true, nil, conflict()
	})
	w.create(serving(t, "a", 11, address(11)))
	w.becomes("a", "Denied/ByHand")
	w.stays("a", "Denied/ByHand")
	if w.signer.Signed() > 1 { // the probe
		t.Error("signed what was denied")
	}
}

func TestARequestThatIsDeletedMeanwhileIsForgotten(t *testing.T) {
	gone := apierrors.NewNotFound(certificatesv1.Resource("certificatesigningrequests"), "a")
	w := newWorld(t, func(w *world) { w.fail("approval", gone) })
	w.create(serving(t, "a", 11, address(11)))
	w.until("it was tried", func() bool { return w.updates("approval") == 1 })
	if err := w.client.CertificatesV1().CertificateSigningRequests().Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("nothing is remembered", func() bool {
		w.ledger.mu.Lock()
		defer w.ledger.mu.Unlock()
		return len(w.ledger.entries)+len(w.ledger.interest)+len(w.ledger.finished) == 0
	})
}

func TestAChangedAuthorityIsPreparedForAgain(t *testing.T) {
	ca, key := pkitest.Authority(t, "next", time.Now(), time.Hour)
	w := newWorld(t, func(w *world) {
		w.client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() == "approval" {
				w.signer.Replace(ca, key)
			}
			return false, nil, nil
		})
	})
	w.create(serving(t, "a", 11, address(11)))
	w.becomes("a", wasIssued)
	w.ca = ca
	if c := w.certificate("a"); c.NotAfter.After(ca.NotAfter) {
		t.Error("good for longer than the authority that signed it")
	}
}

func TestNothingIsApprovedThatCannotBePrepared(t *testing.T) {
	ca, key := pkitest.Authority(t, "expired", time.Now(), -time.Minute)
	w := newWorld(t, func(w *world) { w.signer.Replace(ca, key) })
	w.create(serving(t, "a", 11, address(11)))
	w.until("it was tried", func() bool { return strings.Contains(w.log.String(), "expired") })
	if got := w.state("a"); got != "" {
		t.Errorf("it is %q", got)
	}
}

func TestAFloodDelaysNobodyElse(t *testing.T) {
	const flood = 400
	release := make(chan struct{})
	var left atomic.Int32 // of the flood, when the honest one is approved
	w := newWorld(t, func(w *world) {
		w.config.Workers = 1
		w.config.Inventory = shut{w.config.Inventory, release}
		w.client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			update, _ := a.(clienttesting.UpdateAction)
			if csr, _ := update.GetObject().(*certificatesv1.CertificateSigningRequest); csr.Name == "honest" && a.GetSubresource() == "approval" {
				left.Store(int32(w.queue.depth()))
			}
			return false, nil, nil
		})
	})
	for n := range flood {
		w.create(serving(t, fmt.Sprintf("flood-%d", n), 11, address(99))) // denied, one write each
	}
	w.until("they are queued", func() bool { return w.queue.depth() >= flood-1 })
	w.machine(12)
	w.create(serving(t, "honest", 12, address(12)))
	w.until("it is queued", func() bool { return w.queue.depth() >= flood })
	close(release)
	w.becomes("honest", wasIssued)
	if n := left.Load(); n < flood-5 {
		t.Errorf("only %d of the flood are left: the honest one waited for the others", n)
	}
}

// shut is an inventory that answers when it is opened.
type shut struct {
	Inventory
	open chan struct{}
}

func (g shut) MachineOfNode(node string) policy.Fact[policy.Machine] {
	<-g.open
	return g.Inventory.MachineOfNode(node)
}
