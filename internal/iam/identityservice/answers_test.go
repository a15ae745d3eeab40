// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/iam/identityservice"
)

const (
	trustEC2   = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},"Action":"sts:AssumeRole"}]}`
	readOnly   = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["iam:Get*","iam:List*"],"Resource":"*"}]}`
	everything = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"}]}`
	policyARN  = "arn:aws:iam::" + account + ":policy/team/reader"
	awsPolicy  = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
	linkedRole = "AWSServiceRoleForAmazonEKSNodegroup"
)

// TestAnswersOnTheWire pins what every action of STS and IAM answers, and every refusal, byte by byte: status, headers
// and body.
func TestAnswersOnTheWire(t *testing.T) {
	r := newRecorder(t)
	type step struct{ who, action, form string }
	run := func(chapter, service string, steps []step) {
		t.Helper()
		for _, s := range steps {
			r.ask(s.who, service, s.action, s.form)
		}
		r.chapter(chapter)
	}
	run("users", "iam", []step{
		{"admin", "CreateUser", "UserName=alice&Path=/ops/&Tags.member.1.Key=team&Tags.member.1.Value=a + b = c@d"},
		{"admin", "CreateUser", "UserName=bob"},
		{"admin", "CreateUser", "UserName=alice"},
		{"admin", "CreateUser", ""},
		{"admin", "CreateUser", "UserName="},
		{"admin", "CreateUser", "UserName=no spaces"},
		{"admin", "CreateUser", "UserName=carol&Path=ops"},
		{"admin", "CreateUser", "UserName=carol&Color=red"},
		{"admin", "CreateUser", "UserName=carol&Tags.member.1.Key=a&Tags.member.1.Value=1&Tags.member.2.Key=A&Tags.member.2.Value=2"},
		{"admin", "CreateUser", "UserName=" + strings.Repeat("a", 65)},
		{"admin", "GetUser", "UserName=alice"},
		{"admin", "GetUser", ""},
		{"admin", "GetUser", "UserName=nobody"},
		{"admin", "ListUsers", ""},
		{"admin", "ListUsers", "PathPrefix=/ops/"},
		{"admin", "ListUsers", "PathPrefix=ops"},
		{"admin", "ListUsers", "MaxItems=1"},
		{"admin", "ListUsers", "MaxItems=0"},
		{"admin", "ListUsers", "MaxItems=many"},
		{"admin", "ListUsers", "Marker=mine"},
		{"admin", "UpdateUser", "UserName=bob&NewUserName=robert&NewPath=/ops/"},
		{"admin", "UpdateUser", "UserName=robert&NewUserName=alice"},
		{"admin", "UpdateUser", "UserName=nobody"},
		{"admin", "ListGroupsForUser", "UserName=alice"},
		{"admin", "ListGroupsForUser", "UserName=nobody"},
		{"admin", "TagUser", "UserName=alice&Tags.member.1.Key=cost&Tags.member.1.Value=7"},
		{"admin", "TagUser", "UserName=alice"},
		{"admin", "TagUser", "UserName=alice&Tags.member.1.Key=aws:mine&Tags.member.1.Value=7"},
		{"admin", "ListUserTags", "UserName=alice"},
		{"admin", "ListUserTags", "UserName=robert"},
		{"admin", "UntagUser", "UserName=alice&TagKeys.member.1=cost"},
		{"admin", "UntagUser", "UserName=nobody&TagKeys.member.1=cost"},
		{"admin", "UntagUser", "UserName=alice&TagKeys.member.2=cost"},
		{"admin", "ListSSHPublicKeys", "UserName=alice"},
		{"admin", "ListSigningCertificates", "UserName=alice"},
		{"admin", "ListMFADevices", "UserName=alice"},
		{"admin", "ListServiceSpecificCredentials", "UserName=alice"},
		{"admin", "ListServiceSpecificCredentials", "AllUsers=true"},
		{"admin", "ListServiceSpecificCredentials", "AllUsers=yes"},
		{"admin", "ListVirtualMFADevices", ""},
		{"admin", "ListVirtualMFADevices", "AssignmentStatus=Lost"},
		{"admin", "GetLoginProfile", "UserName=alice"},
		{"admin", "DeleteLoginProfile", "UserName=alice"},
	})

	r.credentials("alice", r.ask("admin", "iam", "CreateAccessKey", "UserName=alice"))
	r.kept["KEY"] = r.signers["alice"].id
	r.credentials("second", r.ask("admin", "iam", "CreateAccessKey", "UserName=alice"))
	r.kept["SECOND"] = r.signers["second"].id
	run("keys", "iam", []step{
		{"admin", "CreateAccessKey", "UserName=alice"},
		{"admin", "CreateAccessKey", "UserName=nobody"},
		{"alice", "CreateAccessKey", ""},
		{"admin", "ListAccessKeys", "UserName=alice"},
		{"admin", "ListAccessKeys", ""},
		{"admin", "UpdateAccessKey", "UserName=alice&AccessKeyId={SECOND}&Status=Inactive"},
		{"admin", "UpdateAccessKey", "UserName=alice&AccessKeyId={SECOND}&Status=Asleep"},
		{"admin", "UpdateAccessKey", "UserName=alice&AccessKeyId=AKIAAAAAAAAAAAAAAAAA&Status=Active"},
		{"admin", "UpdateAccessKey", "UserName=alice&AccessKeyId={SECOND}"},
		{"second", "GetUser", ""},
		{"admin", "GetAccessKeyLastUsed", "AccessKeyId={KEY}"},
		{"admin", "GetAccessKeyLastUsed", "AccessKeyId={SECOND}"},
		{"admin", "GetAccessKeyLastUsed", "AccessKeyId=AKIAAAAAAAAAAAAAAAAA"},
		{"admin", "DeleteAccessKey", "UserName=alice&AccessKeyId={SECOND}"},
		{"admin", "DeleteAccessKey", "UserName=alice&AccessKeyId={SECOND}"},
		{"admin", "DeleteUser", "UserName=alice"},
	})
	run("roles", "iam", []step{
		{"admin", "CreateRole", "RoleName=nodes&Path=/eks/&Description=of <nodes>&MaxSessionDuration=7200&Tags.member.1.Key=team&Tags.member.1.Value=a&AssumeRolePolicyDocument=" + trustEC2},
		{"admin", "CreateRole", "RoleName=ops&AssumeRolePolicyDocument=" + strings.Replace(trusting("AWS", "arn:aws:iam::"+account+":user/ops/alice"), `"sts:AssumeRole"`, `["sts:AssumeRole","sts:TagSession"]`, 1)},
		{"admin", "CreateRole", "RoleName=ops&AssumeRolePolicyDocument=" + trustEC2},
		{"admin", "CreateRole", "RoleName=bad"},
		{"admin", "CreateRole", "RoleName=bad&AssumeRolePolicyDocument={}"},
		{"admin", "CreateRole", "RoleName=bad&AssumeRolePolicyDocument=not json"},
		{"admin", "CreateRole", "RoleName=bad&AssumeRolePolicyDocument=" + strings.Replace(trustEC2, `"Effect"`, `"Sid":"`+strings.Repeat("a", 2048)+`","Effect"`, 1)},
		{"admin", "CreateRole", "RoleName=bad&MaxSessionDuration=60&AssumeRolePolicyDocument=" + trustEC2},
		{"admin", "CreateRole", "RoleName=bad&PermissionsBoundary=nothing&AssumeRolePolicyDocument=" + trustEC2},
		{"admin", "GetRole", "RoleName=nodes"},
		{"admin", "GetRole", "RoleName=nobody"},
		{"admin", "ListRoles", ""},
		{"admin", "ListRoles", "PathPrefix=/eks/&MaxItems=1"},
		{"admin", "UpdateRole", "RoleName=nodes&Description=changed&MaxSessionDuration=3600"},
		{"admin", "UpdateRole", "RoleName=nodes&MaxSessionDuration=50000"},
		{"admin", "UpdateRoleDescription", "RoleName=nodes&Description=again"},
		{"admin", "UpdateRoleDescription", "RoleName=nodes"},
		{"admin", "UpdateAssumeRolePolicy", "RoleName=nodes&PolicyDocument=" + trustEC2},
		{"admin", "UpdateAssumeRolePolicy", "RoleName=nodes&PolicyDocument=" + everything},
		{"admin", "TagRole", "RoleName=nodes&Tags.member.1.Key=cost&Tags.member.1.Value=7"},
		{"admin", "ListRoleTags", "RoleName=nodes"},
		{"admin", "ListRoleTags", "RoleName=nodes&MaxItems=1"},
		{"admin", "UntagRole", "RoleName=nodes&TagKeys.member.1=cost"},
		{"admin", "CreateServiceLinkedRole", "AWSServiceName=eks-nodegroup.amazonaws.com&Description=of node groups"},
		{"admin", "CreateServiceLinkedRole", "AWSServiceName=eks-nodegroup.amazonaws.com"},
		{"admin", "CreateServiceLinkedRole", "AWSServiceName=eks-nodegroup.amazonaws.com&CustomSuffix=x"},
		{"admin", "CreateServiceLinkedRole", "AWSServiceName=example.com"},
		{"admin", "UpdateRole", "RoleName=" + linkedRole + "&Description=mine"},
		{"admin", "DeleteRole", "RoleName=" + linkedRole},
	})
	r.keep("TASK", r.ask("admin", "iam", "DeleteServiceLinkedRole", "RoleName="+linkedRole), "DeletionTaskId")
	run("linkedroles", "iam", []step{
		{"admin", "DeleteServiceLinkedRole", "RoleName=nodes"},
		{"admin", "GetServiceLinkedRoleDeletionStatus", "DeletionTaskId={TASK}"},
		{"admin", "GetServiceLinkedRoleDeletionStatus", "DeletionTaskId=task/1"},
	})
	run("profiles", "iam", []step{
		{"admin", "CreateInstanceProfile", "InstanceProfileName=nodes&Path=/eks/&Tags.member.1.Key=team&Tags.member.1.Value=a"},
		{"admin", "CreateInstanceProfile", "InstanceProfileName=nodes"},
		{"admin", "AddRoleToInstanceProfile", "InstanceProfileName=nodes&RoleName=nodes"},
		{"admin", "AddRoleToInstanceProfile", "InstanceProfileName=nodes&RoleName=ops"},
		{"admin", "AddRoleToInstanceProfile", "InstanceProfileName=nodes&RoleName=nobody"},
		{"admin", "GetInstanceProfile", "InstanceProfileName=nodes"},
		{"admin", "GetInstanceProfile", "InstanceProfileName=nobody"},
		{"admin", "ListInstanceProfiles", ""},
		{"admin", "ListInstanceProfilesForRole", "RoleName=nodes"},
		{"admin", "ListInstanceProfilesForRole", "RoleName=nobody"},
		{"admin", "TagInstanceProfile", "InstanceProfileName=nodes&Tags.member.1.Key=cost&Tags.member.1.Value=7"},
		{"admin", "ListInstanceProfileTags", "InstanceProfileName=nodes"},
		{"admin", "UntagInstanceProfile", "InstanceProfileName=nodes&TagKeys.member.1=cost"},
		{"admin", "DeleteInstanceProfile", "InstanceProfileName=nodes"},
		{"admin", "DeleteRole", "RoleName=nodes"},
	})
	run("policies", "iam", []step{
		{"admin", "CreatePolicy", "PolicyName=reader&Path=/team/&Description=reads <all>&Tags.member.1.Key=team&Tags.member.1.Value=a&PolicyDocument=" + readOnly},
		{"admin", "CreatePolicy", "PolicyName=Reader&PolicyDocument=" + readOnly},
		{"admin", "CreatePolicy", "PolicyName=old&PolicyDocument=" + strings.Replace(readOnly, "2012-10-17", "2008-10-17", 1)},
		{"admin", "CreatePolicy", "PolicyName=bad&PolicyDocument=" + trustEC2},
		{"admin", "GetPolicy", "PolicyArn=" + policyARN},
		{"admin", "GetPolicy", "PolicyArn=" + awsPolicy},
		{"admin", "GetPolicy", "PolicyArn=" + policyARN + "s"},
		{"admin", "GetPolicy", "PolicyArn=reader"},
		{"admin", "ListPolicies", "Scope=Local"},
		{"admin", "ListPolicies", "OnlyAttached=true"},
		{"admin", "ListPolicies", "Scope=AWS&MaxItems=1"},
		{"admin", "ListPolicies", "Scope=Mine"},
		{"admin", "ListPolicies", "PolicyUsageFilter=Mine"},
		{"admin", "CreatePolicyVersion", "PolicyArn=" + policyARN + "&SetAsDefault=true&PolicyDocument=" + everything},
		{"admin", "CreatePolicyVersion", "PolicyArn=" + policyARN + "&PolicyDocument=" + readOnly},
		{"admin", "CreatePolicyVersion", "PolicyArn=" + policyARN + "&PolicyDocument=" + readOnly},
		{"admin", "CreatePolicyVersion", "PolicyArn=" + policyARN + "&PolicyDocument=" + readOnly},
		{"admin", "CreatePolicyVersion", "PolicyArn=" + policyARN + "&PolicyDocument=" + readOnly},
		{"admin", "CreatePolicyVersion", "PolicyArn=" + awsPolicy + "&PolicyDocument=" + readOnly},
		{"admin", "GetPolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v2"},
		{"admin", "GetPolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v9"},
		{"admin", "ListPolicyVersions", "PolicyArn=" + policyARN},
		{"admin", "SetDefaultPolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v1"},
		{"admin", "SetDefaultPolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v9"},
		{"admin", "DeletePolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v5"},
		{"admin", "DeletePolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v1"},
		{"admin", "TagPolicy", "PolicyArn=" + policyARN + "&Tags.member.1.Key=cost&Tags.member.1.Value=7"},
		{"admin", "TagPolicy", "PolicyArn=" + awsPolicy + "&Tags.member.1.Key=cost&Tags.member.1.Value=7"},
		{"admin", "ListPolicyTags", "PolicyArn=" + policyARN},
		{"admin", "UntagPolicy", "PolicyArn=" + policyARN + "&TagKeys.member.1=cost"},
	})
	run("grants", "iam", []step{
		{"admin", "AttachUserPolicy", "UserName=alice&PolicyArn=" + policyARN},
		{"admin", "AttachUserPolicy", "UserName=alice&PolicyArn=" + policyARN + "s"},
		{"admin", "AttachRolePolicy", "RoleName=ops&PolicyArn=" + policyARN},
		{"admin", "AttachRolePolicy", "RoleName=ops&PolicyArn=arn:aws:iam::aws:policy/aws-service-role/AWSServiceRoleForAmazonEKSNodegroup"},
		{"admin", "AttachRolePolicy", "RoleName=nobody&PolicyArn=" + policyARN},
		{"admin", "ListAttachedUserPolicies", "UserName=alice"},
		{"admin", "ListAttachedRolePolicies", "RoleName=ops&PathPrefix=/team/"},
		{"admin", "ListEntitiesForPolicy", "PolicyArn=" + policyARN},
		{"admin", "ListEntitiesForPolicy", "PolicyArn=" + policyARN + "&EntityFilter=Group"},
		{"admin", "ListEntitiesForPolicy", "PolicyArn=" + policyARN + "&EntityFilter=Mine"},
		{"admin", "PutUserPolicy", "UserName=alice&PolicyName=own&PolicyDocument=" + readOnly},
		{"admin", "PutUserPolicy", "UserName=alice&PolicyName=own&PolicyDocument={"},
		{"admin", "PutRolePolicy", "RoleName=ops&PolicyName=own&PolicyDocument=" + readOnly},
		{"admin", "PutRolePolicy", "RoleName=ops&PolicyName=large&PolicyDocument=" + strings.Replace(readOnly, `"Effect"`, `"Sid":"`+strings.Repeat("a", 10240)+`","Effect"`, 1)},
		{"admin", "GetUserPolicy", "UserName=alice&PolicyName=own"},
		{"admin", "GetUserPolicy", "UserName=alice&PolicyName=other"},
		{"admin", "GetRolePolicy", "RoleName=ops&PolicyName=own"},
		{"admin", "ListUserPolicies", "UserName=alice"},
		{"admin", "ListRolePolicies", "RoleName=ops"},
		{"admin", "PutUserPermissionsBoundary", "UserName=alice&PermissionsBoundary=" + policyARN},
		{"admin", "PutUserPermissionsBoundary", "UserName=alice&PermissionsBoundary=none"},
		{"admin", "PutRolePermissionsBoundary", "RoleName=ops&PermissionsBoundary=" + policyARN},
		{"admin", "GetUser", "UserName=alice"},
		{"admin", "GetRole", "RoleName=ops"},
		{"admin", "ListEntitiesForPolicy", "PolicyArn=" + policyARN + "&PolicyUsageFilter=PermissionsBoundary"},
		{"alice", "CreateUser", "UserName=dave"},
		{"alice", "DeleteRole", "RoleName=ops"},
		{"admin", "DeletePolicy", "PolicyArn=" + policyARN},
		{"admin", "DeleteUserPermissionsBoundary", "UserName=alice"},
		{"admin", "DeleteUserPermissionsBoundary", "UserName=alice"},
		{"admin", "DeleteRolePermissionsBoundary", "RoleName=ops"},
	})
	run("simulations", "iam", []step{
		{"admin", "SimulateCustomPolicy", "PolicyInputList.member.1=" + readOnly + "&ActionNames.member.1=iam:GetUser&ActionNames.member.2=iam:CreateUser"},
		{"admin", "SimulateCustomPolicy", "PolicyInputList.member.1=" + readOnly + "&ActionNames.member.1=iam:GetUser&ContextEntries.member.1.ContextKeyName=aws:username&ContextEntries.member.1.ContextKeyType=string&ContextEntries.member.1.ContextKeyValues.member.1=alice"},
		{"admin", "SimulateCustomPolicy", "PolicyInputList.member.1=" + readOnly + "&ActionNames.member.1=iam:GetUser&ResourceOwner=me"},
		{"admin", "SimulateCustomPolicy", "PolicyInputList.member.1={}&ActionNames.member.1=iam:GetUser"},
		{"admin", "SimulateCustomPolicy", "ActionNames.member.1=iam:GetUser"},
		{"admin", "SimulatePrincipalPolicy", "PolicySourceArn=arn:aws:iam::" + account + ":user/ops/alice&ActionNames.member.1=iam:GetUser&ActionNames.member.2=s3:GetObject&ResourceArns.member.1=*"},
		{"admin", "SimulatePrincipalPolicy", "PolicySourceArn=arn:aws:iam::" + account + ":user/nobody&ActionNames.member.1=iam:GetUser"},
		{"admin", "SimulatePrincipalPolicy", "PolicySourceArn=alice&ActionNames.member.1=iam:GetUser"},
		{"admin", "GetContextKeysForCustomPolicy", "PolicyInputList.member.1=" + strings.Replace(readOnly, `"Resource"`, `"Condition":{"StringEquals":{"aws:username":"a"}},"Resource"`, 1)},
		{"admin", "GetContextKeysForPrincipalPolicy", "PolicySourceArn=arn:aws:iam::" + account + ":user/ops/alice"},
		{"admin", "GetContextKeysForPrincipalPolicy", "PolicySourceArn=alice"},
	})
	run("account", "iam", []step{
		{"admin", "GetAccountSummary", ""},
		{"admin", "ListAccountAliases", ""},
		{"admin", "CreateAccountAlias", "AccountAlias=house"},
		{"admin", "CreateAccountAlias", "AccountAlias=No"},
		{"admin", "ListAccountAliases", ""},
		{"admin", "DeleteAccountAlias", "AccountAlias=other"},
		{"admin", "DeleteAccountAlias", "AccountAlias=house"},
	})
	r.kept["PROVIDER"] = oidcARN(ownURL)
	run("oidcproviders", "iam", []step{
		{"admin", "CreateOpenIDConnectProvider", "Url=" + ownURL + "&ClientIDList.member.1=sts.amazonaws.com&Tags.member.1.Key=team&Tags.member.1.Value=a"},
		{"admin", "CreateOpenIDConnectProvider", "Url=" + ownURL},
		{"admin", "CreateOpenIDConnectProvider", "Url=http://example.com"},
		{"admin", "CreateOpenIDConnectProvider", "Url=" + foreignURL + "&ClientIDList.member.1=sts.amazonaws.com"},
		{"admin", "GetOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}"},
		{"admin", "GetOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}s"},
		{"admin", "ListOpenIDConnectProviders", ""},
		{"admin", "AddClientIDToOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}&ClientID=vault"},
		{"admin", "RemoveClientIDFromOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}&ClientID=vault"},
		{"admin", "UpdateOpenIDConnectProviderThumbprint", "OpenIDConnectProviderArn={PROVIDER}&ThumbprintList.member.1=0123456789012345678901234567890123456789"},
		{"admin", "UpdateOpenIDConnectProviderThumbprint", "OpenIDConnectProviderArn={PROVIDER}&ThumbprintList.member.1=short"},
		{"admin", "TagOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}&Tags.member.1.Key=cost&Tags.member.1.Value=7"},
		{"admin", "TagOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}"},
		{"admin", "ListOpenIDConnectProviderTags", "OpenIDConnectProviderArn={PROVIDER}"},
		{"admin", "UntagOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}&TagKeys.member.1=cost"},
		{"admin", "CreateRole", "RoleName=app&AssumeRolePolicyDocument=" + federated(ownURL, equals)},
		{"admin", "CreateRole", "RoleName=lab&AssumeRolePolicyDocument=" + federated(foreignURL, equals)},
	})

	r.credentials("session", r.ask("alice", "sts", "AssumeRole", "RoleSessionName=build&RoleArn="+*roleARN("ops")))
	r.credentials("own", r.ask("alice", "sts", "GetSessionToken", ""))
	run("sts", "sts", []step{
		{"admin", "GetCallerIdentity", ""},
		{"session", "GetCallerIdentity", ""},
		{"own", "GetCallerIdentity", ""},
		{"admin", "GetCallerIdentity", "Extra=1"},
		{"alice", "AssumeRole", "RoleSessionName=build&DurationSeconds=900&ExternalId=12345&Policy=" + readOnly + "&Tags.member.1.Key=team&Tags.member.1.Value=a&RoleArn=" + *roleARN("ops")},
		{"admin", "AssumeRole", "RoleSessionName=build&RoleArn=" + *roleARN("ops")},
		{"alice", "AssumeRole", "RoleSessionName=build&RoleArn=" + *roleARN("nobody")},
		{"alice", "AssumeRole", "RoleSessionName=build&RoleArn=ops"},
		{"alice", "AssumeRole", "RoleSessionName=i-0123456789abcdef0&RoleArn=" + *roleARN("ops")},
		{"alice", "AssumeRole", "RoleSessionName=build&SourceIdentity=a&RoleArn=" + *roleARN("ops")},
		{"alice", "AssumeRole", "RoleSessionName=build&DurationSeconds=60&RoleArn=" + *roleARN("ops")},
		{"session", "AssumeRole", "RoleSessionName=build&RoleArn=" + *roleARN("ops")},
		{"alice", "AssumeRole", "RoleSessionName=build&Policy={}&RoleArn=" + *roleARN("ops")},
		{"alice", "AssumeRole", "RoleSessionName=build&Policy=" + strings.Replace(readOnly, `"Effect"`, `"Sid":"`+incompressible(1900)+`","Effect"`, 1) + "&RoleArn=" + *roleARN("ops")},
		{"alice", "AssumeRole", "RoleArn=" + *roleARN("ops")},
		{"alice", "AssumeRole", "RoleSessionName=build&TransitiveTagKeys.member.1=team&RoleArn=" + *roleARN("ops")},
		{"alice", "GetSessionToken", "DurationSeconds=900"},
		{"alice", "GetSessionToken", "DurationSeconds=60"},
		{"session", "GetSessionToken", ""},
		{"nobody", "AssumeRoleWithWebIdentity", "RoleSessionName=build&WebIdentityToken={TOKEN}&RoleArn=" + *roleARN("app")},
		{"nobody", "AssumeRoleWithWebIdentity", "RoleSessionName=build&WebIdentityToken={LATE}&RoleArn=" + *roleARN("app")},
		{"nobody", "AssumeRoleWithWebIdentity", "RoleSessionName=build&WebIdentityToken={STRANGE}&RoleArn=" + *roleARN("app")},
		{"nobody", "AssumeRoleWithWebIdentity", "RoleSessionName=build&WebIdentityToken={FOREIGN}&RoleArn=" + *roleARN("app")},
		{"nobody", "AssumeRoleWithWebIdentity", "RoleSessionName=build&WebIdentityToken={FOREIGN}&RoleArn=" + *roleARN("lab")},
		{"nobody", "AssumeRoleWithWebIdentity", "RoleSessionName=build&WebIdentityToken=abcd&RoleArn=" + *roleARN("app")},
		{"nobody", "AssumeRoleWithWebIdentity", "RoleSessionName=build&RoleArn=" + *roleARN("app")},
		{"nobody", "GetCallerIdentity", ""},
		{"stranger", "GetCallerIdentity", ""},
		{"forger", "GetCallerIdentity", ""},
		{"second", "GetCallerIdentity", ""},
	})
	exchange := "RoleSessionName=build&WebIdentityToken={TOKEN}&RoleArn=" + *roleARN("app")
	r.issuers.set(func() { r.issuers.gone[podBound] = true })
	r.ask("nobody", "sts", "AssumeRoleWithWebIdentity", exchange)
	r.issuers.set(func() { r.issuers.away = errors.New("no route to the issuer") })
	r.ask("nobody", "sts", "AssumeRoleWithWebIdentity", exchange)
	r.clock, r.at = answersAt.Add(2*time.Hour), answersAt.Add(2*time.Hour)
	r.ask("session", "sts", "GetCallerIdentity", "")
	r.clock, r.at = answersAt, answersAt
	r.chapter("sessions")

	form := http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}
	const who = "Action=GetCallerIdentity&Version=2011-06-15"
	accepting := form.Clone()
	accepting.Set("Accept", "application/json")
	r.send("admin", "admin, JSON is accepted", "sts", http.MethodPost, "/", who, accepting)
	r.send("admin", "admin, JSON is accepted and a refusal", "sts", http.MethodPost, "/", who+"&Extra=1", accepting)
	r.send("admin", "admin, signed for eks and sent to STS", "eks", http.MethodPost, "/", who, form)
	r.send("admin", "admin, signed for iam and sent to STS", "iam", http.MethodPost, "/", who, form)
	r.send("admin", "admin, signed for a service that is not here", "sqs", http.MethodPost, "/", "Action=ListQueues&Version=2012-11-05", form)
	r.send("admin", "admin, signed for a service of JSON that is not here", "ecs", http.MethodPost, "/", "{}", http.Header{"Content-Type": {"application/x-amz-json-1.1"}})
	r.send("admin", "admin, signed for S3, which is not here", "s3", http.MethodGet, "/bucket", "", http.Header{})
	r.send("admin", "admin, an action that nobody has", "iam", http.MethodPost, "/", "Action=Fly&Version=2010-05-08", form)
	r.send("admin", "admin, an action that is refused", "sts", http.MethodPost, "/", "Action=GetFederationToken&Version=2011-06-15&Name=a", form)
	r.send("admin", "admin, another version", "iam", http.MethodPost, "/", "Action=GetUser&Version=2010-05-09", form)
	r.send("admin", "admin, no action", "iam", http.MethodPost, "/", "Version=2010-05-08", form)
	r.send("admin", "admin, a parameter twice", "iam", http.MethodPost, "/", "Action=GetUser&Version=2010-05-08&UserName=a&UserName=b", form)
	r.send("admin", "admin, no form", "iam", http.MethodPost, "/", "Action=GetUser&Version=2010-05-08", http.Header{"Content-Type": {"text/plain"}})
	r.send("admin", "admin, an escape that is none", "iam", http.MethodPost, "/", "Action=GetUser&Version=2010-05-08&UserName=%zz", form)
	r.send("admin", "admin, another path", "iam", http.MethodPost, "/users", "Action=GetUser&Version=2010-05-08", form)
	r.send("admin", "admin, PUT", "iam", http.MethodPut, "/", "Action=GetUser&Version=2010-05-08", form)
	r.send("admin", "admin, GET", "iam", http.MethodGet, "/?Action=GetUser&Version=2010-05-08", "", http.Header{})
	r.send("admin", "admin, a GET that may be", "sts", http.MethodGet, "/?"+who, "", http.Header{})
	r.send("admin", "admin, a query beside the form", "iam", http.MethodPost, "/?a=b", "Action=GetUser&Version=2010-05-08", form)
	r.send("admin", "admin, a large body", "iam", http.MethodPost, "/", "Action=GetUser&Version=2010-05-08&UserName="+strings.Repeat("a", 600<<10), form)
	r.send("nobody", "nobody, a page", "", http.MethodGet, "/favicon.ico", "", http.Header{"Accept": {"text/html"}})
	r.at = answersAt.Add(-time.Hour)
	r.send("admin", "admin, an hour late", "sts", http.MethodPost, "/", who, form)
	r.at = answersAt.Add(time.Hour)
	r.send("admin", "admin, an hour early", "sts", http.MethodPost, "/", who, form)
	r.at = answersAt
	region := http.Header{"Content-Type": form["Content-Type"], "Authorization": {"AWS4-HMAC-SHA256 Credential=" + r.key.ID + "/20261121/mars-1/sts/aws4_request, SignedHeaders=host, Signature=00"}, "X-Amz-Date": {"20261121T140000Z"}}
	r.send("", "admin, another region", "", http.MethodPost, "/", who, region)
	region.Set("Authorization", "AWS4-HMAC-SHA256 Credential=")
	r.send("", "half a signature", "", http.MethodPost, "/", who, region)
	r.chapter("protocol")

	r.store.Fail = func(int, identityservice.Entity) error { return identityservice.ErrAway() }
	r.ask("admin", "iam", "CreateUser", "UserName=erin")
	r.store.Fail = func(int, identityservice.Entity) error { return identityservice.ErrConflict }
	r.ask("admin", "iam", "UpdateUser", "UserName=robert&NewPath=/")
	r.store.Fail = func(int, identityservice.Entity) error { return identityservice.ErrExists }
	r.ask("admin", "iam", "CreateUser", "UserName=erin")
	r.store.Fail = func(int, identityservice.Entity) error { return errors.New("the disk is full") }
	r.ask("admin", "iam", "CreateUser", "UserName=erin")
	r.store.Fail = nil
	r.chapter("outages")

	run("deleted", "iam", []step{
		{"admin", "DetachUserPolicy", "UserName=alice&PolicyArn=" + policyARN},
		{"admin", "DetachUserPolicy", "UserName=alice&PolicyArn=" + policyARN},
		{"admin", "DetachRolePolicy", "RoleName=ops&PolicyArn=" + policyARN},
		{"admin", "DeleteUserPolicy", "UserName=alice&PolicyName=own"},
		{"admin", "DeleteRolePolicy", "RoleName=ops&PolicyName=own"},
		{"admin", "DeleteRolePolicy", "RoleName=ops&PolicyName=own"},
		{"admin", "DeleteOpenIDConnectProvider", "OpenIDConnectProviderArn={PROVIDER}"},
		{"admin", "RemoveRoleFromInstanceProfile", "InstanceProfileName=nodes&RoleName=nodes"},
		{"admin", "RemoveRoleFromInstanceProfile", "InstanceProfileName=nodes&RoleName=nodes"},
		{"admin", "DeleteInstanceProfile", "InstanceProfileName=nodes"},
		{"admin", "DeleteRole", "RoleName=ops"},
		{"admin", "DeleteRole", "RoleName=ops"},
		{"admin", "DeletePolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v2"},
		{"admin", "DeletePolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v3"},
		{"admin", "DeletePolicyVersion", "PolicyArn=" + policyARN + "&VersionId=v4"},
		{"admin", "DeletePolicy", "PolicyArn=" + policyARN},
		{"admin", "DeletePolicy", "PolicyArn=" + policyARN},
		{"admin", "DeletePolicy", "PolicyArn=" + awsPolicy},
		{"admin", "DeleteAccessKey", "UserName=alice&AccessKeyId={KEY}"},
		{"admin", "DeleteUser", "UserName=alice"},
		{"alice", "GetUser", ""},
		{"session", "GetUser", ""},
	})

	// The last requests of a key that has asked for too much.
	limited := newWorld(t, func(c *identityservice.Config) {
		c.Now, c.Rate, c.Burst = func() time.Time { return answersAt }, 1, 1
	})
	r.world, r.signers["admin"] = limited, limited.admin()
	r.ask("admin", "sts", "GetCallerIdentity", "")
	r.ask("admin", "sts", "GetCallerIdentity", "")
	r.chapter("throttled")

	for _, service := range awsactions.Services() {
		if versions[service.Name] == "" {
			continue
		}
		for _, action := range service.Actions {
			if name := service.Name + ":" + action.Name; action.Mark != awsactions.Refused && !r.actions[name] {
				t.Errorf("no answer of %s is pinned", name)
			}
		}
	}
	for _, code := range codesOf(t, "../../aws/iamfault/fault.go") {
		if !r.codes[code] {
			t.Errorf("no answer with the code %s is pinned", code)
		}
	}
}

// codesOf reads the codes that a file declares.
func codesOf(t *testing.T, file string) []string {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	ast.Inspect(parsed, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok && value.Kind == token.STRING {
			codes = append(codes, strings.Trim(value.Value, `"`))
		}
		return true
	})
	return codes
}

// incompressible is a name that sealing cannot make shorter.
func incompressible(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	random := rand.New(rand.NewChaCha8([32]byte{2}))
	text := make([]byte, n)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return string(text)
}
