// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"errors"
	"log/slog"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// Config is what a Register needs.
type Config struct {
	Client    kubernetes.Interface
	Namespace string // of the ConfigMaps
	// Signers whose certificates are recorded.
	Signers []string
	// ReadOnly writes nothing: its observations are remembered while the program runs.
	ReadOnly bool
	// MachineOf returns the machine that an issued request came from that Add was not called for (yet): one that was
	// issued just before a crash, or by another signer. "" if it cannot be told; a node that renewed its own
	// certificate is then on the machine that it was on before.
	MachineOf func(*certificatesv1.CertificateSigningRequest) string
	// MachineOfNode is what the inventory says a node is now. Certificates that are on record without their machine are
	// put down to it: see heal. The entries stay as they are while the inventory does not know the machine.
	MachineOfNode func(node string) policy.Fact[policy.Machine]
	// OnChange is called, one call at a time, when answers have changed other than by Add or Observe; it must be quick.
	OnChange func(facts.Change)
	Logger   *slog.Logger

	FlushEvery   time.Duration    // at most; 2 s if 0
	CompactEvery time.Duration    // an hour if 0
	HealEvery    time.Duration    // 10 s if 0
	Grace        time.Duration    // that the last flush gets when Run ends; 10 s if 0
	SegmentBytes int              // that a ConfigMap may hold; 256 KiB if 0
	MaxPending   int              // entries that may wait to be written before nothing new is vouched for; 20,000 if 0
	Now          func() time.Time // time.Now if nil
}

func (c *Config) complete() error {
	switch {
	case c.Client == nil, c.Namespace == "", c.Logger == nil:
		return errors.New("a register needs a client, a namespace and a logger")
	case len(c.Signers) == 0, c.MachineOf == nil, c.MachineOfNode == nil:
		return errors.New("a register needs signers whose certificates it records, and ways to tell their machines")
	case c.SegmentBytes < 0 || c.SegmentBytes > maxData/2:
		return errors.New("a segment of the register has at most 512 KiB")
	}
	setDefault(&c.FlushEvery, 2*time.Second)
	setDefault(&c.CompactEvery, time.Hour)
	setDefault(&c.HealEvery, 10*time.Second)
	setDefault(&c.Grace, 10*time.Second)
	setDefault(&c.SegmentBytes, 256<<10)
	setDefault(&c.MaxPending, 20_000)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.OnChange == nil {
		c.OnChange = func(facts.Change) {}
	}
	return nil
}

// isClient reports whether a signer's certificates are what a node shows to the API server.
func isClient(signer string) bool {
	p, ok := pki.ProfileFor(signer)
	return ok && p.Node && p.Names == pki.NamesNone
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
