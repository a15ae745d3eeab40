// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"
)

// later are the actions that Terraform calls when it changes or deletes what it made.
func later(c *iam.Client, user, role, profile, policy string) map[string]func(context.Context) error {
	tags, keys := []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}, []string{"k"}
	return map[string]func(context.Context) error{
		"iam:UpdateRoleDescription": func(ctx context.Context) error {
			_, err := c.UpdateRoleDescription(ctx, &iam.UpdateRoleDescriptionInput{RoleName: &role, Description: aws.String("new")})
			return err
		},
		"iam:TagPolicy": func(ctx context.Context) error {
			_, err := c.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: &policy, Tags: tags})
			return err
		},
		"iam:UntagPolicy": func(ctx context.Context) error {
			_, err := c.UntagPolicy(ctx, &iam.UntagPolicyInput{PolicyArn: &policy, TagKeys: keys})
			return err
		},
		"iam:ListPolicyTags": func(ctx context.Context) error {
			_, err := c.ListPolicyTags(ctx, &iam.ListPolicyTagsInput{PolicyArn: &policy})
			return err
		},
		"iam:TagInstanceProfile": func(ctx context.Context) error {
			_, err := c.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: &profile, Tags: tags})
			return err
		},
		"iam:UntagInstanceProfile": func(ctx context.Context) error {
			_, err := c.UntagInstanceProfile(ctx, &iam.UntagInstanceProfileInput{InstanceProfileName: &profile, TagKeys: keys})
			return err
		},
		"iam:ListInstanceProfileTags": func(ctx context.Context) error {
			_, err := c.ListInstanceProfileTags(ctx, &iam.ListInstanceProfileTagsInput{InstanceProfileName: &profile})
			return err
		},
		"iam:ListSSHPublicKeys": func(ctx context.Context) error {
			_, err := c.ListSSHPublicKeys(ctx, &iam.ListSSHPublicKeysInput{UserName: &user})
			return err
		},
		"iam:ListSigningCertificates": func(ctx context.Context) error {
			_, err := c.ListSigningCertificates(ctx, &iam.ListSigningCertificatesInput{UserName: &user})
			return err
		},
		"iam:ListServiceSpecificCredentials": func(ctx context.Context) error {
			_, err := c.ListServiceSpecificCredentials(ctx, &iam.ListServiceSpecificCredentialsInput{UserName: &user})
			return err
		},
		"iam:ListMFADevices": func(ctx context.Context) error {
			_, err := c.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: &user})
			return err
		},
		"iam:ListVirtualMFADevices": func(ctx context.Context) error {
			_, err := c.ListVirtualMFADevices(ctx, &iam.ListVirtualMFADevicesInput{AssignmentStatus: types.AssignmentStatusTypeAssigned})
			return err
		},
		"iam:GetLoginProfile": func(ctx context.Context) error {
			_, err := c.GetLoginProfile(ctx, &iam.GetLoginProfileInput{UserName: &user})
			return err
		},
		"iam:DeleteLoginProfile": func(ctx context.Context) error {
			_, err := c.DeleteLoginProfile(ctx, &iam.DeleteLoginProfileInput{UserName: &user})
			return err
		},
		"iam:CreateServiceLinkedRole": func(ctx context.Context) error {
			_, err := c.CreateServiceLinkedRole(ctx, &iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("eks.amazonaws.com")})
			return err
		},
		"iam:DeleteServiceLinkedRole": func(ctx context.Context) error {
			_, err := c.DeleteServiceLinkedRole(ctx, &iam.DeleteServiceLinkedRoleInput{RoleName: aws.String("AWSServiceRoleForEC2Spot")})
			return err
		},
		"iam:GetServiceLinkedRoleDeletionStatus": func(ctx context.Context) error {
			_, err := c.GetServiceLinkedRoleDeletionStatus(ctx, &iam.GetServiceLinkedRoleDeletionStatusInput{
				DeletionTaskId: aws.String("task/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot/AROA" + strings.Repeat("A", 17)),
			})
			return err
		},
	}
}

// things makes one of each kind.
func (w *world) things() (policy string) {
	w.t.Helper()
	c, ctx := w.iam(w.admin()), w.t.Context()
	w.role("app", trusting("Service", "ec2.amazonaws.com"))
	must[*iam.CreateInstanceProfileOutput](w)(c.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("app")}))
	must[*iam.CreateServiceLinkedRoleOutput](w)(c.CreateServiceLinkedRole(ctx, &iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("spot.amazonaws.com")}))
	return *must[*iam.CreatePolicyOutput](w)(c.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String("own"), PolicyDocument: aws.String(listing)})).Policy.Arn
}

// Nobody may do any of it without a policy, and everybody with a policy for that one action.
func TestWhatTerraformCallsLaterIsAuthorized(t *testing.T) {
	w := newWorld(t, nil)
	policy := w.things()
	alice := w.user("alice")
	for action, do := range later(w.iam(alice), "alice", "app", "app", policy) {
		w.wants(action+" without a policy", do(t.Context()), "AccessDenied")
		document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"` + action + `","Resource":"*"}]}`
		must[*iam.PutUserPolicyOutput](w)(w.iam(w.admin()).PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: &document}))
		want := ""
		if strings.HasSuffix(action, "LoginProfile") {
			want = "NoSuchEntity"
		}
		w.wants(action+" with a policy for it", do(t.Context()), want)
		must[*iam.DeleteUserPolicyOutput](w)(w.iam(w.admin()).DeleteUserPolicy(t.Context(), &iam.DeleteUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p")}))
	}
}

// An entity that is not there is NoSuchEntity, by all of them that name something.
func TestWhatTerraformCallsLaterFindsNothing(t *testing.T) {
	w := newWorld(t, nil)
	for action, do := range later(w.iam(w.admin()), "none", "none", "none", "arn:aws:iam::000000000000:policy/none") {
		want := "NoSuchEntity"
		switch action {
		case "iam:ListVirtualMFADevices", "iam:CreateServiceLinkedRole", "iam:GetServiceLinkedRoleDeletionStatus":
			want = ""
		}
		w.wants(action, do(t.Context()), want)
	}
}

func TestUpdateRoleDescription(t *testing.T) {
	w := newWorld(t, nil)
	w.things()
	c, ctx := w.iam(w.admin()), t.Context()
	for _, text := range []string{"first", ""} {
		answer := must[*iam.UpdateRoleDescriptionOutput](w)(c.UpdateRoleDescription(ctx, &iam.UpdateRoleDescriptionInput{RoleName: aws.String("app"), Description: &text}))
		if *answer.Role.RoleName != "app" || aws.ToString(answer.Role.Description) != text {
			t.Errorf("%+v", answer.Role)
		}
		if got := must[*iam.GetRoleOutput](w)(c.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("app")})).Role; aws.ToString(got.Description) != text {
			t.Errorf("described as %q, want %q", aws.ToString(got.Description), text)
		}
	}
	_, err := c.UpdateRoleDescription(ctx, &iam.UpdateRoleDescriptionInput{RoleName: aws.String("app"), Description: aws.String("\x01")})
	w.wants("a control character", err, "ValidationError")
}

// Tags of policies and instance profiles come and go, come in pages, and count in conditions.
func TestTagsOfPoliciesAndProfiles(t *testing.T) {
	w := newWorld(t, nil)
	policy := w.things()
	c, ctx, app := w.iam(w.admin()), t.Context(), aws.String("app")
	three := []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}, {Key: aws.String("a"), Value: aws.String("1")}, {Key: aws.String("c"), Value: aws.String("")}}
	_, err := c.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: &policy, Tags: three})
	w.wants("tagging a policy", err, "")
	_, err = c.TagInstanceProfile(ctx, &iam.TagInstanceProfileInput{InstanceProfileName: app, Tags: three})
	w.wants("tagging a profile", err, "")
	_, err = c.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: &policy, Tags: []types.Tag{{Key: aws.String("aws:x"), Value: aws.String("")}}})
	w.wants("a reserved key", err, "ValidationError")
	twice := []types.Tag{{Key: aws.String("Team"), Value: aws.String("a")}, {Key: aws.String("team"), Value: aws.String("b")}}
	_, err = c.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: &policy, Tags: twice})
	w.wants("keys that differ in case alone", err, "InvalidInput")
	_, err = c.TagUser(ctx, &iam.TagUserInput{UserName: aws.String("admin"), Tags: twice})
	w.wants("keys of a user that differ in case alone", err, "InvalidInput")
	for what, keys := range map[string][]string{"51 keys": slices.Repeat([]string{"a"}, 51), "a long key": {strings.Repeat("a", 129)}, "an empty key": {""}, "a key with another character": {"a*"}} {
		_, err = c.UntagPolicy(ctx, &iam.UntagPolicyInput{PolicyArn: &policy, TagKeys: keys})
		w.wants(what, err, "ValidationError")
	}

	var ofPolicy, ofProfile []string
	for p := iam.NewListPolicyTagsPaginator(c, &iam.ListPolicyTagsInput{PolicyArn: &policy, MaxItems: aws.Int32(2)}); p.HasMorePages(); {
		for _, tag := range must[*iam.ListPolicyTagsOutput](w)(p.NextPage(ctx)).Tags {
			ofPolicy = append(ofPolicy, *tag.Key+*tag.Value)
		}
	}
	for p := iam.NewListInstanceProfileTagsPaginator(c, &iam.ListInstanceProfileTagsInput{InstanceProfileName: app, MaxItems: aws.Int32(2)}); p.HasMorePages(); {
		for _, tag := range must[*iam.ListInstanceProfileTagsOutput](w)(p.NextPage(ctx)).Tags {
			ofProfile = append(ofProfile, *tag.Key+*tag.Value)
		}
	}
	if want := []string{"a1", "b2", "c"}; !slices.Equal(ofPolicy, want) || !slices.Equal(ofProfile, want) {
		t.Errorf("in pages: %q and %q, want %q", ofPolicy, ofProfile, want)
	}
	if got := must[*iam.GetInstanceProfileOutput](w)(c.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: app})).InstanceProfile; len(got.Tags) != 3 {
		t.Errorf("%+v", got.Tags)
	}

	alice := w.user("alice")
	document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:TagPolicy","iam:GetPolicy"],"Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/a":"1"}}}]}`
	must[*iam.PutUserPolicyOutput](w)(c.PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: &document}))
	_, err = w.iam(alice).GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &policy})
	w.wants("a policy with the tag", err, "")
	_, err = c.UntagPolicy(ctx, &iam.UntagPolicyInput{PolicyArn: &policy, TagKeys: []string{"A", "b"}})
	w.wants("untagging", err, "")
	_, err = c.UntagInstanceProfile(ctx, &iam.UntagInstanceProfileInput{InstanceProfileName: app, TagKeys: []string{"a", "b", "c"}})
	w.wants("untagging a profile", err, "")
	_, err = w.iam(alice).GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &policy})
	w.wants("a policy without the tag", err, "AccessDenied")
	if left := must[*iam.GetPolicyOutput](w)(c.GetPolicy(ctx, &iam.GetPolicyInput{PolicyArn: &policy})).Policy.Tags; len(left) != 1 || *left[0].Key != "c" {
		t.Errorf("left: %+v", left)
	}
	if left := must[*iam.ListInstanceProfileTagsOutput](w)(c.ListInstanceProfileTags(ctx, &iam.ListInstanceProfileTagsInput{InstanceProfileName: app})); len(left.Tags) != 0 || left.IsTruncated {
		t.Errorf("left: %+v", left)
	}

	aws1 := aws.String(managed + "ReadOnlyAccess")
	_, err = c.TagPolicy(ctx, &iam.TagPolicyInput{PolicyArn: aws1, Tags: three})
	w.wants("tagging AWS's own", err, "AccessDenied")
	if none := must[*iam.ListPolicyTagsOutput](w)(c.ListPolicyTags(ctx, &iam.ListPolicyTagsInput{PolicyArn: aws1})).Tags; len(none) != 0 {
		t.Errorf("%+v", none)
	}
}

// force_destroy asks for everything that a user could have.
func TestAUserHasNoneOfWhatIsNotHere(t *testing.T) {
	w := newWorld(t, nil)
	w.user("alice")
	c, ctx, alice := w.iam(w.admin()), t.Context(), aws.String("alice")
	ssh := must[*iam.ListSSHPublicKeysOutput](w)(c.ListSSHPublicKeys(ctx, &iam.ListSSHPublicKeysInput{UserName: alice, MaxItems: aws.Int32(1)}))
	certificates := must[*iam.ListSigningCertificatesOutput](w)(c.ListSigningCertificates(ctx, &iam.ListSigningCertificatesInput{}))
	credentials := must[*iam.ListServiceSpecificCredentialsOutput](w)(c.ListServiceSpecificCredentials(ctx, &iam.ListServiceSpecificCredentialsInput{UserName: alice, ServiceName: aws.String("codecommit.amazonaws.com")}))
	devices := must[*iam.ListMFADevicesOutput](w)(c.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: alice}))
	virtual := must[*iam.ListVirtualMFADevicesOutput](w)(c.ListVirtualMFADevices(ctx, &iam.ListVirtualMFADevicesInput{}))
	if n := len(ssh.SSHPublicKeys) + len(certificates.Certificates) + len(credentials.ServiceSpecificCredentials) + len(devices.MFADevices) + len(virtual.VirtualMFADevices); n != 0 {
		t.Errorf("%d things from nowhere", n)
	}
	if ssh.IsTruncated || certificates.IsTruncated || credentials.IsTruncated || devices.IsTruncated || virtual.IsTruncated {
		t.Error("an empty list goes on")
	}
	_, err := c.ListServiceSpecificCredentials(ctx, &iam.ListServiceSpecificCredentialsInput{AllUsers: aws.Bool(true)})
	w.wants("of all users", err, "")
	_, err = c.ListMFADevices(ctx, &iam.ListMFADevicesInput{UserName: alice, MaxItems: aws.Int32(0)})
	w.wants("pages of none", err, "ValidationError")
	_, err = c.ListVirtualMFADevices(ctx, &iam.ListVirtualMFADevicesInput{AssignmentStatus: "Lost"})
	w.wants("a status that is none", err, "ValidationError")
}

func TestServiceLinkedRoles(t *testing.T) {
	w := newWorld(t, nil)
	c, ctx := w.iam(w.admin()), t.Context()
	create := func(in *iam.CreateServiceLinkedRoleInput) (*types.Role, error) {
		out, err := c.CreateServiceLinkedRole(ctx, in)
		if err != nil {
			return nil, err
		}
		return out.Role, nil
	}
	role := must[*types.Role](w)(create(&iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("eks-nodegroup.amazonaws.com"), Description: aws.String("d")}))
	const name = "AWSServiceRoleForAmazonEKSNodegroup"
	if *role.Arn != "arn:aws:iam::000000000000:role/aws-service-role/eks-nodegroup.amazonaws.com/"+name || *role.Path != "/aws-service-role/eks-nodegroup.amazonaws.com/" || *role.Description != "d" {
		t.Errorf("%+v", role)
	}
	if attached := must[*iam.ListAttachedRolePoliciesOutput](w)(c.ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: role.RoleName})).AttachedPolicies; len(attached) != 1 || *attached[0].PolicyArn != managed+"aws-service-role/"+name {
		t.Errorf("%+v", attached)
	}
	_, err := create(&iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("eks-nodegroup.amazonaws.com")})
	w.wants("twice", err, "InvalidInput")
	if !strings.Contains(err.Error(), "Service role name "+name+" has been taken in this account") { // as Karpenter's guide says
		t.Error(err)
	}
	_, err = create(&iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("nobody.amazonaws.com")})
	w.wants("a service without", err, "InvalidInput")
	_, err = create(&iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("spot.amazonaws.com"), CustomSuffix: aws.String("x")})
	w.wants("a suffix where there is none", err, "InvalidInput")
	suffixed := must[*types.Role](w)(create(&iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("autoscaling.amazonaws.com"), CustomSuffix: aws.String("team")}))
	if *suffixed.RoleName != "AWSServiceRoleForAutoScaling_team" {
		t.Error(*suffixed.RoleName)
	}

	for what, change := range map[string]func() error{
		"deleting it": func() error { _, err := c.DeleteRole(ctx, &iam.DeleteRoleInput{RoleName: role.RoleName}); return err },
		"another trust policy": func() error {
			_, err := c.UpdateAssumeRolePolicy(ctx, &iam.UpdateAssumeRolePolicyInput{RoleName: role.RoleName, PolicyDocument: aws.String(trusting("AWS", account))})
			return err
		},
		"a policy more": func() error {
			_, err := c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: role.RoleName, PolicyArn: aws.String(managed + "AdministratorAccess")})
			return err
		},
		"a policy less": func() error {
			_, err := c.DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: role.RoleName, PolicyArn: aws.String(managed + "aws-service-role/" + name)})
			return err
		},
		"an inline policy": func() error {
			_, err := c.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: role.RoleName, PolicyName: aws.String("p"), PolicyDocument: aws.String(listing)})
			return err
		},
		"longer sessions": func() error {
			_, err := c.UpdateRole(ctx, &iam.UpdateRoleInput{RoleName: role.RoleName, MaxSessionDuration: aws.Int32(7200)})
			return err
		},
		"a boundary": func() error {
			_, err := c.PutRolePermissionsBoundary(ctx, &iam.PutRolePermissionsBoundaryInput{RoleName: role.RoleName, PermissionsBoundary: aws.String(managed + "ReadOnlyAccess")})
			return err
		},
		"no boundary": func() error {
			_, err := c.DeleteRolePermissionsBoundary(ctx, &iam.DeleteRolePermissionsBoundaryInput{RoleName: role.RoleName})
			return err
		},
	} {
		w.wants(what, change(), "UnmodifiableEntity")
	}
	_, err = c.UpdateRoleDescription(ctx, &iam.UpdateRoleDescriptionInput{RoleName: role.RoleName, Description: aws.String("e")})
	w.wants("another description", err, "")
	_, err = c.TagRole(ctx, &iam.TagRoleInput{RoleName: role.RoleName, Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}}})
	w.wants("tags", err, "")
	w.role("app", trusting("Service", "ec2.amazonaws.com"))
	_, err = c.AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: aws.String("app"), PolicyArn: aws.String(managed + "aws-service-role/AmazonEKSServiceRolePolicy")})
	w.wants("a service's policy for a role of people", err, "PolicyNotAttachable")
	for _, path := range []string{"/aws-service-role/", "/aws-service-role/eks.amazonaws.com/"} {
		_, err = c.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String("fake"), Path: &path, AssumeRolePolicyDocument: aws.String(trusting("AWS", account))})
		w.wants("a role at "+path, err, "ValidationError")
	}

	_, err = c.DeleteServiceLinkedRole(ctx, &iam.DeleteServiceLinkedRoleInput{RoleName: aws.String("app")})
	w.wants("deleting a role of people so", err, "NoSuchEntity")
	task := must[*iam.DeleteServiceLinkedRoleOutput](w)(c.DeleteServiceLinkedRole(ctx, &iam.DeleteServiceLinkedRoleInput{RoleName: role.RoleName})).DeletionTaskId
	if status := must[*iam.GetServiceLinkedRoleDeletionStatusOutput](w)(c.GetServiceLinkedRoleDeletionStatus(ctx, &iam.GetServiceLinkedRoleDeletionStatusInput{DeletionTaskId: task})).Status; status != types.DeletionTaskStatusTypeSucceeded {
		t.Error(*task, status)
	}
	_, err = c.GetRole(ctx, &iam.GetRoleInput{RoleName: role.RoleName})
	w.wants("once it is deleted", err, "NoSuchEntity")
	_, err = c.GetServiceLinkedRoleDeletionStatus(ctx, &iam.GetServiceLinkedRoleDeletionStatusInput{DeletionTaskId: aws.String("task/aws-service-role/spot.amazonaws.com/../x")})
	w.wants("no task", err, "InvalidInput")
	var gone []string
	for _, r := range must[*iam.ListRolesOutput](w)(c.ListRoles(ctx, &iam.ListRolesInput{PathPrefix: aws.String("/aws-service-role/")})).Roles {
		gone = append(gone, *r.RoleName)
	}
	if !slices.Equal(gone, []string{"AWSServiceRoleForAutoScaling_team"}) {
		t.Error(gone)
	}
}

// The condition of the load balancer controller's policy, and of Karpenter's.
func TestAServiceLinkedRoleOfOneService(t *testing.T) {
	w := newWorld(t, nil)
	alice, ctx := w.user("alice"), t.Context()
	document := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:CreateServiceLinkedRole","Resource":"*",
"Condition":{"StringEquals":{"iam:AWSServiceName":"elasticloadbalancing.amazonaws.com"}}}]}`
	must[*iam.PutUserPolicyOutput](w)(w.iam(w.admin()).PutUserPolicy(ctx, &iam.PutUserPolicyInput{UserName: aws.String("alice"), PolicyName: aws.String("p"), PolicyDocument: &document}))
	for service, want := range map[string]string{"elasticloadbalancing.amazonaws.com": "", "spot.amazonaws.com": "AccessDenied"} {
		_, err := w.iam(alice).CreateServiceLinkedRole(ctx, &iam.CreateServiceLinkedRoleInput{AWSServiceName: &service})
		w.wants(service, err, want)
	}
}
