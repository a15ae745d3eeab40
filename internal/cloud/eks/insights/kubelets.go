// SPDX-License-Identifier: Apache-2.0

package insights

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/platform/release"
)

// The category and the words of insights.
const (
	upgradeReadiness = "UPGRADE_READINESS"
	passing          = "PASSING"
	warning          = "WARNING"
	erring           = "ERROR"
	unknown          = "UNKNOWN"
)

// insightSummary is what EKS lists of an insight.
type insightSummary struct {
	ID, Name, Category, KubernetesVersion, Description string
	LastRefreshTime                                    time.Time
	InsightStatus                                      insightStatus
}

type insightStatus struct{ Status, Reason string }

// insight is EKS's, as it is answered.
type insight struct {
	insightSummary

	Recommendation          string
	Resources               []insightResource
	CategorySpecificSummary *categorySummary
}

type categorySummary struct{ DeprecationDetails []deprecationDetail }

type deprecationDetail struct{ Usage, StopServingVersion string }

type insightResource struct {
	InsightStatus         insightStatus
	KubernetesResourceURI string
}

// insights are computed when they are asked for.
func (a *API) insights(ctx context.Context, call *awsfront.Call, of *v1alpha1.Cluster) []insight {
	skew := insight{
		insightSummary: insightSummary{
			Name: "Kubelet version skew", Category: upgradeReadiness, KubernetesVersion: eksresource.Version(of), LastRefreshTime: call.Now,
			Description: "Compares the versions of kubelets with that of the API server, and with the one that comes next",
		},
		Recommendation: "Replace the machines of node groups with old kubelets before the cluster is upgraded: aws eks update-nodegroup-version",
	}
	skew.InsightStatus, skew.Resources = a.kubeletSkew(ctx, of)
	all := append([]insight{skew}, a.deprecatedAPIs(ctx, call, of)...)
	for i := range all {
		all[i].ID = uuid.NewSHA1(uuid.NameSpaceOID, []byte(string(of.UID)+"/"+all[i].Name)).String()
	}
	return all
}

// kubeletSkew looks at the nodes of a cluster.
func (a *API) kubeletSkew(ctx context.Context, of *v1alpha1.Cluster) (insightStatus, []insightResource) {
	resources := []insightResource{}
	reach, err := a.config.Cluster(of.Namespace)
	if err != nil {
		return insightStatus{unknown, "The cluster is not reached"}, resources
	}
	var nodes corev1.NodeList
	if err := reach.List(ctx, &nodes); err != nil {
		return insightStatus{unknown, "The nodes of the cluster cannot be listed"}, resources
	}
	server, ok := minorNumber(of.Status.Version)
	if !ok {
		return insightStatus{unknown, "The version of the API server is not known yet"}, resources
	}
	worst := passing
	for i := range nodes.Items {
		status := skewOf(server, nodes.Items[i].Status.NodeInfo.KubeletVersion)
		if status.Status == passing {
			continue
		}
		resources = append(resources, insightResource{status, "/api/v1/nodes/" + nodes.Items[i].Name})
		if order := []string{passing, unknown, warning, erring}; slices.Index(order, status.Status) > slices.Index(order, worst) {
			worst = status.Status
		}
	}
	if worst == passing {
		return insightStatus{passing, "No kubelet is too old or too new"}, resources
	}
	return insightStatus{worst, fmt.Sprintf("%d of %d kubelets are too old, too new or of an unknown version", len(resources), len(nodes.Items))}, resources
}

// skewOf judges a kubelet by the minor version of its API server: ERROR if it does not fit now or not after the next
// upgrade.
func skewOf(server int, kubelet string) insightStatus {
	is, ok := minorNumber(kubelet)
	switch behind := server - is; {
	case !ok:
		return insightStatus{unknown, fmt.Sprintf("The kubelet's version %.40q cannot be read", kubelet)}
	case behind < 0:
		return insightStatus{erring, fmt.Sprintf("The kubelet %s is newer than the API server", kubelet)}
	case behind >= release.MaxSkew:
		return insightStatus{erring, fmt.Sprintf("The kubelet %s would be too old after the next upgrade of the cluster", kubelet)}
	case behind == release.MaxSkew-1:
		return insightStatus{warning, fmt.Sprintf("The kubelet %s would be as old as is supported after the next upgrade of the cluster", kubelet)}
	}
	return insightStatus{Status: passing}
}

// minorNumber is 36 of v1.36.3.
func minorNumber(version string) (int, bool) {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	if len(parts) < 2 || parts[0] != "1" {
		return 0, false
	}
	n, err := strconv.Atoi(parts[1])
	return n, err == nil
}
