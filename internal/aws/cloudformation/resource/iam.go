// SPDX-License-Identifier: Apache-2.0

package resource

// iamTypes are the types of IAM. A stack with one of them needs CAPABILITY_IAM, or CAPABILITY_NAMED_IAM if the template names
// the resource.
func iamTypes() []Type {
	return []Type{
		{
			Name:       "AWS::IAM::Role",
			Named:      "RoleName",
			Required:   words("AssumeRolePolicyDocument"),
			Replaces:   words("Path RoleName"),
			Updates:    words("AssumeRolePolicyDocument Description ManagedPolicyArns MaxSessionDuration PermissionsBoundary Policies Tags"),
			Attributes: words("Arn RoleId"),
			ID:         words("RoleName"),
			Create:     actions("iam", "CreateRole AttachRolePolicy PutRolePolicy"),
			Read:       actions("iam", "GetRole"),
			Update: actions("iam", "UpdateRole UpdateAssumeRolePolicy AttachRolePolicy DetachRolePolicy PutRolePolicy DeleteRolePolicy PutRolePermissionsBoundary "+
				"DeleteRolePermissionsBoundary TagRole UntagRole"),
			Delete: actions("iam", "ListAttachedRolePolicies DetachRolePolicy ListRolePolicies DeleteRolePolicy DeleteRole"),
			Once:   ByName,
			Apart:  words("ManagedPolicyArns Policies"),
		},
		{
			Name:       "AWS::IAM::Policy",
			Required:   words("PolicyDocument PolicyName"),
			Updates:    words("Groups PolicyDocument PolicyName Roles Users"),
			Attributes: words("Id"),
			ID:         words("Id"),
			Create:     actions("iam", "PutRolePolicy PutUserPolicy"),
			Read:       actions("iam", "GetRolePolicy GetUserPolicy"),
			Update:     actions("iam", "PutRolePolicy DeleteRolePolicy PutUserPolicy DeleteUserPolicy"),
			Delete:     actions("iam", "DeleteRolePolicy DeleteUserPolicy"),
			Once:       ByValue,
			Apart:      words("Groups Roles Users"),
			Beside:     words("RoleName"),
		},
		{
			Name:       "AWS::IAM::ManagedPolicy",
			Named:      "ManagedPolicyName",
			Required:   words("PolicyDocument"),
			Replaces:   words("Description ManagedPolicyName Path"),
			Updates:    words("Groups PolicyDocument Roles Users"),
			Attributes: words("AttachmentCount CreateDate DefaultVersionId IsAttachable PermissionsBoundaryUsageCount PolicyArn PolicyId UpdateDate"),
			ID:         words("PolicyArn"),
			Create:     actions("iam", "CreatePolicy AttachRolePolicy AttachUserPolicy"),
			Read:       actions("iam", "GetPolicy"),
			Update:     actions("iam", "CreatePolicyVersion ListPolicyVersions DeletePolicyVersion AttachRolePolicy DetachRolePolicy AttachUserPolicy DetachUserPolicy"),
			Delete:     actions("iam", "ListEntitiesForPolicy DetachRolePolicy DetachUserPolicy ListPolicyVersions DeletePolicyVersion DeletePolicy"),
			Once:       ByName,
			Names:      map[string]string{"ManagedPolicyName": "PolicyName"},
			Apart:      words("Groups Roles Users"),
		},
	}
}

// iamHolderTypes are the types of IAM that hold roles and trust issuers.
func iamHolderTypes() []Type {
	return []Type{
		{
			Name:       "AWS::IAM::InstanceProfile",
			Named:      "InstanceProfileName",
			Required:   words("Roles"),
			Replaces:   words("InstanceProfileName Path"),
			Updates:    words("Roles"),
			Attributes: words("Arn"),
			ID:         words("InstanceProfileName"),
			Create:     actions("iam", "CreateInstanceProfile AddRoleToInstanceProfile"),
			Read:       actions("iam", "GetInstanceProfile"),
			Update:     actions("iam", "RemoveRoleFromInstanceProfile AddRoleToInstanceProfile"),
			Delete:     actions("iam", "RemoveRoleFromInstanceProfile DeleteInstanceProfile"),
			Once:       ByName,
			Apart:      words("Roles"),
		},
		{
			Name:       "AWS::IAM::OIDCProvider",
			Required:   words("Url"),
			Replaces:   words("Url"),
			Updates:    words("ClientIdList Tags ThumbprintList"),
			Attributes: words("Arn"),
			ID:         words("Arn"),
			Create:     actions("iam", "CreateOpenIDConnectProvider"),
			Read:       actions("iam", "GetOpenIDConnectProvider"),
			Update: actions("iam", "UpdateOpenIDConnectProviderThumbprint AddClientIDToOpenIDConnectProvider RemoveClientIDFromOpenIDConnectProvider TagOpenIDConnectProvider "+
				"UntagOpenIDConnectProvider"),
			Delete: actions("iam", "DeleteOpenIDConnectProvider"),
			Once:   ByName,
		},
	}
}
