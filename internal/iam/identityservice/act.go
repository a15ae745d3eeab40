// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// call is one request whose sender is known.
type call struct {
	admitted
	ctx     context.Context // of this request alone
	state   *State
	record  *awsfront.Record
	markers markers // of the lists of the account
}

// target is what a request is about, for the caller's policies.
type target struct {
	resource string
	context  map[string][]string
	// shown is how a refusal names the resource, if not by its ARN.
	shown string
	// policy is the resource's own; mostly empty.
	policy string
}

// anything is the target of actions that are about no one resource.
func anything() target { return target{resource: "*"} }

// The services, as policies and signatures name them.
const (
	apiIAM     = "iam"
	apiSTS     = "sts"
	apiPricing = "pricing"
)

type mode int

const (
	reads    mode = iota
	writes        // and no other write runs at the same time
	open          // everybody may, whatever policies say
	judged        // by the trust policy of a role, too, and so by the action itself
	unsigned      // the same, and nobody's signature is asked for
)

var rights = map[mode]awsfront.Rights{open: awsfront.Everybody, judged: awsfront.Itself, unsigned: awsfront.Itself}

// register adds an action to the front: its resource, and its effect if the caller may. All errors of the two are made
// ones of IAM's.
func register[In, Out any](s *Service, front *awsfront.Front, api, action string, m mode, about func(*call, In) (target, error), do func(*call, In) (*Out, error)) {
	spec := awsfront.Spec[In, Out]{
		Rights: rights[m], Unsigned: m == unsigned,
		Begin: func(ctx context.Context, asked *awsfront.Call) (func(), error) { return s.begin(ctx, asked, m) },
		Do: func(_ context.Context, asked *awsfront.Call, in *In) (*Out, error) {
			out, err := do(within(asked), *in)
			if err != nil {
				return nil, answerable(storeError(err))
			}
			return out, nil
		},
	}
	if about != nil {
		spec.About = func(_ context.Context, asked *awsfront.Call, in *In) ([]awsfront.Target, error) {
			t, err := about(within(asked), *in)
			if err != nil {
				return nil, answerable(err)
			}
			return []awsfront.Target{{Resource: t.resource, Conditions: t.context, Shown: t.shown}}, nil
		}
	}
	awsfront.Register(front, api, action, spec)
}

// begin has a request wait for other changes if it is one, and gives it the state that it is decided by and works on.
func (s *Service) begin(ctx context.Context, asked *awsfront.Call, m mode) (end func(), err error) {
	caller, ok := asked.Caller.(Caller)
	if !ok {
		return nil, errNotOurs
	}
	release := func() {}
	if m == writes {
		select {
		case s.writing <- struct{}{}:
			release = func() { <-s.writing }
		case <-ctx.Done():
			return nil, away(ctx.Err())
		}
	}
	begun := false
	defer func() { // a panic is one request's, and leaves the others their turn
		if !begun {
			release()
		}
	}()
	c := &call{admitted: caller.admitted, ctx: ctx, record: awsfront.RecordOf(ctx)}
	c.markers = markers{s.config.Sealer.current.Load(), c.account, asked.Action, asked.Input}
	if c.state, err = s.config.Store.State(); err != nil {
		return nil, away(err)
	}
	if m == writes { // its sender may have lost the key or the rights while it waited
		if c.principal, err = s.find(c.state, c.keyID, c.session, c.now); err != nil {
			return nil, badToken(err)
		}
	}
	caller.within = c
	asked.Caller, begun = caller, true
	return release, nil
}

// within is the request of STS or IAM that begin has begun.
func within(asked *awsfront.Call) *call { return asked.Caller.(Caller).within }

// authorize asks the caller's policies.
func (s *Service) authorize(c *call, action string, t target) error {
	if c.session != nil && !c.role() {
		return iamfault.Errorf(iamfault.AccessDenied, "credentials of GetSessionToken cannot call IAM: use the user's access key, or a role's session")
	}
	return s.permit(c, action, t)
}

// permit is nil if the caller's policies allow an action, together with the resource's own if it has one. Such a resource
// is of the caller's account.
func (s *Service) permit(c *call, action string, t target) error {
	rights, err := s.rights(c.state, c.principal)
	if err != nil {
		return err
	}
	if t.policy == "" {
		return denied(c.arn.String(), action, t, rights.Decide(c.request(action, t)))
	}
	document, err := s.parsed.parse(iampolicy.OfResource, t.policy)
	if err != nil { // it might be one that denies
		return iamfault.Because(err, iamfault.AccessDenied, "the policy of "+t.resource+" cannot be read, and so nothing is allowed: replace it")
	}
	return denied(c.arn.String(), action, t, iampolicy.WithResource(iampolicy.Named{Name: "the policy of " + t.resource, Document: document}, c.account, rights, c.request(action, t)))
}

// request is the question to policies.
func (c *call) request(action string, t target) iampolicy.Request {
	facts := iampolicy.Facts{Now: c.now, SourceIP: c.source, Secure: c.secure, UserAgent: c.userAgent, Region: c.region, Tags: map[string]string{}}
	if c.session != nil {
		facts.TokenIssued = c.session.Issued
	}
	caller := c.caller()
	tags := func(all []iam.Tag) { // later ones win: a session's over its role's
		for _, tag := range all {
			facts.Tags[lower(tag.Key)] = tag.Value
		}
	}
	if user, ok := c.state.UserByID(c.id); ok {
		tags(user.Tags)
	}
	if role, ok := c.state.RoleByID(c.id); ok {
		caller.RoleARN = role.ARN()
		tags(role.Tags)
	}
	if c.session != nil {
		tags(c.session.Tags.All())
	}
	conditions := iampolicy.NewContext(caller, facts)
	if c.session != nil && c.session.SourceIdentity != "" {
		conditions["aws:sourceidentity"] = []string{c.session.SourceIdentity}
	}
	if about, err := arn.Parse(t.resource); err == nil && about.Account != "" {
		conditions["aws:resourceaccount"] = []string{about.Account}
	}
	maps.Copy(conditions, t.context)
	return iampolicy.Request{Caller: caller, Action: action, Resource: t.resource, Context: conditions}
}

// rights are the policies that bound what a caller may do. A policy that cannot be found or read might be one that
// denies, so that the caller may do nothing then.
func (s *Service) rights(state *State, p principal) (iampolicy.Rights, error) {
	var rights iampolicy.Rights
	inline := iampolicy.UserInline
	if p.role() {
		inline = iampolicy.RoleInline
	}
	for _, name := range p.grants.Attached {
		policy, ok := s.policy(state, name)
		text, has := policy.Document()
		if !ok || !has {
			return rights, iamfault.Errorf(iamfault.AccessDenied, "the policy %s is attached to %s and cannot be found: detach it", name, p.arn)
		}
		if err := s.add(&rights.Identity, iampolicy.Managed, name, text); err != nil {
			return rights, err
		}
	}
	var err error
	if rights.Boundary, err = s.boundary(state, p.boundary); err != nil {
		return rights, err
	}
	for name, text := range p.grants.Inline {
		if err := s.add(&rights.Identity, inline, name, text); err != nil {
			return rights, err
		}
	}
	if p.session != nil && p.session.Policy != "" {
		rights.Scoped = true
		if err := s.add(&rights.Session, iampolicy.Session, "session policy", p.session.Policy); err != nil {
			return rights, err
		}
	}
	return rights, nil
}

func (s *Service) add(to *[]iampolicy.Named, k iampolicy.Kind, name, text string) error {
	document, err := s.parsed.parse(k, text)
	if err != nil {
		return iamfault.Because(err, iamfault.AccessDenied, "the policy "+name+" cannot be read, and so nothing is allowed: replace it")
	}
	*to = append(*to, iampolicy.Named{Name: name, Document: document})
	return nil
}

// policy finds a managed policy by its ARN, AWS's own among them.
func (s *Service) policy(state *State, arn string) (iam.Policy, bool) {
	if p, ok := s.managed[arn]; ok {
		return p, true
	}
	for _, p := range state.policies {
		if p.ARN().String() == arn {
			return p, true
		}
	}
	return iam.Policy{}, false
}

// trusts reports whether a role's trust policy lets a service in.
func (s *Service) trusts(role iam.Role, caller iampolicy.Caller, action string, context map[string][]string, now time.Time) error {
	document, err := s.parsed.parse(iampolicy.Trust, role.Trust)
	if err != nil {
		return err
	}
	conditions := iampolicy.NewContext(caller, iampolicy.Facts{Now: now, Secure: true, Region: s.config.Region})
	maps.Copy(conditions, context)
	d := document.Evaluate(iampolicy.Request{Caller: caller, Action: action, Resource: role.ARN().String(), Context: conditions})
	if d.Verdict != iampolicy.Allow {
		return errors.New(d.Reason)
	}
	return nil
}

// maxParsed bounds the documents that are kept parsed.
const maxParsed = 1024

// parsed keeps documents that were read: every request asks the same few.
type parsed struct {
	mu        sync.Mutex
	documents map[parsedKey]iampolicy.Document
}

type parsedKey struct {
	kind iampolicy.Kind
	text string
}

func (p *parsed) parse(k iampolicy.Kind, text string) (iampolicy.Document, error) {
	key := parsedKey{k, text}
	p.mu.Lock()
	document, ok := p.documents[key]
	p.mu.Unlock()
	if ok {
		return document, nil
	}
	document, err := iampolicy.Parse(k, text)
	if err != nil {
		return document, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.documents == nil || len(p.documents) >= maxParsed {
		p.documents = map[parsedKey]iampolicy.Document{}
	}
	p.documents[key] = document
	return document, nil
}

// storeError says what became of a write, in IAM's codes.
func storeError(err error) error {
	var known *awsfault.Error
	switch {
	case err == nil, errors.As(err, &known):
		return err
	case errors.Is(err, ErrExists):
		return iamfault.Because(err, iamfault.EntityAlreadyExists, "an entity of that name already exists")
	case errors.Is(err, ErrConflict):
		return iamfault.Because(err, iamfault.ConcurrentModification, "the entity was changed by somebody else meanwhile: try again")
	case errors.Is(err, ErrDeleted):
		return iamfault.Because(err, iamfault.NoSuchEntity, "the entity was deleted by somebody else meanwhile")
	case errors.Is(err, ErrRefused):
		return err
	case errors.Is(err, errAway):
		return away(err)
	}
	return err
}
