// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// The kinds of objects that can be explained.
const (
	kindNode    = "node"
	kindMachine = "machine"
	kindGroup   = "nodegroup"
	kindCluster = "cluster"
	kindRequest = "csr"
	kindUpdate  = "update"
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
	return []string{kindNode, kindMachine, kindGroup, kindCluster, kindRequest, kindUpdate}
}

// kindOf is the kind that a word means: its name, its plural, or a short name of kubectl; "" for none.
func kindOf(word string) string {
	short := map[string]string{"no": kindNode, "ma": kindMachine, "ng": kindGroup, "certificatesigningrequest": kindRequest, "certificatesigningrequests": kindRequest}
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
	case kindUpdate:
		u, err := choose(q, kinds.Updates(), s.Updates, name)
		if err != nil {
			return diagnosis.Facts{}, err
		}
		return s.Update(u), nil
	}
	for cluster := range s.Of {
		if f, ok := s.Request(cluster, name); ok {
			return f, nil
		}
	}
	return diagnosis.Facts{}, fmt.Errorf("there is no certificate signing request %q (any more: requests go an hour after they are issued or denied); muster csr list shows those there are", name)
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
	for cluster, of := range s.Of {
		for i := range of.Nodes {
			if of.Nodes[i].Name == name {
				return s.Node(cluster, &of.Nodes[i]), nil
			}
		}
	}
	return diagnosis.Facts{}, err
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
func (q *question) everything(ctx context.Context, catalogue cause.Catalogue) []diagnosis.Report {
	s := q.snapshot
	var reports []diagnosis.Report
	add := func(f diagnosis.Facts) {
		if r := diagnosis.Decide(catalogue, f, s.At); r.Verdict == diagnosis.Found || r.Verdict == diagnosis.NotKnown {
			reports = append(reports, r)
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
		if f := s.Group(g); !repeated(diagnosis.Decide(catalogue, f, s.At), reports) {
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
	return reports
}

// machines are the facts of all machines of clusters that are asked about, with the logs of the first that are in trouble.
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
		f := s.Machine(ctx, m, logs)
		if !f.Healthy && logs != nil {
			withLogs++
		} else if !f.Healthy {
			f.Unseen = append(f.Unseen, diagnosis.Unseen{What: "the logs about " + m.Name, Why: "other machines are in trouble, too: muster explain machine " + m.Name + " reads them"})
		}
		all = append(all, f)
	}
	return all
}

// repeated reports whether reports of machines say all that the report of a node group says.
func repeated(group diagnosis.Report, reports []diagnosis.Report) bool {
	tells := func(id cause.ID) bool {
		return slices.ContainsFunc(reports, func(r diagnosis.Report) bool {
			return r.Kind == kindMachine && slices.ContainsFunc(r.Causes, func(f diagnosis.Finding) bool { return f.Cause == id })
		})
	}
	machines := slices.ContainsFunc(reports, func(r diagnosis.Report) bool { return r.Kind == kindMachine })
	return machines && !slices.ContainsFunc(group.Causes, func(f diagnosis.Finding) bool { return !tells(f.Cause) })
}
