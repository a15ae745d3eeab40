// SPDX-License-Identifier: Apache-2.0

// Package insights has EKS's actions about insights: whether a cluster is ready for its next version, by the versions
// of its kubelets and by the deprecated APIs that were requested. Insights are computed anew for every request.
package insights

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/plane/deprecation"
)

// Config is what the actions need beside the store.
type Config struct {
	// Cluster reads and writes the objects of a cluster that is served, by its namespace.
	Cluster func(namespace string) (client.Client, error)
	// Deprecated reads which deprecated APIs of a cluster that is served, by its namespace, were requested.
	Deprecated func(ctx context.Context, namespace string) (deprecation.Seen, error)
}

// API has the actions.
type API struct {
	store  *eksresource.Store
	config Config
}

// New has the actions over a store.
func New(store *eksresource.Store, c Config) *API { return &API{store, c} }

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, eksresource.Service, "DescribeInsight", a.describeInsight())
	awsfront.Register(f, eksresource.Service, "DescribeInsightsRefresh", a.describeInsightsRefresh())
	awsfront.Register(f, eksresource.Service, "ListInsights", a.listInsights())
	awsfront.Register(f, eksresource.Service, "StartInsightsRefresh", a.startInsightsRefresh())
}
