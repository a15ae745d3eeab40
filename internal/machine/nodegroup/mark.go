// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/nodegroupspec"
)

// The labels and taints of a group change on the nodes that there are. The status of a machine has the labels and
// taints that the group put on its Node before. Only these are changed; labels and taints of other people stay:
//
//	group changed ──► status.node.next says what the Node is being given ──► the Node is patched ──► status.node says that it has it
//
// A service that is killed in between patches the Node once more, with the same. A Node that registers late or anew has
// the labels and taints of its machine's spec, and is brought up to date like the others.

// mark gives the machine's Node the labels and taints of its group, a step at a time. It returns when the next step is
// due, or 0.
func (r *machines) mark(ctx context.Context, m *v1alpha1.Machine, node *corev1.Node, group *v1alpha1.NodeGroup) (time.Duration, error) {
	if node == nil || machineOf(node) != m.Name || group == nil {
		return 0, nil
	}
	if m.Status.Node != nil && m.Status.Node.UID != node.UID {
		m.Status.Node = nil // that one is gone
	}
	is, wanted := marksOf(m), nodegroupspec.Marks{Labels: group.Spec.Labels, Taints: group.Spec.Taints}
	if m.Status.Node == nil || m.Status.Node.Next == nil {
		if is.Equal(wanted) {
			return 0, nil
		}
		m.Status.Node = &v1alpha1.MachineNode{UID: node.UID, Labels: is.Labels, Taints: is.Taints, Next: &v1alpha1.MachineNodeNext{Labels: wanted.Labels, Taints: wanted.Taints}}
		return catchUp, nil
	}
	next := nodegroupspec.Marks{Labels: m.Status.Node.Next.Labels, Taints: m.Status.Node.Next.Taints}
	before := node.DeepCopy()
	nodegroupspec.Mark(node, is, next)
	if err := r.cluster.Patch(ctx, node, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("changing labels and taints of Node %s: %w", node.Name, err)
	}
	m.Status.Node = &v1alpha1.MachineNode{UID: node.UID, Labels: next.Labels, Taints: next.Taints}
	if !next.Equal(wanted) {
		return catchUp, nil
	}
	return 0, nil
}

// labelManaged gives a Node those of EKS's labels of managed nodes that it lacks. A Node registers with them, but for
// one of an earlier version of Muster. Labels that are there stay as they are.
func (r *machines) labelManaged(ctx context.Context, m *v1alpha1.Machine, node *corev1.Node) error {
	if node == nil || machineOf(node) != m.Name {
		return nil
	}
	before := node.DeepCopy()
	for key, value := range nodegroupspec.ManagedLabels(m, ami.OfMachine(m)) {
		if _, there := node.Labels[key]; !there {
			metav1.SetMetaDataLabel(&node.ObjectMeta, key, value)
		}
	}
	if len(node.Labels) == len(before.Labels) {
		return nil
	}
	if err := r.cluster.Patch(ctx, node, lockedPatch(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("labelling Node %s as one of a managed node group: %w", node.Name, err)
	}
	return nil
}

// group reads the machine's group; nil if there is none.
func (r *machines) group(ctx context.Context, m *v1alpha1.Machine) (*v1alpha1.NodeGroup, error) {
	if m.Spec.NodeGroup == "" {
		return nil, nil //nolint:nilnil // such a machine is nobody's
	}
	group := &v1alpha1.NodeGroup{}
	err := r.management.Get(ctx, groupOf(m), group)
	switch {
	case apierrors.IsNotFound(err), err == nil && !belongs(m, group.UID):
		return nil, nil //nolint:nilnil // its end is another controller's
	case err != nil:
		return nil, fmt.Errorf("reading the node group: %w", err)
	}
	return group, nil
}

// marksOf is what the machine's Node has of its group, or registers with.
func marksOf(m *v1alpha1.Machine) nodegroupspec.Marks {
	if is := m.Status.Node; is != nil {
		return nodegroupspec.Marks{Labels: is.Labels, Taints: is.Taints}
	}
	return nodegroupspec.Marks{Labels: m.Spec.Labels, Taints: m.Spec.Taints}
}

// updated reports whether the machine's Node has what its group asks for, or registers with it.
func updated(m *v1alpha1.Machine, group *v1alpha1.NodeGroup) bool {
	return (m.Status.Node == nil || m.Status.Node.Next == nil) && marksOf(m).Equal(nodegroupspec.Marks{Labels: group.Spec.Labels, Taints: group.Spec.Taints})
}

// nodesChange is about groups whose nodes are to be changed, or drained.
func nodesChange() predicate.Predicate {
	never := func(event.GenericEvent) bool { return false }
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false }, // the machines of a group are looked at anyway
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: never,
		UpdateFunc: func(e event.UpdateEvent) bool {
			was, ok := e.ObjectOld.(*v1alpha1.NodeGroup)
			is, okToo := e.ObjectNew.(*v1alpha1.NodeGroup)
			if !ok || !okToo {
				return false
			}
			return !equality.Semantic.DeepEqual(was.Spec.Rollout, is.Spec.Rollout) || !equality.Semantic.DeepEqual(was.Status.Rollout, is.Status.Rollout) || !equality.Semantic.DeepEqual(rebootingOf(was), rebootingOf(is)) || !(nodegroupspec.Marks{Labels: was.Spec.Labels, Taints: was.Spec.Taints}).Equal(nodegroupspec.Marks{Labels: is.Spec.Labels, Taints: is.Spec.Taints})
		},
	}
}

// ofGroup names the machines of a group.
func (r *machines) ofGroup(ctx context.Context, object client.Object) []reconcile.Request {
	list := &v1alpha1.MachineList{}
	if err := r.management.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		r.Log.ErrorContext(ctx, "cannot list machines", "nodegroup", object.GetName(), "error", err)
		return nil
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if m := &list.Items[i]; r.ours(m) && groupOf(m) == client.ObjectKeyFromObject(object) {
			requests = append(requests, request(m.Name))
		}
	}
	return requests
}
