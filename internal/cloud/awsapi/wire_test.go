// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

func times(n int, format string) string {
	var parts []string
	for i := 1; i <= n; i++ {
		parts = append(parts, strings.ReplaceAll(format, "#", fmt.Sprint(i)))
	}
	return strings.Join(parts, "&")
}

// Each service says of something without tags what AWS says: an empty list, or nothing at all.
func TestWithoutTags(t *testing.T) {
	s := serve(t)
	made := map[string]string{}
	for _, c := range []struct{ request, has, lacks string }{
		{"ec2 CreateVpc CidrBlock=10.9.0.0%2F16", "<tagSet></tagSet>", ""},
		{"ec2 DescribeVpcs", "<tagSet></tagSet>", ""},
		{"ec2 CreateSubnet CidrBlock=10.9.0.0%2F24&VpcId={vpc}", "<tagSet></tagSet>", ""},
		{"ec2 DescribeSubnets", "<tagSet></tagSet>", ""},
		{"ec2 CreateSecurityGroup GroupName=a&GroupDescription=b&VpcId={vpc}", "<tagSet></tagSet>", ""},
		{"ec2 DescribeSecurityGroups", "<tagSet></tagSet>", ""},
		{"ec2 CreateRouteTable VpcId={vpc}", "<tagSet></tagSet>", ""},
		{"ec2 CreateInternetGateway", "<tagSet></tagSet>", ""},
		{"ec2 DescribeNetworkAcls", "<tagSet></tagSet>", ""},
		{"ec2 DescribeTags", "<tagSet></tagSet>", ""},
		{"autoscaling DescribeTags", "<Tags></Tags>", ""},
		{"kms CreateKey {\"Tags\":[]}", `"KeyId"`, `"Tags"`},
		{"kms ListResourceTags {\"KeyId\":\"{key}\"}", `"Tags":[]`, ""},
		{"elasticfilesystem POST /2015-02-01/file-systems {\"CreationToken\":\"a\",\"Tags\":[]}", `"Tags":[]`, ""},
		{"elasticfilesystem GET /2015-02-01/file-systems", `"Tags":[]`, ""},
		{"elasticfilesystem GET /2015-02-01/resource-tags/{fs}", `"Tags":[]`, ""},
		{"elasticfilesystem POST /2015-02-01/access-points {\"ClientToken\":\"a\",\"FileSystemId\":\"{fs}\"}", `"Tags":[]`, ""},
		{"elasticfilesystem GET /2015-02-01/access-points", `"Tags":[]`, ""},
		{"logs CreateLogGroup {\"logGroupName\":\"/a\"}", "", "tags"},
		{"logs ListTagsForResource {\"resourceArn\":\"arn:aws:logs:us-east-1:000000000000:log-group:/a\"}", `{"tags":{}}`, ""},
		{"iam CreateUser UserName=u&Tags=", "<UserName>u</UserName>", "<Tags"},
		{"iam GetUser UserName=u", "<UserName>u</UserName>", "<Tags"},
		{"iam GetRole RoleName=muster-node", "<RoleName>muster-node</RoleName>", "<Tags"},
		{"iam ListUserTags UserName=u", "<Tags></Tags>", ""},
		{"iam CreateInstanceProfile InstanceProfileName=u", "<InstanceProfileName>", "<Tags"},
		{"iam CreateOpenIDConnectProvider Url=https%3A%2F%2Foidc.example.com", "oidc-provider", "<Tags"},
	} {
		request := c.request
		for key, value := range made {
			request = strings.ReplaceAll(request, "{"+key+"}", value)
		}
		status, body := s.send(t.Context(), s.admin, request)
		if status/100 != 2 || !strings.Contains(body, c.has) || c.lacks != "" && strings.Contains(body, c.lacks) {
			t.Errorf("%s: %d %s, want %s and no %q", request, status, body, c.has, c.lacks)
		}
		for key, form := range map[string]string{"vpc": `vpc-[0-9a-f]{17}`, "fs": `fs-[0-9a-f]{17}`, "key": `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`} {
			if found := regexp.MustCompile(form).FindString(body); found != "" && made[key] == "" && (key != "key" || strings.HasPrefix(request, "kms")) {
				made[key] = found
			}
		}
	}
}

// Unusual requests are answered as AWS answers them.
func TestUnusualRequests(t *testing.T) {
	s := serve(t)
	s.user("nobody")
	null := func(names ...string) string {
		var told []string
		for _, name := range names {
			told = append(told, "Value null at '"+name+"' failed to satisfy constraint: Member must not be null")
		}
		return strings.Join(told, "; ")
	}
	const most, least = " failed to satisfy constraint: Member must have value less than or equal to ", " failed to satisfy constraint: Member must have value greater than or equal to 1"
	for _, c := range []said{
		// Parameters that are missing: names have a small first letter, and all of them are told.
		{"iam GetRole", "400 ValidationError 1 validation error detected: " + null("roleName") + "<"},
		{"iam CreateUser", "400 ValidationError 1 validation error detected: " + null("userName") + "<"},
		{"iam CreateRole", "400 ValidationError 2 validation errors detected: " + null("roleName", "assumeRolePolicyDocument") + "<"},
		{"iam AddRoleToInstanceProfile InstanceProfileName=x", "400 ValidationError 1 validation error detected: " + null("roleName") + "<"},
		{"sts AssumeRole RoleArn=arn:aws:iam::000000000000:role/x", "400 ValidationError 1 validation error detected: " + null("roleSessionName") + "<"},
		{"sts AssumeRole", "400 ValidationError 2 validation errors detected: " + null("roleArn", "roleSessionName") + "<"},
		{"autoscaling SetDesiredCapacity", "400 ValidationError 2 validation errors detected: " + null("autoScalingGroupName", "desiredCapacity") + "<"},
		{"autoscaling CreateOrUpdateTags", "400 ValidationError 1 validation error detected: " + null("tags") + "<"},
		{"autoscaling DeleteTags", "400 ValidationError 1 validation error detected: " + null("tags") + "<"},
		{"kms DescribeKey {}", "400 ValidationException 1 validation error detected: " + null("keyId") + `"`},
		{"kms TagResource {}", "400 ValidationException 2 validation errors detected: " + null("keyId", "tags") + `"`},
		{"kms TagResource {\"KeyId\":\"x\",\"Tags\":[{\"TagKey\":\"a\"}]}", "400 ValidationException 1 validation error detected: " + null("tags.1.tagValue") + `"`},
		{"ssm GetParameter {}", "400 ValidationException 1 validation error detected: " + null("name") + `"`},
		{"logs PutRetentionPolicy {}", "400 InvalidParameterException 2 validation errors detected: " + null("logGroupName", "retentionInDays") + `"`},
		{"ec2 DeleteVpc", "400 MissingParameter The request must contain the parameter vpcId<"},
		{"ec2 DeleteRouteTable", "400 MissingParameter The request must contain the parameter routeTableId<"},
		// Tags.
		{"iam TagUser UserName=other", "400 ValidationError 1 validation error detected: " + null("tags") + "<"},
		{"iam TagUser", "400 ValidationError 2 validation errors detected: " + null("userName", "tags") + "<"},
		{"iam TagUser UserName=other&Tags=", "200"},
		{"iam TagRole RoleName=muster-node&Tags=", "200"},
		{"iam TagPolicy", "400 ValidationError 2 validation errors detected: " + null("policyArn", "tags") + "<"},
		{"iam TagInstanceProfile InstanceProfileName=x", "400 ValidationError 1 validation error detected: " + null("tags") + "<"},
		{"iam TagOpenIDConnectProvider OpenIDConnectProviderArn=x", "400 ValidationError 1 validation error detected: " + null("tags") + "<"},
		{"iam UntagUser UserName=other", "400 ValidationError 1 validation error detected: " + null("tagKeys") + "<"},
		{"iam UntagUser UserName=other&TagKeys=", "200"},
		{"iam UntagUser UserName=other&TagKeys.member.1=absent", "200"},
		{"iam UntagOpenIDConnectProvider OpenIDConnectProviderArn=x", "400 ValidationError 1 validation error detected: " + null("tagKeys") + "<"},
		{"iam TagUser UserName=other&Tags.member.1.Key=a", "400 ValidationError 1 validation error detected: " + null("tags.1.member.value") + "<"},
		{"iam TagUser UserName=other&Tags.member.1.Value=a", "400 ValidationError 1 validation error detected: " + null("tags.1.member.key") + "<"},
		{"iam TagUser UserName=other&Tags.member.1.Key=a&Tags.member.1.Value=", "200"},
		{"iam TagUser UserName=other&" + times(51, "Tags.member.#.Key=k#&Tags.member.#.Value=v"), "400 ValidationError 1 validation error detected: Value at 'tags' failed to satisfy constraint: Member must have length less than or equal to 50<"},
		{"iam CreateUser UserName=new&" + times(51, "Tags.member.#.Key=k#&Tags.member.#.Value=v"), "400 ValidationError 1 validation error detected: Value at 'tags'"},
		{"iam UntagUser UserName=other&" + times(51, "TagKeys.member.#=k#"), "400 ValidationError 1 validation error detected: Value at 'tagKeys'"},
		{"iam TagUser UserName=other&" + times(49, "Tags.member.#.Key=k#&Tags.member.#.Value=v"), "200"},
		{"iam TagUser UserName=other&Tags.member.1.Key=one-more&Tags.member.1.Value=v", "409 LimitExceeded "},
		{"iam TagUser UserName=other&Tags.member.1.Key=K1&Tags.member.1.Value=w", "200"},
		{"iam TagUser UserName=other&Tags.member.1.Key=a&Tags.member.1.Value=v&Tags.member.2.Key=A&Tags.member.2.Value=v", "400 InvalidInput Duplicate tag keys found. Please note that Tag keys are case insensitive."},
		{"iam TagUser UserName=other&Tags.member.1.Key=aws:a&Tags.member.1.Value=v", "400 ValidationError "},
		{"iam TagUser UserName=other&Tags.member.1.Key=" + strings.Repeat("k", 129) + "&Tags.member.1.Value=v", "400 ValidationError "},
		{"iam TagUser UserName=other&Tags.member.1.Key=k&Tags.member.1.Value=" + strings.Repeat("v", 257), "400 ValidationError "},
		{"iam TagUser UserName=absent&Tags=", "404 NoSuchEntity The user with name absent cannot be found."},
		{"kms CreateKey {\"Tags\":[{\"TagKey\":\"aws:x\",\"TagValue\":\"y\"}]}", "400 TagException "},
		{"ec2 CreateVpc CidrBlock=10.0.0.0%2F16&TagSpecification.1.ResourceType=subnet&TagSpecification.1.Tag.1.Key=a", "400 InvalidParameterValue 'subnet' is not a valid taggable resource type for this operation.<"},
		{"elasticfilesystem DELETE /2015-02-01/resource-tags/fs-0123456789abcdef0", "400 BadRequest "},
		// Pages.
		{"iam ListUsers Marker=", "400 ValidationError Invalid Marker.<"},
		{"iam ListUsers Marker=b3RoZXI", "400 ValidationError Invalid Marker.<"},
		{"iam ListPolicies Marker=x", "400 ValidationError Invalid Marker.<"},
		{"iam ListAccountAliases Marker=x", "400 ValidationError Invalid Marker.<"},
		{"iam ListUsers MaxItems=0", "400 ValidationError 1 validation error detected: Value '0' at 'maxItems'" + least},
		{"iam ListUsers MaxItems=1001", "400 ValidationError 1 validation error detected: Value '1001' at 'maxItems'" + most + "1000"},
		{"iam ListAccountAliases MaxItems=1001", "400 ValidationError 1 validation error detected: Value '1001' at 'maxItems'" + most + "1000"},
		{"kms ListKeys {\"Limit\":0}", "400 ValidationException 1 validation error detected: Value '0' at 'limit'" + least},
		{"kms ListKeys {\"Limit\":1001}", "400 ValidationException 1 validation error detected: Value '1001' at 'limit'" + most + "1000"},
		{"kms ListKeys {\"Marker\":\"x\"}", "400 InvalidMarkerException "},
		{"logs DescribeLogGroups {\"limit\":51}", "400 InvalidParameterException 1 validation error detected: Value '51' at 'limit'" + most + "50"},
		{"logs DescribeLogGroups {\"limit\":0}", "400 InvalidParameterException 1 validation error detected: Value '0' at 'limit'" + least},
		{"ssm GetParametersByPath {\"Path\":\"/aws\",\"MaxResults\":11}", "400 ValidationException 1 validation error detected: Value '11' at 'maxResults'" + most + "10"},
		{"ec2 DescribeVpcs MaxResults=4", "400 InvalidParameterValue Value ( 4 ) for parameter maxResults is invalid. Expecting a value greater than 5.<"},
		{"ec2 DescribeVpcs NextToken=x", "400 InvalidNextToken "},
		{"autoscaling DescribeAutoScalingGroups NextToken=x", "400 InvalidNextToken "},
		{"eks GET /clusters?maxResults=101", "400 InvalidParameterException "},
		{"eks GET /clusters?nextToken=x", "400 InvalidParameterException "},
		{"ecr DescribeRepositories {\"nextToken\":\"x\"}", "400 InvalidParameterException "},
		{"elasticfilesystem GET /2015-02-01/file-systems?Marker=x", "400 BadRequest "},
		// What is not there.
		{"iam GetUser UserName=absent", "404 NoSuchEntity The user with name absent cannot be found.<"},
		{"iam GetPolicy PolicyArn=arn:aws:iam::000000000000:policy/absent", "404 NoSuchEntity "},
		{"ec2 DescribeVpcs VpcId.1=vpc-0123456789abcdef0", "400 InvalidVpcID.NotFound The vpc ID 'vpc-0123456789abcdef0' does not exist<"},
		{"autoscaling SetDesiredCapacity AutoScalingGroupName=x&DesiredCapacity=1", "400 ValidationError AutoScalingGroup name not found"},
		{"eks GET /clusters/x", "404 ResourceNotFoundException No cluster found for name: x."},
		{"ssm GetParameter {\"Name\":\"/x\"}", "400 ParameterNotFound "},
	} {
		status, body := s.send(t.Context(), s.admin, c.request)
		want := strings.SplitN(c.answer, " ", 3)
		fits := fmt.Sprint(status) == want[0]
		if len(want) == 3 {
			fits = fits && (strings.Contains(body, "<Code>"+want[1]+"</Code>") && strings.Contains(body, "<Message>"+want[2]) ||
				strings.Contains(body, `"__type":"`+want[1]+`"`) && strings.Contains(strings.ToLower(body), `"message":"`+strings.ToLower(want[2])))
		}
		if !fits {
			t.Errorf("%.200s: %d %s, want %s", c.request, status, body, c.answer)
		}
	}
}
