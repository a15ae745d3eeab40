// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/aws/awstag"
	"muster.dev/muster/internal/cloud/awsresource"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
	"muster.dev/muster/internal/cloud/eks/passrole"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
	"muster.dev/muster/internal/machine/nodegroupspec"
)

type createNodegroupInput struct {
	ClusterName, NodegroupName, NodeRole, AMIType, CapacityType, Version, ReleaseVersion, ClientRequestToken string
	ScalingConfig                                                                                            *scaling
	Subnets, InstanceTypes                                                                                   []string
	Labels                                                                                                   map[string]string
	Taints                                                                                                   []taint
	Tags                                                                                                     map[string]string
	UpdateConfig                                                                                             *updateConfig
	NodeRepairConfig                                                                                         *nodeRepairConfig
	DiskSize                                                                                                 *int32
	RemoteAccess                                                                                             *remoteAccess
	LaunchTemplate                                                                                           *launchTemplate
	WarmPoolConfig                                                                                           *warmPoolConfig
}

func (a *API) createNodegroup() awsfront.Spec[createNodegroupInput, nodegroupOutput] {
	return awsfront.Spec[createNodegroupInput, nodegroupOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createNodegroupInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.ClusterName)
			if err != nil {
				return nil, err
			}
			awsresource.RequestTags(targets[0].Conditions, awstag.Sorted(in.Tags))
			passed, err := passrole.Targets(ctx, a.store.Management, in.NodeRole, passrole.EKS, "")
			return append(targets, passed...), err
		},
		Do: a.doCreateNodegroup,
	}
}

func (a *API) doCreateNodegroup(ctx context.Context, call *awsfront.Call, in *createNodegroupInput) (*nodegroupOutput, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.ClusterName)()
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	wanted, err := a.wantedNodegroup(of, in)
	if err != nil {
		return nil, err
	}
	exists := eksfault.New(eksfault.InUse, in.ClusterName, in.NodegroupName, "NodeGroup already exists with name %s and cluster name %s", in.NodegroupName, in.ClusterName)
	there, err := a.Find(ctx, of, in.NodegroupName)
	if err != nil {
		return nil, err
	}
	if there != nil {
		if err := sent.CheckMade(there, exists); err != nil {
			return nil, err
		}
		return &nodegroupOutput{a.showNodegroup(call, of, there)}, nil
	}
	if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active {
		return nil, eksfault.New(eksfault.InvalidRequest, in.ClusterName, in.NodegroupName, "Cluster '%s' is not in ACTIVE status: it is %s", in.ClusterName, status)
	}
	if wanted.Spec.SubnetIDs, err = a.nodegroupSubnets(ctx, of, in.Subnets); err != nil {
		return nil, err
	}
	if err := a.setLaunch(ctx, of, wanted, in); err != nil {
		return nil, err
	}
	if err := a.checkRemoteAccess(ctx, of, in); err != nil {
		return nil, err
	}
	if err := a.checkNodeRole(ctx, in); err != nil {
		return nil, err
	}
	sent.Mark(wanted)
	if err := a.store.Management.Create(ctx, wanted); err != nil {
		return nil, eksfault.NotMade(err, exists)
	}
	return &nodegroupOutput{a.showNodegroup(call, of, wanted)}, nil
}

// checkNodeRole refuses a role that no machine could have.
func (a *API) checkNodeRole(ctx context.Context, in *createNodegroupInput) error {
	if !passrole.IsARN(in.NodeRole) {
		return eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, "The nodeRole %.300q is not the ARN of a role", in.NodeRole)
	}
	found, err := passrole.Find(ctx, a.store.Management, in.NodeRole)
	switch {
	case err != nil:
		return err
	case found == nil:
		return eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, "The role %s does not exist", in.NodeRole)
	case !passrole.LetsIn(found, a.store.Region, passrole.EC2, "sts:AssumeRole", nil):
		return eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, "Following required service principals [%s] were not found in the trust relationships of nodeRole %s", passrole.EC2, in.NodeRole)
	}
	return nil
}

// wantedNodegroup is the object that a request asks for.
func (a *API) wantedNodegroup(of *v1alpha1.Cluster, in *createNodegroupInput) (*v1alpha1.NodeGroup, error) {
	refuse := func(format string, args ...any) (*v1alpha1.NodeGroup, error) {
		return nil, eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, format, args...)
	}
	ami, capacity := in.AMIType, in.CapacityType
	switch {
	case !eksresource.IsName(in.NodegroupName, v1alpha1.MaxNodeGroupName):
		return refuse("The node group name %.80q is not valid: it must begin with a letter or digit and be of at most %d letters, digits, - and _", in.NodegroupName, v1alpha1.MaxNodeGroupName)
	case !a.config.LocalMachines:
		return nil, awsfault.Errorf(eksfault.InvalidRequest, "This service runs without root and can make no machines: start it with root, or make a node group of simulated machines with `muster create nodegroup --provider simulated`")
	case ami != "" && ami != amiType:
		return refuse("Muster has machines of one kind, %s: leave amiType %.60q out", amiType, ami)
	case capacity != "" && capacity != onDemand:
		return refuse("Muster has no machines of capacityType %.40q: leave it out, or write %s", capacity, onDemand)
	}
	if err := a.checkVersion(of, cmp.Or(in.Version, eksresource.Version(of)), in.ReleaseVersion, eksfault.Invalid(in.ClusterName, in.NodegroupName)); err != nil {
		return nil, err
	}
	g := &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: v1alpha1.NodeGroupSlug(in.NodegroupName)},
		Spec: v1alpha1.NodeGroupSpec{
			Name: in.NodegroupName, Version: in.Version, Provider: v1alpha1.DefaultProvider, NodeRole: in.NodeRole,
			ScalingConfig: v1alpha1.ScalingConfig{MinSize: 1, MaxSize: 2, DesiredSize: 1},
		},
	}
	var err error
	if g.Spec.Tags, err = eksresource.ReadTags(in.Tags); err != nil {
		return nil, err
	}
	if in.ScalingConfig != nil {
		if g.Spec.ScalingConfig, err = scaled(g.Spec.ScalingConfig, *in.ScalingConfig); err != nil {
			return nil, err
		}
	}
	if g.Spec.EKS, err = in.kept(); err != nil {
		return nil, err
	}
	if g.Spec.WarmPool, err = in.warmPool(); err != nil {
		return nil, err
	}
	if err := checkReserved(in.Labels); err != nil {
		return nil, err
	}
	g.Spec.Labels = labelsFrom(in.Labels)
	if g.Spec.Taints, err = taintsFrom(in.Taints); err != nil {
		return nil, err
	}
	if problems := v1alpha1.ValidateNodeGroup(g); len(problems) > 0 {
		return refuse("%v", problems.ToAggregate())
	}
	return g, nil
}

// scaled is the size of a group after a change.
func scaled(from v1alpha1.ScalingConfig, change scaling) (v1alpha1.ScalingConfig, error) {
	for _, size := range []struct {
		into *int32
		to   *int32
	}{{&from.MinSize, change.MinSize}, {&from.MaxSize, change.MaxSize}, {&from.DesiredSize, change.DesiredSize}} {
		if size.to != nil {
			*size.into = *size.to
		}
	}
	switch {
	case from.MinSize < 0:
		return from, awsfault.Errorf(eksfault.InvalidParameter, "Minimum capacity %d can't be less than 0", from.MinSize)
	case from.MaxSize < 1:
		return from, awsfault.Errorf(eksfault.InvalidParameter, "Maximum capacity %d can't be less than 1", from.MaxSize)
	case from.MinSize > from.DesiredSize:
		return from, awsfault.Errorf(eksfault.InvalidParameter, "Minimum capacity %d can't be greater than desired size %d", from.MinSize, from.DesiredSize)
	case from.DesiredSize > from.MaxSize:
		return from, awsfault.Errorf(eksfault.InvalidParameter, "Desired capacity %d can't be greater than max size %d", from.DesiredSize, from.MaxSize)
	}
	return from, nil
}

// checkReserved refuses labels that EKS sets itself. Reserved labels of Kubernetes are refused elsewhere, with all
// other labels that kubelets do not take.
func checkReserved(labels map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if strings.HasPrefix(key, nodegroupspec.ManagedPrefix) {
			return awsfault.Errorf(eksfault.InvalidParameter, "Label cannot contain reserved prefixes [kubernetes.io/, k8s.io/, %s]: %.80s", nodegroupspec.ManagedPrefix, key)
		}
	}
	return nil
}

func labelsFrom(labels map[string]string) v1alpha1.NodeLabels {
	if len(labels) == 0 {
		return nil
	}
	kept := v1alpha1.NodeLabels{}
	for key, value := range labels {
		kept[key] = v1alpha1.LabelValue(value)
	}
	return kept
}

func taintsFrom(taints []taint) (v1alpha1.NodeTaints, error) {
	var kept v1alpha1.NodeTaints
	for _, t := range taints {
		effect, ok := effects[t.Effect]
		if !ok {
			return nil, awsfault.Errorf(eksfault.InvalidParameter, "The effect %.40q of taint %.80q is not known: it must be NO_SCHEDULE, NO_EXECUTE or PREFER_NO_SCHEDULE", t.Effect, t.Key)
		}
		if slices.ContainsFunc(kept, func(o v1alpha1.NodeTaint) bool { return o.Key == t.Key && o.Effect == effect }) {
			return nil, awsfault.Errorf(eksfault.InvalidParameter, "The taint %.80q with effect %s is there twice", t.Key, t.Effect)
		}
		kept = append(kept, v1alpha1.NodeTaint{Key: t.Key, Value: v1alpha1.LabelValue(t.Value), Effect: effect})
	}
	return kept, nil
}

// nodegroupSubnets are those that machines of a cluster are to be in.
func (a *API) nodegroupSubnets(ctx context.Context, of *v1alpha1.Cluster, ids []string) ([]v1alpha1.SubnetID, error) {
	kept, vpc, _, err := vpcconfig.Subnets(ctx, a.store.Management, ids)
	if err == nil && len(ids) > 0 && vpc != of.Status.VPCID {
		return nil, awsfault.Errorf(eksfault.InvalidParameter, "The subnets %v are in %s, and the cluster is in %s: a node group's subnets must be of the cluster's VPC", ids, vpc, of.Status.VPCID)
	}
	return kept, err
}
