// SPDX-License-Identifier: Apache-2.0

package eksresource

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// The words for the status of a cluster, and of what is in it.
const (
	Creating = "CREATING"
	Active   = "ACTIVE"
	Deleting = "DELETING"
	Failed   = "FAILED"
	Updating = "UPDATING"
	// CreateFailed is a status of node groups and Fargate profiles, and not of clusters.
	CreateFailed = "CREATE_FAILED"
)

// ClusterIssue is what ails a cluster.
type ClusterIssue struct{ Code, Message string }

// Health is what ails a node group, an add-on or a Fargate profile.
type Health struct{ Issues []Issue }

// Issue is a problem of a node group, an add-on or a Fargate profile, and the names of the resources that have it.
type Issue struct {
	Code, Message string
	ResourceIDs   []string
}

// ClusterStatus is the word and the issues that EKS has for what a cluster's conditions say. A cluster that was served
// once is ACTIVE: what ails it since is an issue of its health.
func ClusterStatus(c *v1alpha1.Cluster) (status string, issues []ClusterIssue) {
	issues = []ClusterIssue{}
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	refusal := readiness.Refusal(c)
	switch {
	case !c.DeletionTimestamp.IsZero():
		return Deleting, issues
	case refusal != "":
		code := "ConfigurationConflict"
		if ready.Reason == "InsufficientMemory" {
			code = "ResourceLimitExceeded"
		}
		issues = append(issues, ClusterIssue{code, refusal})
		if c.Status.Version == "" {
			return Failed, issues
		}
		return Active, issues
	case ready != nil && ready.Status == metav1.ConditionTrue:
		return Active, issues
	case c.Status.Version != "":
		if ready != nil {
			issues = append(issues, ClusterIssue{"ClusterUnreachable", ready.Message})
		}
		return Active, issues
	}
	return Creating, issues
}

// Version is the version of a cluster and of its nodes as EKS has it, such as 1.36. A cluster that was not served yet
// has the version that it will have.
func Version(c *v1alpha1.Cluster) string {
	return release.Minor(cmp.Or(c.Status.Version, c.Spec.Version, release.Default().Version))
}

// Release is the release that a cluster runs, or will run; the default if it is one of a later Muster.
func Release(c *v1alpha1.Cluster) release.Release {
	of, err := release.All().OfMinor(Version(c))
	if err != nil {
		return release.Default()
	}
	return of
}
