// SPDX-License-Identifier: Apache-2.0

package servicestatus

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/nodegroupspec"
	"muster.dev/muster/internal/plane/readiness"
)

// Observe fills in what the objects of a cluster say, as a client reads them.
func Observe(ctx context.Context, reader client.Reader, status *Cluster) error {
	var clusters v1alpha1.ClusterList
	var groups v1alpha1.NodeGroupList
	var machines v1alpha1.MachineList
	for _, list := range []client.ObjectList{&clusters, &groups, &machines} {
		if err := reader.List(ctx, list); err != nil {
			return err
		}
	}
	namespace := v1alpha1.ClusterSlug(status.Name)
	status.Settled = false // until the Cluster is there, which is made last
	for _, c := range clusters.Items {
		if c.Spec.Name != status.Name || c.Namespace != namespace || c.Name != namespace {
			continue
		}
		status.Settled = true
		ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
		status.Version = c.Status.Version
		status.Ready = ready != nil && ready.Status == metav1.ConditionTrue
		if ready != nil && !status.Ready {
			status.Message = ready.Message
		}
	}
	for _, g := range groups.Items {
		if g.Namespace != namespace {
			continue // it is not served, and its condition says why
		}
		if g.Status.ObservedGeneration != g.Generation {
			status.Settled = false
		}
		if g.DeletionTimestamp != nil {
			continue
		}
		status.NodeGroups = append(status.NodeGroups, NodeGroup{
			Name: g.Spec.Name, Provider: g.Spec.Provider, Version: g.Status.Version, Isolation: nodegroupspec.Isolation(g.Spec.Provider, g.Spec.Isolation), Desired: g.Spec.ScalingConfig.DesiredSize,
			Machines: g.Status.Replicas, Ready: g.Status.ReadyReplicas, Message: readiness.Message(g.Status.Conditions),
		})
	}
	for _, m := range machines.Items {
		if m.Spec.ClusterName != status.Name {
			continue
		}
		machine := Machine{
			Name: m.Name, NodeGroup: m.Spec.NodeGroup, NodeName: m.Status.NodeName, Isolation: m.Status.Isolation,
			Phase: m.Status.Phase, Message: readiness.Message(m.Status.Conditions),
		}
		if ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady); ready != nil {
			machine.Reason = ready.Reason
		}
		if m.Spec.Provider.Can(v1alpha1.RunPods) && (m.Status.Phase == v1alpha1.MachineReady || m.Status.Phase == v1alpha1.MachineNotReady) {
			status.localNodes = append(status.localNodes, m.Spec.Type())
		}
		if n := len(m.Status.Join); n > 0 {
			machine.Step = m.Status.Join[n-1].Step
		}
		status.Machines = append(status.Machines, machine)
	}
	status.Notes = slices.Concat(openMetadata(machines.Items, status.Name), drills(machines.Items, status.Name), otherIsolation(status.NodeGroups, status.Machines))
	slices.SortFunc(status.NodeGroups, func(a, b NodeGroup) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(status.Machines, func(a, b Machine) int {
		return cmp.Or(strings.Compare(a.NodeName, b.NodeName), strings.Compare(a.Name, b.Name))
	})
	return nil
}
