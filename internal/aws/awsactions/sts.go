// SPDX-License-Identifier: Apache-2.0

package awsactions

func stsActions() []Action {
	return []Action{
		{Name: "GetCallerIdentity", Mark: Real},
		{Name: "AssumeRole", Mark: Real, Resources: []string{"role"}, Keys: []string{"aws:RequestTag/KEY", "aws:TagKeys", "sts:ExternalId", "sts:RoleSessionName", "sts:TransitiveTagKeys"}},
		{Name: "GetSessionToken", Mark: Real},
		{Name: "AssumeRoleWithWebIdentity", Mark: Real, Resources: []string{"role"}, Keys: []string{"aws:RequestTag/KEY", "aws:TagKeys", "sts:RoleSessionName", "sts:TransitiveTagKeys"}},
		{Name: "DecodeAuthorizationMessage", Mark: Refused, Reason: "Muster's refusals say in plain text which policy decided"},
		{Name: "AssumeRoleWithSAML", Mark: Refused, Reason: "Muster has no SAML providers"},
		{Name: "GetFederationToken", Mark: Refused, Reason: "Muster has no federated users: assume a role"},
		{Name: "GetAccessKeyInfo", Mark: Refused, Reason: "Muster has one account: GetCallerIdentity names it"},
	}
}

func stsResources() []Resource {
	return []Resource{
		{Type: "role", ARN: "arn:${Partition}:iam::${Account}:role/${RoleNameWithPath}"},
	}
}
