// SPDX-License-Identifier: Apache-2.0

// Package insights has EKS's actions about insights: whether a cluster is ready for its next version, or for the one
// before. Package insight finds them, anew for every request.
package insights

import (
	"context"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cluster/insight"
)

// API has the actions.
type API struct {
	store *eksresource.Store
	find  func(context.Context, *v1alpha1.Cluster) []insight.Insight
}

// New has the actions over a store, with what finds the insights about a cluster.
func New(store *eksresource.Store, find func(context.Context, *v1alpha1.Cluster) []insight.Insight) *API {
	return &API{store, find}
}

// Register adds the actions to the front.
func (a *API) Register(f *awsfront.Front) {
	awsfront.Register(f, eksresource.Service, "DescribeInsight", a.describeInsight())
	awsfront.Register(f, eksresource.Service, "DescribeInsightsRefresh", a.describeInsightsRefresh())
	awsfront.Register(f, eksresource.Service, "ListInsights", a.listInsights())
	awsfront.Register(f, eksresource.Service, "StartInsightsRefresh", a.startInsightsRefresh())
}
