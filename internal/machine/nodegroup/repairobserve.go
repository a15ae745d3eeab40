// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/power"
	"muster.dev/muster/internal/machine/repair"
)

// unhealthyNodes has the group of a machine looked at when its Node begins or ends to have a condition for which the
// machine is repaired, or is deleted. Groups without repair are left alone.
func (p parts) unhealthyNodes() source.Source {
	return source.Kind(p.Cluster.GetCache(), &corev1.Node{},
		handler.TypedEnqueueRequestsFromMapFunc(func(ctx context.Context, node *corev1.Node) []reconcile.Request {
			m, group := &v1alpha1.Machine{}, &v1alpha1.NodeGroup{}
			id := machineOf(node)
			if id == "" || p.management.Get(ctx, client.ObjectKey{Name: id}, m) != nil || !p.ours(m) || m.Spec.NodeGroup == "" {
				return nil
			}
			if p.management.Get(ctx, groupOf(m), group) != nil || !group.Spec.EKS.Repairs() {
				return nil
			}
			return []reconcile.Request{{NamespacedName: groupOf(m)}}
		}),
		predicate.TypedFuncs[*corev1.Node]{
			CreateFunc: func(e event.TypedCreateEvent[*corev1.Node]) bool { return len(repair.Bad(e.Object)) > 0 },
			UpdateFunc: func(e event.TypedUpdateEvent[*corev1.Node]) bool { return healthChanged(e.ObjectOld, e.ObjectNew) },
		},
	)
}

// healthChanged reports whether a Node has other bad conditions than before, or other reasons for them.
func healthChanged(was, is *corev1.Node) bool {
	return !slices.EqualFunc(repair.Bad(was), repair.Bad(is), func(a, b repair.Condition) bool {
		return a.Type == b.Type && a.Reason == b.Reason && a.Since.Equal(b.Since)
	})
}

// nodesByMachine returns the Nodes of machines by the machines. A Node that names a machine under another name than that machine's
// Node has is nobody's: whoever has root on one machine could speak for another one by it. They are the cache's, to be read only.
func (r *groups) nodesByMachine(ctx context.Context, machines []v1alpha1.Machine) (map[string]*corev1.Node, error) {
	var list corev1.NodeList
	if err := r.cluster.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	named := make(map[string]string, len(machines))
	for i := range machines {
		named[machines[i].Status.NodeName] = machines[i].Name
	}
	nodes := make(map[string]*corev1.Node, len(machines))
	for i := range list.Items {
		if id := machineOf(&list.Items[i]); id != "" && named[list.Items[i].Name] == id {
			nodes[id] = &list.Items[i]
		}
	}
	return nodes, nil
}

// readAnew reads the Nodes of machines that are to be repaired from the API server.
func (r *groups) readAnew(ctx context.Context, found []repair.Finding, machines []v1alpha1.Machine, nodes map[string]*corev1.Node) error {
	for i := range machines {
		m := &machines[i]
		if !slices.ContainsFunc(found, func(f repair.Finding) bool { return f.Machine == m.Name }) || m.Status.NodeName == "" {
			continue
		}
		node := &corev1.Node{}
		switch err := r.clusterLive.Get(ctx, client.ObjectKey{Name: m.Status.NodeName}, node); {
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("reading the Node: %w", err)
		case err != nil || machineOf(node) != m.Name:
			delete(nodes, m.Name)
		default:
			nodes[m.Name] = node
		}
	}
	return nil
}

// repairPolicy is how a group repairs now.
func (r *groups) repairPolicy(ctx context.Context, group *v1alpha1.NodeGroup) (repair.Policy, error) {
	shifted, err := r.shiftedZones(ctx)
	policy := repair.Policy{Enabled: group.Spec.EKS.Repairs(), Config: group.Spec.EKS.Repair(), Shifted: shifted, Began: r.began}
	if err != nil {
		return policy, err
	}
	for _, process := range []string{v1alpha1.ProcessReplaceUnhealthy, v1alpha1.ProcessTerminate} {
		if group.Spec.ScalingGroup().Suspends(process) && policy.Suspended == "" {
			policy.Suspended = process
		}
	}
	if inRollout(group) && progressOf(group) != nil {
		rollout, err := r.policy(group)
		if err != nil {
			return policy, err
		}
		policy.Unavailable = rollout.Unavailable(int(group.Spec.ScalingConfig.DesiredSize))
	}
	return policy, nil
}

// observeRepairs takes from machines and their Nodes what repairs depend on at a moment.
func observeRepairs(group *v1alpha1.NodeGroup, machines []v1alpha1.Machine, nodes map[string]*corev1.Node, rebooting []v1alpha1.RepairReboots, now time.Time) []repair.Machine {
	observed := make([]repair.Machine, 0, len(machines))
	for i, seen := range observeIn(group, machines) {
		m := &machines[i]
		is := repair.Machine{
			Name: m.Name, Launched: launchedAt(m), Joined: joinlog.Has(m.Status.Join, v1alpha1.StepReady), Ready: seen.Ready,
			Stopped: ofPool(m) || rests(m), Deleting: seen.Deleting, Draining: seen.Draining, Outdated: seen.Outdated,
			Rebooting: isRebooting(m.Name, rebooting),
		}
		if node := nodes[m.Name]; node != nil {
			is.Conditions = repair.Bad(node)
			for j := range is.Conditions {
				is.Conditions[j].Since = countsSince(is.Conditions[j], m.Name, group.Status.Repair, now)
			}
		} else if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); is.Joined && ready != nil && ready.Status != metav1.ConditionTrue {
			is.Conditions = []repair.Condition{{Type: v1alpha1.NodeReady, Reason: repair.ReasonNodeMissing, Message: ready.Message, Since: ready.LastTransitionTime.Time}}
		}
		if running := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionRunning); running != nil {
			for j := range is.Conditions { // a reboot gives a bad condition its time again
				if at := running.LastTransitionTime.Time; at.After(is.Conditions[j].Since) {
					is.Conditions[j].Since = at
				}
			}
		}
		observed = append(observed, is)
	}
	return observed
}

// countsSince is the time from which on a bad condition of a machine's Node counts. That is what the Node says, which may say none,
// or one that is yet to come: then it is when the condition was seen first, which the status of the group has.
func countsSince(c repair.Condition, machine string, status *v1alpha1.NodeGroupRepairStatus, now time.Time) time.Time {
	if !c.Since.IsZero() && !c.Since.After(now) {
		return c.Since
	}
	if status != nil {
		for _, seen := range status.Machines {
			if seen.Machine == machine && seen.Condition == c.Type && !seen.Since.After(now) {
				return seen.Since.Time
			}
		}
	}
	return now
}

// rests reports whether a machine is stopped, is to be stopped, or is to run again and does not yet: its Node says what it said when it
// went.
func rests(m *v1alpha1.Machine) bool {
	return power.Stops(m) || power.Starts(m) && power.Was(m) != ""
}

// launchedAt is when a machine was launched first; zero before that.
func launchedAt(m *v1alpha1.Machine) time.Time {
	i := slices.IndexFunc(m.Status.Join, func(record v1alpha1.JoinRecord) bool { return record.Step == v1alpha1.StepLaunched })
	if i < 0 {
		return time.Time{}
	}
	return m.Status.Join[i].Time.Time
}
