// SPDX-License-Identifier: Apache-2.0

package tokenverify

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/platform/lru"
)

// Instance is what EC2 says about one.
type Instance struct {
	ID, PrivateDNSName string
	Profile            string // ARN of the instance profile
	Live               bool   // pending or running
}

// InstancesConfig says how EC2 is asked.
type InstancesConfig struct {
	// Describe asks for at most 200 instances. It is not called more often than its own limits allow.
	Describe func(ctx context.Context, ids []string) (map[string]Instance, error)
	// Needed reports whether it matters that somebody is an instance; it always does if nil. EC2 is asked about nobody
	// else: everybody has an AWS account, and can name sessions there like instances.
	Needed func(identity.Principal) bool
	// Roles are the role ARNs of instance profiles, by the profile's ARN. Where it has any, a profile that is not in it
	// is refused; otherwise profile and role need only be of one account.
	Roles   map[string]string
	Window  time.Duration // in which questions are gathered; 20 ms if 0
	MaxAge  time.Duration // of EC2's answer about an instance that runs; 30 s if 0. A fifth of that about others.
	Timeout time.Duration // of one question; 5 s if 0
	Most    int           // instances remembered; 16384 if 0
	Now     func() time.Time
}

// Instances proves that sessions are instances': a session named i-… must be an instance that runs, with a profile of
// that role. It does not make more of it than that: a principal that may assume the role by other means can choose the
// name of a session.
type Instances struct {
	verifier Verifier
	config   InstancesConfig
	id       *regexp.Regexp

	mu      sync.Mutex
	seen    *lru.Map[string, seen]
	pending map[string]*lookup // to be asked for
	busy    int
}

var _ Verifier = (*Instances)(nil)

type seen struct {
	instance Instance
	found    bool
	until    time.Time
}

type lookup struct {
	done chan struct{}
	seen seen
	err  error
}

// Questions to EC2.
const (
	mostIDs     = 200 // EC2's limit for the values of a filter
	mostBatches = 2   // at once
	mostPending = 5000
)

// NewInstances adds the proof to a verifier.
func NewInstances(verifier Verifier, c InstancesConfig) (*Instances, error) {
	if verifier == nil || c.Describe == nil {
		return nil, errors.New("verifying instances needs a verifier and a function that describes instances")
	}
	for field, value := range map[*time.Duration]time.Duration{&c.Window: 20 * time.Millisecond, &c.MaxAge: 30 * time.Second, &c.Timeout: 5 * time.Second} {
		if *field <= 0 {
			*field = value
		}
	}
	if c.Most <= 0 {
		c.Most = 16384
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return &Instances{
		verifier: verifier, config: c, id: regexp.MustCompile(`^i-([0-9a-f]{8}|[0-9a-f]{17})$`),
		seen: lru.New[string, seen](c.Most), pending: map[string]*lookup{},
	}, nil
}

// Verify verifies, and proves the instance if the session is named after one.
func (i *Instances) Verify(ctx context.Context, t ststoken.Token) (Identity, error) {
	id, err := i.verifier.Verify(ctx, t)
	if err != nil || id.Instance != nil {
		return id, err
	}
	if _, _, ok := id.ARN.AssumedRole(); !ok || !i.id.MatchString(id.SessionName) {
		return id, nil
	}
	if i.config.Needed != nil && !i.config.Needed(id.Principal) {
		if soon := i.config.Now().Add(i.config.MaxAge / 5); soon.Before(id.ValidUntil) { // it may matter then
			id.ValidUntil = soon
		}
		return id, nil
	}
	s, unknown := i.get(ctx, id.SessionName)
	id.Instance, id.Unproven = i.prove(id, s, unknown)
	if unknown == nil && s.until.Before(id.ValidUntil) { // the instance may end before the token, and EC2 said this a while ago
		id.ValidUntil = s.until
	}
	return id, nil
}

// Admit implements [Verifier].
func (i *Instances) Admit(accessKeyID string) { i.verifier.Admit(accessKeyID) }

// Admitted implements [Verifier].
func (i *Instances) Admitted(accessKeyID string) bool { return i.verifier.Admitted(accessKeyID) }

func (i *Instances) prove(id Identity, s seen, unknown error) (*identity.Instance, error) {
	if unknown != nil {
		return nil, &Unavailable{Asked: "EC2", Err: unknown}
	}
	refuse := func(saw, fix string) (*identity.Instance, error) {
		return nil, &Refused{Rule: "instance", Saw: saw, Fix: fix}
	}
	name := strings.ToLower(strings.TrimSuffix(s.instance.PrivateDNSName, "."))
	profile, wrong := arn.Parse(s.instance.Profile)
	switch {
	case !s.found:
		return refuse(fmt.Sprintf("session %s, but no such instance in this account and region", id.SessionName), "nodes must use the credentials of their instance's own profile")
	case !s.instance.Live:
		return refuse(fmt.Sprintf("instance %s does not run", id.SessionName), "")
	case name == "":
		return refuse(fmt.Sprintf("instance %s has no private DNS name", id.SessionName), "look at the VPC's DNS attributes")
	case wrong != nil:
		return refuse(fmt.Sprintf("instance %s has no instance profile, so role %s cannot come from it", id.SessionName, id.CanonicalARN), "give the instance its profile")
	case profile.Account != id.Account || profile.Partition != id.CanonicalARN.Partition:
		return refuse(fmt.Sprintf("the profile %s of instance %s is not of account %s", profile, id.SessionName, id.Account), "")
	}
	if len(i.config.Roles) > 0 {
		role, err := arn.Parse(i.config.Roles[profile.String()])
		if err != nil || role.WithoutPath() != id.CanonicalARN.WithoutPath() {
			return refuse(fmt.Sprintf("instance %s has profile %s, which is not one of role %s", id.SessionName, profile, id.CanonicalARN),
				"name the profile and its role in ec2.instanceProfiles")
		}
	}
	return &identity.Instance{ID: s.instance.ID, PrivateDNSName: name}, nil
}

// get finds an instance, here or by asking.
func (i *Instances) get(ctx context.Context, id string) (seen, error) {
	i.mu.Lock()
	if s, ok := i.seen.Get(id); ok && i.config.Now().Before(s.until) {
		i.mu.Unlock()
		return s, nil
	}
	l := i.pending[id]
	if l == nil {
		if len(i.pending) >= mostPending {
			i.mu.Unlock()
			return seen{}, fmt.Errorf("%d instances wait to be asked for", mostPending)
		}
		l = &lookup{done: make(chan struct{})}
		i.pending[id] = l
		if i.busy < mostBatches {
			i.busy++
			go i.ask(context.WithoutCancel(ctx))
		}
	}
	i.mu.Unlock()
	select {
	case <-l.done:
		return l.seen, l.err
	case <-ctx.Done():
		return seen{}, ctx.Err()
	}
}

// ask asks for what is pending until nothing is.
func (i *Instances) ask(ctx context.Context) {
	timer := time.NewTimer(i.config.Window)
	defer timer.Stop()
	for {
		<-timer.C
		i.mu.Lock()
		batch := map[string]*lookup{}
		var ids []string
		for id, l := range i.pending {
			if len(batch) == mostIDs {
				break
			}
			batch[id] = l
			ids = append(ids, id)
			delete(i.pending, id)
		}
		if len(batch) == 0 {
			i.busy--
			i.mu.Unlock()
			return
		}
		i.mu.Unlock()
		limited, cancel := context.WithTimeout(ctx, i.config.Timeout)
		found, err := i.config.Describe(limited, ids)
		cancel()
		i.put(batch, found, err)
		timer.Reset(i.config.Window)
	}
}

func (i *Instances) put(batch map[string]*lookup, found map[string]Instance, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.config.Now()
	for id, l := range batch {
		if l.err = err; err == nil {
			l.seen.instance, l.seen.found = found[id]
			l.seen.until = now.Add(i.config.MaxAge / 5)
			if l.seen.instance.Live && l.seen.instance.PrivateDNSName != "" {
				l.seen.until = now.Add(i.config.MaxAge)
			}
			i.seen.Put(id, l.seen)
		}
		close(l.done)
	}
}
