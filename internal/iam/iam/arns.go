// SPDX-License-Identifier: Apache-2.0

package iam

import "muster.dev/muster/internal/aws/arn"

// Partition is the one that muster's accounts are in.
const Partition = "aws"

// AWSAccount stands where an account id would in the ARNs of policies that AWS manages.
const AWSAccount = "aws"

func global(service, account, resource string) arn.ARN {
	return arn.ARN{Partition: Partition, Service: service, Account: account, Resource: resource}
}

// RootARN is the account itself.
func RootARN(account string) arn.ARN { return global("iam", account, "root") }

// RootARN is the account itself.
func (a Account) RootARN() arn.ARN { return RootARN(a.ID) }

// ARN names the user, with the path.
func (u User) ARN() arn.ARN { return global("iam", u.Account, "user"+slash(u.Path)+u.Name) }

// ARN names the role, with the path.
func (r Role) ARN() arn.ARN { return global("iam", r.Account, "role"+slash(r.Path)+r.Name) }

// SessionARN names a session of the role. STS leaves the path out.
func (r Role) SessionARN(session string) arn.ARN {
	return global("sts", r.Account, "assumed-role/"+r.Name+"/"+session)
}

// SessionID is the AssumedRoleId of a session of the role.
func (r Role) SessionID(session string) string { return r.ID + ":" + session }

// ARN names the instance profile, with the path.
func (p InstanceProfile) ARN() arn.ARN {
	return global("iam", p.Account, "instance-profile"+slash(p.Path)+p.Name)
}

// ARN names the policy, with the path.
func (p Policy) ARN() arn.ARN { return global("iam", p.Account, "policy"+slash(p.Path)+p.Name) }

func slash(path string) string {
	if path == "" {
		return "/"
	}
	return path
}
