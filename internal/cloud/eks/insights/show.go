// SPDX-License-Identifier: Apache-2.0

package insights

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cluster/insight"
)

// insightSummary is what EKS lists of an insight.
type insightSummary struct {
	ID, Name, Category, KubernetesVersion, Description string
	LastRefreshTime                                    time.Time
	InsightStatus                                      insightStatus
}

type insightStatus struct{ Status, Reason string }

// shown is an insight of EKS's, as it is answered.
type shown struct {
	insightSummary

	Recommendation          string
	Resources               []insightResource
	CategorySpecificSummary *categorySummary
}

type categorySummary struct {
	DeprecationDetails        []deprecationDetail
	AddonCompatibilityDetails []addonCompatibility
}

type deprecationDetail struct {
	Usage, StopServingVersion string
	ClientStats               []clientStat
}

type clientStat struct {
	UserAgent                  string
	NumberOfRequestsLast30Days int32
	LastRequestTime            time.Time
}

type addonCompatibility struct {
	Name               string
	CompatibleVersions []string
}

type insightResource struct {
	InsightStatus         insightStatus
	KubernetesResourceURI string
}

// insights are found when they are asked for.
func (a *API) insights(ctx context.Context, call *awsfront.Call, of *v1alpha1.Cluster) []shown {
	found := a.find(ctx, of)
	all := make([]shown, 0, len(found))
	for _, i := range found {
		all = append(all, show(i, of, call.Now))
	}
	return all
}

// show is an insight as EKS tells of it. Its id stays the same.
func show(i insight.Insight, of *v1alpha1.Cluster, now time.Time) shown {
	s := shown{
		insightSummary: insightSummary{
			ID:   uuid.NewSHA1(uuid.NameSpaceOID, []byte(string(of.UID)+"/"+string(i.Category)+"/"+i.Name)).String(),
			Name: i.Name, Category: string(i.Category), KubernetesVersion: i.Minor, Description: i.Description, LastRefreshTime: now,
			InsightStatus: status(i.Finding),
		},
		Recommendation: i.Recommendation,
		Resources:      []insightResource{},
	}
	for _, r := range i.Resources {
		resource := insightResource{InsightStatus: status(r.Finding)}
		if strings.HasPrefix(r.URI, "/") {
			resource.KubernetesResourceURI = r.URI
		}
		s.Resources = append(s.Resources, resource)
	}
	if i.Deprecations != nil || i.Addons != nil {
		s.CategorySpecificSummary = &categorySummary{DeprecationDetails: []deprecationDetail{}, AddonCompatibilityDetails: []addonCompatibility{}}
	}
	for _, d := range i.Deprecations {
		s.CategorySpecificSummary.DeprecationDetails = append(s.CategorySpecificSummary.DeprecationDetails, deprecationDetail{d.Path, d.Removed, statsOf(d.Clients)})
	}
	for _, c := range i.Addons {
		s.CategorySpecificSummary.AddonCompatibilityDetails = append(s.CategorySpecificSummary.AddonCompatibilityDetails, addonCompatibility{c.Addon, append([]string{}, c.Versions...)})
	}
	return s
}

func status(f insight.Finding) insightStatus { return insightStatus{string(f.Status), f.Reason} }

// statsOf tells of clients as EKS does.
func statsOf(clients []insight.Client) (stats []clientStat) {
	for _, c := range clients {
		stats = append(stats, clientStat{c.UserAgent, int32(min(c.Requests, math.MaxInt32)), c.Last}) //nolint:gosec // G115: it fits
	}
	return stats
}
