// SPDX-License-Identifier: Apache-2.0

package view

import (
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/iam/identity"
)

const (
	// mostAccess is how many entries of all clusters, roles of pods, refusals and tokens the page lists of each.
	mostAccess = 200
	// mostGroups is how many groups, policies, namespaces, problems and uses are shown of one.
	mostGroups = 20
)

// Access is the page of access: who becomes whom in each cluster and why, which pods have which role, who was refused
// lately, and which bootstrap tokens there are.
type Access struct {
	At       time.Time          `json:"at"`
	Filter   string             `json:"filter,omitempty"`
	Clusters []AccessOf         `json:"clusters"`
	Pods     []PodRole          `json:"pods"`
	Refusals []Refusal          `json:"refusals"`
	Tokens   []Token            `json:"tokens"`
	More     MoreOfAccess       `json:"more,omitzero"`
	Unseen   []diagnosis.Unseen `json:"unseen,omitempty"`
}

// MoreOfAccess is how many of each the lists leave out.
type MoreOfAccess struct {
	Grants   int `json:"grants,omitempty"`
	Pods     int `json:"pods,omitempty"`
	Refusals int `json:"refusals,omitempty"`
	Tokens   int `json:"tokens,omitempty"`
}

// AccessOf is who gets into one cluster.
type AccessOf struct {
	Cluster string        `json:"cluster"`
	Mode    identity.Mode `json:"mode"`
	// Grants in the order in which their entries are asked. All is how many there are, whatever the filter.
	Grants []Grant `json:"grants"`
	All    int     `json:"all"`
	// Problems are those of a source as a whole, and of entries that cannot be read at all.
	Problems []identity.Problem `json:"problems,omitempty"`
	Notes    []string           `json:"notes,omitempty"`
}

// GrantState is what an entry does, in one word.
type GrantState string

// The states of entries.
const (
	GrantUsed    GrantState = "used"
	GrantAfter   GrantState = "second"  // another entry that names the same principal is asked before
	GrantUnasked GrantState = "unasked" // the authentication mode does not ask its source
	GrantUnused  GrantState = "unused"  // it is faulty
)

// Grant is what an entry gives to whom.
type Grant struct {
	identity.Grant

	// State is made by the page.
	State    GrantState `json:"state"`
	Policies []Policy   `json:"policies,omitempty"`
	Created  time.Time  `json:"created,omitzero"` // zero where its source does not say it
	// Problems are made by the page of those of the cluster.
	Problems []identity.Problem `json:"problems,omitempty"`
	// MoreGroups is how many groups are left out.
	MoreGroups int `json:"moreGroups,omitempty"`
}

// Policy is an access policy of an entry.
type Policy struct {
	Name string `json:"name"`
	// ClusterRole says what it allows; empty for a policy that is not applied.
	ClusterRole string `json:"clusterRole,omitempty"`
	// Namespaces of its scope; empty for the whole cluster.
	Namespaces []string `json:"namespaces,omitempty"`
}

// PodRole is the IAM role of the pods of a service account, by a pod identity association.
type PodRole struct {
	Name           string `json:"name"`
	Cluster        string `json:"cluster"`
	Namespace      string `json:"namespace"`
	ServiceAccount string `json:"serviceAccount"`
	Role           string `json:"role"`
	TargetRole     string `json:"targetRole,omitempty"`
}

// Refusal is a token or a request that was refused, or several that are equal.
type Refusal struct {
	Time time.Time `json:"time"` // of the newest
	// By is authenticator, or the service of AWS's API.
	By      string `json:"by"`
	Cluster string `json:"cluster,omitempty"` // of the authenticator
	// Principal is the ARN of the sender; empty where that was not proven. Then anybody may have named the access key.
	Principal   string   `json:"principal,omitempty"`
	AccessKeyID string   `json:"accessKeyID,omitempty"`
	Machine     string   `json:"machine,omitempty"`
	Action      string   `json:"action,omitempty"`
	Resource    string   `json:"resource,omitempty"`
	Rule        string   `json:"rule"`
	Cause       cause.ID `json:"cause,omitempty"`
	Saw         string   `json:"saw,omitempty"`
	Fix         string   `json:"fix,omitempty"`
	From        string   `json:"from,omitempty"`
	Count       int      `json:"count"`
}

// Token is a bootstrap token without its secret half.
type Token struct {
	Cluster string    `json:"cluster"`
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires,omitzero"` // zero for never
	Usages  []string  `json:"usages"`
	// BoundTo is for whom it is good; empty for any machine.
	BoundTo []Bound `json:"boundTo"`
	// UsedBy are the nodes that got a certificate by it, the last one first.
	UsedBy      []Use  `json:"usedBy"`
	Description string `json:"description,omitempty"`
}

// Bound is a scope of a token: a machine, a node's name, a group of machines or a pattern of names.
type Bound struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

// Use is a certificate that a node got by a token.
type Use struct {
	Node    string    `json:"node"`
	Time    time.Time `json:"time"`
	Request string    `json:"request"`
}

// NewAccess makes the page. The filter chooses entries, pods, refusals and tokens by a text in what identifies them.
func NewAccess(f Facts, filter string) Access {
	page := Access{At: f.At, Filter: filter, Clusters: []AccessOf{}, Pods: []PodRole{}, Refusals: []Refusal{}, Tokens: []Token{}, Unseen: f.Wrong.Unseen}
	wanted := strings.ToLower(strings.TrimSpace(filter))
	room := mostAccess
	for _, name := range slices.Sorted(maps.Keys(f.Of)) {
		access := f.Of[name].Access
		for _, t := range access.Tokens {
			if t.has(wanted) {
				page.Tokens = append(page.Tokens, t.bounded())
			}
		}
		if access.Mode == "" {
			continue
		}
		one := accessOf(name, access, wanted)
		left := max(0, len(one.Grants)-room)
		one.Grants = one.Grants[:len(one.Grants)-left]
		page.More.Grants, room = page.More.Grants+left, room-len(one.Grants)
		page.Clusters = append(page.Clusters, one)
	}
	for i := range f.Associations {
		if p := podRole(&f.Associations[i]); p.has(wanted) {
			page.Pods = append(page.Pods, p)
		}
	}
	slices.SortStableFunc(page.Pods, func(a, b PodRole) int {
		return strings.Compare(strings.Join([]string{a.Cluster, a.Namespace, a.ServiceAccount, a.Name}, "\x00"), strings.Join([]string{b.Cluster, b.Namespace, b.ServiceAccount, b.Name}, "\x00"))
	})
	for _, r := range f.Refusals {
		if r.has(wanted) {
			page.Refusals = append(page.Refusals, r)
		}
	}
	page.Pods, page.More.Pods = atMost(page.Pods, mostAccess)
	page.Refusals, page.More.Refusals = atMost(page.Refusals, mostAccess)
	page.Tokens, page.More.Tokens = atMost(page.Tokens, mostAccess)
	return page
}

// atMost returns the first of a list, and how many it leaves out.
func atMost[T any](all []T, most int) ([]T, int) {
	left := max(0, len(all)-most)
	return all[:len(all)-left], left
}

// accessOf is the access to one cluster: the entries that have a text, each with its own problems.
func accessOf(name string, access ClusterAccess, wanted string) AccessOf {
	one := AccessOf{Cluster: name, Mode: access.Mode, Grants: []Grant{}, All: len(access.Grants)}
	type entry struct {
		source identity.Source
		name   string
	}
	problems := map[entry][]identity.Problem{}
	for _, p := range access.Problems {
		problems[entry{p.Source, p.Entry}] = append(problems[entry{p.Source, p.Entry}], p)
	}
	for _, g := range access.Grants {
		key := entry{g.Source, g.Entry}
		g.Problems, _ = atMost(problems[key], mostGroups)
		delete(problems, key)
		if g.has(wanted) {
			one.Grants = append(one.Grants, g.bounded())
		}
	}
	for _, p := range access.Problems {
		if _, ok := problems[entry{p.Source, p.Entry}]; ok && wanted == "" {
			one.Problems = append(one.Problems, p)
		}
	}
	one.Problems, _ = atMost(one.Problems, mostGroups)
	one.Notes, _ = atMost(access.Notes, mostGroups)
	return one
}

// bounded is the grant with its state, and with so many groups and namespaces as a page shows.
func (g Grant) bounded() Grant {
	switch {
	case g.Unasked:
		g.State = GrantUnasked
	case !g.Used:
		g.State = GrantUnused
	case g.After != "":
		g.State = GrantAfter
	default:
		g.State = GrantUsed
	}
	g.Groups, g.MoreGroups = atMost(g.Groups, mostGroups)
	g.Policies, _ = atMost(slices.Clone(g.Policies), mostGroups)
	for i := range g.Policies {
		namespaces, left := atMost(g.Policies[i].Namespaces, mostGroups)
		if left > 0 {
			namespaces = append(slices.Clone(namespaces), "…")
		}
		g.Policies[i].Namespaces = namespaces
	}
	return g
}

func podRole(a *v1alpha1.PodIdentityAssociation) PodRole {
	return PodRole{Name: a.Name, Cluster: a.Spec.ClusterName, Namespace: a.Spec.Namespace, ServiceAccount: a.Spec.ServiceAccount, Role: a.Spec.RoleARN, TargetRole: a.Spec.TargetRoleARN}
}

// bounded is the token with so many uses as a page shows.
func (t Token) bounded() Token {
	t.UsedBy, _ = atMost(t.UsedBy, mostGroups)
	return t
}

// anyHas reports whether one of the texts has a text, which is in small letters.
func anyHas(wanted string, texts ...string) bool {
	return wanted == "" || slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

func (g Grant) has(wanted string) bool {
	return anyHas(wanted, append([]string{string(g.Source), g.Entry, g.Principal, g.PrincipalID, g.User}, g.Groups...)...)
}

func (p PodRole) has(wanted string) bool {
	return anyHas(wanted, p.Name, p.Cluster, p.Namespace+"/"+p.ServiceAccount, p.Role, p.TargetRole)
}

func (r Refusal) has(wanted string) bool {
	return anyHas(wanted, r.By, r.Cluster, r.Principal, r.AccessKeyID, r.Machine, r.Action, r.Resource, r.Rule, string(r.Cause), r.Saw, r.From)
}

func (t Token) has(wanted string) bool {
	texts := []string{t.Cluster, t.ID, t.Description}
	for _, b := range t.BoundTo {
		texts = append(texts, b.Value)
	}
	for _, u := range t.UsedBy {
		texts = append(texts, u.Node)
	}
	return anyHas(wanted, texts...)
}
