// SPDX-License-Identifier: Apache-2.0

package resource_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsactions"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/aws/cloudformation/resource"
)

// each calls a function for each type.
func each(t *testing.T, f func(*testing.T, resource.Type)) {
	t.Helper()
	for _, name := range resource.Names() {
		t.Run(name, func(t *testing.T) {
			found, err := resource.Find(name)
			if err != nil || found.Name != name {
				t.Fatalf("%+v, %v", found, err)
			}
			f(t, found)
		})
	}
}

// input is the shape of the first action that creates a resource.
func input(t *testing.T, of resource.Type) *awsshape.Shape {
	t.Helper()
	operation := awstable.Service(of.Create[0].Service).Operation(of.Create[0].Name)
	if operation == nil || operation.Input == nil {
		t.Fatalf("%s is in no table", of.Create[0])
	}
	return operation.Input
}

func TestTypesAreWhole(t *testing.T) {
	if names := resource.Names(); len(names) != 28 || !slices.IsSorted(names) {
		t.Errorf("there are %d types: %v", len(names), names)
	}
	each(t, func(t *testing.T, of resource.Type) {
		t.Helper()
		all := slices.Concat(of.Replaces, of.Updates)
		slices.Sort(all)
		if doubled := slices.Compact(slices.Clone(all)); len(doubled) != len(all) {
			t.Errorf("a property is listed twice: %v", all)
		}
		known := of.Properties()
		for _, name := range slices.Concat(of.Required, of.Apart, slices.Collect(maps.Keys(of.Names))) {
			if !slices.Contains(known, name) {
				t.Errorf("%s is not a property: there are %v", name, known)
			}
		}
		for _, path := range all {
			if name, _, nested := strings.Cut(path, "."); nested && !slices.Contains(of.Updates, name) {
				t.Errorf("%s is below %s, which has to change in place", path, name)
			}
		}
		if of.Named != "" && !slices.Contains(of.Replaces, of.Named) {
			t.Errorf("a change of the name %s does not replace the resource", of.Named)
		}
		for _, name := range of.ID {
			if !slices.Contains(of.Attributes, name) && !slices.Contains(known, name) {
				t.Errorf("the physical id has %s, which is neither an attribute nor a property", name)
			}
		}
		if len(of.Update) == 0 && len(of.Updates) > 0 {
			t.Errorf("no action changes %v", of.Updates)
		}
	})
}

// Each action that a type names is answered, and what the first one takes is in its table.
func TestActionsAreThere(t *testing.T) {
	list := awsactions.NewList()
	each(t, func(t *testing.T, of resource.Type) {
		t.Helper()
		for _, action := range slices.Concat(of.Create, of.Read, of.Update, of.Delete) {
			operation := awstable.Service(action.Service).Operation(action.Name)
			listed, ok := list.Find(action.Service, action.Name)
			if operation == nil || !ok || listed.Mark == awsactions.Refused {
				t.Errorf("%s is not answered", action)
			}
		}
		shape := input(t, of)
		members := map[string]bool{}
		for _, m := range shape.Members {
			members[strings.ToLower(m.Name)] = true
		}
		given := slices.Concat(of.Beside, slices.Collect(maps.Keys(of.Derived)))
		for _, name := range of.Properties() {
			if slices.Contains(of.Apart, name) || name == "Tags" {
				continue
			}
			if other, ok := of.Names[name]; ok {
				name = other
			}
			if !members[strings.ToLower(name)] {
				t.Errorf("%s has no member %s", of.Create[0], name)
			}
		}
		for _, name := range append(slices.Clone(of.Required), of.Named) {
			if other, ok := of.Names[name]; ok {
				name = other
			}
			given = append(given, name)
		}
		for _, m := range shape.Members {
			if m.Required && !m.Token && !slices.ContainsFunc(given, func(name string) bool { return strings.EqualFold(name, m.Name) }) {
				t.Errorf("%s needs %s, which nothing gives", of.Create[0], m.Name)
			}
		}
	})
}

// A creation is made once by what its action has for that.
func TestOnce(t *testing.T) {
	each(t, func(t *testing.T, of resource.Type) {
		t.Helper()
		shape := input(t, of)
		hasToken := slices.ContainsFunc(shape.Members, func(m *awsshape.Member) bool { return m.Token })
		switch of.Once {
		case resource.ByToken:
			if !hasToken {
				t.Errorf("%s takes no client token", of.Create[0])
			}
		case resource.ByTag:
			if shape.Member("TagSpecifications") == nil || of.TagType == "" || hasToken {
				t.Errorf("%s takes a client token, or no tags", of.Create[0])
			}
		case resource.ByName:
			if of.Named == "" && of.Name != "AWS::IAM::OIDCProvider" { // whose URL is its name
				t.Error("the resource has no name")
			}
			if !slices.ContainsFunc(shape.Members, func(m *awsshape.Member) bool { return strings.EqualFold(m.Name, "Tags") }) {
				t.Errorf("%s takes no tags", of.Create[0])
			}
		case resource.ByValue:
		default:
			t.Error("nothing keeps the resource from being made twice")
		}
	})
}

func TestUnknownTypesAndProperties(t *testing.T) {
	_, err := resource.Find("AWS::S3::Bucket")
	if err == nil || !strings.Contains(err.Error(), `"AWS::S3::Bucket"`) || !strings.Contains(err.Error(), "AWS::AutoScaling::AutoScalingGroup, AWS::EC2::EIP") {
		t.Errorf("an unknown type: %v", err)
	}
	if _, _, ok := resource.Known("AWS::S3::Bucket"); ok {
		t.Error("an unknown type is known")
	}
	properties, attributes, ok := resource.Known("AWS::EC2::Subnet")
	if !ok || !properties["VpcId"] || properties["SubnetId"] || !attributes["SubnetId"] || attributes["Tags"] {
		t.Errorf("a subnet has the properties %v and the attributes %v", properties, attributes)
	}
	subnet, _ := resource.Find("AWS::EC2::Subnet")
	problems := subnet.Check(map[string]any{"CidrBlock": "10.0.0.0/24", "Size": 24})
	if len(problems) != 2 || !strings.HasPrefix(problems[0], "AWS::EC2::Subnet has no property Size: it has AssignIpv6AddressOnCreation, ") || problems[1] != "AWS::EC2::Subnet needs the property VpcId" {
		t.Errorf("problems: %q", problems)
	}
	if problems := subnet.Check(map[string]any{"VpcId": "vpc-1"}); len(problems) > 0 {
		t.Errorf("problems: %q", problems)
	}
}

func TestChanges(t *testing.T) {
	cluster, _ := resource.Find("AWS::EKS::Cluster")
	before := map[string]any{
		"Name": "c", "Version": "1.36", "KubernetesNetworkConfig": map[string]any{"IpFamily": "ipv4"},
		"ResourcesVpcConfig": map[string]any{"SubnetIds": []any{"subnet-1"}, "EndpointPublicAccess": true},
	}
	for name, c := range map[string]struct {
		change   func(map[string]any)
		changed  []string
		replaces bool
	}{
		"nothing":                       {func(map[string]any) {}, nil, false},
		"a boolean as text":             {func(p map[string]any) { p["ResourcesVpcConfig"].(map[string]any)["EndpointPublicAccess"] = "true" }, nil, false},
		"in place":                      {func(p map[string]any) { p["Version"] = "1.37" }, []string{"Version"}, false},
		"in place, added":               {func(p map[string]any) { p["Tags"] = []any{} }, []string{"Tags"}, false},
		"in place, removed":             {func(p map[string]any) { delete(p, "Version") }, []string{"Version"}, false},
		"in place, in a list":           {func(p map[string]any) { p["ResourcesVpcConfig"].(map[string]any)["SubnetIds"] = []any{"subnet-2"} }, []string{"ResourcesVpcConfig"}, false},
		"another name":                  {func(p map[string]any) { p["Name"] = "d" }, []string{"Name"}, true},
		"a property below one in place": {func(p map[string]any) { p["KubernetesNetworkConfig"].(map[string]any)["IpFamily"] = "ipv6" }, []string{"KubernetesNetworkConfig", "KubernetesNetworkConfig.IpFamily"}, true},
		"beside a property that replaces": {func(p map[string]any) {
			p["KubernetesNetworkConfig"].(map[string]any)["ElasticLoadBalancing"] = map[string]any{"Enabled": true}
		}, []string{"KubernetesNetworkConfig"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := copied(before).(map[string]any)
			c.change(after)
			changed, replaces := cluster.Changes(before, after)
			if !slices.Equal(changed, c.changed) || replaces != c.replaces {
				t.Errorf("changed %v, replaces %v", changed, replaces)
			}
		})
	}
}

// copied copies a value in depth.
func copied(value any) any {
	switch v := value.(type) {
	case map[string]any:
		all := map[string]any{}
		for key, inner := range v {
			all[key] = copied(inner)
		}
		return all
	case []any:
		all := make([]any, len(v))
		for i, inner := range v {
			all[i] = copied(inner)
		}
		return all
	}
	return value
}

// The properties are those that eksctl 0.231 sends.
func TestInput(t *testing.T) {
	for name, c := range map[string]struct {
		typ        string
		properties map[string]any
		want       awsshape.Object
	}{
		"a cluster": {"AWS::EKS::Cluster", map[string]any{
			"AccessConfig":               map[string]any{"AuthenticationMode": "API_AND_CONFIG_MAP", "BootstrapClusterCreatorAdminPermissions": true},
			"BootstrapSelfManagedAddons": "false", "KubernetesNetworkConfig": map[string]any{"IpFamily": "ipv4"}, "Name": "demo", "RoleArn": "arn:aws:iam::1:role/r",
			"Logging":            map[string]any{"ClusterLogging": map[string]any{"EnabledTypes": []any{map[string]any{"Type": "api"}, map[string]any{"Type": "audit"}}}},
			"ResourcesVpcConfig": map[string]any{"EndpointPrivateAccess": false, "EndpointPublicAccess": true, "SecurityGroupIds": []any{"sg-1"}, "SubnetIds": []any{"subnet-1", "subnet-2"}},
			"Tags":               []any{map[string]any{"Key": "Name", "Value": "demo/ControlPlane"}}, "Version": 1.36,
		}, awsshape.Object{
			"accessConfig":               awsshape.Object{"authenticationMode": "API_AND_CONFIG_MAP", "bootstrapClusterCreatorAdminPermissions": true},
			"bootstrapSelfManagedAddons": false, "kubernetesNetworkConfig": awsshape.Object{"ipFamily": "ipv4"}, "name": "demo", "roleArn": "arn:aws:iam::1:role/r",
			"logging":            awsshape.Object{"clusterLogging": []any{awsshape.Object{"types": []any{"api", "audit"}, "enabled": true}}},
			"resourcesVpcConfig": awsshape.Object{"endpointPrivateAccess": false, "endpointPublicAccess": true, "securityGroupIds": []any{"sg-1"}, "subnetIds": []any{"subnet-1", "subnet-2"}},
			"tags":               awsshape.Object{"Name": "demo/ControlPlane", "stack": "s"}, "version": "1.36", "clientRequestToken": "token",
		}},
		"a node group": {"AWS::EKS::Nodegroup", map[string]any{
			"ClusterName": "demo", "NodegroupName": "ng", "NodeRole": "arn", "Subnets": []any{"subnet-1"}, "ScalingConfig": map[string]any{"MinSize": "1", "MaxSize": 3.0, "DesiredSize": 2},
			"Tags": map[string]any{"a": "b"}, "LaunchTemplate": map[string]any{"Id": "lt-1"}, "ForceUpdateEnabled": true,
		}, awsshape.Object{
			"clusterName": "demo", "nodegroupName": "ng", "nodeRole": "arn", "subnets": []any{"subnet-1"},
			"scalingConfig": awsshape.Object{"minSize": int64(1), "maxSize": int64(3), "desiredSize": int64(2)},
			"tags":          awsshape.Object{"a": "b", "stack": "s"}, "launchTemplate": awsshape.Object{"id": "lt-1"}, "clientRequestToken": "token",
		}},
		"a launch template": {"AWS::EC2::LaunchTemplate", map[string]any{
			"LaunchTemplateName": "lt", "LaunchTemplateData": map[string]any{
				"KeyName": "k", "MetadataOptions": map[string]any{"HttpPutResponseHopLimit": 2, "HttpTokens": "required"}, "SecurityGroupIds": []any{"sg-1"},
				"BlockDeviceMappings": []any{map[string]any{"DeviceName": "/dev/xvda", "Ebs": map[string]any{"VolumeSize": 80, "VolumeType": "gp3", "Iops": "3000"}}},
				"TagSpecifications":   []any{map[string]any{"ResourceType": "instance", "Tags": []any{map[string]any{"Key": "Name", "Value": "n"}}}},
			},
		}, awsshape.Object{
			"LaunchTemplateName": "lt", "ClientToken": "token", "LaunchTemplateData": awsshape.Object{
				"KeyName": "k", "MetadataOptions": awsshape.Object{"HttpPutResponseHopLimit": int64(2), "HttpTokens": "required"}, "SecurityGroupIds": []any{"sg-1"},
				"BlockDeviceMappings": []any{awsshape.Object{"DeviceName": "/dev/xvda", "Ebs": awsshape.Object{"VolumeSize": int64(80), "VolumeType": "gp3", "Iops": int64(3000)}}},
				"TagSpecifications":   []any{awsshape.Object{"ResourceType": "instance", "Tags": []any{awsshape.Object{"Key": "Name", "Value": "n"}}}},
			},
			"TagSpecifications": []any{awsshape.Object{"ResourceType": "launch-template", "Tags": []any{awsshape.Object{"Key": "stack", "Value": "s"}}}},
		}},
		"a rule of a security group": {"AWS::EC2::SecurityGroupIngress", map[string]any{
			"Description": "nodes", "FromPort": 0, "GroupId": "sg-1", "IpProtocol": "-1", "SourceSecurityGroupId": "sg-2", "ToPort": 65535,
		}, awsshape.Object{
			"GroupId": "sg-1", "IpPermissions": []any{awsshape.Object{
				"FromPort": int64(0), "IpProtocol": "-1", "ToPort": int64(65535), "UserIdGroupPairs": []any{awsshape.Object{"Description": "nodes", "GroupId": "sg-2"}},
			}},
			"TagSpecifications": []any{awsshape.Object{"ResourceType": "security-group-rule", "Tags": []any{awsshape.Object{"Key": "stack", "Value": "s"}}}},
		}},
		"a role": {"AWS::IAM::Role", map[string]any{
			"RoleName": "r", "ManagedPolicyArns": []any{"arn"}, "AssumeRolePolicyDocument": map[string]any{"Version": "2012-10-17", "Statement": []any{}},
		}, awsshape.Object{
			"RoleName": "r", "AssumeRolePolicyDocument": `{"Statement":[],"Version":"2012-10-17"}`, "Tags": []any{awsshape.Object{"Key": "stack", "Value": "s"}},
		}},
		"a group of instances": {"AWS::AutoScaling::AutoScalingGroup", map[string]any{
			"AutoScalingGroupName": "g", "MinSize": "1", "MaxSize": "2", "VPCZoneIdentifier": []any{"subnet-1", "subnet-2"}, "Tags": []any{map[string]any{"Key": "k", "Value": "v", "PropagateAtLaunch": "false"}},
		}, awsshape.Object{
			"AutoScalingGroupName": "g", "MinSize": int64(1), "MaxSize": int64(2), "VPCZoneIdentifier": "subnet-1,subnet-2", "Tags": []any{
				awsshape.Object{"Key": "k", "Value": "v", "PropagateAtLaunch": false}, awsshape.Object{"Key": "stack", "Value": "s", "PropagateAtLaunch": true},
			},
		}},
		"a queue": {"AWS::SQS::Queue", map[string]any{"QueueName": "q", "MessageRetentionPeriod": 300, "SqsManagedSseEnabled": true}, awsshape.Object{
			"QueueName": "q", "Attributes": awsshape.Object{"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"}, "tags": awsshape.Object{"stack": "s"},
		}},
		"an address": {"AWS::EC2::EIP", map[string]any{}, awsshape.Object{
			"Domain": "vpc", "TagSpecifications": []any{awsshape.Object{"ResourceType": "elastic-ip", "Tags": []any{awsshape.Object{"Key": "stack", "Value": "s"}}}},
		}},
		"a route": {"AWS::EC2::Route", map[string]any{"RouteTableId": "rtb-1", "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1"}, awsshape.Object{
			"RouteTableId": "rtb-1", "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			of, err := resource.Find(c.typ)
			if err != nil {
				t.Fatal(err)
			}
			got, err := of.Input(c.properties, map[string]string{"stack": "s"}, "token")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("- want + got:\n%s", diff)
			}
			if missing := input(t, of).Missing(got); len(missing) > 0 {
				t.Errorf("missing: %v", missing)
			}
		})
	}
}

func TestInputRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		typ        string
		properties map[string]any
		want       string
	}{
		"no number":           {"AWS::EKS::Nodegroup", map[string]any{"ScalingConfig": map[string]any{"MinSize": "many"}}, `ScalingConfig.MinSize: "many" is not a whole number of 32 bits`},
		"a list of scalars":   {"AWS::EKS::Nodegroup", map[string]any{"Subnets": "subnet-1"}, "Subnets is subnet-1: want a list"},
		"an unknown property": {"AWS::EKS::Nodegroup", map[string]any{"ScalingConfig": map[string]any{"Size": 1}}, "ScalingConfig.Size: there is no such property"},
		"an object for a text": {
			"AWS::EKS::Nodegroup", map[string]any{"NodegroupName": map[string]any{"a": "b"}}, "NodegroupName is map[a:b]: want a string",
		},
		"a text for an object": {"AWS::EKS::Nodegroup", map[string]any{"ScalingConfig": "large"}, "ScalingConfig is large: want an object"},
		"tags without keys":    {"AWS::EC2::VPC", map[string]any{"Tags": []any{"Name"}}, "Tags.1 is Name: want Key and Value"},
		"tags that are a text": {"AWS::EC2::VPC", map[string]any{"Tags": "Name"}, "Tags is Name: want a list of Key and Value"},
		"labels without keys": {
			"AWS::EKS::FargateProfile", map[string]any{"Selectors": []any{map[string]any{"Namespace": "n", "Labels": []any{"l"}}}}, "Selectors.1.Labels has the entry l: want Key and Value",
		},
		"log types that are a text": {"AWS::EKS::Cluster", map[string]any{"Logging": "all"}, "Logging is all: want ClusterLogging with a list EnabledTypes"},
		"a log type that is a text": {
			"AWS::EKS::Cluster", map[string]any{"Logging": map[string]any{"ClusterLogging": map[string]any{"EnabledTypes": []any{"api"}}}}, "an entry of EnabledTypes is api: want a Type",
		},
	} {
		t.Run(name, func(t *testing.T) {
			of, err := resource.Find(c.typ)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := of.Input(c.properties, nil, "token"); err == nil || err.Error() != c.want {
				t.Errorf("%v, %v: want %s", got, err, c.want)
			}
		})
	}
}

func TestPhysicalID(t *testing.T) {
	values := map[string]string{"ClusterName": "demo", "NodegroupName": "ng", "AddonName": "coredns", "RouteTableId": "rtb-1", "CidrBlock": "0.0.0.0/0", "VpcId": "vpc-1", "PublicIp": "192.0.2.1"}
	for name, want := range map[string]string{
		"AWS::EKS::Nodegroup": "demo/ng", "AWS::EKS::Addon": "demo|coredns", "AWS::EC2::Route": "rtb-1|0.0.0.0/0", "AWS::EC2::VPC": "vpc-1", "AWS::EC2::EIP": "192.0.2.1",
	} {
		of, err := resource.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := of.PhysicalID(func(name string) string { return values[name] }); got != want {
			t.Errorf("the physical id of %s is %q: want %q", name, got, want)
		}
	}
}
