// SPDX-License-Identifier: Apache-2.0

// Package insight finds what keeps a cluster from another minor version of Kubernetes, by rules, each in a file of its
// own. Rules are pure: package insightfacts gathers the [Facts]. A fact that could not be found out makes an insight with
// the status UNKNOWN, which is told and keeps the cluster from nothing.
//
// The names of categories and statuses are EKS's. A rule says ERROR if the change itself would fail, or if something that
// works now would not after it; it says WARNING of what comes after that, such as a node group's update.
package insight

import (
	"fmt"
	"slices"
	"strings"
)

// Category of an insight, by EKS's name.
type Category string

// The categories.
const (
	UpgradeReadiness  Category = "UPGRADE_READINESS"
	RollbackReadiness Category = "ROLLBACK_READINESS"
)

// Status of an insight, by EKS's name.
type Status string

// The statuses. An insight with the status Error keeps a cluster from another minor, unless that is forced.
const (
	Passing Status = "PASSING"
	Unknown Status = "UNKNOWN"
	Warning Status = "WARNING"
	Error   Status = "ERROR"
)

// Finding is a status and its reason.
type Finding struct {
	Status Status
	Reason string
}

// Resource is an object that an insight is about, by its path in the cluster's API.
type Resource struct {
	Finding

	URI string
}

// Deprecation is a deprecated API that was asked for.
type Deprecation struct {
	// Path of the API, and Removed, the minor that does not serve it; empty if that is not decided.
	Path, Removed string
	// Clients asked for it, as far as they are known.
	Clients []Client
}

// Compatible are the versions of an add-on that fit the minor that an insight is about.
type Compatible struct {
	Addon    string
	Versions []string
}

// Insight is what a rule found.
type Insight struct {
	Finding

	Name, Description, Recommendation string
	Category                          Category
	// Minor that the insight is about, as 1.37.
	Minor        string
	Resources    []Resource
	Deprecations []Deprecation
	Addons       []Compatible
}

// Upgrade returns the insights about an upgrade to the next minor.
func Upgrade(f Facts) []Insight {
	all := []Insight{kubelets(f, UpgradeReadiness), kubeProxies(f, UpgradeReadiness), addons(f, f.Next, UpgradeReadiness)}
	all = append(all, deprecated(f)...)
	return append(all, webhooks(f, f.Next, UpgradeReadiness), budgets(f), storedVersions(f), memory(f, f.Next, UpgradeReadiness), disk(f, f.Next, UpgradeReadiness), certificates(f), etcd(f))
}

// Rollback returns the insights about the way back to the minor before, if there is such a way.
func Rollback(f Facts) []Insight {
	if f.Back == "" {
		return nil
	}
	return []Insight{
		kubelets(f, RollbackReadiness), kubeProxies(f, RollbackReadiness), addons(f, f.Back, RollbackReadiness), newResources(f),
		webhooks(f, f.Back, RollbackReadiness), memory(f, f.Back, RollbackReadiness), disk(f, f.Back, RollbackReadiness),
	}
}

// Against are those of some insights that keep a cluster from another minor.
func Against(all []Insight) []Insight {
	return slices.DeleteFunc(slices.Clone(all), func(i Insight) bool { return i.Status != Error })
}

// Summary names insights and the resources that they are about, in one line.
func Summary(all []Insight) string {
	const most = 3
	parts := make([]string, 0, len(all))
	for _, i := range all {
		part := i.Name + ": " + i.Reason
		var about []string
		for _, r := range i.Resources {
			if r.Status == Error {
				about = append(about, r.URI)
			}
		}
		if more := len(about) - most; more > 0 {
			about = append(about[:most:most], fmt.Sprintf("and %d more", more))
		}
		if len(about) > 0 {
			part += " (" + strings.Join(about, ", ") + ")"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// of fills in what a rule found about resources: the worst status of them all, or that nothing was found.
func (i Insight) of(resources []Resource, passing, found string) Insight {
	i.Finding = Finding{Passing, passing}
	for _, r := range resources {
		if order := []Status{Passing, Unknown, Warning, Error}; slices.Index(order, r.Status) > slices.Index(order, i.Status) {
			i.Finding = Finding{r.Status, found}
		}
	}
	i.Resources = resources
	return i
}

// unknown says that a rule could not find out.
func (i Insight) unknown(reason string) Insight {
	i.Finding = Finding{Unknown, reason}
	return i
}
