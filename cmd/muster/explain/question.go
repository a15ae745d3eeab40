// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/aws/cloudformation/stack"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
	"muster.dev/muster/internal/plane/podidentity"
)

// The kinds of objects that can be explained.
const (
	kindNode    = "node"
	kindMachine = "machine"
	kindGroup   = "nodegroup"
	kindCluster = "cluster"
	kindRequest = "csr"
	kindUpdate  = "update"
	kindPod     = "pod"
	kindVolume  = "volume"
	kindService = "service"
	kindHost    = "host"
	kindStack   = "stack"
)

const (
	// mostWithLogs is how many machines' logs are read where everything is explained, since many logs take long. Each machine
	// by its name is explained with its log.
	mostWithLogs = 8
	// failedFor is how long a failed update is something that is wrong now.
	failedFor = time.Hour
)

// kindNames are the kinds, as people type them.
func kindNames() []string {
	return []string{kindNode, kindMachine, kindGroup, kindCluster, kindRequest, kindUpdate, kindPod, kindVolume, kindService, kindHost, kindStack}
}

// kindOf is the kind that a word means: its name, its plural, or a short name of kubectl; "" for none.
func kindOf(word string) string {
	short := map[string]string{"no": kindNode, "ma": kindMachine, "ng": kindGroup, "po": kindPod, "pvc": kindVolume, "svc": kindService, "persistentvolumeclaim": kindVolume, "certificatesigningrequest": kindRequest, "certificatesigningrequests": kindRequest}
	for _, kind := range kindNames() {
		if word == kind || word == kind+"s" {
			return kind
		}
	}
	return short[word]
}

// question is what was read to explain by.
type question struct {
	snapshot *evidence.Snapshot
	cluster  string // that --cluster names; empty for all
	logs     evidence.Logs
	// apis are the clusters' own API servers, by the spec.name of the cluster, as far as there is a way to them.
	apis map[string]client.Reader
	// identity asks the service which IAM identity a pod of a cluster has; nil if nobody can be asked.
	identity func(ctx context.Context, cluster, namespace, pod string) (podidentity.Explanation, error)
	// foreign reports whether the cluster is that of --kubeconfig, and no management plane was read.
	foreign bool
}

// about reports whether a cluster is asked about.
func (q *question) about(cluster string) bool {
	return q.cluster == "" || v1alpha1.ClusterSlug(q.cluster) == v1alpha1.ClusterSlug(cluster)
}

// facts are those of one object.
func (q *question) facts(ctx context.Context, kind, name string) (diagnosis.Facts, error) {
	s := q.snapshot
	switch kind {
	case kindNode, kindMachine:
		return q.machine(ctx, kind, name)
	case kindHost:
		return q.host(name)
	case kindPod, kindVolume, kindService:
		return q.placed(ctx, kind, name)
	case kindGroup:
		g, err := choose(q, kinds.NodeGroups(), s.Groups, name)
		if err != nil {
			return diagnosis.Facts{}, err
		}
		return s.Group(g), nil
	case kindCluster:
		c, err := choose(q, kinds.Clusters(), s.Clusters, name)
		if err != nil {
			return diagnosis.Facts{}, err
		}
		return s.ClusterFacts(c), nil
	case kindStack:
		return q.stack(name)
	case kindUpdate:
		u, err := choose(q, kinds.Updates(), s.Updates, name)
		if err != nil {
			return diagnosis.Facts{}, err
		}
		return s.Update(u), nil
	}
	var found []diagnosis.Facts
	for _, cluster := range q.clusters() {
		if f, ok := s.Request(cluster, name); ok {
			found = append(found, f)
		}
	}
	return q.only(kind, name, found, fmt.Errorf("there is no certificate signing request %q (any more: requests go an hour after they are issued or denied); muster csr list shows those there are", name))
}

// clusters are the names of those that were looked at, sorted.
func (q *question) clusters() []string { return slices.Sorted(maps.Keys(q.snapshot.Of)) }

// unaskedError says why it is not known whether something is there.
type unaskedError struct{ error }

// only returns what was found of a name in clusters. It does not choose among several, and does not say that none is there
// while some could not be read.
func (q *question) only(kind, name string, found []diagnosis.Facts, none error) (diagnosis.Facts, error) {
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return diagnosis.Facts{}, fmt.Errorf("several clusters have a %s %q: choose one with --cluster", kind, name)
	}
	for _, cluster := range q.clusters() {
		for _, u := range q.snapshot.Of[cluster].Unseen {
			return diagnosis.Facts{}, unaskedError{fmt.Errorf("whether there is a %s %q is not known: %s: %s", kind, name, u.What, u.Why)}
		}
	}
	return diagnosis.Facts{}, none
}

// machine finds a machine by any of its names, and a Node that is of no machine.
func (q *question) machine(ctx context.Context, kind, name string) (diagnosis.Facts, error) {
	s := q.snapshot
	m, err := choose(q, kinds.Machines(), s.Machines, name)
	if err == nil {
		f := s.Machine(ctx, m, q.logs)
		if kind == kindNode && m.Status.NodeName != "" {
			f.Kind, f.Name = kindNode, m.Status.NodeName
		}
		return f, nil
	}
	var found []diagnosis.Facts
	for _, cluster := range q.clusters() {
		nodes := s.Of[cluster].Nodes
		for i := range nodes {
			if nodes[i].Name == name {
				found = append(found, s.Node(cluster, &nodes[i]))
			}
		}
	}
	if kind == kindMachine && len(found) == 0 {
		return diagnosis.Facts{}, err // all machines are known
	}
	return q.only(kind, name, found, err)
}

// object is a pointer to a kind of the management plane.
type object[T any] interface {
	client.Object
	*T
}

// choose picks the object that goes by a name, of the clusters that are asked about.
func choose[T any, P object[T]](q *question, kind kinds.Kind, all []T, name string) (P, error) {
	var candidates []client.Object
	for i := range all {
		if one := P(&all[i]); q.cluster == "" || kinds.IsOf(one, q.cluster) {
			candidates = append(candidates, one)
		}
	}
	found, err := kind.Choose(candidates, []string{name})
	if err != nil {
		return nil, err
	}
	one, ok := found[0].(P)
	if !ok {
		return nil, fmt.Errorf("%s %q not found", kind.Singular, name)
	}
	return one, nil
}

// everything explains all that is wrong now. A node group is left out of which nothing is wrong but its machines, which are explained.
// The facts are those that the reports were decided by.
func (q *question) everything(ctx context.Context, catalogue cause.Catalogue) (reports []diagnosis.Report, facts []diagnosis.Facts) {
	s := q.snapshot
	add := func(f diagnosis.Facts) {
		if r := q.decide(catalogue, f); r.Verdict == diagnosis.Found || r.Verdict == diagnosis.NotKnown {
			reports, facts = append(reports, r), append(facts, f)
		}
	}
	for i := range s.Clusters {
		if q.about(s.Clusters[i].Spec.Name) {
			add(s.ClusterFacts(&s.Clusters[i]))
		}
	}
	for _, f := range q.machines(ctx) {
		add(f)
	}
	for i := range s.Groups {
		g := &s.Groups[i]
		if q.cluster != "" && !kinds.IsOf(g, q.cluster) {
			continue
		}
		if f := s.Group(g); !repeated(f, q.decide(catalogue, f), reports) {
			add(f)
		}
	}
	for i := range s.Updates {
		u := &s.Updates[i]
		old := u.Status.FinishedAt != nil && s.At.Sub(u.Status.FinishedAt.Time) > failedFor
		if !old && (q.cluster == "" || kinds.IsOf(u, q.cluster)) {
			add(s.Update(u))
		}
	}
	for i := range s.Stacks {
		one := &s.Stacks[i]
		if q.cluster == "" && !past(one, s.At) { // a stack is of no cluster
			add(evidence.Stack(one))
		}
	}
	return reports, facts
}

// past reports whether a stack is deleted, or its last update was rolled back a while ago, so that it is what it was before.
func past(s *v1alpha1.Stack, now time.Time) bool {
	status := stack.Status(s.Status.Status)
	return status == stack.DeleteComplete || status == stack.UpdateRollbackComplete && now.Sub(evidence.Stack(s).Since) > failedFor
}

// stack finds a stack by its name, its id or its ARN. A deleted stack has no name any more.
func (q *question) stack(name string) (diagnosis.Facts, error) {
	id := name[strings.LastIndex(name, "/")+1:]
	for i := range q.snapshot.Stacks {
		s := &q.snapshot.Stacks[i]
		if s.Name == id || s.Spec.Name == name && s.Status.Status != string(stack.DeleteComplete) {
			return evidence.Stack(s), nil
		}
	}
	return diagnosis.Facts{}, fmt.Errorf("there is no stack %q; muster get stacks shows those there are", name)
}

// machines are the facts of all machines of clusters that are asked about, with the logs of the first that are in trouble
// or on their way.
func (q *question) machines(ctx context.Context) []diagnosis.Facts {
	s := q.snapshot
	var all []diagnosis.Facts
	withLogs := 0
	for i := range s.Machines {
		m := &s.Machines[i]
		if m.Spec.ClusterName == "" || !q.about(m.Spec.ClusterName) {
			continue
		}
		logs := q.logs
		if withLogs >= mostWithLogs {
			logs = nil
		}
		switch f := s.Machine(ctx, m, logs); {
		case f.Healthy || f.Idle:
			all = append(all, f)
		case logs != nil:
			withLogs++
			all = append(all, f)
		default:
			f.Unseen = append(f.Unseen, diagnosis.Unseen{What: "the logs about " + m.Name, Why: "other machines are in trouble, too: muster explain machine " + m.Name + " reads them"})
			all = append(all, f)
		}
	}
	return all
}

// repeated reports whether reports of the machines of a node group say all that its own report says.
func repeated(f diagnosis.Facts, group diagnosis.Report, reports []diagnosis.Report) bool {
	var own []diagnosis.Report
	for _, r := range reports {
		if r.Kind == kindMachine && slices.ContainsFunc(f.Parts, func(part diagnosis.Facts) bool { return part.Name == r.Name }) {
			own = append(own, r)
		}
	}
	untold := func(found diagnosis.Finding) bool {
		return !slices.ContainsFunc(own, func(r diagnosis.Report) bool {
			return slices.ContainsFunc(r.Causes, func(told diagnosis.Finding) bool { return told.Cause == found.Cause })
		})
	}
	strange := func(e diagnosis.Evidence) bool { return e.Source == cause.FromGroup && e.Trouble }
	return len(own) > 0 && !slices.ContainsFunc(group.Causes, untold) && !slices.ContainsFunc(group.Other, strange)
}
