// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/addons/karpenter"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

const (
	// rollbackTime is how long machines have to go back before their cluster: EKS's default of
	// rollbackConfig.timeoutMinutes.
	rollbackTime = 720 * time.Minute
	// settling is how long Karpenter has been told to launch machines of the older minor before it is believed that no
	// machine of the newer one is on its way.
	settling = 15 * time.Second
	// namedMachines is how many machines a message names.
	namedMachines = 3
)

// GoesBack reports whether a machine goes back before its cluster is taken back to a release: Karpenter in the control
// plane of the cluster launched it by the EC2NodeClass of the control plane, and it is newer than that release.
func GoesBack(cluster v1alpha1.ClusterSpec, m *v1alpha1.Machine, to release.Release) bool {
	return cluster.Compute.On() && m.Spec.ClusterName == cluster.Name && string(m.Spec.Tags[karpenter.LabelNodeClass]) == karpenter.NodeClass &&
		ami.Release(m.Spec.ImageID).Distance(to) > 0
}

// GoingBack returns the minor that machines of a cluster's own Karpenter are to be of by the cluster's updates: that of a
// rollback in progress whose turn it is; "" if there is none.
func GoingBack(updates []v1alpha1.Update) string {
	for i := range updates {
		u := &updates[i]
		cancelled := u.Status.AppliedAt == nil && u.Annotations[v1alpha1.AnnotationCancel] == "true"
		waits := slices.ContainsFunc(updates, func(other v1alpha1.Update) bool {
			return other.Name != u.Name && other.Phase() == v1alpha1.UpdateInProgress && other.Spec.NodeGroup == "" && other.Spec.Addon == "" && comesFirst(&other, u)
		})
		if u.Spec.Type == v1alpha1.UpdateRollback && u.Phase() == v1alpha1.UpdateInProgress && !cancelled && !waits {
			return u.Spec.Change.Version
		}
	}
	return ""
}

// machinesFirst says what a rollback waits for before it changes its cluster: machines of the cluster's own Karpenter go
// back first. The time that they have begins with the step Change.
func machinesFirst(u *v1alpha1.Update, is facts, now time.Time) (d decision, waits bool) {
	if u.Spec.Type != v1alpha1.UpdateRollback || !is.cluster.Spec.Compute.On() {
		return decision{}, false
	}
	since, limit := now, rollbackTime
	if i := slices.IndexFunc(u.Status.Steps, func(s v1alpha1.UpdateStep) bool { return s.Name == v1alpha1.UpdateStepChange }); i >= 0 {
		since = u.Status.Steps[i].StartedAt.Time
	}
	if minutes := u.Spec.Change.RollbackTimeoutMinutes; minutes != nil {
		limit = time.Duration(*minutes) * time.Minute
	}
	version := u.Spec.Change.Version
	switch left := len(is.newer); {
	case left > 0 && now.Sub(since) >= limit:
		return fail(codeEviction, "the control plane stays as it is: after %v, %s still newer than %s: %s", limit, counted(left), version, some(is.newer)), true
	case left > 0:
		return wait("Karpenter replaces machines by machines of %s before the control plane goes back; %s still newer: %s", version, counted(left), some(is.newer)), true
	case now.Sub(since) < settling:
		return wait("Karpenter is told to launch machines of %s before the control plane goes back", version), true
	}
	return decision{}, false
}

// counted is a number of machines as the subject of a sentence.
func counted(n int) string {
	if n == 1 {
		return "1 machine is"
	}
	return fmt.Sprintf("%d machines are", n)
}

// some are the first few of some names, and how many more there are.
func some(names []string) string {
	if more := len(names) - namedMachines; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:namedMachines], ", "), more)
	}
	return strings.Join(names, ", ")
}

// newer returns the machines that go back before a cluster is taken back by an update, by their names.
func (r *updates) newer(ctx context.Context, u *v1alpha1.Update, cluster *v1alpha1.Cluster) (names []string, err error) {
	if u.Spec.Type != v1alpha1.UpdateRollback || u.Status.AppliedAt != nil || cluster == nil || !cluster.Spec.Compute.On() {
		return nil, nil
	}
	to, err := release.All().OfMinor(u.Spec.Change.Version)
	if err != nil {
		return nil, nil //nolint:nilerr // the cluster refuses the version
	}
	var all v1alpha1.MachineList
	if err := r.api.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the machines of cluster %s: %w", cluster.Spec.Name, err)
	}
	for i := range all.Items {
		if GoesBack(cluster.Spec, &all.Items[i], to) {
			names = append(names, all.Items[i].Name)
		}
	}
	slices.Sort(names)
	return names, nil
}
