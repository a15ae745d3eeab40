// SPDX-License-Identifier: Apache-2.0

package nodegroups

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/ec2id"
	"muster.dev/muster/internal/cloud/eks/eksfault"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
	"muster.dev/muster/internal/cloud/launchtemplate"
	"muster.dev/muster/internal/machine/instancetype"
)

// maxInstanceTypes is EKS's.
const maxInstanceTypes = 20

// launchTemplate is how EKS names a version of a launch template.
type launchTemplate struct{ ID, Name, Version string }

// resolveTemplate is what a node group takes of the version that a request names: its id and number, and what it says.
// Without a version it is the default one. A version that is not there, that node groups cannot be of, or whose
// security groups are not in the cluster's VPC is refused.
func (a *API) resolveTemplate(ctx context.Context, of *v1alpha1.Cluster, group string, named launchTemplate) (*v1alpha1.NodeGroupLaunchTemplate, error) {
	cluster := of.Spec.Name
	found, err := a.findTemplate(ctx, cluster, group, named)
	if err != nil {
		return nil, err
	}
	text := named.Version
	if text == "" {
		text = launchtemplate.Default
	}
	version, err := launchtemplate.Find(found, text)
	if err != nil {
		return nil, eksfault.New(eksfault.InvalidParameter, cluster, group, "%s", message(err))
	}
	taken, err := launchtemplate.ForNodeGroup(found, version)
	refusal := new(launchtemplate.Refusal)
	if errors.As(err, &refusal) {
		return nil, eksfault.New(eksfault.InvalidParameter, cluster, group, "%s", refusal.Message)
	}
	if err != nil {
		return nil, err
	}
	if err := vpcconfig.CheckGroups(ctx, a.store.Management, of.Status.VPCID, taken.SecurityGroupIDs); err != nil {
		return nil, err
	}
	return taken, nil
}

// message is the message of a refusal that has a code of EC2's.
func message(err error) string {
	known := new(awsfault.Error)
	if errors.As(err, &known) {
		return known.Message
	}
	return err.Error()
}

// findTemplate reads the launch template that a request names by its id or its name.
func (a *API) findTemplate(ctx context.Context, cluster, group string, named launchTemplate) (*v1alpha1.LaunchTemplate, error) {
	refuse := func(format string, args ...any) (*v1alpha1.LaunchTemplate, error) {
		return nil, eksfault.New(eksfault.InvalidParameter, cluster, group, format, args...)
	}
	switch {
	case (named.ID == "") == (named.Name == ""):
		return refuse("You must specify either the launch template ID or the launch template name in the request, but not both.")
	case named.ID != "":
		if err := ec2id.LaunchTemplate.Check(named.ID); err != nil {
			return refuse("%s", message(err))
		}
		found := &v1alpha1.LaunchTemplate{}
		err := a.store.Management.Get(ctx, client.ObjectKey{Name: named.ID}, found)
		switch {
		case apierrors.IsNotFound(err):
			return refuse("%s", ec2id.LaunchTemplate.NotFound(named.ID).Message)
		case err != nil:
			return nil, eksfault.Away(fmt.Errorf("reading launch template %s: %w", named.ID, err))
		}
		return found, nil
	}
	var all v1alpha1.LaunchTemplateList
	if err := a.store.Management.List(ctx, &all); err != nil {
		return nil, eksfault.Away(fmt.Errorf("listing launch templates: %w", err))
	}
	for i := range all.Items {
		if all.Items[i].Spec.Name == named.Name {
			return &all.Items[i], nil
		}
	}
	return refuse("%s", launchtemplate.NameNotFound(named.Name).Message)
}

// setLaunch sets how the machines of a new group are launched: by a launch template, by instance types, or as EKS does
// without either.
func (a *API) setLaunch(ctx context.Context, of *v1alpha1.Cluster, g *v1alpha1.NodeGroup, in *createNodegroupInput) error {
	if err := checkInstanceTypes(in); err != nil {
		return err
	}
	g.Spec.InstanceTypes = in.InstanceTypes
	if in.LaunchTemplate != nil {
		template, err := a.resolveTemplate(ctx, of, in.NodegroupName, *in.LaunchTemplate)
		if err != nil {
			return err
		}
		g.Spec.LaunchTemplate = template
		if template.InstanceType != "" {
			if len(in.InstanceTypes) > 0 {
				return eksfault.New(eksfault.InvalidRequest, in.ClusterName, in.NodegroupName, "Cannot specify instance types in launch template and API request")
			}
			return nil
		}
	}
	if len(g.Spec.InstanceTypes) == 0 {
		g.Spec.InstanceTypes = []string{instancetype.Default}
	}
	return nil
}

func checkInstanceTypes(in *createNodegroupInput) error {
	if len(in.InstanceTypes) > maxInstanceTypes {
		return eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, "There are %d instance types: at most %d are allowed", len(in.InstanceTypes), maxInstanceTypes)
	}
	unknown := slices.DeleteFunc(slices.Clone(in.InstanceTypes), func(name string) bool {
		_, err := instancetype.Find(name)
		return err == nil
	})
	if len(unknown) > 0 {
		return eksfault.New(eksfault.InvalidParameter, in.ClusterName, in.NodegroupName, "The following supplied instance types do not exist: [%.300s]", strings.Join(unknown, ", "))
	}
	return nil
}

// showLaunch is the launch template and the instance types of a group, as EKS tells of them. A group of a launch
// template that names a type has no types of its own.
func showLaunch(g *v1alpha1.NodeGroup) (*launchTemplate, []string) {
	t := g.Spec.LaunchTemplate
	switch {
	case t == nil:
		return nil, g.Spec.InstanceTypes
	case t.ID == "" && t.InstanceType != "": // kubectl's
		return nil, []string{t.InstanceType}
	case t.ID == "":
		return nil, g.Spec.InstanceTypes
	case t.InstanceType != "":
		return &launchTemplate{t.ID, t.Name, strconv.FormatInt(t.Version, 10)}, nil
	}
	return &launchTemplate{t.ID, t.Name, strconv.FormatInt(t.Version, 10)}, g.Spec.InstanceTypes
}
