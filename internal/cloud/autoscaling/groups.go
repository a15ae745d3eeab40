// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/scalingplan"
)

// invalid is the code of most refusals.
const invalid = "ValidationError"

// group is an Auto Scaling group: that of a node group, or one of its own, and what there is of it. Either node or own is nil.
type group struct {
	name    string
	node    *v1alpha1.NodeGroup
	own     *v1alpha1.AutoScalingGroup
	cluster *v1alpha1.Cluster // of the node group; nil if it is gone
	// machines of the group, those included that are being deleted.
	machines []*v1alpha1.Machine
}

// object is what the group is kept in.
func (g *group) object() client.Object {
	if g.own != nil {
		return g.own
	}
	return g.node
}

// uid is the UID of the group's object.
func (g *group) uid() string { return string(g.object().GetUID()) }

// deleting reports whether the group is being deleted.
func (g *group) deleting() bool { return !g.object().GetDeletionTimestamp().IsZero() }

// kept has the settings that both kinds of groups have.
func (g *group) kept() v1alpha1.AutoScaling {
	if g.own != nil {
		return g.own.Spec.AutoScaling
	}
	return g.node.Spec.ScalingGroup()
}

// scaling has the same settings, to be changed.
func (g *group) scaling() *v1alpha1.AutoScaling {
	if g.own != nil {
		return &g.own.Spec.AutoScaling
	}
	if g.node.Spec.AutoScaling == nil {
		g.node.Spec.AutoScaling = &v1alpha1.AutoScaling{}
	}
	return g.node.Spec.AutoScaling
}

func (g *group) sizes() scalingplan.Sizes {
	if g.own != nil {
		return scalingplan.Sizes{Min: g.own.Spec.MinSize, Max: g.own.Spec.MaxSize, Desired: g.own.Spec.DesiredCapacity}
	}
	s := g.node.Spec.ScalingConfig
	return scalingplan.Sizes{Min: s.MinSize, Max: s.MaxSize, Desired: s.DesiredSize}
}

// most is the highest capacity that a group may have.
func (g *group) most() int32 {
	if g.own != nil {
		return maxSize
	}
	return v1alpha1.MaxGroupSize
}

// newUUID makes an id that nothing else has.
func newUUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// setSizes changes the sizes; the cause is that of the activities that follow, and "" if none does.
func (g *group) setSizes(to scalingplan.Sizes, cause string) {
	if g.own == nil {
		s := &g.node.Spec.ScalingConfig
		s.MinSize, s.MaxSize, s.DesiredSize = to.Min, to.Max, to.Desired
		return
	}
	if g.sizes().Desired != to.Desired && cause != "" {
		g.own.Spec.Change = &v1alpha1.ScalingChange{ID: newUUID(), Cause: cause}
	}
	g.own.Spec.MinSize, g.own.Spec.MaxSize, g.own.Spec.DesiredCapacity = to.Min, to.Max, to.Desired
}

// groups reads all groups, with their machines, sorted by name.
func (a *api) groups(ctx context.Context) ([]*group, error) {
	var nodes v1alpha1.NodeGroupList
	var clusters v1alpha1.ClusterList
	var machines v1alpha1.MachineList
	var own v1alpha1.AutoScalingGroupList
	for _, list := range []client.ObjectList{&nodes, &clusters, &machines, &own} {
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
		all = append(all, g)
	}
	for i := range own.Items {
		if o := &own.Items[i]; o.Name == v1alpha1.AutoScalingGroupSlug(o.Spec.Name) {
			all = append(all, &group{name: o.Spec.Name, own: o})
		}
	}
	for _, g := range all {
		for i := range machines.Items {
			if m := &machines.Items[i]; g.has(m) {
				g.machines = append(g.machines, m)
			}
		}
	}
	slices.SortFunc(all, func(x, y *group) int { return cmp.Compare(x.name, y.name) })
	return all, nil
}

// has reports whether a machine is the group's.
func (g *group) has(m *v1alpha1.Machine) bool {
	if g.own != nil {
		return m.Spec.ScalingGroup != nil && m.Spec.ScalingGroup.UID == g.own.UID
	}
	return m.Spec.NodeGroup == g.node.Spec.Name && v1alpha1.ClusterSlug(m.Spec.ClusterName) == g.node.Namespace && (m.Spec.NodeGroupUID == "" || m.Spec.NodeGroupUID == g.node.UID)
}

// clusterName is the name of the node group's cluster.
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

// change has a group changed and writes it.
func (a *api) change(ctx context.Context, name string, change func(*group) error) error {
	defer a.locks.Hold(name)()
	var g *group
	return awsresource.Change(ctx, func() (_ client.Writer, _ client.Object, err error) {
		if g, err = a.group(ctx, name); err != nil {
			return nil, nil, err
		}
		if g.deleting() {
			return nil, nil, awsfault.Errorf("ScalingActivityInProgress", "The Auto Scaling group %s is being deleted: nothing about it can be changed", name)
		}
		return a.Management, g.object(), nil
	}, func() error { return change(g) }, func(err error) error {
		if apierrors.IsNotFound(err) {
			return noGroup(name)
		}
		return away(fmt.Errorf("changing the group %s: %w", name, err))
	})
}

// changeOwn changes a group of its own, and refuses that of a node group: what says who does that there.
func (a *api) changeOwn(ctx context.Context, name, what string, change func(*group) error) error {
	return a.change(ctx, name, func(g *group) error {
		if g.own == nil {
			return ofNodeGroup(g, what)
		}
		return change(g)
	})
}

// ownGroup reads a group of its own.
func (a *api) ownGroup(ctx context.Context, name, what string) (*group, error) {
	g, err := a.group(ctx, name)
	if err == nil && g.own == nil {
		err = ofNodeGroup(g, what)
	}
	return g, err
}

func ofNodeGroup(g *group, what string) *awsfault.Error {
	return awsfault.Errorf(invalid, "The Auto Scaling group %s is that of the EKS node group %s: %s", g.name, g.node.Spec.Name, what)
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
			target.Resource = a.arn(call, g.uid(), name)
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
