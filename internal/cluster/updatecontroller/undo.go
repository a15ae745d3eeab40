// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/release"
)

// changeRollout sets in a node group the rollout that an update of a name asks for, and keeps what the group is of now.
func changeRollout(g *v1alpha1.NodeGroup, name string, asked v1alpha1.UpdateRollout) {
	now := &v1alpha1.NodeGroupBefore{Version: cmp.Or(g.Spec.Version, g.Status.Version), LaunchTemplate: g.Spec.LaunchTemplate}
	if asked.Undo && canUndo(g) {
		before := g.Spec.Rollout.Before
		g.Spec.Version, g.Spec.LaunchTemplate = before.Version, before.LaunchTemplate
	}
	if asked.Version != "" {
		g.Spec.Version = asked.Version
	}
	if asked.LaunchTemplate != nil {
		g.Spec.LaunchTemplate = asked.LaunchTemplate.DeepCopy()
	}
	g.Spec.Rollout = &v1alpha1.NodeGroupRollout{ID: name, Force: asked.Force, KeepCurrent: asked.KeepCurrent || asked.Undo, Before: now}
}

// begin says whether an update can change its target, and what a rollback of a cluster waits for before. A node group that asked for a version that it cannot have would have
// no machine made or repaired until somebody changed it.
func begin(u *v1alpha1.Update, is facts, now time.Time) decision {
	if d, waits := machinesFirst(u, is, now); waits {
		return d
	}
	rollout := u.Spec.Change.Rollout
	if rollout == nil {
		return decision{step: stepApply}
	}
	if rollout.Undo && !canUndo(is.group) {
		return fail(codeNotPermitted, "nothing is known of what node group %s was of before: no update has rolled it out", u.Spec.NodeGroup)
	}
	minor := rollout.Version
	if rollout.Undo && minor == "" {
		minor = is.group.Spec.Rollout.Before.Version
	}
	if minor == "" {
		return decision{step: stepApply}
	}
	if err := fits(minor, is); err != nil {
		return fail(codeNotPermitted, "node group %s stays as it is: %s", u.Spec.NodeGroup, err)
	}
	return decision{step: stepApply}
}

// fits returns why machines of a minor cannot be of a cluster, or not be made on this host, if they cannot. A cluster that
// has not said what it runs is not judged.
func fits(minor string, is facts) error {
	wanted, err := release.All().OfMinor(minor)
	if err != nil {
		return err
	}
	if is.unbuilt != nil {
		if missing := is.unbuilt(wanted); missing != "" {
			return errors.New(missing)
		}
	}
	if is.cluster == nil || is.cluster.Status.Version == "" {
		return nil
	}
	plane, err := release.All().OfMinor(release.Minor(is.cluster.Status.Version))
	if err != nil {
		return nil //nolint:nilerr // the cluster runs a release that is not known here; its node groups say so
	}
	return release.CheckSkew(wanted, plane)
}

// canUndo reports whether it is known what a node group was of before its last rollout.
func canUndo(g *v1alpha1.NodeGroup) bool {
	return g.Spec.Rollout != nil && g.Spec.Rollout.Before != nil
}

// undo makes the update that undoes one whose rollout failed, if that one asked for it. It is made before the failure is
// written, and once, by its name: a service that is killed in between makes no second one.
func (r *updates) undo(ctx context.Context, u *v1alpha1.Update, g *v1alpha1.NodeGroup, d decision) (decision, error) {
	asked := u.Spec.Change.Rollout
	if asked == nil || !asked.RollbackOnFailure || g == nil || g.Status.Rollout == nil || g.Status.Rollout.ID != u.Name || g.Status.Rollout.Code == "" {
		return d, nil
	}
	back := &v1alpha1.Update{
		ObjectMeta: metav1.ObjectMeta{Namespace: u.Namespace, Name: undoName(u.Name), Annotations: map[string]string{v1alpha1.AnnotationUndoes: u.Name}},
		Spec: v1alpha1.UpdateSpec{
			ClusterName: u.Spec.ClusterName, NodeGroup: u.Spec.NodeGroup, TargetUID: u.Spec.TargetUID, Type: v1alpha1.UpdateVersion,
			Change: v1alpha1.UpdateChange{Rollout: &v1alpha1.UpdateRollout{Undo: true, Force: asked.Force}},
		},
	}
	if err := r.api.Create(ctx, back); err != nil && !apierrors.IsAlreadyExists(err) {
		return d, fmt.Errorf("making the update that undoes update %s: %w", u.Name, err)
	}
	d.message += fmt.Sprintf("; update %s takes the node group back", back.Name)
	return d, nil
}

// longestRollout is the length of a rollout's id, which is the name of its update.
const longestRollout = 63

// undoName is the name of the update that undoes one of a name: NAME-undo, or the beginning of a long name and its hash.
func undoName(name string) string {
	const suffix = "-undo"
	if len(name)+len(suffix) <= longestRollout {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	suffixed := "-" + hex.EncodeToString(sum[:4]) + suffix
	return strings.TrimRight(name[:longestRollout-len(suffixed)], "-.") + suffixed
}
