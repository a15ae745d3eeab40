// SPDX-License-Identifier: Apache-2.0

package explainapi

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// The kinds of "muster explain" that the API has.
const (
	kindNode    = "node"
	kindRequest = "csr"
	kindCluster = "cluster"
)

// mostWithLogs is of how many machines a list reads logs, as "muster explain" does of everything. An object by its name
// is explained with its logs.
const mostWithLogs = 8

// answers explain by what was read of one cluster at a moment.
type answers struct {
	snapshot  *evidence.Snapshot
	catalogue cause.Catalogue
	logs      evidence.Logs
	cluster   *v1alpha1.Cluster
	several   bool // clusters of the account
}

// readAnswers reads the cluster of a namespace: what the management plane has about it, and its own objects.
func readAnswers(ctx context.Context, r Readers, namespace string, logs func(time.Time) evidence.Logs, now time.Time) (*answers, error) {
	catalogue, err := cause.Default()
	if err != nil {
		return nil, err
	}
	snapshot, several, err := evidence.ReadOf(ctx, r.Management, namespace, now)
	if err != nil {
		return nil, err
	}
	a := &answers{snapshot: snapshot, catalogue: catalogue, logs: logs(now), cluster: &snapshot.Clusters[0], several: several}
	snapshot.ReadClusters(ctx, map[string]client.Reader{a.cluster.Spec.Name: r.Cluster})
	return a, nil
}

// subject is what can be explained, by its name.
type subject struct {
	name string
	// facts are gathered when the subject is explained. Logs may be nil.
	facts func(ctx context.Context, logs evidence.Logs) diagnosis.Facts
}

// subjects are those of a kind, by name.
func (a *answers) subjects(kind string) []subject {
	var all []subject
	switch kind {
	case kindCluster:
		all = []subject{{a.cluster.Spec.Name, func(context.Context, evidence.Logs) diagnosis.Facts { return a.snapshot.ClusterFacts(a.cluster) }}}
	case kindRequest:
		for i := range a.own().Requests {
			name := a.own().Requests[i].Name
			all = append(all, subject{name, func(context.Context, evidence.Logs) diagnosis.Facts {
				facts, _ := a.snapshot.Request(a.cluster.Spec.Name, name) // it is there
				return facts
			}})
		}
	case kindNode:
		all = a.nodes()
	}
	slices.SortFunc(all, func(x, y subject) int { return cmp.Compare(x.name, y.name) })
	return all
}

// nodes are the machines of the cluster by the names of their nodes, those that have none yet by their own, and the
// Nodes that are of no machine.
func (a *answers) nodes() []subject {
	var all []subject
	known := map[string]bool{}
	for i := range a.snapshot.Machines {
		m := &a.snapshot.Machines[i]
		name := cmp.Or(m.Status.NodeName, m.Name)
		if known[name] {
			continue
		}
		known[name] = true
		all = append(all, subject{name, func(ctx context.Context, logs evidence.Logs) diagnosis.Facts {
			facts := a.snapshot.Machine(ctx, m, logs)
			facts.Kind, facts.Name = kindNode, name
			return facts
		}})
	}
	nodes := a.own().Nodes
	for i := range nodes {
		if known[nodes[i].Name] {
			continue
		}
		all = append(all, subject{nodes[i].Name, func(context.Context, evidence.Logs) diagnosis.Facts {
			return a.snapshot.Node(a.cluster.Spec.Name, &nodes[i])
		}})
	}
	return all
}

func (a *answers) own() evidence.Cluster { return a.snapshot.Of[a.cluster.Spec.Name] }

// one explains the object of a name; false if there is none.
func (a *answers) one(ctx context.Context, kind, name string) (diagnosis.Report, bool) {
	all := a.subjects(kind)
	at := slices.IndexFunc(all, func(s subject) bool { return s.name == name })
	if at < 0 {
		return diagnosis.Report{}, false
	}
	return a.decide(all[at].facts(ctx, a.logs)), true
}

// all explains all objects of a kind.
func (a *answers) all(ctx context.Context, kind string) []diagnosis.Report {
	var reports []diagnosis.Report
	withLogs := 0
	for _, s := range a.subjects(kind) {
		facts := s.facts(ctx, nil)
		switch trouble := kind == kindNode && !facts.Healthy && !facts.Idle; {
		case trouble && withLogs < mostWithLogs:
			withLogs++
			facts = s.facts(ctx, a.logs)
		case trouble:
			facts.Unseen = append(facts.Unseen, diagnosis.Unseen{What: "the logs about " + s.name, Why: "other machines are in trouble, too: its own explanation reads them"})
		}
		reports = append(reports, a.decide(facts))
	}
	return reports
}

func (a *answers) decide(facts diagnosis.Facts) diagnosis.Report {
	if a.several {
		return diagnosis.DecidePointed(a.catalogue, facts, a.snapshot.At)
	}
	return diagnosis.Decide(a.catalogue, facts, a.snapshot.At)
}

// blind is why an object that was not found may be there all the same; empty if it is not there.
func (a *answers) blind() string {
	var why []string
	for _, unseen := range a.own().Unseen {
		why = append(why, fmt.Sprintf("%s: %s", unseen.What, unseen.Why))
	}
	return strings.Join(why, "; ")
}
