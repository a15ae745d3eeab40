// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/platform/lru"
)

// globalRegion is what requests may be signed for in every region, as those of services that have no region are.
const globalRegion = "us-east-1"

// DefaultAccount is the account of instances, and of the first user.
const DefaultAccount = "000000000000"

// Limits of one access key: far more than a person and a Terraform run need.
const (
	defaultRate  = 100 // requests a second
	defaultBurst = 200
)

// Config is what a Service needs.
type Config struct {
	Store     Store
	Sealer    *Sealer
	Instances Instances
	// Pods knows the pods of the account's clusters; nil where no pod has a session.
	Pods Pods
	// Region that the account is in. Requests are signed for it.
	Region string
	Log    *slog.Logger

	// Issuers, if not nil, are those whose tokens are exchanged for credentials, as far as IAM has them as providers.
	Issuers Issuers

	// Refused, if not nil, is told of tokens of an instance's session that a cluster's authenticator refused. It must
	// not take long.
	Refused func(cluster, instance string, r keyservice.Refused)

	// Account of the instances' profiles; DefaultAccount if empty.
	Account string
	// Rate and Burst limit each access key; 100 and 200 if zero.
	Rate, Burst int
	Now         func() time.Time // time.Now if nil
	Random      io.Reader        // crypto/rand if nil
}

// Service answers STS and IAM.
type Service struct {
	config Config
	hub    hub
	used   usage
	limits limits // of access keys
	// subjects are those of OpenID Connect providers, counted apart: whoever has a provider has as many subjects as
	// they like.
	subjects limits
	parsed   parsed
	managed  map[string]iam.Policy // AWS's own, by ARN
	// writing is held by each change: what is checked before a write still holds at the write.
	writing chan struct{}

	issuedMu sync.Mutex
	issued   map[string]issued // by instance

	givenMu sync.Mutex
	given   *lru.Map[string, PodGiven] // by the UID of a pod
}

// rememberedPods bounds what is remembered of the sessions of pods, for people who ask.
const rememberedPods = 4096

// New makes a service. Run tells authenticators of changes.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Sealer == nil || c.Instances == nil || c.Region == "" || c.Log == nil {
		return nil, errors.New("an identity service needs a store, a sealer, instances, a region and a logger")
	}
	if c.Account == "" {
		c.Account = DefaultAccount
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Random == nil {
		c.Random = rand.Reader
	}
	if c.Rate <= 0 || c.Burst <= 0 {
		c.Rate, c.Burst = defaultRate, defaultBurst
	}
	s := &Service{config: c, managed: map[string]iam.Policy{}, writing: make(chan struct{}, 1), issued: map[string]issued{}, given: lru.New[string, PodGiven](rememberedPods)}
	s.limits.rate, s.limits.burst = c.Rate, c.Burst
	s.subjects.rate, s.subjects.burst = c.Rate, c.Burst
	for _, p := range iampolicy.AWSManaged() {
		s.managed[p.ARN().String()] = p
	}
	return s, nil
}
