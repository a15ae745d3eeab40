// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"encoding/pem"
	"slices"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// writes are what the controller did to the cluster beside reading it and what the test itself did.
func (w *world) writes() (all []string) {
	for _, a := range w.client.Actions() {
		if v := a.GetVerb(); v != "list" && v != "watch" && v != "get" && v != "create" {
			all = append(all, strings.TrimSuffix(v+" "+a.GetResource().Resource+"/"+a.GetSubresource(), "/"))
		}
	}
	return all
}

func TestApproveOnlyNeverSigns(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Mode = ApproveOnly
		for name := range w.config.Signers {
			w.issuance(name, func(i *Issuance) { i.Signer = nil })
		}
		w.machine(12)
	})
	w.create(bootstrap(t, "client", 11), serving(t, "greedy", 11, address(12)), approved(serving(t, "by-hand", 11, address(12))))
	w.becomes("client", "Approved/AutoApproved")
	w.becomes("greedy", "Denied/address-assigned")
	w.settled("client", "Approved/AutoApproved")
	if got := w.state("by-hand"); got != "Approved/KubectlApprove" {
		t.Errorf("what somebody else signs became %q", got)
	}
	if got := w.updates("status"); got != 0 {
		t.Errorf("%d writes to /status", got)
	}
	// A certificate of another signer goes on record, for the machine that it was approved for.
	csr := w.get("client")
	csr.Status.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.ca.Raw})
	if _, machine := w.decided("client"); machine != "fake|"+machineID(11) {
		t.Errorf("approved for machine %q", machine)
	}
	if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(t.Context(), csr, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("it is on record", func() bool { return len(w.register.List()) == 1 })
	if m := w.register.List()[0].Machine; m != "fake|"+machineID(11) {
		t.Errorf("on record for machine %q", m)
	}
}

// settled is stays for controllers that do not sign.
func (w *world) settled(name, want string) {
	w.t.Helper()
	w.until("all passes have ended", w.resting)
	if got := w.state(name); got != want {
		w.t.Errorf("%s is %q, want %q\n%s", name, got, want, w.log)
	}
}

func TestSignOnlyNeverApproves(t *testing.T) {
	w := newWorld(t, func(w *world) { w.config.Mode = SignOnly; w.machine(12) })
	w.create(bootstrap(t, "pending", 11), serving(t, "greedy", 11, address(12)))
	w.create(approved(serving(t, "own", 11, address(11))), approved(serving(t, "others", 12, address(11))))
	w.becomes("own", "Approved/KubectlApprove Issued")
	w.becomes("others", "Approved/KubectlApprove Failed/SignerValidationFailure")
	w.settled("pending", "")
	w.settled("greedy", "")
	if got := w.updates("approval"); got != 0 {
		t.Errorf("%d writes to /approval", got)
	}
	if e := w.events.all(); len(e) != 1 || !strings.Contains(e[0], "others Warning CertificateFailed") {
		t.Errorf("events %q", e)
	}
	// An approval wakes it up.
	if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), "pending", approved(w.get("pending")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("pending", "Approved/KubectlApprove Issued")
}

func TestObserveWritesNothing(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Mode, w.config.Register = Observe, nil
		w.machine(12)
		old := approved(serving(t, "old", 11, address(12)))
		old.Status.Certificate = []byte("x")
		old.CreationTimestamp = metav1.NewTime(time.Now().Add(-time.Hour))
		w.create(old)
	})
	quick := approved(bootstrap(t, "quick", 12)) // another approver was there before us
	quick.Status.Certificate = []byte("x")
	denied := serving(t, "denied", 12, address(12))
	denied.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: "True"}}
	w.create(serving(t, "own", 11, address(11)), serving(t, "greedy", 11, address(12)), serving(t, "early", 13, address(13)), quick, denied)
	want := []string{
		"denied Normal WouldApprove", "early Normal WouldWait", "greedy Warning WouldDeny", "own Normal WouldApprove", "quick Normal WouldApprove",
	}
	got := func() (all []string) {
		for _, e := range w.events.all() {
			all = append(all, strings.Join(strings.Fields(e)[:3], " "))
		}
		slices.Sort(all)
		return all
	}
	w.until("all are told", func() bool { return len(got()) >= len(want) })
	w.machine(13)
	w.until("what waited is told again", func() bool { return slices.Contains(got(), "early Normal WouldApprove") })
	if all := slices.DeleteFunc(got(), func(e string) bool { return e == "early Normal WouldApprove" }); !slices.Equal(all, want) {
		t.Errorf("events %q", all)
	}
	if n := w.events.aboutNodes(); len(n) != 0 {
		t.Errorf("about nodes that do not exist: %q", n)
	}
	for n := range 5 { // more than are kept
		w.create(serving(t, "more"+string(rune('a'+n)), 11, address(12)))
	}
	w.until("they are told, too", func() bool { return len(w.events.all()) >= len(want)+6 })
	w.settled("own", "")
	if all := w.writes(); len(all) != 0 {
		t.Errorf("it wrote %q", all)
	}
	if w.register.running.Load() {
		t.Error("the register runs, and would write")
	}
}

// A signer whose requests only people approve: nothing is approved here, and what they approved is signed.
func TestManualSigners(t *testing.T) {
	profile, _ := pki.ProfileFor(pki.SignerClient)
	w := newWorld(t, func(w *world) {
		w.config.Signers[pki.SignerClient] = Issuance{Profile: profile, Signer: w.signer, Duration: time.Hour}
	})
	alice := object("alice", pki.SignerClient, pkitest.Encode(t, pkitest.Key(t), person("alice")), "alice")
	alice.Spec.Usages = []certificatesv1.KeyUsage{certificatesv1.UsageClientAuth}
	w.create(alice)
	w.until("it is left to a person", func() bool { return len(w.events.all()) == 1 })
	if e := w.events.all()[0]; !strings.Contains(e, "CertificateLeftPending") {
		t.Errorf("event %q", e)
	}
	w.stays("alice", "")
	if _, err := w.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(t.Context(), "alice", approved(w.get("alice")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.becomes("alice", "Approved/KubectlApprove Issued")
	if life := time.Until(w.certificate("alice").NotAfter).Round(time.Minute); life != time.Hour {
		t.Errorf("good for %s", life)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"nothing at all": func(c *Config) { *c = Config{} },
		"no signers":     func(c *Config) { c.Signers = nil },
		"no key": func(c *Config) {
			c.Signers = map[string]Issuance{pki.SignerKubeletClient: {Profile: pki.ClientProfile()}}
		},
		"the profile of another": func(c *Config) {
			c.Signers = map[string]Issuance{"example.com/x": {Profile: pki.ClientProfile(), Signer: c.Signers[pki.SignerKubeletClient].Signer}}
		},
		"a mode that does not exist": func(c *Config) { c.Mode = "sometimes" },
		"fewer workers than none":    func(c *Config) { c.Workers = -1 },
		"no register":                func(c *Config) { c.Register = nil },
	} {
		w := prepareWorld(t)
		w.config.Metrics = w.registry
		change(&w.config)
		if _, err := New(w.config); err == nil {
			t.Errorf("accepted %s", name)
		}
	}
}
