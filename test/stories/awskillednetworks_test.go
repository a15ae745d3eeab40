// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/platform/release"
)

// ec2Noun is a kind of EC2's resources whose state is in a tag, beside one that says which of the rounds' resources it
// is.
type ec2Noun struct {
	name, create, describe, remove string
	resource                       string // as tags name it
	member, parameter, filter      string // the names of an id: in answers, in requests, in filters
	more                           func(n int) []string
	only                           []string // a filter of those that are not gone, its values with | between them
	token                          bool     // whether a request has a client token
	madeAgain, removedAgain        string
}

// ec2Kind is the kind of a noun. Without a client token a request that is sent again makes another one, as on AWS: the
// one that was answered counts. The others are taken away, which shows that they are whole.
func ec2Kind(c *awsClient, noun ec2Noun) killedKind {
	ids, slots := map[int]string{}, map[int]string{}
	id := regexp.MustCompile(`<` + noun.member + `>([a-z]+-[0-9a-f]+)</` + noun.member + `>`)
	of := func(filters ...string) awsRequest {
		parameters := []string{}
		for i, one := range slices.Collect(slices.Chunk(append(filters, noun.only...), 2)) {
			parameters = append(parameters, fmt.Sprintf("Filter.%d.Name", i+1), one[0])
			for j, value := range strings.Split(one[1], "|") {
				parameters = append(parameters, fmt.Sprintf("Filter.%d.Value.%d", i+1, j+1), value)
			}
		}
		return awsForm("ec2", noun.describe, parameters...)
	}
	return killedKind{
		name: noun.name, madeAgain: noun.madeAgain, removedAgain: noun.removedAgain,
		make: func(n int, token string) awsRequest {
			slots[n] = fmt.Sprintf("%s of %s", strings.ReplaceAll(noun.name, " ", "-"), token)
			parameters := append(noun.more(n), "TagSpecification.1.ResourceType", noun.resource, "TagSpecification.1.Tag.1.Key", "state", "TagSpecification.1.Tag.1.Value", "1",
				"TagSpecification.1.Tag.2.Key", "slot", "TagSpecification.1.Tag.2.Value", slots[n])
			if noun.token {
				parameters = append(parameters, "ClientToken", token)
			}
			return awsForm("ec2", noun.create, parameters...)
		},
		made: func(n int, answer string) {
			found := id.FindStringSubmatch(answer)
			if found == nil { // the first answer was lost, and a name kept it from being made twice
				found = id.FindStringSubmatch(c.must(of("tag:slot", slots[n])))
			}
			if found == nil {
				c.t.Fatalf("%s %d is nowhere", noun.name, n)
			}
			ids[n] = found[1]
			all := map[string]bool{}
			for _, other := range id.FindAllStringSubmatch(c.must(of("tag:slot", slots[n])), -1) {
				all[other[1]] = true
			}
			if !all[ids[n]] || noun.token && len(all) > 1 {
				c.t.Fatalf("%s is answered, and %v are there", ids[n], all)
			}
			for other := range all {
				if other != ids[n] {
					c.must(awsForm("ec2", noun.remove, noun.parameter, other))
				}
			}
		},
		change: func(n, state int, _ string) awsRequest {
			return awsForm("ec2", "CreateTags", "ResourceId.1", ids[n], "Tag.1.Key", "state", "Tag.1.Value", strconv.Itoa(state))
		},
		remove: func(n int) awsRequest { return awsForm("ec2", noun.remove, noun.parameter, ids[n]) },
		look: func(n int) awsRequest {
			if ids[n] == "" {
				return of("tag:slot", "none")
			}
			return of(noun.filter, ids[n])
		},
		state: func(_ int, answer awsAnswer) (int, error) {
			if answer.code() == "" && !id.MatchString(answer.body) {
				return 0, nil
			}
			return killedStateOf(answer, "", taggedState)
		},
	}
}

// networkKinds are what belongs to networks, in a VPC of their own.
func networkKinds(c *awsClient) []killedKind {
	one := func(request awsRequest, member string) string {
		found := regexp.MustCompile(`<` + member + `>([a-z]+-[0-9a-f]+)<`).FindStringSubmatch(c.must(request))
		if found == nil {
			c.t.Fatalf("%s answers no %s", request.action, member)
		}
		return found[1]
	}
	vpc := one(awsForm("ec2", "CreateVpc", "CidrBlock", "10.66.0.0/16"), "vpcId")
	subnet := one(awsForm("ec2", "CreateSubnet", "VpcId", vpc, "CidrBlock", "10.66.1.0/24"), "subnetId")
	gateway := one(awsForm("ec2", "CreateInternetGateway"), "internetGatewayId")
	c.must(awsForm("ec2", "AttachInternetGateway", "InternetGatewayId", gateway, "VpcId", vpc))
	table := one(awsForm("ec2", "CreateRouteTable", "VpcId", vpc), "routeTableId")
	group := one(awsForm("ec2", "CreateSecurityGroup", "GroupName", "rules", "GroupDescription", "rules", "VpcId", vpc), "groupId")
	in := func(more ...string) func(int) []string {
		return func(int) []string { return append([]string{"VpcId", vpc}, more...) }
	}
	none := func(int) []string { return nil }
	return []killedKind{
		ec2Kind(c, ec2Noun{
			name: "a VPC", create: "CreateVpc", describe: "DescribeVpcs", remove: "DeleteVpc", resource: "vpc", member: "vpcId", parameter: "VpcId", filter: "vpc-id",
			more: func(n int) []string { return []string{"CidrBlock", fmt.Sprintf("10.%d.0.0/16", 67+n)} }, removedAgain: "InvalidVpcID.NotFound",
		}),
		ec2Kind(c, ec2Noun{
			name: "a security group", create: "CreateSecurityGroup", describe: "DescribeSecurityGroups", remove: "DeleteSecurityGroup", resource: "security-group",
			member: "groupId", parameter: "GroupId", filter: "group-id", madeAgain: "InvalidGroup.Duplicate", removedAgain: "InvalidGroup.NotFound",
			more: func(n int) []string {
				return []string{"VpcId", vpc, "GroupDescription", "killed", "GroupName", fmt.Sprint("killed", n)}
			},
		}),
		ec2Kind(c, ec2Noun{
			name: "an internet gateway", create: "CreateInternetGateway", describe: "DescribeInternetGateways", remove: "DeleteInternetGateway", resource: "internet-gateway",
			member: "internetGatewayId", parameter: "InternetGatewayId", filter: "internet-gateway-id", more: none, removedAgain: "InvalidInternetGatewayID.NotFound",
		}),
		ec2Kind(c, ec2Noun{
			name: "an elastic address", create: "AllocateAddress", describe: "DescribeAddresses", remove: "ReleaseAddress", resource: "elastic-ip",
			member: "allocationId", parameter: "AllocationId", filter: "allocation-id", removedAgain: "InvalidAllocationID.NotFound",
			more: func(int) []string { return []string{"Domain", "vpc"} },
		}),
		ec2Kind(c, ec2Noun{
			name: "a NAT gateway", create: "CreateNatGateway", describe: "DescribeNatGateways", remove: "DeleteNatGateway", resource: "natgateway",
			member: "natGatewayId", parameter: "NatGatewayId", filter: "nat-gateway-id", token: true, removedAgain: "NatGatewayNotFound",
			more: func(int) []string { return []string{"SubnetId", subnet, "ConnectivityType", "private"} },
		}),
		ec2Kind(c, ec2Noun{
			name: "a route table", create: "CreateRouteTable", describe: "DescribeRouteTables", remove: "DeleteRouteTable", resource: "route-table",
			member: "routeTableId", parameter: "RouteTableId", filter: "route-table-id", more: in(), token: true, removedAgain: "InvalidRouteTableID.NotFound",
		}),
		ec2Kind(c, ec2Noun{
			name: "a network ACL", create: "CreateNetworkAcl", describe: "DescribeNetworkAcls", remove: "DeleteNetworkAcl", resource: "network-acl",
			member: "networkAclId", parameter: "NetworkAclId", filter: "network-acl-id", more: in(), token: true, removedAgain: "InvalidNetworkAclID.NotFound",
		}),
		ec2Kind(c, ec2Noun{
			name: "a key pair", create: "CreateKeyPair", describe: "DescribeKeyPairs", remove: "DeleteKeyPair", resource: "key-pair",
			member: "keyPairId", parameter: "KeyPairId", filter: "key-pair-id", madeAgain: "InvalidKeyPair.Duplicate", removedAgain: "InvalidKeyPair.NotFound",
			more: func(n int) []string { return []string{"KeyName", fmt.Sprint("killed", n), "KeyType", "ed25519"} },
		}),
		instances(c), routes(table, gateway), groupRules(group), subnetTags(subnet),
	}
}

// instances are machines of this host, without a cluster. Their image is of the one minor that each host has built.
func instances(c *awsClient) killedKind {
	kind := ec2Kind(c, ec2Noun{
		name: "an instance", create: "RunInstances", describe: "DescribeInstances", remove: "TerminateInstances", resource: "instance",
		member: "instanceId", parameter: "InstanceId.1", filter: "instance-id", token: true,
		more: func(int) []string {
			return []string{"ImageId", ami.OfRelease(release.Default()), "InstanceType", "t3.small", "MinCount", "1", "MaxCount", "1", "SubnetId", c.subnets[0]}
		},
		only: []string{"instance-state-name", "pending|running"},
	})
	kind.alone = true
	return kind
}

// routes have a destination for each; they are not changed.
func routes(table, gateway string) killedKind {
	destination := func(n int) string { return fmt.Sprintf("192.168.%d.0/24", n) }
	return killedKind{
		name: "a route", madeAgain: "RouteAlreadyExists", removedAgain: "InvalidRoute.NotFound",
		make: func(n int, _ string) awsRequest {
			return awsForm("ec2", "CreateRoute", "RouteTableId", table, "DestinationCidrBlock", destination(n), "GatewayId", gateway)
		},
		remove: func(n int) awsRequest {
			return awsForm("ec2", "DeleteRoute", "RouteTableId", table, "DestinationCidrBlock", destination(n))
		},
		look:  func(int) awsRequest { return awsForm("ec2", "DescribeRouteTables", "RouteTableId.1", table) },
		state: func(n int, answer awsAnswer) (int, error) { return countedIn(answer, destination(n)) },
	}
}

// groupRules are rules of one security group, by port.
func groupRules(group string) killedKind {
	rule := func(action string, n int) awsRequest {
		port := strconv.Itoa(8000 + n)
		return awsForm("ec2", action, "GroupId", group, "IpPermissions.1.IpProtocol", "tcp", "IpPermissions.1.FromPort", port, "IpPermissions.1.ToPort", port,
			"IpPermissions.1.IpRanges.1.CidrIp", "10.0.0.0/8")
	}
	return killedKind{
		name: "a rule of a security group", madeAgain: "InvalidPermission.Duplicate", removedAgain: "InvalidPermission.NotFound",
		make:   func(n int, _ string) awsRequest { return rule("AuthorizeSecurityGroupIngress", n) },
		remove: func(n int) awsRequest { return rule("RevokeSecurityGroupIngress", n) },
		look: func(int) awsRequest {
			return awsForm("ec2", "DescribeSecurityGroupRules", "Filter.1.Name", "group-id", "Filter.1.Value.1", group)
		},
		state: func(n int, answer awsAnswer) (int, error) {
			return countedIn(answer, fmt.Sprintf("<fromPort>%d</fromPort>", 8000+n))
		},
	}
}

// subnetTags are tags of one resource, by key.
func subnetTags(subnet string) killedKind {
	key := func(n int) string { return fmt.Sprint("killed", n) }
	set := func(n, state int) awsRequest {
		return awsForm("ec2", "CreateTags", "ResourceId.1", subnet, "Tag.1.Key", key(n), "Tag.1.Value", strconv.Itoa(state))
	}
	return killedKind{
		name:   "a tag",
		make:   func(n int, _ string) awsRequest { return set(n, 1) },
		change: func(n, state int, _ string) awsRequest { return set(n, state) },
		remove: func(n int) awsRequest {
			return awsForm("ec2", "DeleteTags", "ResourceId.1", subnet, "Tag.1.Key", key(n))
		},
		look: func(n int) awsRequest {
			return awsForm("ec2", "DescribeTags", "Filter.1.Name", "resource-id", "Filter.1.Value.1", subnet, "Filter.2.Name", "key", "Filter.2.Value.1", key(n))
		},
		state: func(_ int, answer awsAnswer) (int, error) {
			if answer.code() == "" && !strings.Contains(answer.body, "<key>") {
				return 0, nil
			}
			return killedStateOf(answer, "", regexp.MustCompile(`<value>(\d+)</value>`))
		},
	}
}

// countedIn is how often a text is in an answer.
func countedIn(answer awsAnswer, text string) (int, error) {
	if answer.code() != "" {
		return 0, fmt.Errorf("%d %s", answer.status, answer.body)
	}
	return strings.Count(answer.body, text), nil
}
