// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/evidence"
)

// elsewhereKinds are the kinds that clusters have which are not of an installation of Muster's.
func elsewhereKinds() []string {
	return []string{kindNode, kindRequest, kindPod, kindVolume, kindService, kindHost}
}

// checkElsewhere refuses what there is only in an installation.
func (e *explainCommand) checkElsewhere(args []string) error {
	switch {
	case e.elsewhere == nil:
		return nil
	case e.bundle != "":
		return errors.New("--bundle is of an installation of Muster's, to which --kubeconfig does not lead: leave one of them out")
	case len(args) > 0 && !slices.Contains(elsewhereKinds(), kindOf(args[0])):
		return fmt.Errorf("a %s is in the management plane of an installation, to which --kubeconfig does not lead; with it, KIND is one of: %s", kindOf(args[0]), strings.Join(elsewhereKinds(), ", "))
	}
	return nil
}

// askElsewhere reads the cluster that --kubeconfig or --context names.
func (e *explainCommand) askElsewhere(ctx context.Context) (*question, error) {
	api, err := e.elsewhere(e.Options)
	if err != nil {
		return nil, err
	}
	snapshot := &evidence.Snapshot{Of: map[string]evidence.Cluster{}, At: e.now()}
	apis := map[string]client.Reader{api.Address: api}
	snapshot.ReadClusters(ctx, apis)
	snapshot.ReadElsewhere(ctx, api.Address, api)
	if of := snapshot.Of[api.Address]; len(of.Unseen) > 0 && len(of.Nodes)+len(of.Requests) == 0 {
		return nil, fmt.Errorf("%s: %s", of.Unseen[0].What, of.Unseen[0].Why)
	}
	return &question{snapshot: snapshot, apis: apis, foreign: true}, nil
}

// everythingForeign explains what is wrong with clusters elsewhere and their Nodes, and the requests that were denied or failed there. A
// request that waits may wait for a person, so that it is explained by its name alone.
func (q *question) everythingForeign(catalogue cause.Catalogue) (reports []diagnosis.Report, facts []diagnosis.Facts) {
	s := q.snapshot
	add := func(f diagnosis.Facts) {
		if r := q.decide(catalogue, f); r.Verdict == diagnosis.Found || r.Verdict == diagnosis.NotKnown {
			reports, facts = append(reports, r), append(facts, f)
		}
	}
	for _, cluster := range q.clusters() {
		of := s.Of[cluster]
		add(s.ClusterElsewhere(cluster))
		for i := range of.Nodes {
			add(s.Node(cluster, &of.Nodes[i]))
		}
		for i := range of.Requests {
			f, ok := s.Request(cluster, of.Requests[i].Name)
			if ok && slices.ContainsFunc(f.Evidence, func(e diagnosis.Evidence) bool { return e.Trouble }) {
				add(f)
			}
		}
	}
	return reports, facts
}
