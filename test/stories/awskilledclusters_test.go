// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// clusterKinds are clusters and what belongs to them.
func clusterKinds(c *awsClient) []killedKind {
	c.must(awsForm("iam", "CreateRole", "RoleName", "control-plane", "AssumeRolePolicyDocument", trusting("eks.amazonaws.com")))
	c.must(awsForm("iam", "AttachRolePolicy", "RoleName", "control-plane", "PolicyArn", "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"))
	c.must(awsForm("iam", "CreateRole", "RoleName", "viewer", "AssumeRolePolicyDocument", trusting("ec2.amazonaws.com")))
	viewer := fmt.Sprintf("arn:aws:iam::%s:role/viewer", iamAccount)
	c.must(eksRequest(http.MethodPost, "/clusters/muster/access-entries", fmt.Sprintf(`{"principalArn":"%s"}`, viewer)))
	c.must(eksRequest(http.MethodPost, "/clusters/muster/node-groups", fmt.Sprintf(`{"nodegroupName":"tagged","nodeRole":"arn:aws:iam::%s:role/muster-node","subnets":["%s"],`+
		`"scalingConfig":{"minSize":0,"maxSize":1,"desiredSize":0}}`, iamAccount, c.subnets[0])))
	return []killedKind{clusters(c), clusterConfigs(), clusterTags(c), addons(c), accessPolicies(viewer), groupTags(c)}
}

var jsonState = regexp.MustCompile(`"state":"(\d+)"`)

// eksState is the state of a resource that has it in a tag, once it is in a status in which the next request is not
// refused.
func eksState(answer awsAnswer, settled ...string) (int, error) {
	if answer.code() == "" {
		is := false
		for _, status := range settled {
			is = is || strings.Contains(answer.body, `"status":"`+status+`"`)
		}
		if !is {
			return 0, fmt.Errorf("it is none of %v: %.300s", settled, answer.body)
		}
	}
	return killedStateOf(answer, "ResourceNotFoundException", jsonState)
}

func eksTags(arn string, state int) awsRequest {
	return eksRequest(http.MethodPost, "/tags/"+url.PathEscape(arn), fmt.Sprintf(`{"tags":{"state":"%d"}}`, state))
}

// clusters are whole control planes, one at a time, with their state in a tag.
func clusters(c *awsClient) killedKind {
	path := "/clusters/killed"
	return killedKind{
		name: "a cluster", alone: true, removedAgain: "ResourceNotFoundException",
		make: func(_ int, token string) awsRequest {
			return eksRequest(http.MethodPost, "/clusters", fmt.Sprintf(`{"name":"killed","roleArn":"arn:aws:iam::%s:role/control-plane","resourcesVpcConfig":{},"tags":{"state":"1"},"clientRequestToken":"%s"}`, iamAccount, token))
		},
		change: func(_, state int, _ string) awsRequest {
			return eksTags(fmt.Sprintf("arn:aws:eks:%s:%s:cluster/killed", c.region, iamAccount), state)
		},
		remove: func(int) awsRequest { return eksRequest(http.MethodDelete, path, "") },
		look:   func(int) awsRequest { return eksRequest(http.MethodGet, path, "") },
		state:  func(_ int, answer awsAnswer) (int, error) { return eksState(answer, "ACTIVE") },
	}
}

// clusterConfigs is the logging of the cluster that is there, which Updates change: the state is a number whose bits
// are the types that are on.
func clusterConfigs() killedKind {
	types := []string{"api", "audit", "authenticator", "controllerManager", "scheduler"}
	set := func(state int, token string) awsRequest {
		var on, off []string
		for bit, kind := range types {
			if state&(1<<bit) != 0 {
				on = append(on, `"`+kind+`"`)
			} else {
				off = append(off, `"`+kind+`"`)
			}
		}
		return eksRequest(http.MethodPost, "/clusters/muster/update-config", fmt.Sprintf(`{"logging":{"clusterLogging":[{"types":[%s],"enabled":true},{"types":[%s],"enabled":false}]},"clientRequestToken":"%s"}`,
			strings.Join(on, ","), strings.Join(off, ","), token))
	}
	enabled := regexp.MustCompile(`\{"types":\[([^\]]*)\],"enabled":true\}|\{"enabled":true,"types":\[([^\]]*)\]\}`)
	removed := 0
	return killedKind{
		name: "the configuration of a cluster", alone: true,
		make:   func(_ int, token string) awsRequest { return set(1, token) },
		change: func(_, state int, token string) awsRequest { return set(state, token) },
		remove: func(int) awsRequest {
			removed++
			return set(0, fmt.Sprint("off-", removed))
		},
		look: func(int) awsRequest { return eksRequest(http.MethodGet, "/clusters/muster", "") },
		state: func(_ int, answer awsAnswer) (int, error) {
			if answer.code() != "" || !strings.Contains(answer.body, `"status":"ACTIVE"`) {
				return 0, fmt.Errorf("%d %s", answer.status, answer.body)
			}
			state := 0
			if on := enabled.FindStringSubmatch(answer.body); on != nil {
				for bit, kind := range types {
					if strings.Contains(on[1]+on[2], `"`+kind+`"`) {
						state |= 1 << bit
					}
				}
			}
			return state, nil
		},
	}
}

// clusterTags are tags of the cluster that is there, by key.
func clusterTags(c *awsClient) killedKind {
	path := "/tags/" + url.PathEscape(fmt.Sprintf("arn:aws:eks:%s:%s:cluster/muster", c.region, iamAccount))
	set := func(n, state int) awsRequest {
		return eksRequest(http.MethodPost, path, fmt.Sprintf(`{"tags":{"killed%d":"%d"}}`, n, state))
	}
	return killedKind{
		name:   "a tag of a cluster",
		make:   func(n int, _ string) awsRequest { return set(n, 1) },
		change: func(n, state int, _ string) awsRequest { return set(n, state) },
		remove: func(n int) awsRequest {
			return eksRequest(http.MethodDelete, fmt.Sprintf("%s?tagKeys=killed%d", path, n), "")
		},
		look: func(int) awsRequest { return eksRequest(http.MethodGet, path, "") },
		state: func(n int, answer awsAnswer) (int, error) {
			if answer.code() == "" && !strings.Contains(answer.body, fmt.Sprintf(`"killed%d"`, n)) {
				return 0, nil
			}
			return killedStateOf(answer, "", regexp.MustCompile(fmt.Sprintf(`"killed%d":"(\d+)"`, n)))
		},
	}
}

// addons of a cluster without nodes, with their state in a tag.
func addons(c *awsClient) killedKind {
	names := []string{"kube-proxy", "vpc-cni"}
	path := func(n int) string { return "/clusters/muster/addons/" + names[n] }
	arn := regexp.MustCompile(`"addonArn":"([^"]+)"`)
	return killedKind{
		name: "an add-on", removedAgain: "ResourceNotFoundException",
		make: func(n int, token string) awsRequest {
			return eksRequest(http.MethodPost, "/clusters/muster/addons", fmt.Sprintf(`{"addonName":"%s","tags":{"state":"1"},"clientRequestToken":"%s"}`, names[n], token))
		},
		change: func(n, state int, _ string) awsRequest {
			found := arn.FindStringSubmatch(c.must(eksRequest(http.MethodGet, path(n), "")))
			if found == nil {
				c.t.Fatalf("%s has no ARN", names[n])
			}
			return eksTags(found[1], state)
		},
		remove: func(n int) awsRequest { return eksRequest(http.MethodDelete, path(n), "") },
		look:   func(n int) awsRequest { return eksRequest(http.MethodGet, path(n), "") },
		state:  func(_ int, answer awsAnswer) (int, error) { return eksState(answer, "ACTIVE", "DEGRADED") },
	}
}

// accessPolicies are associated with an access entry for the namespaces of their state.
func accessPolicies(principal string) killedKind {
	policies := []string{"AmazonEKSViewPolicy", "AmazonEKSEditPolicy"}
	arn := func(n int) string { return "arn:aws:eks::aws:cluster-access-policy/" + policies[n] }
	path := "/clusters/muster/access-entries/" + url.PathEscape(principal) + "/access-policies"
	set := func(n, state int) awsRequest {
		return eksRequest(http.MethodPost, path, fmt.Sprintf(`{"policyArn":"%s","accessScope":{"type":"namespace","namespaces":["%s-%d"]}}`, arn(n), strings.ToLower(policies[n]), state))
	}
	return killedKind{
		name: "a policy of an access entry", removedAgain: "ResourceNotFoundException",
		make:   func(n int, _ string) awsRequest { return set(n, 1) },
		change: func(n, state int, _ string) awsRequest { return set(n, state) },
		remove: func(n int) awsRequest {
			return eksRequest(http.MethodDelete, path+"/"+url.PathEscape(arn(n)), "")
		},
		look: func(int) awsRequest { return eksRequest(http.MethodGet, path, "") },
		state: func(n int, answer awsAnswer) (int, error) {
			if answer.code() == "" && !strings.Contains(answer.body, arn(n)) {
				return 0, nil
			}
			return killedStateOf(answer, "", regexp.MustCompile(`"`+strings.ToLower(policies[n])+`-(\d+)"`))
		},
	}
}

// groupTags are tags of a node group's Auto Scaling group, by key.
func groupTags(c *awsClient) killedKind {
	found := regexp.MustCompile(`<AutoScalingGroupName>(eks-tagged-[^<]+)<`).FindStringSubmatch(c.must(awsForm("autoscaling", "DescribeAutoScalingGroups")))
	if found == nil {
		c.t.Fatal("the node group has no Auto Scaling group")
	}
	key := func(n int) string { return fmt.Sprint("killed", n) }
	tag := func(action string, n int, more ...string) awsRequest {
		return awsForm("autoscaling", action, append([]string{"Tags.member.1.Key", key(n), "Tags.member.1.ResourceId", found[1], "Tags.member.1.ResourceType", "auto-scaling-group"}, more...)...)
	}
	set := func(n, state int) awsRequest {
		return tag("CreateOrUpdateTags", n, "Tags.member.1.Value", strconv.Itoa(state), "Tags.member.1.PropagateAtLaunch", "true")
	}
	return killedKind{
		name:   "a tag of an Auto Scaling group",
		make:   func(n int, _ string) awsRequest { return set(n, 1) },
		change: func(n, state int, _ string) awsRequest { return set(n, state) },
		remove: func(n int) awsRequest { return tag("DeleteTags", n) },
		look: func(n int) awsRequest {
			return awsForm("autoscaling", "DescribeTags", "Filters.member.1.Name", "key", "Filters.member.1.Values.member.1", key(n))
		},
		state: func(_ int, answer awsAnswer) (int, error) {
			if answer.code() == "" && !strings.Contains(answer.body, "<Key>") {
				return 0, nil
			}
			return killedStateOf(answer, "", regexp.MustCompile(`<Value>(\d+)</Value>`))
		},
	}
}
