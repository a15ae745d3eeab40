// SPDX-License-Identifier: Apache-2.0

package insights

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
)

type listInsightsInput struct {
	ClusterName, NextToken string
	MaxResults             *int32
	Filter                 *insightsFilter
}

type insightsFilter struct{ Categories, KubernetesVersions, Statuses []string }

// takes reports whether an insight is one of those that are asked for.
func (f *insightsFilter) takes(i insightSummary) bool {
	in := func(list []string, word string) bool { return len(list) == 0 || slices.Contains(list, word) }
	return f == nil || in(f.Categories, i.Category) && in(f.KubernetesVersions, i.KubernetesVersion) && in(f.Statuses, i.InsightStatus.Status)
}

type listInsightsOutput struct {
	Insights  []insightSummary
	NextToken string
}

func (a *API) listInsights() awsfront.Spec[listInsightsInput, listInsightsOutput] {
	return awsfront.Spec[listInsightsInput, listInsightsOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *listInsightsInput) ([]awsfront.Target, error) {
			return a.store.AboutCluster(ctx, call, in.ClusterName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *listInsightsInput) (*listInsightsOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			var found []insightSummary
			for _, i := range a.insights(ctx, call, of) {
				if in.Filter.takes(i.insightSummary) {
					found = append(found, i.insightSummary)
				}
			}
			out := &listInsightsOutput{}
			out.Insights, out.NextToken, err = awsresource.Page(a.store.Account, call, in.ClusterName, found, func(i insightSummary) string { return i.ID }, in.MaxResults, in.NextToken)
			return out, err
		},
	}
}

type describeInsightInput struct{ ClusterName, ID string }

type describeInsightOutput struct{ Insight *shown }

func (a *API) describeInsight() awsfront.Spec[describeInsightInput, describeInsightOutput] {
	return awsfront.Spec[describeInsightInput, describeInsightOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *describeInsightInput) ([]awsfront.Target, error) {
			return a.store.AboutCluster(ctx, call, in.ClusterName)
		},
		Do: func(ctx context.Context, call *awsfront.Call, in *describeInsightInput) (*describeInsightOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			for _, i := range a.insights(ctx, call, of) {
				if i.ID == in.ID {
					return &describeInsightOutput{&i}, nil
				}
			}
			return nil, eksfault.New(eksfault.NotFound, in.ClusterName, "", "No insight found for id: %.100s.", in.ID)
		},
	}
}

// annotationRefreshed on a Cluster is when its insights were to be refreshed last. They are computed anew for every
// request.
const annotationRefreshed = "muster.dev/insights-refreshed"

const refreshMessage = "Insights are computed when they are asked for"

type namedClusterInput struct{ ClusterName string }

type startRefreshOutput struct{ Status, Message string }

func (a *API) aboutNamedCluster(ctx context.Context, call *awsfront.Call, in *namedClusterInput) ([]awsfront.Target, error) {
	return a.store.AboutCluster(ctx, call, in.ClusterName)
}

func (a *API) startInsightsRefresh() awsfront.Spec[namedClusterInput, startRefreshOutput] {
	return awsfront.Spec[namedClusterInput, startRefreshOutput]{
		About: a.aboutNamedCluster,
		Do: func(ctx context.Context, call *awsfront.Call, in *namedClusterInput) (*startRefreshOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			before := of.DeepCopy()
			metav1.SetMetaDataAnnotation(&of.ObjectMeta, annotationRefreshed, call.Now.UTC().Format(time.RFC3339))
			if err := a.store.Management.Patch(ctx, of, client.MergeFrom(before)); err != nil {
				return nil, eksfault.Away(fmt.Errorf("noting the refresh of insights: %w", err))
			}
			return &startRefreshOutput{"COMPLETED", refreshMessage}, nil
		},
	}
}

type describeRefreshOutput struct {
	Status, Message    string
	StartedAt, EndedAt time.Time
}

func (a *API) describeInsightsRefresh() awsfront.Spec[namedClusterInput, describeRefreshOutput] {
	return awsfront.Spec[namedClusterInput, describeRefreshOutput]{
		About: a.aboutNamedCluster,
		Do: func(ctx context.Context, _ *awsfront.Call, in *namedClusterInput) (*describeRefreshOutput, error) {
			of, err := a.store.Cluster(ctx, in.ClusterName)
			if err != nil {
				return nil, err
			}
			at, err := time.Parse(time.RFC3339, of.Annotations[annotationRefreshed])
			if err != nil {
				return nil, eksfault.New(eksfault.NotFound, in.ClusterName, "", "No insights refresh found for cluster: %s.", in.ClusterName)
			}
			return &describeRefreshOutput{"COMPLETED", refreshMessage, at, at}, nil
		},
	}
}
