// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"context"
	"html"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
)

// said is a request in words, and the words that refuse it: the status, the code, and what follows "is not authorized
// to perform: ".
type said struct{ request, answer string }

// send sends a request: "SERVICE ACTION BODY", or "SERVICE METHOD PATH BODY" to EKS and EFS.
func (s *served) send(ctx context.Context, who aws.Credentials, request string) (status int, body string) {
	s.t.Helper()
	service, rest, _ := strings.Cut(request, " ")
	first, rest, _ := strings.Cut(rest, " ")
	method, path, headers := http.MethodPost, "/", []string{"Content-Type", "application/x-amz-json-1.1"}
	versions := map[string]string{"iam": "2010-05-08", "sts": "2011-06-15", "ec2": "2016-11-15", "autoscaling": "2011-01-01", "cloudformation": "2010-05-15", "elasticloadbalancing": "2012-06-01"}
	targets := map[string]string{
		"ecr": "AmazonEC2ContainerRegistry_V20150921", "kms": "TrentService", "logs": "Logs_20140328", "ssm": "AmazonSSM", "sqs": "AmazonSQS", "events": "AWSEvents",
		"tagging": "ResourceGroupsTaggingAPI_20170126",
	}
	switch {
	case versions[service] != "":
		headers[1], rest = "application/x-www-form-urlencoded", strings.TrimSuffix("Action="+first+"&Version="+versions[service]+"&"+rest, "&")
	case targets[service] != "":
		headers = append(headers, "X-Amz-Target", targets[service]+"."+first)
		if rest == "" {
			rest = "{}"
		}
	default:
		headers[1] = "application/json"
		method = first
		path, rest, _ = strings.Cut(rest, " ")
	}
	status, _, body, err := s.ask(ctx, who, service, method, path, rest, headers...)
	if err != nil {
		s.t.Fatal(request, err)
	}
	return status, html.UnescapeString(body)
}

// user makes a user with a key and the policies of these documents.
func (s *served) user(name string, documents ...string) aws.Credentials {
	s.t.Helper()
	ctx := s.t.Context()
	api := iam.NewFromConfig(aws.Config{Region: "us-east-1", BaseEndpoint: &s.url, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return s.admin, nil })})
	check := func(err error) {
		if err != nil {
			s.t.Helper()
			s.t.Fatal(err)
		}
	}
	_, err := api.CreateUser(ctx, &iam.CreateUserInput{UserName: &name})
	check(err)
	for _, document := range documents {
		made, err := api.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: aws.String(name), PolicyDocument: &document})
		check(err)
		_, err = api.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: &name, PolicyArn: made.Policy.Arn})
		check(err)
	}
	key, err := api.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &name})
	check(err)
	return aws.Credentials{AccessKeyID: *key.AccessKey.AccessKeyId, SecretAccessKey: *key.AccessKey.SecretAccessKey}
}

// Refusals name the resource that AWS names for the action, in the words and with the code of the service.
func TestDeniedInAWSWords(t *testing.T) {
	s := serve(t)
	nobody := s.user("nobody")
	const arn = "arn:aws:"
	for _, c := range []said{
		// IAM: lists name the path that they are about, all else the kind and the name; what is to be made has its ARN.
		{"iam ListUsers", "403 iam:ListUsers on resource: arn:aws:iam::000000000000:user/"},
		{"iam ListUsers PathPrefix=%2Fteam%2F", "403 iam:ListUsers on resource: arn:aws:iam::000000000000:user/team/"},
		{"iam ListUsers PathPrefix=x", "403 iam:ListUsers on resource: arn:aws:iam::000000000000:user/"},
		{"iam ListRoles", "403 iam:ListRoles on resource: arn:aws:iam::000000000000:role/"},
		{"iam ListInstanceProfiles PathPrefix=%2Fkarpenter%2F", "403 iam:ListInstanceProfiles on resource: arn:aws:iam::000000000000:instance-profile/karpenter/"},
		{"iam ListPolicies", "403 iam:ListPolicies on resource: policy path /"},
		{"iam ListOpenIDConnectProviders", "403 iam:ListOpenIDConnectProviders on resource: arn:aws:iam::000000000000:oidc-provider/*"},
		{"iam ListVirtualMFADevices", "403 iam:ListVirtualMFADevices on resource: arn:aws:iam::000000000000:mfa/"},
		{"iam ListAccountAliases", "403 iam:ListAccountAliases on resource: *"},
		{"iam GetAccountSummary", "403 iam:GetAccountSummary on resource: *"},
		{"iam GetUser", "403 iam:GetUser on resource: user nobody"},
		{"iam GetUser UserName=muster", "403 iam:GetUser on resource: user muster"},
		{"iam CreateUser UserName=new&Path=%2Fa%2F", "403 iam:CreateUser on resource: arn:aws:iam::000000000000:user/a/new"},
		{"iam CreateAccessKey UserName=other", "403 iam:CreateAccessKey on resource: user other"},
		{"iam ListMFADevices UserName=other", "403 iam:ListMFADevices on resource: user other"},
		{"iam GetRole RoleName=muster-node", "403 iam:GetRole on resource: role muster-node"},
		{"iam GetRole RoleName=absent", "403 iam:GetRole on resource: role absent"},
		{"iam PutRolePolicy RoleName=absent&PolicyName=p&PolicyDocument=x", "403 iam:PutRolePolicy on resource: role absent"},
		{"iam ListInstanceProfilesForRole RoleName=absent", "403 iam:ListInstanceProfilesForRole on resource: role absent"},
		{"iam ListRoleTags RoleName=absent", "403 iam:ListRoleTags on resource: role absent"},
		{"iam CreateRole RoleName=new&AssumeRolePolicyDocument=x", "403 iam:CreateRole on resource: arn:aws:iam::000000000000:role/new"},
		{"iam GetInstanceProfile InstanceProfileName=absent", "403 iam:GetInstanceProfile on resource: instance profile absent"},
		{"iam CreateInstanceProfile InstanceProfileName=new", "403 iam:CreateInstanceProfile on resource: arn:aws:iam::000000000000:instance-profile/new"},
		{"iam CreatePolicy PolicyName=new&PolicyDocument=x", "403 iam:CreatePolicy on resource: policy new"},
		{"iam GetPolicy PolicyArn=arn:aws:iam::aws:policy/ReadOnlyAccess", "403 iam:GetPolicy on resource: policy arn:aws:iam::aws:policy/ReadOnlyAccess"},
		{"iam ListPolicyVersions PolicyArn=arn:aws:iam::000000000000:policy/absent", "403 iam:ListPolicyVersions on resource: policy arn:aws:iam::000000000000:policy/absent"},
		{"iam CreateServiceLinkedRole AWSServiceName=eks.amazonaws.com", "403 iam:CreateServiceLinkedRole on resource: arn:aws:iam::000000000000:role/aws-service-role/eks.amazonaws.com/AWSServiceRoleForAmazonEKS"},
		{"iam SimulatePrincipalPolicy PolicySourceArn=arn:aws:iam::000000000000:user/other&ActionNames.member.1=iam:GetUser", "403 iam:SimulatePrincipalPolicy on resource: arn:aws:iam::000000000000:user/other"},
		{"iam CreateOpenIDConnectProvider Url=https%3A%2F%2Foidc.example.com", "403 iam:CreateOpenIDConnectProvider on resource: arn:aws:iam::000000000000:oidc-provider/oidc.example.com"},
		// EKS.
		{"eks GET /clusters", "403 eks:ListClusters on resource: " + arn + "eks:us-east-1:000000000000:cluster/*"},
		{"eks POST /clusters {\"name\":\"blue\",\"roleArn\":\"arn:aws:iam::000000000000:role/eks\",\"resourcesVpcConfig\":{}}", "403 eks:CreateCluster on resource: " + arn + "eks:us-east-1:000000000000:cluster/blue"},
		{"eks GET /clusters/absent", "403 eks:DescribeCluster on resource: " + arn + "eks:us-east-1:000000000000:cluster/absent"},
		{"eks GET /cluster-versions", "403 eks:DescribeClusterVersions on resource: " + arn + "eks:us-east-1:000000000000:*"},
		{"eks GET /clusters/absent/node-groups", "403 eks:ListNodegroups on resource: " + arn + "eks:us-east-1:000000000000:cluster/absent"},
		// EC2 and Auto Scaling leave out a resource that is any.
		{"ec2 DescribeInstances", "403 ec2:DescribeInstances because"},
		{"ec2 DescribeInstances DryRun=true", "403 ec2:DescribeInstances because"},
		{"ec2 CreateVpc CidrBlock=10.9.0.0%2F16", "403 ec2:CreateVpc on resource: " + arn + "ec2:us-east-1:000000000000:vpc/*"},
		{"ec2 DeleteVpc VpcId=vpc-0123456789abcdef0", "403 ec2:DeleteVpc on resource: " + arn + "ec2:us-east-1:000000000000:vpc/vpc-0123456789abcdef0"},
		{"autoscaling DescribeAutoScalingGroups", "403 autoscaling:DescribeAutoScalingGroups because"},
		{"autoscaling DescribeTags", "403 autoscaling:DescribeTags because"},
		{"autoscaling SetDesiredCapacity AutoScalingGroupName=absent&DesiredCapacity=1", "403 autoscaling:SetDesiredCapacity on resource: " + arn + "autoscaling:us-east-1:000000000000:autoScalingGroup:*:autoScalingGroupName/absent"},
		// The services of JSON.
		{"ecr DescribeRepositories", "400 ecr:DescribeRepositories on resource: " + arn + "ecr:us-east-1:000000000000:repository/*"},
		{"ecr DescribeRepositories {\"repositoryNames\":[\"team/a\"]}", "400 ecr:DescribeRepositories on resource: " + arn + "ecr:us-east-1:000000000000:repository/team/a"},
		{"ecr GetAuthorizationToken", "400 ecr:GetAuthorizationToken on resource: *"},
		{"kms CreateKey", "400 kms:CreateKey on resource: *"},
		{"kms ListAliases", "400 kms:ListAliases on resource: *"},
		{"logs DescribeLogGroups", "400 logs:DescribeLogGroups on resource: " + arn + "logs:us-east-1:000000000000:log-group::log-stream:"},
		{"logs CreateLogGroup {\"logGroupName\":\"/a\"}", "400 logs:CreateLogGroup on resource: " + arn + "logs:us-east-1:000000000000:log-group:/a:log-stream:"},
		{"logs PutRetentionPolicy {\"logGroupName\":\"/a\",\"retentionInDays\":1}", "400 logs:PutRetentionPolicy on resource: " + arn + "logs:us-east-1:000000000000:log-group:/a:log-stream:"},
		{"logs ListTagsForResource {\"resourceArn\":\"arn:aws:logs:us-east-1:000000000000:log-group:/a\"}", "400 logs:ListTagsForResource on resource: " + arn + "logs:us-east-1:000000000000:log-group:/a because"},
		{"ssm GetParameter {\"Name\":\"/aws/service/eks/x\"}", "400 ssm:GetParameter on resource: " + arn + "ssm:us-east-1::parameter/aws/service/eks/x"},
		{"elasticloadbalancing DescribeLoadBalancers", "403 elasticloadbalancing:DescribeLoadBalancers on resource: *"},
		{"tagging GetResources", "400 tag:GetResources on resource: *"},
		{"arc-zonal-shift GET /zonalshifts", "403 arc-zonal-shift:ListZonalShifts on resource: *"},
		{"arc-zonal-shift GET /managedresources/arn%3Aaws%3Aeks%3Aus-east-1%3A000000000000%3Acluster%2Fabsent", "403 arc-zonal-shift:GetManagedResource on resource: " + arn + "eks:us-east-1:000000000000:cluster/absent"},
		// EFS names no resource and gives no reason.
		{"elasticfilesystem GET /2015-02-01/file-systems", "403 elasticfilesystem:DescribeFileSystems on the specified resource"},
		{"elasticfilesystem POST /2015-02-01/file-systems {\"CreationToken\":\"a\"}", "403 elasticfilesystem:CreateFileSystem on the specified resource"},
	} {
		checkDenied(t, s, nobody, c)
	}
}

func checkDenied(t *testing.T, s *served, who aws.Credentials, c said) {
	t.Helper()
	status, body := s.send(t.Context(), who, c.request)
	service, _, _ := strings.Cut(c.request, " ")
	wantStatus, want, _ := strings.Cut(c.answer, " ")
	action, _, _ := strings.Cut(want, " ")
	want = "User: arn:aws:iam::000000000000:user/nobody is not authorized to perform: " + want
	code := `"__type":"AccessDeniedException"`
	switch service {
	case "ec2":
		code, want = "<Code>UnauthorizedOperation</Code>", "<Message>You are not authorized to perform this operation. "+want
	case "iam", "autoscaling", "elasticloadbalancing":
		code, want = "<Code>AccessDenied</Code>", "<Message>"+want
	}
	switch {
	case service == "elasticfilesystem":
		want += `"`
	case strings.HasSuffix(want, " because"):
		want += " no identity-based policy allows the " + action + " action"
	default:
		want += " because no identity-based policy allows the " + action + " action"
	}
	if wantStatus != strconv.Itoa(status) || !strings.Contains(body, code) || !strings.Contains(body, want) {
		t.Errorf("%s:\n%d %s\nwant %s %s %s", c.request, status, body, wantStatus, code, want)
	}
}

// A policy that denies is named by its ARN, as AWS does.
func TestExplicitDenies(t *testing.T) {
	s := serve(t)
	who := s.user("nobody", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"*","Resource":"*"},{"Effect":"Deny","Action":["ec2:*","iam:Get*","kms:*","elasticfilesystem:*"],"Resource":"*"}]}`)
	const policy = " with an explicit deny in an identity-based policy: arn:aws:iam::000000000000:policy/nobody"
	for request, want := range map[string]string{
		"ec2 DescribeVpcs": "<Message>You are not authorized to perform this operation. User: arn:aws:iam::000000000000:user/nobody is not authorized to perform: ec2:DescribeVpcs" + policy + "<",
		"iam GetUser":      "iam:GetUser on resource: user nobody" + policy + "<",
		"kms ListKeys":     "kms:ListKeys on resource: *" + policy + `"`,
		"elasticfilesystem GET /2015-02-01/file-systems": `elasticfilesystem:DescribeFileSystems on the specified resource"`,
	} {
		if status, body := s.send(t.Context(), who, request); !strings.Contains(body, want) {
			t.Errorf("%s: %d %s, want %s", request, status, body, want)
		}
	}
}
