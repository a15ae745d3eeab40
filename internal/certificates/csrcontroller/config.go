// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/signer"
)

// Mode is how much the controller does.
type Mode string

// The modes.
const (
	ApproveAndSign Mode = "approve-and-sign"
	ApproveOnly    Mode = "approve-only" // somebody else signs, such as kube-controller-manager
	SignOnly       Mode = "sign-only"    // somebody else approves; requests are checked before signing all the same
	Observe        Mode = "observe"      // decides, logs, counts and records Events, and changes nothing
)

// Issuance is how the certificates of one signer are made.
type Issuance struct {
	Profile pki.Profile
	// Signer that signs. It may be nil in a mode that signs nothing.
	Signer signer.Signer
	// Key is the name of the signer's key in metrics.
	Key string
	// Duration of its certificates; a week if 0.
	Duration time.Duration
}

// Inventory knows which machines there are; facts.Combined is one.
type Inventory interface {
	HasSynced() bool
	Machine(id string) policy.Fact[policy.Machine]
	MachineOfNode(node string) policy.Fact[policy.Machine]
	Owners(name string) policy.Fact[[]string]
	// Elsewhere finds the other cluster that a machine was launched for. It costs nothing.
	Elsewhere(id string) policy.Fact[string]
	// Status returns the health of each of its sources.
	Status() []facts.SourceStatus
}

// Access knows what requesters may do.
type Access interface {
	Review(ctx context.Context, q policy.Access) policy.Fact[bool]
}

// Nodes knows which Node objects there are.
type Nodes interface {
	HasSynced() bool
	Exists(node string) policy.Fact[bool]
}

// Serving knows with which certificates kubelets serve; facts.Serving is one.
type Serving interface {
	Ask(node string, addresses []netip.Addr) policy.Fact[policy.Serving]
}

// Register remembers what was issued. The controller runs it while it leads. A controller that only observes needs no
// register; if it has one, the register must be read-only.
type Register interface {
	Run(ctx context.Context)
	HasSynced() bool
	Add(e issued.Entry)
	Observe(csr *certificatesv1.CertificateSigningRequest)
	KeyOwner(key pki.Fingerprint) policy.Fact[string]
	LastMachine(node string) policy.Fact[policy.MachineRef]
	Expired(node string) policy.Fact[bool]
	Credential(node string, id pki.Fingerprint) policy.Fact[policy.Credential]
	TokenSpent(node, token string, key pki.Fingerprint) policy.Fact[bool]
	Flushed(uid string) bool
	List() []issued.Entry
	Stats() issued.Stats
}

// Recorder records Events; record.EventRecorder is one.
type Recorder interface {
	AnnotatedEventf(object runtime.Object, annotations map[string]string, eventType, reason, messageFormat string, args ...any)
}

// Writer writes requests, as the client's typed interface does.
type Writer interface {
	UpdateApproval(ctx context.Context, name string, csr *certificatesv1.CertificateSigningRequest, o metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error)
	UpdateStatus(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, o metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error)
}

// Backoff grows from First, doubling, to Most.
type Backoff struct{ First, Most time.Duration }

// Config is what a Controller needs.
type Config struct {
	Client kubernetes.Interface
	Writer Writer // the client's if nil
	// Signers that are served, by name. Nothing else is ever touched.
	Signers map[string]Issuance
	Mode    Mode // ApproveAndSign if ""
	// Policy decides. Its Signers are filled in from those above.
	Policy policy.Policy

	Inventory Inventory
	Access    Access
	Nodes     Nodes
	Register  Register
	Serving   Serving // nil if the policy lets no certificate vouch for another
	Events    Recorder
	Metrics   prometheus.Registerer
	Logger    *slog.Logger

	// Keep is how many requests of one node and signer live; older ones are deleted. 2 if 0, all if negative.
	Keep int
	// Workers is how many requests are handled at once. 0 follows latency: 16, and up to MostWorkers while the API
	// server or a signer, and not the processor, is what requests wait for.
	Workers int
	// MostWorkers is how many there may be if Workers is 0, each with a connection of its own; 64 if 0.
	MostWorkers int

	Timeout time.Duration // of one pass over one request; 30 s if 0
	Grace   time.Duration // that passes get to end when the controller stops; 10 s if 0
	Retry   Backoff       // after an error; 50 ms to 30 s if zero
	Wait    Backoff       // after the verdict Wait, unless a fact changes before; 1 s to 2 min if zero
	Recheck time.Duration // whether the register holds what is to be pruned; 2 s if 0

	Now    func() time.Time // time.Now if nil
	Random io.Reader        // crypto/rand if nil; for serial numbers
}

const week = 7 * 24 * time.Hour

func (c *Config) complete() error {
	setDefault(&c.Mode, ApproveAndSign)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Mode == Observe && c.Register == nil {
		c.Register = unrecorded{c.Now}
	}
	switch {
	case c.Client == nil, c.Inventory == nil, c.Access == nil, c.Nodes == nil, c.Register == nil:
		return errors.New("the certificate controller needs a client, an inventory, access reviews, nodes and a register")
	case c.Events == nil, c.Metrics == nil, c.Logger == nil:
		return errors.New("the certificate controller needs a recorder of events, a registry of metrics and a logger")
	case c.Workers < 0 || c.MostWorkers < 0:
		return fmt.Errorf("the certificate controller cannot have %d workers", min(c.Workers, c.MostWorkers))
	case c.Mode != ApproveAndSign && c.Mode != ApproveOnly && c.Mode != SignOnly && c.Mode != Observe:
		return fmt.Errorf("the mode %q is not known; use %s, %s, %s or %s", c.Mode, ApproveOnly, SignOnly, ApproveAndSign, Observe)
	}
	if c.Writer == nil {
		c.Writer = c.Client.CertificatesV1().CertificateSigningRequests()
	}
	if err := c.completeSigners(); err != nil {
		return err
	}
	setDefault(&c.Keep, 2)
	setDefault(&c.MostWorkers, most)
	setDefault(&c.Timeout, 30*time.Second)
	setDefault(&c.Grace, 10*time.Second)
	setDefault(&c.Retry, Backoff{50 * time.Millisecond, 30 * time.Second})
	setDefault(&c.Wait, Backoff{time.Second, 2 * time.Minute})
	setDefault(&c.Recheck, 2*time.Second)
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return nil
}

func (c *Config) completeSigners() error {
	if len(c.Signers) == 0 {
		return errors.New("the certificate controller needs a signer to serve")
	}
	signers := make(map[string]Issuance, len(c.Signers))
	c.Policy.Signers = make(map[string]pki.Profile, len(c.Signers))
	for name, i := range c.Signers {
		switch {
		case i.Profile.SignerName != name:
			return fmt.Errorf("the signer %q has the profile of %q", name, i.Profile.SignerName)
		case i.Duration < 0:
			return fmt.Errorf("certificates of the signer %q cannot be good for %s", name, i.Duration)
		case i.Signer == nil && (c.Mode == ApproveAndSign || c.Mode == SignOnly):
			return fmt.Errorf("the signer %q has no key", name)
		}
		setDefault(&i.Duration, week)
		signers[name], c.Policy.Signers[name] = i, i.Profile
	}
	c.Signers = signers
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// unrecorded is the register of a controller that issues nothing.
type unrecorded struct{ now func() time.Time }

var _ Register = unrecorded{}

func (unrecorded) Run(ctx context.Context)                           { <-ctx.Done() }
func (unrecorded) HasSynced() bool                                   { return true }
func (unrecorded) Add(issued.Entry)                                  {}
func (unrecorded) Observe(*certificatesv1.CertificateSigningRequest) {}
func (unrecorded) Flushed(string) bool                               { return false }
func (unrecorded) Stats() issued.Stats                               { return issued.Stats{} }
func (unrecorded) List() []issued.Entry                              { return nil }
func (u unrecorded) KeyOwner(pki.Fingerprint) policy.Fact[string] {
	return policy.None[string]("nobody, while observing", u.now())
}

func (u unrecorded) LastMachine(string) policy.Fact[policy.MachineRef] {
	return policy.None[policy.MachineRef]("nobody, while observing", u.now())
}

func (u unrecorded) Expired(string) policy.Fact[bool] {
	return policy.None[bool]("nobody, while observing", u.now())
}

func (u unrecorded) Credential(string, pki.Fingerprint) policy.Fact[policy.Credential] {
	return policy.Know(policy.Credential{}, "nobody, while observing", u.now())
}

func (u unrecorded) TokenSpent(string, string, pki.Fingerprint) policy.Fact[bool] {
	return policy.Know(false, "nobody, while observing", u.now())
}
