// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/aws/awsfront"
	"muster.dev/muster/internal/cloud/eks/change"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/eksresource"
)

type updateNodegroupVersionInput struct {
	Named

	Version, ReleaseVersion, ClientRequestToken string
	LaunchTemplate                              *launchTemplate
	Force                                       *bool
}

func (a *API) updateNodegroupVersion() awsfront.Spec[updateNodegroupVersionInput, change.Output] {
	return awsfront.Spec[updateNodegroupVersionInput, change.Output]{
		About: func(ctx context.Context, call *awsfront.Call, in *updateNodegroupVersionInput) ([]awsfront.Target, error) {
			return a.About(ctx, call, &in.Named)
		},
		Do: a.doUpdateNodegroupVersion,
	}
}

// doUpdateNodegroupVersion begins a rollout: machines of another template version, or of an earlier template, are
// replaced as the group's updateConfig says.
func (a *API) doUpdateNodegroupVersion(ctx context.Context, call *awsfront.Call, in *updateNodegroupVersionInput) (*change.Output, error) {
	return a.update(ctx, call, in.Named, in.ClientRequestToken, func(p *change.Plan) error {
		force := eksresource.Deref(in.Force, false)
		p.Type, p.Change.Rollout = v1alpha1.UpdateVersion, &v1alpha1.UpdateRollout{Force: force, KeepCurrent: !force}
		return a.planVersion(ctx, in, p)
	})
}

// planVersion is the change that a request asks for.
func (a *API) planVersion(ctx context.Context, in *updateNodegroupVersionInput, p *change.Plan) error {
	refuse := eksfault.Invalid(in.ClusterName, in.NodegroupName)
	is := versionOf(p.Of, p.Group)
	wanted := cmp.Or(in.Version, minorOf(in.ReleaseVersion), is)
	if err := a.checkVersion(p.Of, wanted, in.ReleaseVersion, refuse); err != nil {
		return err
	}
	p.Param("Version", wanted)
	p.Param("ReleaseVersion", releaseVersion(wanted))
	if in.Version != "" || wanted != is {
		p.Change.Rollout.Version = wanted
	}
	if in.LaunchTemplate != nil {
		return a.planTemplate(ctx, in, p, wanted, refuse)
	}
	old, err := a.outdated(ctx, p.Group, wanted)
	if err != nil {
		return err
	}
	if old == 0 && wanted == is && !p.Change.Rollout.Force {
		return refuse("Nodegroup %s is already at release version %s and its launch template: send force to have its machines replaced all the same", in.NodegroupName, releaseVersion(wanted))
	}
	return nil
}

// minorOf is the minor of a release such as 1.36.4-20261122, which says enough without a version; empty for another text.
func minorOf(releaseVersion string) string {
	parts := strings.SplitN(releaseVersion, ".", 3)
	if len(parts) < 3 {
		return ""
	}
	return parts[0] + "." + parts[1]
}

// planTemplate is the change to another version of the launch template that the group has, of machines of a minor.
func (a *API) planTemplate(ctx context.Context, in *updateNodegroupVersionInput, p *change.Plan, minor string, refuse eksfault.Refuse) error {
	has := p.Group.Spec.LaunchTemplate
	if has == nil || has.ID == "" {
		return refuse("Nodegroup %s was not made with a launch template, and cannot be updated to one: make another", in.NodegroupName)
	}
	wanted, err := a.resolveTemplate(ctx, p.Of, in.NodegroupName, *in.LaunchTemplate)
	switch {
	case err != nil:
		return err
	case wanted.ID != has.ID:
		return refuse("Nodegroup %s was made with launch template %s, and cannot be updated to another: %s", in.NodegroupName, has.ID, wanted.ID)
	case wanted.InstanceType != "" && len(p.Group.Spec.InstanceTypes) > 0:
		return eksfault.New(eksfault.InvalidRequest, in.ClusterName, in.NodegroupName, "Cannot specify instance types in launch template and API request")
	case wanted.InstanceType == "" && len(p.Group.Spec.InstanceTypes) == 0:
		return refuse("Version %d of launch template %s names no instance type, and nodegroup %s has none of its own", wanted.Version, wanted.ID, in.NodegroupName)
	case equality.Semantic.DeepEqual(wanted, has) && !p.Change.Rollout.Force:
		old, err := a.outdated(ctx, p.Group, minor)
		if err != nil {
			return err
		}
		if old == 0 && minor == versionOf(p.Of, p.Group) {
			return refuse("Nodegroup %s is already at version %d of launch template %s", in.NodegroupName, wanted.Version, wanted.ID)
		}
	}
	p.Change.Rollout.LaunchTemplate = wanted
	p.Param("LaunchTemplateName", wanted.Name)
	p.Param("LaunchTemplateVersion", strconv.FormatInt(wanted.Version, 10))
	return nil
}

// outdated counts the machines of a group that were launched by something else than the group says now, or are of another
// minor.
func (a *API) outdated(ctx context.Context, group *v1alpha1.NodeGroup, minor string) (int, error) {
	var all v1alpha1.MachineList
	if err := a.store.Management.List(ctx, &all); err != nil {
		return 0, eksfault.Away(fmt.Errorf("listing the machines of node group %s: %w", group.Spec.Name, err))
	}
	n, now := 0, group.Spec.Launched()
	for i := range all.Items {
		m := &all.Items[i]
		if m.Spec.NodeGroupUID == group.UID && m.DeletionTimestamp.IsZero() &&
			(!equality.Semantic.DeepEqual(m.Spec.LaunchTemplate, now) || ami.Release(m.Spec.ImageID).Minor() != minor) {
			n++
		}
	}
	return n, nil
}
