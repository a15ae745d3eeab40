// SPDX-License-Identifier: Apache-2.0

package insights

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/platform/release"
)

// deprecatedAPIs returns insights about deprecated APIs that were requested: an insight for the next minor version, an
// insight for each other version that removes some of the APIs, and an insight for the APIs that no release removes
// yet.
func (a *API) deprecatedAPIs(ctx context.Context, call *awsfront.Call, of *v1alpha1.Cluster) []insight {
	is, known := minorNumber(of.Status.Version)
	next := "1." + fmt.Sprint(is+1)
	seen, err := a.config.Deprecated(ctx, of.Namespace)
	if err != nil || !known {
		unseen := deprecatedInsight(call, cmp.Or(release.Minor(of.Status.Version), "unknown"), nil, deprecation.Seen{})
		unseen.InsightStatus = insightStatus{unknown, "The API server's metrics cannot be read"}
		return []insight{unseen}
	}
	byRelease := map[string][]deprecation.API{next: nil}
	for _, used := range seen.APIs {
		byRelease[used.Removed] = append(byRelease[used.Removed], used)
	}
	var all []insight
	for removedIn, used := range byRelease {
		one := deprecatedInsight(call, removedIn, used, seen)
		if removes, ok := minorNumber(removedIn); ok && removes <= is+1 && len(used) > 0 {
			one.InsightStatus.Status = erring
		}
		if removedIn == "" {
			one.KubernetesVersion = release.Minor(of.Status.Version)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b insight) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// deprecatedInsight is the insight about a release that removes APIs, or about those that none removes yet.
func deprecatedInsight(call *awsfront.Call, release string, used []deprecation.API, seen deprecation.Seen) insight {
	shown := insight{
		insightSummary: insightSummary{
			Name: "Deprecated APIs removed in Kubernetes v" + release, Category: upgradeReadiness, KubernetesVersion: release, LastRefreshTime: call.Now,
			Description:   "Looks for requests to APIs that Kubernetes v" + release + " does not serve any more",
			InsightStatus: insightStatus{passing, "No such API was requested since the API server started, at " + seen.Since.Format(time.RFC3339)},
		},
		Recommendation:          "Have clients ask for the version that replaces the API before the cluster is upgraded; kubectl prints a warning with its name",
		Resources:               []insightResource{},
		CategorySpecificSummary: &categorySummary{DeprecationDetails: []deprecationDetail{}},
	}
	if release == "" {
		shown.Name, shown.Description = "Deprecated APIs", "Looks for requests to deprecated APIs that no release of Kubernetes removes yet"
	}
	requests := int64(0)
	for _, one := range used {
		requests += one.Requests
		shown.CategorySpecificSummary.DeprecationDetails = append(shown.CategorySpecificSummary.DeprecationDetails, deprecationDetail{one.Path(), one.Removed})
	}
	if len(used) > 0 {
		shown.InsightStatus = insightStatus{warning, fmt.Sprintf("%d requests to %d such APIs since the API server started, at %s", requests, len(used), seen.Since.Format(time.RFC3339))}
	}
	return shown
}
