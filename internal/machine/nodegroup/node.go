// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/joinlog"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/plane/readiness"
)

// machineOf returns the machine that a Node says it is, or "".
func machineOf(node *corev1.Node) string {
	id, _ := v1alpha1.MachineOfProviderID(node.Spec.ProviderID)
	return id
}

// nodeChanged reports whether a change of a Node matters here; most are heartbeats.
func nodeChanged(was, is *corev1.Node) bool {
	a, b := readyOf(was), readyOf(is)
	return a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message ||
		was.Spec.PodCIDR != is.Spec.PodCIDR || was.Spec.ProviderID != is.Spec.ProviderID ||
		was.UID != is.UID || was.DeletionTimestamp.IsZero() != is.DeletionTimestamp.IsZero()
}

func readyOf(node *corev1.Node) corev1.NodeCondition {
	i := slices.IndexFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	if i < 0 {
		return corev1.NodeCondition{Status: corev1.ConditionUnknown}
	}
	return node.Status.Conditions[i]
}

// node returns the machine's Node, or nil. A Node that an earlier machine left under the same name does not count, and
// is removed.
func (r *machines) node(ctx context.Context, m *v1alpha1.Machine) (*corev1.Node, error) {
	if m.Status.NodeName == "" {
		return nil, nil //nolint:nilnil // a missing Node is not an error
	}
	node := &corev1.Node{}
	if err := r.cluster.Get(ctx, client.ObjectKey{Name: m.Status.NodeName}, node); apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // a missing Node is not an error
	} else if err != nil {
		return nil, fmt.Errorf("reading the Node: %w", err)
	}
	if id := machineOf(node); id != "" && id != m.Name {
		return nil, r.removeOrphan(ctx, node, id)
	}
	return node, nil
}

// removeOrphans removes the Nodes of a machine that is gone.
func (r *machines) removeOrphans(ctx context.Context, id string) error {
	list := &corev1.NodeList{}
	if err := r.cluster.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing Nodes: %w", err)
	}
	for i := range list.Items {
		if machineOf(&list.Items[i]) != id {
			continue
		}
		if err := r.removeOrphan(ctx, list.Items[i].DeepCopy(), id); err != nil {
			return err
		}
	}
	return nil
}

func (r *machines) removeOrphan(ctx context.Context, node *corev1.Node, id string) error {
	err := r.managementLive.Get(ctx, client.ObjectKey{Name: id}, &v1alpha1.Machine{})
	if err == nil {
		return nil // its machine is on its way, or on its way out, and takes the Node along
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("asking whether machine %s exists: %w", id, err)
	}
	r.Log.InfoContext(ctx, "removing the Node of a machine that is gone", "node", node.Name, "machine", id)
	return r.deleteNode(ctx, node)
}

// deleteNode deletes this very Node, not another that has taken its name meanwhile.
func (r *machines) deleteNode(ctx context.Context, node *corev1.Node) error {
	err := r.cluster.Delete(ctx, node, client.Preconditions{UID: &node.UID})
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return fmt.Errorf("deleting Node %s: %w", node.Name, err)
	}
	return nil
}

// route has the addresses of the Node's pods sent to the machine. It returns when to make sure of that again, or 0.
func (r *machines) route(ctx context.Context, m *v1alpha1.Machine, instance machine.Instance, node *corev1.Node) (time.Duration, error) {
	routes, ok := r.Routes[m.Spec.Provider]
	if ok && instance.PodRange.IsValid() {
		return routesAgain, r.routeOwn(ctx, routes, instance, node)
	}
	if !ok || node == nil || node.Spec.PodCIDR == "" { // nothing is routed to simulated machines
		return 0, nil
	}
	if old := m.Status.PodCIDR; old != "" && old != node.Spec.PodCIDR {
		if err := r.unroute(ctx, m); err != nil {
			return 0, err
		}
	}
	to, err := r.podRange(ctx, m, node)
	if err != nil {
		return 0, err
	}
	via, err := internalIP(m)
	if err != nil {
		return 0, err
	}
	if err := routes.SetRoute(ctx, to, via); err != nil {
		return 0, fmt.Errorf("routing %s to the machine: %w", to, err)
	}
	m.Status.PodCIDR = node.Spec.PodCIDR
	return routesAgain, nil
}

// routeOwn has the range that a machine was launched with sent to it, whatever its Node says.
func (r *machines) routeOwn(ctx context.Context, routes Routes, instance machine.Instance, node *corev1.Node) error {
	if err := routes.SetRoute(ctx, instance.PodRange, instance.PrivateIP); err != nil {
		return fmt.Errorf("routing %s to the machine: %w", instance.PodRange, err)
	}
	if node != nil && node.Spec.PodCIDR != "" && node.Spec.PodCIDR != instance.PodRange.String() {
		return fmt.Errorf("the Node %s claims the pod range %.64q, but its machine has %s: nothing else is routed to it; if no administrator wrote that, the machine may be compromised: delete it",
			node.Name, node.Spec.PodCIDR, instance.PodRange)
	}
	return nil
}

// unroute removes the machine's route, if it has one. That of a range which it was launched with goes with the machine,
// and may lead to another one by now.
func (r *machines) unroute(ctx context.Context, m *v1alpha1.Machine) error {
	if routes, ok := r.Routes[m.Spec.Provider]; ok && !r.Network.PodsInSubnets && m.Status.PodCIDR != "" {
		prefix, err := netip.ParsePrefix(m.Status.PodCIDR)
		if err != nil {
			return fmt.Errorf("reading the machine's pod range: %w", err)
		}
		if err := routes.DeleteRoute(ctx, prefix); err != nil {
			return fmt.Errorf("removing the route of %s: %w", prefix, err)
		}
		r.ranges.free(prefix, m.Name)
	}
	m.Status.PodCIDR = ""
	return nil
}

func internalIP(m *v1alpha1.Machine) (netip.Addr, error) {
	for _, address := range m.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			ip, err := netip.ParseAddr(address.Address)
			if err != nil {
				return ip, fmt.Errorf("reading the machine's address: %w", err)
			}
			return ip, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("machine %s has no address", m.Name)
}

// sum sets phase and condition from what is known of instance and Node.
func (r *machines) sum(m *v1alpha1.Machine, instance machine.Instance, node *corev1.Node) {
	wasReady := joinlog.Has(m.Status.Join, v1alpha1.StepReady)
	switch {
	case node != nil && readyOf(node).Status == corev1.ConditionTrue:
		if !wasReady {
			now := metav1.NewMicroTime(r.Now())
			m.Status.Join = joinlog.Merge(m.Status.Join, v1alpha1.JoinRecord{Step: v1alpha1.StepReady, Time: now})
			r.recorder.Eventf(m, nil, corev1.EventTypeNormal, "Ready", "Join", "node %s is Ready", m.Status.NodeName)
		}
		r.judge(m, v1alpha1.MachineReady, reasonNodeReady, "the node is Ready")
	case wasReady && instance.State != machine.Running:
		r.judge(m, v1alpha1.MachineNotReady, "InstanceStopped", "the instance does not run")
	case wasReady && node == nil:
		r.judge(m, v1alpha1.MachineNotReady, "NodeMissing", "the node was Ready, and is gone from the cluster")
	case wasReady:
		ready := readyOf(node)
		r.judge(m, v1alpha1.MachineNotReady, readiness.ReasonNodeNotReady, fmt.Sprintf("the node says: %s: %s", ready.Reason, ready.Message))
	case m.Status.ProviderID == "" || instance.State == machine.Stopped:
		r.judge(m, v1alpha1.MachinePending, "InstanceStopped", "the instance does not run")
	case len(m.Status.Join) > 0 && r.untilLate(m) == 0: // the other reasons for 0 are above
		r.late(m, node)
	case node == nil:
		r.judge(m, v1alpha1.MachineJoining, readiness.ReasonJoining, "the machine is joining; its next step is "+nextStep(m))
	default:
		r.judge(m, v1alpha1.MachineJoining, readiness.ReasonNodeNotReady, "the node is registered, and not Ready yet")
	}
}
