// SPDX-License-Identifier: Apache-2.0

package certificates

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/policy"
	"muster.dev/muster/internal/signer"
)

// Inventory knows which machines there are.
type Inventory interface {
	HasSynced() bool
	Machine(id string) policy.Fact[policy.Machine]
	MachineOfNode(node string) policy.Fact[policy.Machine]
	Owners(name string) policy.Fact[[]string]
}

// Access knows what requesters may do.
type Access interface {
	Review(ctx context.Context, q policy.Access) policy.Fact[bool]
}

// Recorder records Events; record.EventRecorder is one.
type Recorder interface {
	Event(object runtime.Object, eventType, reason, message string)
}

// Backoff grows from First, doubling, to Most.
type Backoff struct{ First, Most time.Duration }

// Config is what a Controller needs.
type Config struct {
	Client    kubernetes.Interface
	Inventory Inventory
	Access    Access
	Signer    signer.Signer
	Events    Recorder
	Metrics   prometheus.Registerer
	Logger    *slog.Logger

	Policy          policy.Policy
	ClientDuration  time.Duration // of client certificates; a week if 0
	ServingDuration time.Duration // of serving certificates; a week if 0

	Workers int           // 16 if 0
	Timeout time.Duration // of one pass over one request; 30 s if 0
	Grace   time.Duration // that passes get to end when the controller stops; 10 s if 0
	Retry   Backoff       // after an error; 50 ms to 30 s if zero
	Wait    Backoff       // after the verdict Wait, unless a fact changes before; 1 s to 2 min if zero

	Now    func() time.Time // time.Now if nil
	Random io.Reader        // crypto/rand if nil; for serial numbers
}

const week = 7 * 24 * time.Hour

func (c *Config) complete() error {
	switch {
	case c.Client == nil, c.Inventory == nil, c.Access == nil, c.Signer == nil:
		return errors.New("the certificate controller needs a client, an inventory, access reviews and a signer")
	case c.Events == nil, c.Metrics == nil, c.Logger == nil:
		return errors.New("the certificate controller needs a recorder of events, a registry of metrics and a logger")
	case c.Workers < 0, c.ClientDuration < 0, c.ServingDuration < 0:
		return errors.New("the certificate controller needs a positive number of workers and positive durations")
	}
	setDefault(&c.ClientDuration, week)
	setDefault(&c.ServingDuration, week)
	setDefault(&c.Workers, 16)
	setDefault(&c.Timeout, 30*time.Second)
	setDefault(&c.Grace, 10*time.Second)
	setDefault(&c.Retry, Backoff{50 * time.Millisecond, 30 * time.Second})
	setDefault(&c.Wait, Backoff{time.Second, 2 * time.Minute})
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	return nil
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
