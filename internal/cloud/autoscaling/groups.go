// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
)

// invalid is the code of most refusals.
const invalid = "ValidationError"

// group is an Auto Scaling group: a node group, and what there is of it.
type group struct {
	name    string
	node    *v1alpha1.NodeGroup
	cluster *v1alpha1.Cluster // nil if it is gone
	// machines of the group, those included that are being deleted.
	machines []*v1alpha1.Machine
}

// groups reads all groups, with their machines, sorted by name.
func (a *api) groups(ctx context.Context) ([]*group, error) {
	var nodes v1alpha1.NodeGroupList
	var clusters v1alpha1.ClusterList
	var machines v1alpha1.MachineList
	for _, list := range []client.ObjectList{&nodes, &clusters, &machines} {
		if err := a.Management.List(ctx, list); err != nil {
			return nil, away(fmt.Errorf("listing %T: %w", list, err))
		}
	}
	var all []*group
	for i := range nodes.Items {
		n := &nodes.Items[i]
		if n.Name != v1alpha1.NodeGroupSlug(n.Spec.Name) {
			continue
		}
		g := &group{name: v1alpha1.AutoScalingGroupName(n.Spec.Name, n.UID), node: n}
		for j := range clusters.Items {
			if c := &clusters.Items[j]; c.Namespace == n.Namespace && c.Name == n.Namespace {
				g.cluster = c
			}
		}
		for j := range machines.Items {
			if m := &machines.Items[j]; g.has(m) {
				g.machines = append(g.machines, m)
			}
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(x, y *group) int { return cmp.Compare(x.name, y.name) })
	return all, nil
}

// has reports whether a machine is the group's.
func (g *group) has(m *v1alpha1.Machine) bool {
	return m.Spec.NodeGroup == g.node.Spec.Name && v1alpha1.ClusterSlug(m.Spec.ClusterName) == g.node.Namespace && (m.Spec.NodeGroupUID == "" || m.Spec.NodeGroupUID == g.node.UID)
}

// clusterName is the name of the group's cluster.
func (g *group) clusterName() string {
	if g.cluster == nil {
		return g.node.Namespace
	}
	return g.cluster.Spec.Name
}

// group reads one group by its name.
func (a *api) group(ctx context.Context, name string) (*group, error) {
	all, err := a.groups(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range all {
		if g.name == name {
			return g, nil
		}
	}
	return nil, noGroup(name)
}

func noGroup(name string) *awsfault.Error {
	return awsfault.Errorf(invalid, "AutoScalingGroup name not found - no such group: %.255s", name)
}

// change has a group's node group changed and writes it.
func (a *api) change(ctx context.Context, name string, change func(*group, *v1alpha1.NodeGroupSpec) error) error {
	defer a.locks.Hold(name)()
	var g *group
	return awsresource.Change(ctx, func() (_ client.Writer, _ client.Object, err error) {
		if g, err = a.group(ctx, name); err != nil {
			return nil, nil, err
		}
		if !g.node.DeletionTimestamp.IsZero() {
			return nil, nil, awsfault.Errorf(invalid, "AutoScalingGroup %s is being deleted", name)
		}
		return a.Management, g.node, nil
	}, func() error { return change(g, &g.node.Spec) }, func(err error) error {
		if apierrors.IsNotFound(err) {
			return noGroup(name)
		}
		return away(fmt.Errorf("changing the node group of %s: %w", name, err))
	})
}

// scaling is what the API keeps of the group, to be changed.
func scaling(spec *v1alpha1.NodeGroupSpec) *v1alpha1.AutoScaling {
	if spec.AutoScaling == nil {
		spec.AutoScaling = &v1alpha1.AutoScaling{}
	}
	return spec.AutoScaling
}

// away turns what the API server says into an answer that clients try again where that helps.
func away(err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) {
		return &awsfault.Error{Code: invalid, Message: err.Error(), Cause: err}
	}
	return &awsfault.Error{Code: "ServiceUnavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// arn is the ARN of a group. A missing group has * for its id, so that policies about its name decide.
func (a *api) arn(call *awsfront.Call, id, name string) string {
	return a.ARN(call, "autoScalingGroup:"+id+":autoScalingGroupName/"+name)
}

// about are groups as IAM is asked about them.
func (a *api) about(ctx context.Context, call *awsfront.Call, names ...string) ([]awsfront.Target, error) {
	all, err := a.groups(ctx)
	if err != nil {
		return nil, err
	}
	var targets []awsfront.Target
	for _, name := range names {
		target := awsfront.Target{Resource: a.arn(call, "*", name), Conditions: map[string][]string{}}
		for _, g := range all {
			if g.name != name {
				continue
			}
			target.Resource = a.arn(call, string(g.node.UID), name)
			awsresource.ResourceTags(target.Conditions, g.tagMap(), service)
		}
		targets = append(targets, target)
	}
	return targets, nil
}

// aboutGroup is the About of an action on one group.
func aboutGroup[In any](a *api, name func(*In) string) func(context.Context, *awsfront.Call, *In) ([]awsfront.Target, error) {
	return func(ctx context.Context, call *awsfront.Call, in *In) ([]awsfront.Target, error) {
		return a.about(ctx, call, name(in))
	}
}
