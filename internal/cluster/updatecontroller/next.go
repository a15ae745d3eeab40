// SPDX-License-Identifier: Apache-2.0

package updatecontroller

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/plane/readiness"
	"muster.dev/muster/internal/platform/release"
)

// EKS's codes of errors of updates.
const (
	codeNotPermitted = "OperationNotPermitted"
	codeNodeCreation = "NodeCreationFailure"
	codeUnreachable  = "ClusterUnreachable"
	codeEviction     = "PodEvictionFailure"
)

// patience is the time that a change may take to have its effect.
const patience = 20 * time.Minute

// step is what is to be done about an update.
type step int

const (
	stepNone     step = iota // it has ended
	stepWait                 // look again
	stepApply                // change the target
	stepNote                 // write when the target was changed
	stepSucceed              // write that it took effect
	stepFail                 // write that it did not
	stepStop                 // stop the rollout of the target
	stepCancel               // write that it was cancelled
	stepFreeEtcd             // give back the space of the cluster's etcd, and write what was done
)

// facts are what the next step depends on.
type facts struct {
	// cluster is nil if there is none.
	cluster *v1alpha1.Cluster
	// group is nil if there is none, or if the update is one of the cluster.
	group *v1alpha1.NodeGroup
	// addon is nil if there is none, or if the update is not one of an add-on.
	addon *v1alpha1.Addon
	// leaving are the machines of group that are being deleted; they are looked up if the group is to have none.
	leaving []v1alpha1.Machine
	// newer are the names of the machines of the cluster's own Karpenter that are newer than the minor which the cluster is
	// taken back to; they are looked up until the update changes the cluster.
	newer []string
	// older is the name of an update of the same target that is in progress and comes first, or "".
	older string
	// began is when the service did: before, no change had an effect.
	began time.Time
	// unbuilt says what is to be done before machines can be of a release; nil if nothing is of any.
	unbuilt func(release.Release) string
}

// late reports whether a change that was made at a moment should have had its effect by now.
func (f facts) late(made, now time.Time) bool {
	if made.Before(f.began) {
		made = f.began
	}
	return now.Sub(made) >= patience
}

// decision is the next step, with what the update waits for or failed of.
type decision struct {
	step          step
	code, message string
}

func wait(format string, args ...any) decision {
	return decision{step: stepWait, message: fmt.Sprintf(format, args...)}
}

func fail(code, format string, args ...any) decision {
	return decision{stepFail, code, fmt.Sprintf(format, args...)}
}

// next says what is to be done about an update.
func next(u *v1alpha1.Update, is facts, now time.Time) decision {
	if u.Phase() != v1alpha1.UpdateInProgress {
		return decision{}
	}
	target, what := is.target(u)
	switch {
	case target == nil, u.Spec.TargetUID != "" && string(target.GetUID()) != u.Spec.TargetUID:
		return fail(codeNotPermitted, "%s is gone", what)
	case !target.GetDeletionTimestamp().IsZero():
		return fail(codeNotPermitted, "%s is being deleted", what)
	case u.Status.AppliedAt == nil && target.GetAnnotations()[v1alpha1.AnnotationUpdate] == u.Name:
		return decision{step: stepNote}
	case u.Status.AppliedAt == nil && u.Annotations[v1alpha1.AnnotationCancel] == "true":
		return decision{step: stepCancel}
	case u.Spec.Change.DefragmentEtcd: // before older ones: an etcd without space may be what they wait for
		return decision{step: stepFreeEtcd}
	case u.Status.AppliedAt == nil && is.older != "":
		return wait("update %s of %s comes first", is.older, what)
	case u.Status.AppliedAt == nil:
		return begin(u, is, now)
	}
	if u.Spec.Change.Rollout != nil {
		return aboutLastNode(rolloutEffect(u, is, now), is.leaving, false)
	}
	late := is.late(u.Status.AppliedAt.Time, now)
	switch {
	case u.Spec.NodeGroup != "":
		return aboutLastNode(groupEffect(is.group, late), is.leaving, late)
	case u.Spec.Addon != "":
		return addonEffect(is.addon, late)
	case u.Spec.Change.KubeletAuthority != nil:
		return authorityEffect(u, is.cluster, late)
	}
	if d, ended := overtaken(u, is.cluster); ended {
		return d
	}
	return clusterEffect(u, is.cluster, late)
}

// target is the object that an update changes, and what it is called.
func (f facts) target(u *v1alpha1.Update) (object metav1.Object, what string) {
	if u.Spec.NodeGroup != "" {
		if what = fmt.Sprintf("node group %s", u.Spec.NodeGroup); f.group != nil {
			object = f.group
		}
		return object, what
	}
	if u.Spec.Addon != "" {
		if what = fmt.Sprintf("add-on %s", u.Spec.Addon); f.addon != nil {
			object = f.addon
		}
		return object, what
	}
	if what = fmt.Sprintf("cluster %s", u.Spec.ClusterName); f.cluster != nil {
		object = f.cluster
	}
	return object, what
}

// clusterEffect compares a cluster that was changed with what it is to be. Its condition Ready is about the generation
// that it names, also where that is refused; the mode of its authenticator is a fact of its own, since components are
// ready before and after they are started anew.
func clusterEffect(u *v1alpha1.Update, c *v1alpha1.Cluster, late bool) decision {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	current := ready != nil && ready.ObservedGeneration >= c.Generation && c.Status.ObservedGeneration >= c.Generation
	switch is, wanted := c.Status.AuthenticationMode, c.Spec.AccessConfig.AuthenticationMode; {
	case current && ready.Reason == readiness.ReasonChangeRefused:
		return refusedEffect(u, c, late, messageOf(ready))
	case current && ready.Status == metav1.ConditionTrue && is == wanted && grouped(c) && ofItsVersion(c):
		return decision{step: stepSucceed}
	case late:
		return fail(codeUnreachable, "the change has had no effect for %v: %s", patience, messageOf(ready))
	case current && ready.Status == metav1.ConditionTrue && is == wanted && !ofItsVersion(c):
		return wait("the API server is of version %s, and is to be of %s", c.Status.Version, c.Spec.Version)
	case current && ready.Status == metav1.ConditionTrue && is == wanted:
		return wait("the API server's addresses are in the security groups %v, and are to be in %v beside the cluster's own", c.Status.SecurityGroupIDs, c.Spec.SecurityGroupIDs)
	case current && ready.Status == metav1.ConditionTrue:
		return wait("the authenticator runs in mode %s, and is to be started in mode %s", cmp.Or(string(is), "unknown"), wanted)
	}
	return wait("the control plane takes the change: %s", messageOf(ready))
}

// overtaken says how an update ends whose change is not what the cluster asks for any more.
func overtaken(u *v1alpha1.Update, c *v1alpha1.Cluster) (d decision, ended bool) {
	if why := setBackBy(u, c); why != nil {
		return fail(why.Code, "%s", why.Message), true
	}
	if asked := u.Spec.Change.Version; asked != "" && c.Spec.Version != asked {
		return fail(codeNotPermitted, "somebody has asked for version %s of cluster %s meanwhile", cmp.Or(c.Spec.Version, "unset"), c.Spec.Name), true
	}
	return decision{}, false
}

// refusedEffect looks at a cluster that was refused and runs on as it was. Where somebody else has changed it since, the
// refusal is not about the update alone.
func refusedEffect(u *v1alpha1.Update, c *v1alpha1.Cluster, late bool, said string) decision {
	change := u.Spec.Change
	switch since := changedSince(u, c); {
	case since && change.Version != "" && change.Components == nil && ofItsVersion(c):
		return decision{step: stepSucceed, message: "somebody has changed the cluster since, and that is refused: " + said}
	case since && !late:
		return wait("somebody has changed the cluster since, and what it is to be now is refused: %s", said)
	}
	return fail(codeNotPermitted, "%s", said)
}

// ofItsVersion reports whether the API server says that it has the minor that the cluster's spec asks for.
func ofItsVersion(c *v1alpha1.Cluster) bool {
	return c.Spec.Version == "" || release.Minor(c.Status.Version) == release.Minor(c.Spec.Version)
}

// grouped reports whether the API server's addresses are in the security groups that the cluster's spec asks for, and
// in no others. A cluster without a VPC has none.
func grouped(c *v1alpha1.Cluster) bool {
	if c.Status.ClusterSecurityGroupID == "" {
		return true
	}
	wanted := append([]string{c.Status.ClusterSecurityGroupID}, c.Spec.SecurityGroupIDs...)
	return slices.Equal(slices.Sorted(slices.Values(c.Status.SecurityGroupIDs)), slices.Sorted(slices.Values(wanted)))
}

// groupEffect compares a node group that was changed with what it is to be. Its condition Ready knows which of its machines
// are to run.
func groupEffect(g *v1alpha1.NodeGroup, late bool) decision {
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	current := ready != nil && ready.ObservedGeneration >= g.Generation && g.Status.ObservedGeneration >= g.Generation
	desired := g.Spec.ScalingConfig.DesiredSize
	sized := current && ready.Status == metav1.ConditionTrue && g.Status.Replicas == desired
	switch {
	case sized && g.Status.UpdatedReplicas == desired:
		return decision{step: stepSucceed}
	case late && sized:
		return fail(codeNodeCreation, "%d of %d nodes have the group's labels and taints after %v", g.Status.UpdatedReplicas, desired, patience)
	case sized:
		return wait("%d of %d nodes have the group's labels and taints", g.Status.UpdatedReplicas, desired)
	case late:
		return fail(codeNodeCreation, "%s after %v: %s", readiness.ReadyOf(g.Status.ReadyReplicas, desired, "machine", "machines"), patience, cmp.Or(readiness.Obstacle(g), messageOf(ready)))
	}
	return wait("%s", messageOf(ready))
}

// aboutLastNode has an update that succeeds say which machine's pods are not waited for beyond their grace period. It
// waits until the machines that are being deleted say so, which they do as soon as they begin to drain.
func aboutLastNode(d decision, leaving []v1alpha1.Machine, late bool) decision {
	if d.step != stepSucceed {
		return d
	}
	if d.message = readiness.AboutLastNode(leaving); d.message != "" || late {
		return d
	}
	for i := range leaving {
		m := &leaving[i]
		drains := m.Status.NodeName != "" && m.Spec.TakesPods()
		if drains && meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionDrained) == nil {
			return wait("machine %s begins to drain", m.Name)
		}
	}
	return d
}

// addonEffect looks at an add-on that was changed. Its controller has looked at the change, too, once it has observed
// the generation.
func addonEffect(a *v1alpha1.Addon, late bool) decision {
	code, message := codeUnreachable, "the controller of add-ons has not looked at it yet"
	if len(a.Status.Issues) > 0 {
		code, message = a.Status.Issues[0].Code, a.Status.Issues[0].Message
	}
	switch phase := a.Phase(); {
	case phase == v1alpha1.AddonActive:
		return decision{step: stepSucceed}
	case phase == v1alpha1.AddonUpdateFailed, phase == v1alpha1.AddonCreateFailed, phase == v1alpha1.AddonDegraded && code != codeUnreachable:
		return fail(code, "%s", message)
	case late:
		return fail(code, "the change has had no effect for %v: %s", patience, message)
	}
	return wait("%s", message)
}

// rolloutEffect says how far the rollout is that an update began. Its own controller gives it up, but where that does
// not begin it, as in a group that can have no machines, and when all machines are replaced.
func rolloutEffect(u *v1alpha1.Update, is facts, now time.Time) decision {
	g := is.group
	wanted, status := g.Spec.Rollout, g.Status.Rollout
	cancelled := u.Annotations[v1alpha1.AnnotationCancel] == "true"
	ready := meta.FindStatusCondition(g.Status.Conditions, v1alpha1.ConditionReady)
	begun := status != nil && status.ID == u.Name
	switch {
	case wanted == nil || wanted.ID != u.Name:
		return fail(codeNotPermitted, "somebody else has changed the rollout of node group %s", g.Spec.Name)
	case begun && status.Code != "":
		return fail(status.Code, "%s", status.Message)
	case wanted.Stopped && cancelled:
		return decision{step: stepCancel}
	case wanted.Stopped:
		return fail(codeNotPermitted, "the rollout of node group %s was stopped", g.Spec.Name)
	case g.Status.ObservedGeneration < g.Generation, !begun && (ready == nil || ready.ObservedGeneration < g.Generation):
		return wait("the rollout begins")
	case begun && status.Phase == v1alpha1.RolloutScaleDown:
		return groupEffect(g, is.late(status.StepTime.Time, now))
	case cancelled:
		return decision{step: stepStop}
	case !begun && is.late(u.Status.AppliedAt.Time, now):
		return fail(codeNodeCreation, "the rollout has not begun after %v: %s", patience, messageOf(ready))
	}
	return wait("%s", messageOf(ready))
}

func messageOf(ready *metav1.Condition) string {
	if ready == nil {
		return "nothing has been heard of it yet"
	}
	return cmp.Or(ready.Message, ready.Reason)
}

// comesFirst reports whether an update is to end before another of the same target begins. An update that undoes a failed
// one comes before those that were waiting meanwhile: after these it would undo the last of them.
func comesFirst(a, b *v1alpha1.Update) bool {
	undoes := func(u *v1alpha1.Update) bool { return u.Annotations[v1alpha1.AnnotationUndoes] != "" }
	switch {
	case undoes(a) == undoes(b):
		return isBefore(a, b)
	case undoes(a):
		return b.Status.AppliedAt == nil
	}
	return a.Status.AppliedAt != nil
}

// isBefore reports whether an update was made before another.
func isBefore(a, b *v1alpha1.Update) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return a.CreationTimestamp.Before(&b.CreationTimestamp)
	}
	return a.Name < b.Name
}
