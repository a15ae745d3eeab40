// SPDX-License-Identifier: Apache-2.0

// Package insightfacts gathers the facts that package insight decides by: from the cluster's API, the management plane and
// the host. Each fact is asked for by itself, and a fact that cannot be had says why.
package insightfacts

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/catalogue"
	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
	"muster.dev/muster/internal/platform/release"
)

// Sources are where facts about a cluster come from.
type Sources struct {
	Object *v1alpha1.Cluster
	// Management reads the management plane.
	Management client.Reader
	// Cluster makes a client of the cluster's API.
	Cluster func() (client.Client, error)
	// Deprecated reads which deprecated APIs were requested of the API servers that run now.
	Deprecated func(context.Context) (deprecation.Seen, error)
	// Callers reads who requested deprecated APIs, by the audit log.
	Callers func(context.Context) (deprecationlog.Seen, error)
	Host    insight.Host
	// Back is the minor that the cluster can be taken back to; empty if it cannot.
	Back string
	Now  time.Time
}

// Gather asks for all facts.
func Gather(ctx context.Context, s Sources) insight.Facts {
	f := insight.Facts{Now: s.Now, Server: s.Object.Status.Version, Back: s.Back, Host: s.Host}
	f.Minor = release.Minor(cmp.Or(f.Server, s.Object.Spec.Version, release.Default().Version))
	f.Next = release.Release{Version: f.Minor}.After()
	f.Addons = fact(s.addons(ctx))
	f.Requests = fact(s.requests(ctx))
	api, err := s.Cluster()
	if err != nil {
		const away = "The cluster is not reached"
		f.Nodes.Unknown, f.Webhooks.Unknown, f.Budgets.Unknown, f.Kinds.Unknown, f.Stored.Unknown = away, away, away, away, away
		return f
	}
	f.Nodes = fact(nodes(ctx, api, s.Object.Spec.Compute.On()))
	f.Webhooks = fact(webhooks(ctx, api))
	f.Budgets = fact(budgets(ctx, api))
	f.Kinds = fact(kinds(ctx, api))
	if s.Back != "" {
		f.Stored = fact(stored(ctx, api, f.Minor))
	}
	return f
}

// fact is one that is known unless there is an error.
func fact[T any](is T, err error) insight.Fact[T] {
	if err != nil {
		return insight.Fact[T]{Unknown: strings.ToUpper(err.Error()[:1]) + err.Error()[1:]} // a sentence for people
	}
	return insight.Fact[T]{Is: is}
}

// addons are the add-ons of the cluster.
func (s Sources) addons(ctx context.Context) (found []insight.Addon, err error) {
	var all v1alpha1.AddonList
	if err := s.Management.List(ctx, &all, client.InNamespace(s.Object.Namespace)); err != nil {
		return nil, fmt.Errorf("The add-ons of the cluster cannot be listed: %w", err) //nolint:staticcheck // ST1005: EKS's sentence
	}
	for i := range all.Items {
		a := insight.Addon{Name: all.Items[i].Spec.AddonName, Version: cmp.Or(all.Items[i].Status.Version, all.Items[i].Spec.Version), Versions: map[string][]string{}}
		for _, known := range catalogue.Versions(a.Name) {
			for _, minor := range known.ClusterVersions {
				a.Versions[minor] = append(a.Versions[minor], known.Version)
			}
		}
		found = append(found, a)
	}
	return found, nil
}
