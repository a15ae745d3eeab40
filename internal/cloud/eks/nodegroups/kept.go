// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"strconv"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
)

// updateConfig is how a rollout replaces machines.
type updateConfig struct {
	MaxUnavailable, MaxUnavailablePercentage *int32
	UpdateStrategy                           string
}

type remoteAccess struct {
	EC2SSHKey            string
	SourceSecurityGroups []string
}

// from is what a node group has after a request. The rest of what it had stays, but a maximum takes the place of the
// other form's.
func (u *updateConfig) from(kept v1alpha1.NodeGroupUpdateConfig, refuse eksfault.Refuse) (v1alpha1.NodeGroupUpdateConfig, error) {
	switch strategy := v1alpha1.UpdateStrategy(u.UpdateStrategy); strategy {
	case "":
	case v1alpha1.StrategyDefault, v1alpha1.StrategyMinimal:
		kept.UpdateStrategy = strategy
	default:
		return kept, refuse("updateStrategy must be %s or %s, not %.40q", v1alpha1.StrategyDefault, v1alpha1.StrategyMinimal, u.UpdateStrategy)
	}
	if u.MaxUnavailable != nil && u.MaxUnavailablePercentage != nil {
		return kept, refuse("Give maxUnavailable or maxUnavailablePercentage, not both")
	}
	if u.MaxUnavailable != nil || u.MaxUnavailablePercentage != nil {
		kept.MaxUnavailable, kept.MaxUnavailablePercentage = 0, 0
	}
	for _, limit := range []struct {
		name string
		is   *int32
		into *int32
	}{
		{"maxUnavailable", u.MaxUnavailable, &kept.MaxUnavailable},
		{"maxUnavailablePercentage", u.MaxUnavailablePercentage, &kept.MaxUnavailablePercentage},
	} {
		if limit.is == nil {
			continue
		}
		if *limit.is < 1 || *limit.is > v1alpha1.MaxUnavailable {
			return kept, refuse("%s must be from 1 to %d, not %d", limit.name, v1alpha1.MaxUnavailable, *limit.is)
		}
		*limit.into = *limit.is
	}
	return kept, nil
}

// kept is what a request asks for that is EKS's alone.
func (in *createNodegroupInput) kept() (v1alpha1.NodeGroupEKS, error) {
	var kept v1alpha1.NodeGroupEKS
	refuse := eksfault.Invalid(in.ClusterName, in.NodegroupName)
	var err error
	if in.UpdateConfig != nil {
		if kept.UpdateConfig, err = in.UpdateConfig.from(kept.UpdateConfig, refuse); err != nil {
			return kept, err
		}
	}
	if in.NodeRepairConfig != nil {
		if kept.NodeRepairConfig, err = in.NodeRepairConfig.from(refuse); err != nil {
			return kept, err
		}
	}
	if size := in.DiskSize; size != nil {
		switch {
		case in.LaunchTemplate != nil:
			return kept, refuse("Disk size must be specified within the launch template.")
		case *size < v1alpha1.MinDisk || *size > v1alpha1.MaxDisk:
			return kept, refuse("diskSize must be from %d to %d GiB, not %d", v1alpha1.MinDisk, v1alpha1.MaxDisk, *size)
		}
		kept.DiskSize = *size
	}
	if access := in.RemoteAccess; access != nil {
		switch {
		case in.LaunchTemplate != nil:
			return kept, refuse("Remote access configuration cannot be specified with a launch template.")
		case access.EC2SSHKey == "":
			return kept, refuse("remoteAccess names no key pair: give ec2SshKey")
		}
		kept.RemoteAccess = &v1alpha1.NodeGroupRemoteAccess{EC2SSHKey: access.EC2SSHKey, SourceSecurityGroups: access.SourceSecurityGroups}
	}
	return kept, nil
}

// checkRemoteAccess refuses a key pair and security groups that are not there, as EKS does.
func (a *API) checkRemoteAccess(ctx context.Context, of *v1alpha1.Cluster, in *createNodegroupInput) error {
	if in.RemoteAccess == nil {
		return nil
	}
	there, err := a.config.KeyPair(ctx, in.RemoteAccess.EC2SSHKey)
	switch {
	case err != nil:
		return eksfault.Away(err)
	case !there:
		return eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, "KeyPair %.255s not found", in.RemoteAccess.EC2SSHKey)
	}
	return vpcconfig.CheckGroups(ctx, a.store.Management, of.Status.VPCID, in.RemoteAccess.SourceSecurityGroups)
}

// showKept adds the settings that are EKS's. A maximum that no request set is EKS's default, maxUnavailable 1. Other
// settings that no request set are not shown: Terraform would plan to remove them.
func (n *nodegroup) showKept(kept v1alpha1.NodeGroupEKS) {
	update := kept.UpdateConfig
	n.UpdateConfig = &updateConfig{UpdateStrategy: string(update.UpdateStrategy)}
	switch {
	case update.MaxUnavailablePercentage != 0:
		n.UpdateConfig.MaxUnavailablePercentage = &update.MaxUnavailablePercentage
	case update.MaxUnavailable != 0:
		n.UpdateConfig.MaxUnavailable = &update.MaxUnavailable
	default:
		n.UpdateConfig.MaxUnavailable = new(int32(1))
	}
	n.NodeRepairConfig = showRepair(kept.Repair())
	if kept.DiskSize != 0 {
		n.DiskSize = &kept.DiskSize
	}
	if access := kept.RemoteAccess; access != nil {
		n.RemoteAccess = &remoteAccess{access.EC2SSHKey, access.SourceSecurityGroups}
	}
}

// updates plans how machines are replaced from now on, and the new switch.
func (in *updateNodegroupConfigInput) updates(p *change.Plan, refuse eksfault.Refuse) error {
	if in.UpdateConfig != nil {
		wanted, err := in.UpdateConfig.from(p.Group.Spec.EKS.UpdateConfig, refuse)
		if err != nil {
			return err
		}
		p.Change.UpdateConfig = &wanted
		for _, param := range []struct {
			kind string
			is   *int32
		}{{"MaxUnavailable", in.UpdateConfig.MaxUnavailable}, {"MaxUnavailablePercentage", in.UpdateConfig.MaxUnavailablePercentage}} {
			if param.is != nil {
				p.Param(param.kind, strconv.Itoa(int(*param.is)))
			}
		}
		if in.UpdateConfig.UpdateStrategy != "" {
			p.Param("UpdateStrategy", in.UpdateConfig.UpdateStrategy)
		}
	}
	if in.NodeRepairConfig != nil {
		wanted, err := in.NodeRepairConfig.from(refuse)
		if err != nil {
			return err
		}
		if wanted != nil {
			p.Change.NodeRepairConfig = wanted
			for _, param := range in.NodeRepairConfig.params() {
				p.Param(param.kind, param.is)
			}
		}
	}
	return nil
}
