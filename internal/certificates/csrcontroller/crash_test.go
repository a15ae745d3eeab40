// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// A controller that was killed between the two writes: the next one signs what was approved, and nothing is approved
// twice.
func TestKilledBetweenApprovalAndSignature(t *testing.T) {
	var dead atomic.Bool
	w := newWorld(t, func(w *world) {
		w.client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (bool, runtime.Object, error) {
			return a.GetSubresource() == "status" && dead.Load(), nil, errors.New("killed")
		})
	})
	dead.Store(true)
	w.create(bootstrap(t, "client", 11), serving(t, "serving", 11, address(11)))
	w.becomes("client", "Approved/AutoApproved")
	w.becomes("serving", "Approved/AutoApproved")
	w.kill()
	if n := len(w.register.List()); n != 0 {
		t.Errorf("%d certificates on record that nobody has", n)
	}
	dead.Store(false)
	w.run()
	w.becomes("client", wasIssued)
	w.becomes("serving", wasIssued)
	if n := w.updates("approval"); n != 2 {
		t.Errorf("%d approvals of two requests", n)
	}
	w.until("both certificates are on record", func() bool { return len(w.register.List()) == 2 }) // a moment after they are written
	if d, _ := w.decided("serving"); d.Verdict != "Approve" {
		t.Errorf("decision %+v", d)
	}
}

// The answer to the last write was lost: the certificate is there, and goes on record when it is seen. Until then
// nobody else gets one for its key.
func TestAnAnswerThatWasLost(t *testing.T) {
	var away atomic.Bool
	away.Store(true)
	w := newWorld(t, func(w *world) {
		w.config.Retry = Backoff{time.Millisecond, 5 * time.Millisecond}
		w.client.PrependReactor("get", "certificatesigningrequests", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, apierrors.NewTimeoutError("away", 1)
		})
		var once sync.Once
		w.client.PrependReactor("update", "certificatesigningrequests", func(a clienttesting.Action) (handled bool, o runtime.Object, err error) {
			if a.GetSubresource() != "status" {
				return false, nil, nil
			}
			once.Do(func() {
				update, _ := a.(clienttesting.UpdateAction)
				csr, _ := update.GetObject().DeepCopyObject().(*certificatesv1.CertificateSigningRequest)
				w.store.hush(true)
				if _, e := w.store.update(csr, "status"); e != nil {
					w.t.Error(e)
				}
				handled, err = true, apierrors.NewTimeoutError("lost", 1)
			})
			return handled, nil, err
		})
	})
	w.create(serving(t, "a", 11, address(11)))
	w.becomes("a", wasIssued)
	w.until("it was looked at again, in vain", func() bool { return w.gets() > 1 })
	if n := len(w.register.List()); n != 0 {
		t.Errorf("%d on record that nobody has seen", n)
	}
	if _, kept := w.claimed(); kept != 1 {
		t.Error("nobody holds the key, and it is on no record")
	}
	away.Store(false)
	w.until("it is on record", func() bool { return len(w.register.List()) == 1 })
	w.until("the key is given back", func() bool { held, kept := w.claimed(); return held+kept == 0 })
	w.store.hush(false)
	w.settled("a", wasIssued)
	if got := fmt.Sprintf("%x", w.certificate("a").SerialNumber); w.register.List()[0].Serial != got {
		t.Errorf("serial %s on record, %s issued", w.register.List()[0].Serial, got)
	}
	if n := w.signer.Signed(); n != 1 {
		t.Errorf("signed %d times", n)
	}
}

// The request whose answer was lost is gone when it is looked for: its key is anybody's again.
func TestALostAnswerAboutARequestThatIsDeleted(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Retry = Backoff{time.Millisecond, 5 * time.Millisecond}
		w.fail("status", apierrors.NewTimeoutError("lost", 1))
		w.client.PrependReactor("get", "certificatesigningrequests", once("", func() error {
			w.store.hush(true) // the deletion was told before the key was claimed
			_ = w.store.remove("a", nil)
			return nil
		}))
	})
	w.create(serving(t, "a", 11, address(11)))
	w.until("it was looked for", func() bool { return w.gets() > 0 })
	w.until("the key is given back", func() bool { held, kept := w.claimed(); return held+kept == 0 })
}

func TestWhatGoesOnRecord(t *testing.T) {
	w := newWorld(t, nil)
	w.create(serving(t, "a", 11, address(11)))
	w.becomes("a", wasIssued)
	w.until("it is on record", func() bool { return w.register.added().UID != "" })
	want, err := issued.EntryOf(w.get("a"), "fake|"+machineID(11)) // the entry that a restart would read
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, w.register.added()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if want.Node != nodeName(11) || want.CSR != "a" {
		t.Errorf("%+v", want)
	}
}

func TestARestartWithABacklog(t *testing.T) {
	const n = 100
	w := newWorld(t, func(w *world) {
		for k := range n {
			w.machine(k)
			csr := serving(t, fmt.Sprint("csr-", k), k, address(k))
			switch k % 4 {
			case 1:
				approved(csr)
				csr.Status.Conditions[0].Reason = policy.ReasonAutoApproved
			case 2:
				csr = bootstrap(t, fmt.Sprint("csr-", k), k)
			case 3:
				csr.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: "True", Reason: "Before"}}
			}
			w.create(csr)
		}
	})
	for k := range n {
		want := wasIssued
		if k%4 == 3 {
			want = "Denied/Before"
		}
		w.becomes(fmt.Sprint("csr-", k), want)
	}
	if got := w.updates("approval"); got != n/2 {
		t.Errorf("%d approvals for %d pending requests", got, n/2)
	}
}

// replica is a second controller on the same API server and with the same facts.
func (w *world) replica() (registry *prometheus.Registry, stop func()) {
	w.t.Helper()
	config := w.config
	registry = prometheus.NewRegistry()
	config.Metrics, config.Register = registry, newFakeRegister()
	config.Logger = w.config.Logger.With("replica", 2)
	c, err := New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); c.Run(ctx) }()
	w.until("the replica is ready", func() bool { return c.Ready() == nil })
	return registry, func() { cancel(); <-done }
}

// meeting lets access reviews of one identity go on once two have come: then two replicas have judged the same version
// of a request.
type meeting struct {
	Access
	mu    sync.Mutex
	came  map[string]int
	there map[string]chan struct{}
}

func (m *meeting) Review(ctx context.Context, q policy.Access) policy.Fact[bool] {
	m.mu.Lock()
	if m.there[q.Username] == nil {
		m.there[q.Username] = make(chan struct{})
	}
	there := m.there[q.Username]
	if m.came[q.Username]++; m.came[q.Username] == 2 {
		close(there)
	}
	m.mu.Unlock()
	select {
	case <-there:
	case <-ctx.Done():
	}
	return m.Access.Review(ctx, q)
}

// Two leaders at once, as may happen for a moment when a lease is lost: their writes conflict, and nothing is written
// twice.
func TestTwoReplicasRace(t *testing.T) {
	const n = 40
	w := newWorld(t, func(w *world) {
		w.config.Access = &meeting{Access: w.facts, came: map[string]int{}, there: map[string]chan struct{}{}}
	})
	other, stop := w.replica()
	defer stop()
	for k := range n {
		w.machine(k + 20)
		w.create(serving(t, fmt.Sprint("csr-", k), k+20, address(k+20)))
		w.becomes(fmt.Sprint("csr-", k), wasIssued)
	}
	// The last request may have its certificate before the other replica's write of it comes.
	w.until("one write of each request came too late", func() bool { return w.store.refused() >= n })
	count := namespace + "_approve_duration_seconds " + pki.SignerKubeletServing
	mine, others := gathered(t, w.registry)[count], gathered(t, other)[count]
	if mine == 0 || others == 0 || mine+others != n {
		t.Errorf("one replica approved %v of %d requests, the other %v", mine, n, others)
	}
	if e := w.events.all(); len(e) != 0 {
		t.Errorf("events %q", e)
	}
	if strings.Contains(w.log.String(), "written once") || strings.Contains(w.log.String(), "not handled") {
		t.Errorf("a conflict was taken for an error\n%s", w.log)
	}
}

// While the register cannot write, issuing goes on, nothing that is not on record is deleted, and it is as soon as it
// is.
func TestARegisterThatCannotWrite(t *testing.T) {
	w := newWorld(t, func(w *world) { w.register.stick(true); w.machine(12) })
	for k := range 5 {
		w.create(serving(t, fmt.Sprint("csr-", k), 11, address(11)))
		w.becomes(fmt.Sprint("csr-", k), wasIssued)
	}
	w.create(serving(t, "denied-0", 12, address(11)))
	w.becomes("denied-0", "Denied/address-assigned")
	for k := 1; k < 4; k++ {
		w.create(serving(t, fmt.Sprint("denied-", k), 12, address(11)))
		w.becomes(fmt.Sprint("denied-", k), "Denied/address-assigned")
	}
	w.until("denied ones are pruned", func() bool { return w.live("denied-") == "denied-2 denied-3" })
	if got := w.live("csr-"); got != "csr-0 csr-1 csr-2 csr-3 csr-4" {
		t.Errorf("left of the issued ones: %s", got)
	}
	w.register.stick(false)
	w.until("issued ones are pruned", func() bool { return w.live("csr-") == "csr-3 csr-4" })
}

func TestStoppingLetsPassesEnd(t *testing.T) {
	inHand, release := make(chan struct{}), make(chan struct{})
	ended := make(chan string, 2)
	w := newWorld(t, func(w *world) {
		w.duringSigning(func() { close(inHand); <-release })
		w.register.ended = func() { ended <- "the register" }
	})
	w.create(serving(t, "a", 11, address(11)))
	<-inHand
	stopped := make(chan struct{})
	go func() { defer close(stopped); w.stop() }()
	w.until("nothing is handed out any more", func() bool {
		w.queue.mu.Lock()
		defer w.queue.mu.Unlock()
		return w.queue.closed
	})
	select {
	case <-stopped:
		t.Fatal("it did not wait for the request in hand")
	case <-ended:
		t.Fatal("the register ended before the last certificate")
	default:
	}
	close(release)
	<-stopped
	if got := w.state("a"); got != wasIssued {
		t.Errorf("it is %q", got)
	}
	if n := len(w.register.List()); n != 1 {
		t.Errorf("%d certificates on record", n)
	}
}

// A leader that lost its lease gives up what it has in hand at once.
func TestALostLeaseAbandonsPasses(t *testing.T) {
	inHand, given := make(chan struct{}), make(chan error, 1)
	release := make(chan struct{})
	w := newWorld(t, func(w *world) {
		w.config.Grace, w.config.Timeout = ages, ages
		w.issuance(pki.SignerKubeletServing, func(i *Issuance) {
			i.Signer = &patient{Fake: w.signer, wait: func(ctx context.Context) error {
				close(inHand)
				select {
				case <-ctx.Done():
				case <-release:
				}
				given <- ctx.Err()
				return ctx.Err()
			}}
		})
	})
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	w.create(serving(t, "a", 11, address(11)))
	<-inHand
	go w.kill()
	w.until("it is given up", func() bool { return len(given) == 1 })
	w.kill()
	if got := w.state("a"); got != "Approved/AutoApproved" {
		t.Errorf("it is %q", got)
	}
	if n := len(w.queue.later); n != 0 {
		t.Errorf("%d are to be tried again", n)
	}
}

// patient is a signer that waits for something first.
type patient struct {
	Fake
	wait func(context.Context) error
}

func (p *patient) Sign(ctx context.Context, c pki.Prepared) ([]byte, error) {
	if err := p.wait(ctx); err != nil {
		return nil, err
	}
	return p.Fake.Sign(ctx, c)
}

// gets counts how often the controller read a single request.
func (w *world) gets() (n int) {
	for _, a := range w.client.Actions() {
		if a.GetVerb() == "get" {
			n++
		}
	}
	return n
}

// live lists the requests whose names begin so.
func (w *world) live(prefix string) string {
	w.t.Helper()
	list, err := w.client.CertificatesV1().CertificateSigningRequests().List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, csr := range list.Items {
		if strings.HasPrefix(csr.Name, prefix) {
			names = append(names, csr.Name)
		}
	}
	return strings.Join(names, " ")
}
