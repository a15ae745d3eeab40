// SPDX-License-Identifier: Apache-2.0

package console

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/cmd/muster/kinds"
	"muster.dev/muster/cmd/muster/objects"
	"muster.dev/muster/internal/cloud/eks/clusters"
	"muster.dev/muster/internal/cloud/eks/passrole"
	"muster.dev/muster/internal/cloud/eks/vpcconfig"
	"muster.dev/muster/internal/cluster/session"
	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/pageserver"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/viewer"
)

// clusterZones is in how many availability zones a cluster is at least.
const clusterZones = 2

// Create implements pageserver.Source: for the user of the command by the management plane, as muster create does. The API server checks all
// objects before it makes the first one. For an IAM identity see createFor.
func (s *source) Create(ctx context.Context, by *viewer.Viewer, plan blueprint.Blueprint) (made view.Made, err error) {
	if by != nil {
		return s.createFor(ctx, *by, plan)
	}
	p, err := s.planes.Management(s.Options)
	if err != nil {
		return made, err
	}
	problems, err := s.problems(ctx, p, plan)
	if err != nil {
		return made, err
	}
	var all []client.Object
	for _, object := range plan.Objects() {
		all = append(all, object)
	}
	if len(problems) == 0 {
		for _, err := range objects.Check(ctx, p, all) {
			problems = append(problems, blueprint.Problem{Message: err.Error()})
		}
	}
	if len(problems) > 0 {
		return made, &pageserver.RefusedError{Code: http.StatusBadRequest, Problems: problems}
	}
	for _, object := range all {
		kind := strings.ToLower(object.GetObjectKind().GroupVersionKind().Kind)
		did, err := objects.Make(ctx, p, object)
		if err != nil {
			return made, &pageserver.RefusedError{Code: http.StatusConflict, Problems: []blueprint.Problem{{Message: err.Error()}}}
		}
		if _, is := object.(*corev1.Namespace); !is {
			made.Objects = append(made.Objects, view.MadeObject{Kind: kind, Name: kinds.NameOf(object), Did: did})
		}
	}
	return made, nil
}

// problems are what is wrong with a plan in this installation, as far as the API server cannot say it.
func (s *source) problems(ctx context.Context, p *kinds.Client, plan blueprint.Blueprint) (all []blueprint.Problem, err error) {
	add := func(field string, err error) {
		if err != nil {
			all = append(all, blueprint.Problem{Field: field, Message: err.Error()})
		}
	}
	ids, vpc, zones, err := vpcconfig.Subnets(ctx, p, plan.SubnetIDs)
	add("subnetIds", err)
	if plan.Exists {
		var of v1alpha1.Cluster
		slug := v1alpha1.ClusterSlug(plan.Name)
		if err := p.ReadKey(ctx, client.ObjectKey{Namespace: slug, Name: slug}, &of); err != nil {
			add("clusterName", err)
		} else if of.Status.VPCID != "" && vpc != "" && vpc != of.Status.VPCID {
			add("subnetIds", fmt.Errorf("the subnets are in %s, and the cluster is in %s: choose subnets of the cluster's VPC", vpc, of.Status.VPCID))
		}
	} else {
		if len(ids) > 0 && zones < clusterZones {
			add("subnetIds", errors.New("the subnets are in one availability zone: choose subnets in two or more"))
		}
		add("roleArn", clusters.CheckRole(ctx, p, s.region(), plan.RoleARN))
		if plan.AutoMode {
			add("autoNodeRole", p.CheckRole(ctx, &v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{NodeRole: plan.AutoNodeRole}}))
		}
		dir, err := s.binDir()
		if err != nil {
			return nil, err
		}
		add("version", session.CheckRelease(dir, v1alpha1.ClusterSpec{Version: plan.Version}))
	}
	for i, g := range plan.Groups {
		at := ""
		if !plan.Exists {
			at = fmt.Sprintf("nodeGroups[%d].", i)
		}
		if g.NodeRole != "" {
			add(at+"nodeRole", p.CheckRole(ctx, &v1alpha1.NodeGroup{Spec: v1alpha1.NodeGroupSpec{NodeRole: g.NodeRole}}))
		}
	}
	if len(plan.Groups) > 0 && s.euid != 0 {
		add("", errors.New("local machines need root: start muster as root, or make simulated ones with muster create nodegroup --provider simulated"))
	}
	return all, nil
}

// region is that of the account.
func (s *source) region() string { return regionOf(s.dir) }

// choices adds what a new cluster can have: the default VPC and roles.
func (s *source) choices(ctx context.Context, f *view.Facts) error {
	p, err := s.planes.Management(s.Options)
	if err != nil {
		return err
	}
	var vpcs v1alpha1.VPCList
	var roles v1alpha1.IAMRoleList
	if err := errors.Join(p.ReadAll(ctx, &vpcs), p.ReadAll(ctx, &roles)); err != nil {
		return err
	}
	for i := range vpcs.Items {
		if vpcs.Items[i].Spec.IsDefault {
			f.DefaultVPC = vpcs.Items[i].Name
		}
	}
	for i := range roles.Items {
		role := &roles.Items[i]
		if role.Spec.Account != identityservice.DefaultAccount {
			continue
		}
		switch {
		case clusters.CheckFound(role, s.region()) == nil:
			f.Roles = append(f.Roles, view.Role{ARN: role.Spec.ARN, Service: "eks"})
		case passrole.LetsIn(role, s.region(), passrole.EC2, "sts:AssumeRole", nil):
			f.Roles = append(f.Roles, view.Role{ARN: role.Spec.ARN, Service: "ec2"})
		}
	}
	slices.SortFunc(f.Roles, func(a, b view.Role) int { return strings.Compare(a.ARN, b.ARN) })
	return nil
}
