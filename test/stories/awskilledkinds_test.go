// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// killedKinds are the kinds of resources that the rounds make, change and remove.
func killedKinds(c *awsClient) []killedKind {
	c.must(awsForm("iam", "CreateRole", "RoleName", "eks", "AssumeRolePolicyDocument", trusting("pods.eks.amazonaws.com")))
	c.must(awsForm("iam", "CreateRole", "RoleName", "entry0", "AssumeRolePolicyDocument", trusting("ec2.amazonaws.com")))
	c.must(awsForm("iam", "CreateRole", "RoleName", "entry1", "AssumeRolePolicyDocument", trusting("ec2.amazonaws.com")))
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:GetObject","Resource":"*"}]}`
	kinds := []killedKind{
		iamKind("User", "UserName", func(n int) string { return fmt.Sprint("user", n) }, false),
		iamKind("Role", "RoleName", func(n int) string { return fmt.Sprint("role", n) }, false, "AssumeRolePolicyDocument", trusting("ec2.amazonaws.com")),
		iamKind("InstanceProfile", "InstanceProfileName", func(n int) string { return fmt.Sprint("profile", n) }, false),
		iamKind("Policy", "PolicyArn", func(n int) string { return fmt.Sprintf("arn:aws:iam::%s:policy/policy%d", iamAccount, n) }, false, "PolicyDocument", policy),
		iamKind("OpenIDConnectProvider", "OpenIDConnectProviderArn", func(n int) string {
			return fmt.Sprintf("arn:aws:iam::%s:oidc-provider/issuer%d.example.com", iamAccount, n)
		}, true),
		logGroups(), kmsKeys(), kmsAliases(c), launchTemplates(), subnetsOfVPC(c), accessEntries(), podIdentities(c), nodeGroups(c),
	}
	return append(append(kinds, networkKinds(c)...), clusterKinds(c)...)
}

func trusting(service string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"` + service + `"},"Action":["sts:AssumeRole","sts:TagSession"]}]}`
}

var taggedState = regexp.MustCompile(`(?i)<key>state</key>\s*<value>(\d+)</value>`)

// iamKind is a noun of IAM whose tag says its state. Some are named by their ARN.
func iamKind(noun, by string, name func(int) string, idempotent bool, more ...string) killedKind {
	k := killedKind{name: "IAM's " + noun, madeAgain: "EntityAlreadyExists", removedAgain: "NoSuchEntity"}
	k.make = func(n int, _ string) awsRequest {
		parameters := []string{by, name(n), "Tags.member.1.Key", "state", "Tags.member.1.Value", "1"}
		switch noun {
		case "Policy":
			parameters[0], parameters[1] = "PolicyName", name(n)[strings.LastIndex(name(n), "/")+1:]
		case "OpenIDConnectProvider":
			parameters[0], parameters[1] = "Url", "https://"+name(n)[strings.LastIndex(name(n), "/")+1:]
		}
		return awsForm("iam", "Create"+noun, append(parameters, more...)...)
	}
	k.change = func(n, state int, _ string) awsRequest {
		return awsForm("iam", "Tag"+noun, by, name(n), "Tags.member.1.Key", "state", "Tags.member.1.Value", strconv.Itoa(state))
	}
	k.remove = func(n int) awsRequest { return awsForm("iam", "Delete"+noun, by, name(n)) }
	k.look = func(n int) awsRequest { return awsForm("iam", "Get"+noun, by, name(n)) }
	k.state = func(_ int, answer awsAnswer) (int, error) { return killedStateOf(answer, "NoSuchEntity", taggedState) }
	if idempotent {
		k.removedAgain = ""
	}
	return k
}

// killedStateOf reads the state out of an answer. An error of one code means that the resource is gone.
func killedStateOf(answer awsAnswer, gone string, pattern *regexp.Regexp) (int, error) {
	switch code := answer.code(); code {
	case "":
	case gone:
		return 0, nil
	default:
		return 0, fmt.Errorf("%d %s", answer.status, answer.body)
	}
	found := pattern.FindAllStringSubmatch(answer.body, -1)
	if len(found) != 1 {
		return 0, fmt.Errorf("%d states in %s", len(found), answer.body)
	}
	return strconv.Atoi(found[0][1])
}

// logGroups have their state in a tag.
func logGroups() killedKind {
	named := func(n int, more string) string { return fmt.Sprintf(`{"logGroupName":"/killed/%d"%s}`, n, more) }
	return killedKind{
		name: "a log group", madeAgain: "ResourceAlreadyExistsException", removedAgain: "ResourceNotFoundException",
		make: func(n int, _ string) awsRequest {
			return awsTarget("logs", "CreateLogGroup", named(n, `,"tags":{"state":"1"}`))
		},
		change: func(n, state int, _ string) awsRequest {
			return awsTarget("logs", "TagLogGroup", named(n, fmt.Sprintf(`,"tags":{"state":"%d"}`, state)))
		},
		remove: func(n int) awsRequest { return awsTarget("logs", "DeleteLogGroup", named(n, "")) },
		look:   func(n int) awsRequest { return awsTarget("logs", "ListTagsLogGroup", named(n, "")) },
		state: func(_ int, answer awsAnswer) (int, error) {
			return killedStateOf(answer, "ResourceNotFoundException", regexp.MustCompile(`"state":"(\d+)"`))
		},
	}
}

// kmsKeys have their state in the description. KMS knows no client token: the key that was answered is the one that
// counts.
func kmsKeys() killedKind {
	ids := map[int]string{}
	of := func(n int, more string) string { return `{"KeyId":"` + ids[n] + `"` + more + `}` }
	return killedKind{
		name: "a KMS key", removedAgain: "KMSInvalidStateException",
		make: func(int, string) awsRequest { return awsTarget("kms", "CreateKey", `{"Description":"state 1"}`) },
		made: func(n int, answer string) {
			var made struct{ KeyMetadata struct{ KeyId string } }
			_ = json.Unmarshal([]byte(answer), &made)
			ids[n] = made.KeyMetadata.KeyId
		},
		change: func(n, state int, _ string) awsRequest {
			return awsTarget("kms", "UpdateKeyDescription", of(n, fmt.Sprintf(`,"Description":"state %d"`, state)))
		},
		remove: func(n int) awsRequest { return awsTarget("kms", "ScheduleKeyDeletion", of(n, "")) },
		look: func(n int) awsRequest {
			if ids[n] == "" {
				return awsTarget("kms", "DescribeKey", `{"KeyId":"none"}`)
			}
			return awsTarget("kms", "DescribeKey", of(n, ""))
		},
		state: func(_ int, answer awsAnswer) (int, error) {
			if strings.Contains(answer.body, "PendingDeletion") {
				return 0, nil
			}
			return killedStateOf(answer, "NotFoundException", regexp.MustCompile(`"Description":"state (\d+)"`))
		},
	}
}

// kmsAliases name one of two keys: an odd state is the first.
func kmsAliases(c *awsClient) killedKind {
	var targets []string
	for range 2 {
		var made struct{ KeyMetadata struct{ KeyId string } }
		if err := json.Unmarshal([]byte(c.must(awsTarget("kms", "CreateKey", `{}`))), &made); err != nil {
			c.t.Fatal(err)
		}
		targets = append(targets, made.KeyMetadata.KeyId)
	}
	states := map[int]int{}
	to := func(n, state int) string {
		states[n] = state
		return fmt.Sprintf(`{"AliasName":"alias/killed/%d","TargetKeyId":"%s"}`, n, targets[state%2])
	}
	return killedKind{
		name: "an alias", madeAgain: "AlreadyExistsException", removedAgain: "NotFoundException",
		make:   func(n int, _ string) awsRequest { return awsTarget("kms", "CreateAlias", to(n, 1)) },
		change: func(n, state int, _ string) awsRequest { return awsTarget("kms", "UpdateAlias", to(n, state)) },
		remove: func(n int) awsRequest {
			return awsTarget("kms", "DeleteAlias", fmt.Sprintf(`{"AliasName":"alias/killed/%d"}`, n))
		},
		look: func(n int) awsRequest {
			return awsTarget("kms", "DescribeKey", fmt.Sprintf(`{"KeyId":"alias/killed/%d"}`, n))
		},
		state: func(n int, answer awsAnswer) (int, error) {
			switch {
			case answer.code() == "NotFoundException":
				return 0, nil
			case answer.code() == "" && strings.Contains(answer.body, targets[states[n]%2]):
				return states[n], nil
			}
			return 0, fmt.Errorf("%d %s", answer.status, answer.body)
		},
	}
}

// launchTemplates have a version for each state.
func launchTemplates() killedKind {
	name := func(n int) string { return fmt.Sprint("killed", n) }
	versions := regexp.MustCompile(`<versionNumber>(\d+)</versionNumber>`)
	return killedKind{
		name: "a launch template", removedAgain: "InvalidLaunchTemplateName.NotFoundException",
		make: func(n int, token string) awsRequest {
			return awsForm("ec2", "CreateLaunchTemplate", "LaunchTemplateName", name(n), "ClientToken", token, "LaunchTemplateData.InstanceType", "m5.large")
		},
		change: func(n, _ int, token string) awsRequest {
			return awsForm("ec2", "CreateLaunchTemplateVersion", "LaunchTemplateName", name(n), "ClientToken", token, "LaunchTemplateData.InstanceType", "m5.large")
		},
		remove: func(n int) awsRequest { return awsForm("ec2", "DeleteLaunchTemplate", "LaunchTemplateName", name(n)) },
		look: func(n int) awsRequest {
			return awsForm("ec2", "DescribeLaunchTemplateVersions", "LaunchTemplateName", name(n))
		},
		state: func(_ int, answer awsAnswer) (int, error) {
			if code := answer.code(); code == "InvalidLaunchTemplateName.NotFoundException" {
				return 0, nil
			} else if code != "" {
				return 0, fmt.Errorf("%d %s", answer.status, answer.body)
			}
			return len(versions.FindAllString(answer.body, -1)), nil
		},
	}
}

// subnetsOfVPC have their state in a tag. EC2 knows no client token for them: their address ranges keep them from being
// made twice.
func subnetsOfVPC(c *awsClient) killedKind {
	ids, id := map[int]string{}, regexp.MustCompile(`<subnetId>(subnet-[0-9a-f]+)</subnetId>`)
	block := func(n int) string { return fmt.Sprintf("172.31.%d.0/24", 200+n) }
	return killedKind{
		name: "a subnet", madeAgain: "InvalidSubnet.Conflict", removedAgain: "InvalidSubnetID.NotFound",
		make: func(n int, _ string) awsRequest {
			return awsForm("ec2", "CreateSubnet", "VpcId", c.vpc, "CidrBlock", block(n), "TagSpecification.1.ResourceType", "subnet", "TagSpecification.1.Tag.1.Key", "state", "TagSpecification.1.Tag.1.Value", "1")
		},
		made: func(n int, _ string) { // the first answer may have been lost
			answer := c.must(awsForm("ec2", "DescribeSubnets", "Filter.1.Name", "cidr-block", "Filter.1.Value.1", block(n)))
			if found := id.FindStringSubmatch(answer); found != nil {
				ids[n] = found[1]
			}
		},
		change: func(n, state int, _ string) awsRequest {
			return awsForm("ec2", "CreateTags", "ResourceId.1", ids[n], "Tag.1.Key", "state", "Tag.1.Value", strconv.Itoa(state))
		},
		remove: func(n int) awsRequest { return awsForm("ec2", "DeleteSubnet", "SubnetId", ids[n]) },
		look: func(n int) awsRequest {
			return awsForm("ec2", "DescribeSubnets", "Filter.1.Name", "cidr-block", "Filter.1.Value.1", block(n))
		},
		state: func(_ int, answer awsAnswer) (int, error) {
			if answer.code() == "" && !strings.Contains(answer.body, "<subnetId>") {
				return 0, nil
			}
			return killedStateOf(answer, "", taggedState)
		},
	}
}

// accessEntries have their state in a group.
func accessEntries() killedKind {
	arn := func(n int) string { return fmt.Sprintf("arn:aws:iam::%s:role/entry%d", iamAccount, n) }
	path := func(n int) string { return "/clusters/muster/access-entries/" + url.PathEscape(arn(n)) }
	return killedKind{
		name: "an access entry", removedAgain: "ResourceNotFoundException",
		make: func(n int, token string) awsRequest {
			return eksRequest(http.MethodPost, "/clusters/muster/access-entries", fmt.Sprintf(`{"principalArn":"%s","kubernetesGroups":["state:1"],"clientRequestToken":"%s"}`, arn(n), token))
		},
		change: func(n, state int, token string) awsRequest {
			return eksRequest(http.MethodPost, path(n), fmt.Sprintf(`{"kubernetesGroups":["state:%d"],"clientRequestToken":"%s"}`, state, token))
		},
		remove: func(n int) awsRequest { return eksRequest(http.MethodDelete, path(n), "") },
		look:   func(n int) awsRequest { return eksRequest(http.MethodGet, path(n), "") },
		state: func(_ int, answer awsAnswer) (int, error) {
			return killedStateOf(answer, "ResourceNotFoundException", regexp.MustCompile(`"state:(\d+)"`))
		},
	}
}

// podIdentities are associations of a service account with a role; they are made and removed.
func podIdentities(c *awsClient) killedKind {
	ids, id := map[int]string{}, regexp.MustCompile(`"associationId":"(a-[a-z0-9]+)"`)
	list := func(n int) awsRequest {
		return eksRequest(http.MethodGet, fmt.Sprintf("/clusters/muster/pod-identity-associations?namespace=killed&serviceAccount=sa%d", n), "")
	}
	return killedKind{
		name: "a pod identity association", removedAgain: "ResourceNotFoundException",
		make: func(n int, token string) awsRequest {
			return eksRequest(http.MethodPost, "/clusters/muster/pod-identity-associations", fmt.Sprintf(`{"namespace":"killed","serviceAccount":"sa%d","roleArn":"arn:aws:iam::%s:role/eks","clientRequestToken":"%s"}`, n, iamAccount, token))
		},
		made: func(n int, _ string) {
			if found := id.FindStringSubmatch(c.must(list(n))); found != nil {
				ids[n] = found[1]
			}
		},
		remove: func(n int) awsRequest {
			return eksRequest(http.MethodDelete, "/clusters/muster/pod-identity-associations/"+ids[n], "")
		},
		look: list,
		state: func(_ int, answer awsAnswer) (int, error) {
			if answer.code() != "" {
				return 0, fmt.Errorf("%d %s", answer.status, answer.body)
			}
			return len(id.FindAllString(answer.body, -1)), nil
		},
	}
}

// nodeGroups have no machines, and their state in a label, which is changed by an Update.
func nodeGroups(c *awsClient) killedKind {
	path := func(n int) string { return fmt.Sprint("/clusters/muster/node-groups/killed", n) }
	return killedKind{
		name: "a node group", removedAgain: "ResourceNotFoundException",
		make: func(n int, token string) awsRequest {
			return eksRequest(http.MethodPost, "/clusters/muster/node-groups", fmt.Sprintf(`{"nodegroupName":"killed%d","nodeRole":"arn:aws:iam::%s:role/muster-node","subnets":["%s"],`+
				`"scalingConfig":{"minSize":0,"maxSize":1,"desiredSize":0},"labels":{"state":"1"},"clientRequestToken":"%s"}`, n, iamAccount, c.subnets[0], token))
		},
		change: func(n, state int, token string) awsRequest {
			return eksRequest(http.MethodPost, path(n)+"/update-config", fmt.Sprintf(`{"labels":{"addOrUpdateLabels":{"state":"%d"}},"clientRequestToken":"%s"}`, state, token))
		},
		remove: func(n int) awsRequest { return eksRequest(http.MethodDelete, path(n), "") },
		look:   func(n int) awsRequest { return eksRequest(http.MethodGet, path(n), "") },
		state: func(_ int, answer awsAnswer) (int, error) {
			if answer.code() == "" && !strings.Contains(answer.body, `"status":"ACTIVE"`) {
				return 0, fmt.Errorf("it is not ACTIVE: %s", answer.body) // the next request would be refused
			}
			return killedStateOf(answer, "ResourceNotFoundException", regexp.MustCompile(`"state":"(\d+)"`))
		},
	}
}
