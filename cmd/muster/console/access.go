// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/auth"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/issued"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/iam/accesspolicy"
	"muster.dev/muster/internal/iam/authcheck"
	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/node/bootstraptoken"
)

const (
	// accessTime is how long reading who gets into the clusters may take.
	accessTime = 5 * time.Second
	// refusalAge is how old the refusals may be, for which the ends of logs are parsed.
	refusalAge = 5 * time.Second
)

// accessRead is what was read of who gets into one cluster.
type accessRead struct {
	access view.ClusterAccess
	unseen []diagnosis.Unseen
}

// accesses reads who gets into clusters, side by side, by the spec.name of the cluster. An API server that has just failed to
// answer is not asked again.
func (s *source) accesses(ctx context.Context, clusters []v1alpha1.Cluster, of map[string]evidence.Cluster) map[string]accessRead {
	ctx, cancel := context.WithTimeout(ctx, accessTime)
	defer cancel()
	var mutex sync.Mutex
	var group sync.WaitGroup
	found := map[string]accessRead{}
	for i := range clusters {
		c := &clusters[i]
		read, ok := of[c.Spec.Name]
		if !ok || len(read.Unseen) > 0 {
			continue // its Nodes are told to be unseen
		}
		group.Go(func() {
			one := s.accessOf(ctx, c)
			mutex.Lock()
			defer mutex.Unlock()
			found[c.Spec.Name] = one
		})
	}
	group.Wait()
	return found
}

// accessOf reads who gets into a cluster, without the uses of tokens.
func (s *source) accessOf(ctx context.Context, c *v1alpha1.Cluster) accessRead {
	var read accessRead
	unseen := func(what string, why error) {
		read.unseen = append(read.unseen, diagnosis.Unseen{What: what + " of cluster " + c.Spec.Name, Why: why.Error()})
	}
	o := *s.Options
	o.Cluster = c.Spec.Name
	api, err := s.entries(&o)
	if err != nil {
		unseen("who gets in", err)
		return read
	}
	there, err := auth.ReadEntries(ctx, api)
	if err != nil {
		unseen("who becomes whom", err)
	} else {
		options := identity.Options{
			Mode: identity.Mode(cmp.Or(c.Status.AuthenticationMode, c.Spec.AccessConfig.AuthenticationMode, v1alpha1.AuthenticationAPIAndConfigMap)), Cluster: c.Spec.Name,
			PrincipalIDs: true, // the account records them
		}
		entries := authcheck.OfCluster(there)
		grants, problems := entries.Grants(options)
		read.access = view.ClusterAccess{Mode: options.Mode, Grants: grantsOf(grants, there.AccessEntries), Problems: problems, Notes: entries.Notes}
	}
	tokens, unusable, err := bootstraptoken.List(ctx, api)
	if err != nil {
		unseen("the bootstrap tokens", err)
	}
	for _, t := range tokens {
		read.access.Tokens = append(read.access.Tokens, tokenOf(c.Spec.Name, t))
	}
	for _, problem := range unusable {
		read.access.Notes = append(read.access.Notes, problem.Error())
	}
	return read
}

// grantsOf adds to what entries give the access policies of access entries.
func grantsOf(grants []identity.Grant, entries *accessv1alpha1.AccessEntryList) []view.Grant {
	byName := map[string]*accessv1alpha1.AccessEntry{}
	if entries != nil {
		for i := range entries.Items {
			byName[entries.Items[i].Name] = &entries.Items[i]
		}
	}
	all := make([]view.Grant, 0, len(grants))
	for _, g := range grants {
		one := view.Grant{Grant: g}
		if e := byName[g.Entry]; e != nil && g.Source == identity.SourceAccessEntry {
			one.Created = e.CreationTimestamp.UTC()
			for _, p := range e.Spec.AccessPolicies {
				policy := view.Policy{Name: p.PolicyARN[strings.LastIndexByte(p.PolicyARN, '/')+1:], Namespaces: p.Scope.Namespaces}
				if known, err := accesspolicy.Lookup(p.PolicyARN); err == nil {
					policy.ClusterRole = known.ClusterRole
				}
				one.Policies = append(one.Policies, policy)
			}
		}
		all = append(all, one)
	}
	return all
}

// tokenOf is a token without its secret half.
func tokenOf(cluster string, l bootstraptoken.Listed) view.Token {
	t := view.Token{Cluster: cluster, ID: l.Token.ID, Created: l.Created.UTC(), Expires: l.Expires.UTC(), Usages: slices.Clone(l.Usages), BoundTo: []view.Bound{}, UsedBy: []view.Use{}, Description: l.Description}
	if l.Expires.IsZero() {
		t.Expires = time.Time{}
	}
	for _, scope := range l.Scopes {
		t.BoundTo = append(t.BoundTo, view.Bound{Kind: string(scope.Kind), Value: scope.Value})
	}
	return t
}

// used adds the uses of tokens, the last one first.
func used(tokens []view.Token, entries []issued.Entry, read evidence.Cluster) {
	for i := range tokens {
		t := &tokens[i]
		l := bootstraptoken.Listed{Created: t.Created}
		l.Token.ID = t.ID
		for _, u := range slices.Backward(bootstraptoken.UsesOf(l, entries, read.Requests)) {
			t.UsedBy = append(t.UsedBy, view.Use{Node: u.Node, Time: u.At.UTC(), Request: u.Request})
		}
	}
}

// refused is who was refused lately, as it was refusalAge ago at most.
func (s *source) refused(ctx context.Context, clusters []string) ([]view.Refusal, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refusals.at.IsZero() || s.now().Sub(s.refusals.at) >= refusalAge {
		found, err := evidence.HostLogs{Dir: s.dir, Now: s.now()}.Refusals(ctx, clusters)
		all := make([]view.Refusal, 0, len(found))
		for _, r := range found {
			all = append(all, view.Refusal(r))
		}
		s.refusals = keptRefusals{all, err, s.now()}
	}
	return s.refusals.all, s.refusals.err
}

// keptRefusals are the refusals as they were at a moment.
type keptRefusals struct {
	all []view.Refusal
	err error
	at  time.Time
}

// entriesOf connects to the cluster that the options choose, for the kinds that say who gets in.
func entriesOf(o *terminal.Options) (*kinds.Client, error) {
	api, err := new(kinds.Access).AuthReader(o)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return api, nil
}
