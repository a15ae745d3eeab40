// SPDX-License-Identifier: Apache-2.0

package fargateprofiles

import (
	"context"
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
)

type createInput struct {
	Named

	PodExecutionRoleARN, ClientRequestToken string
	Subnets                                 []string
	Selectors                               []selector
	Tags                                    map[string]string
}

func (a *API) createFargateProfile() awsfront.Spec[createInput, profileOutput] {
	return awsfront.Spec[createInput, profileOutput]{
		About: func(ctx context.Context, call *awsfront.Call, in *createInput) ([]awsfront.Target, error) {
			targets, err := a.store.AboutCluster(ctx, call, in.ClusterName)
			if err != nil {
				return nil, err
			}
			awsresource.RequestTags(targets[0].Conditions, awstag.Sorted(in.Tags))
			passed, err := passrole.Targets(ctx, a.store.Management, in.PodExecutionRoleARN, passrole.Fargate, "")
			return append(targets, passed...), err
		},
		Do: a.doCreate,
	}
}

func (a *API) doCreate(ctx context.Context, call *awsfront.Call, in *createInput) (*profileOutput, error) {
	sent, err := eksresource.TokenOf(call, in.ClientRequestToken)
	if err != nil {
		return nil, err
	}
	defer a.store.Hold(in.ClusterName)()
	of, err := a.store.Cluster(ctx, in.ClusterName)
	if err != nil {
		return nil, err
	}
	wanted, err := a.wanted(of, in)
	if err != nil {
		return nil, err
	}
	exists := refusal(eksfault.InUse, in.Named, "A Fargate Profile already exists with this name in this cluster.")
	there, err := a.Find(ctx, of, in.FargateProfileName)
	if err != nil {
		return nil, err
	}
	if there != nil {
		if err := sent.CheckMade(there, exists); err != nil {
			return nil, err
		}
		return &profileOutput{a.show(call, of, there)}, nil
	}
	if status, _ := eksresource.ClusterStatus(of); status != eksresource.Active {
		return nil, refusal(eksfault.InvalidRequest, in.Named, "Cluster '%s' is not in ACTIVE status: it is %s", in.ClusterName, status)
	}
	if err := a.changing(ctx, of, in.Named, "create"); err != nil {
		return nil, err
	}
	if wanted.Spec.SubnetIDs, err = a.subnets(ctx, of, in); err != nil {
		return nil, err
	}
	if err := a.checkRole(ctx, call, in); err != nil {
		return nil, err
	}
	sent.Mark(wanted)
	if err := a.store.Management.Create(ctx, wanted); err != nil {
		return nil, eksfault.NotMade(err, exists)
	}
	return &profileOutput{a.show(call, of, wanted)}, nil
}

// changing refuses a change of a profile while another profile of the cluster is being made or deleted, and one profile
// too many.
func (a *API) changing(ctx context.Context, of *v1alpha1.Cluster, in Named, what string) error {
	all, err := a.profiles(ctx, of)
	if err != nil {
		return err
	}
	for i := range all {
		status := statusOf(&all[i])
		if all[i].Spec.Name != in.FargateProfileName && (status == eksresource.Creating || status == eksresource.Deleting) {
			return refusal(eksfault.InUse, in, "Cannot %s Fargate Profile %s because cluster %s currently has Fargate profile %s in status %s",
				what, in.FargateProfileName, in.ClusterName, all[i].Spec.Name, status)
		}
	}
	if what == "create" && len(all) >= v1alpha1.MaxFargateProfiles {
		return refusal(eksfault.LimitExceeded, in, "Cluster %s has %d Fargate profiles, and may have %d: delete one", in.ClusterName, len(all), v1alpha1.MaxFargateProfiles)
	}
	return nil
}

// wanted is the object that a request asks for, without its subnets.
func (a *API) wanted(of *v1alpha1.Cluster, in *createInput) (*v1alpha1.FargateProfile, error) {
	refuse := func(format string, args ...any) (*v1alpha1.FargateProfile, error) {
		return nil, refusal(eksfault.InvalidParameter, in.Named, format, args...)
	}
	switch {
	case !eksresource.IsName(in.FargateProfileName, v1alpha1.MaxFargateProfileName) || strings.HasSuffix(in.FargateProfileName, "-") || strings.HasSuffix(in.FargateProfileName, "_"):
		return refuse("The Fargate profile name %.80q is not valid: it must begin and end with a letter or digit and be of at most %d letters, digits, - and _, since it is the value of a label of pods", in.FargateProfileName, v1alpha1.MaxFargateProfileName)
	case strings.HasPrefix(in.FargateProfileName, "eks-"):
		return refuse("The Fargate profile name %.80q is not valid: it cannot begin with the reserved prefix eks-", in.FargateProfileName)
	case !a.config.LocalMachines:
		return nil, awsfault.Errorf(eksfault.InvalidRequest, "This service runs without root and can make no machines for pods: start it with root")
	case len(in.Selectors) == 0:
		return refuse("FargateProfile must have at least one selector.")
	case len(in.Selectors) > v1alpha1.MaxFargateSelectors:
		return refuse("Request contains too many Fargate profile selectors: %d, at most %d", len(in.Selectors), v1alpha1.MaxFargateSelectors)
	}
	p := &v1alpha1.FargateProfile{
		ObjectMeta: metav1.ObjectMeta{Namespace: of.Namespace, Name: v1alpha1.FargateProfileSlug(in.FargateProfileName)},
		Spec:       v1alpha1.FargateProfileSpec{Name: in.FargateProfileName, ClusterName: of.Spec.Name, PodExecutionRoleARN: in.PodExecutionRoleARN},
	}
	for i, s := range in.Selectors {
		one := v1alpha1.FargateSelector{Namespace: s.Namespace}
		for key, value := range s.Labels {
			if one.Labels == nil {
				one.Labels = map[string]v1alpha1.FargateLabel{}
			}
			one.Labels[key] = v1alpha1.FargateLabel(value)
		}
		if problem := v1alpha1.ValidateFargateSelector(one); problem != "" {
			return refuse("Selector %d is not valid: %s", i+1, problem)
		}
		p.Spec.Selectors = append(p.Spec.Selectors, one)
	}
	var err error
	p.Spec.Tags, err = eksresource.ReadTags(in.Tags)
	return p, err
}

// subnets are those of a request, which must be private and of the cluster's VPC. Without a list the private subnets of the
// cluster count, at least one; the result is nil if all subnets of the cluster are private.
func (a *API) subnets(ctx context.Context, of *v1alpha1.Cluster, in *createInput) ([]v1alpha1.SubnetID, error) {
	kept, vpc, _, err := vpcconfig.Subnets(ctx, a.store.Management, in.Subnets)
	if err != nil {
		return nil, err
	}
	if len(kept) > 0 && vpc != of.Status.VPCID {
		return nil, refusal(eksfault.InvalidParameter, in.Named, "The subnets %v are in %s, and the cluster is in %s: a Fargate profile's subnets must be of the cluster's VPC", in.Subnets, vpc, of.Status.VPCID)
	}
	used := slices.Clone(in.Subnets)
	if len(used) == 0 {
		used = vpcconfig.Shown(of.Status.SubnetIDs, of.Spec.Network.SubnetIDs)
	}
	var private []v1alpha1.SubnetID
	var public error
	for _, id := range used {
		table, gateway, err := a.config.Public(ctx, of.Status.VPCID, id)
		switch {
		case err != nil:
			return nil, eksfault.Away(err)
		case gateway == "":
			private = append(private, v1alpha1.SubnetID(id))
		case public == nil:
			public = refusal(eksfault.InvalidParameter, in.Named, "Subnet %s provided in Fargate Profile is not a private subnet: its route table %s has a route to the internet gateway %s; name subnets without one", id, table, gateway)
		}
	}
	switch {
	case public == nil:
		return kept, nil
	case len(in.Subnets) > 0 || len(private) == 0:
		return nil, public
	default:
		return private, nil
	}
}

// checkRole refuses a role that no machine could have.
func (a *API) checkRole(ctx context.Context, call *awsfront.Call, in *createInput) error {
	if !passrole.IsARN(in.PodExecutionRoleARN) {
		return refusal(eksfault.InvalidParameter, in.Named, "The podExecutionRoleArn %.300q is not the ARN of a role", in.PodExecutionRoleARN)
	}
	found, err := passrole.Find(ctx, a.store.Management, in.PodExecutionRoleARN)
	switch {
	case err != nil:
		return err
	case found == nil:
		return refusal(eksfault.InvalidParameter, in.Named, "The role %s does not exist", in.PodExecutionRoleARN)
	case found.Spec.Account != call.Caller.Account():
		return refusal(eksfault.InvalidParameter, in.Named, "The role %s is of another account than the cluster: name a role of account %s", in.PodExecutionRoleARN, call.Caller.Account())
	case !passrole.LetsIn(found, a.store.Region, passrole.Fargate, "sts:AssumeRole", map[string][]string{
		"aws:sourceaccount": {call.Caller.Account()}, "aws:sourcearn": {a.store.ARN(call, "fargateprofile/"+in.ClusterName+"/"+in.FargateProfileName+"/x")},
	}):
		return refusal(eksfault.InvalidParameter, in.Named, "Misconfigured PodExecutionRole Trust Policy; Please add the %s Service Principal to the role %s", passrole.Fargate, in.PodExecutionRoleARN)
	}
	return nil
}
