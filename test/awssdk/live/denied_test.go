// SPDX-License-Identifier: Apache-2.0

package live

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

// denial is the code that a service answers with to a caller without rights.
func denial(service string) string {
	switch service {
	case "ec2":
		return "UnauthorizedOperation"
	case "autoscaling", "cloudformation", "elasticloadbalancing", "elasticloadbalancingv2":
		return "AccessDenied"
	}
	return "AccessDeniedException"
}

// inputs are what a request has beside what the SDK requires, by the action, so that it is good enough for IAM to be
// asked. Required fields are filled in by their names, see named.
func (w *world) inputs() map[string]map[string]any {
	group := map[string]any{"LogGroupName": aws.String("live")}
	template := &ec2types.RequestLaunchTemplateData{UserData: userData()}
	fleetOf := []ec2types.FleetLaunchTemplateConfigRequest{{LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateId: aws.String("lt-0123456789abcdef0"), Version: aws.String("1")}}}
	securityGroup := aws.String("sg-0123456789abcdef0")
	autoscalingTags := []autoscalingtypes.Tag{{Key: aws.String("a"), Value: aws.String("b"), ResourceId: aws.String("live"), ResourceType: aws.String("auto-scaling-group"), PropagateAtLaunch: aws.Bool(true)}}
	return map[string]map[string]any{
		"ec2:CreateLaunchTemplate":                       {"LaunchTemplateData": template},
		"ec2:CreateLaunchTemplateVersion":                {"LaunchTemplateData": template, "LaunchTemplateId": aws.String("lt-0123456789abcdef0")},
		"ec2:CreateFleet":                                {"LaunchTemplateConfigs": fleetOf, "Type": ec2types.FleetTypeInstant, "TargetCapacitySpecification": &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1)}},
		"ec2:AssociateAddress":                           {"AllocationId": aws.String("eipalloc-0123456789abcdef0"), "InstanceId": aws.String("i-0123456789abcdef0")},
		"ec2:CreateTags":                                 {"Resources": []string{"vpc-0123456789abcdef0"}, "Tags": []ec2types.Tag{{Key: aws.String("live"), Value: aws.String("x")}}},
		"ec2:DeleteTags":                                 {"Resources": []string{"vpc-0123456789abcdef0"}, "Tags": []ec2types.Tag{{Key: aws.String("live"), Value: aws.String("x")}}},
		"ec2:DisassociateAddress":                        {"AssociationId": aws.String("eipassoc-0123456789abcdef0")},
		"ec2:DisassociateRouteTable":                     {"AssociationId": aws.String("rtbassoc-0123456789abcdef0")},
		"ec2:ModifyInstanceAttribute":                    {"DisableApiTermination": &ec2types.AttributeBooleanValue{Value: aws.Bool(true)}},
		"ec2:ReleaseAddress":                             {"AllocationId": aws.String("eipalloc-0123456789abcdef0")},
		"ec2:ReplaceNetworkAclAssociation":               {"AssociationId": aws.String("aclassoc-0123456789abcdef0")},
		"ec2:ReplaceRouteTableAssociation":               {"AssociationId": aws.String("rtbassoc-0123456789abcdef0")},
		"elasticfilesystem:DescribeMountTargets":         {"FileSystemId": aws.String("fs-0123456789abcdef0")},
		"logs:AssociateKmsKey":                           group,
		"logs:DisassociateKmsKey":                        group,
		"logs:DescribeLogStreams":                        group,
		"logs:FilterLogEvents":                           group,
		"logs:GetLogEvents":                              group,
		"logs:StartQuery":                                group,
		"ec2:AuthorizeSecurityGroupIngress":              {"GroupId": securityGroup},
		"ec2:RevokeSecurityGroupIngress":                 {"GroupId": securityGroup},
		"ec2:DeleteSecurityGroup":                        {"GroupId": securityGroup},
		"ec2:UpdateSecurityGroupRuleDescriptionsIngress": {"GroupId": securityGroup},
		"ec2:UpdateSecurityGroupRuleDescriptionsEgress":  {"GroupId": securityGroup},
		"ec2:DeleteKeyPair":                              {"KeyName": aws.String("live")},
		"autoscaling:CreateOrUpdateTags":                 {"Tags": autoscalingTags},
		"autoscaling:DeleteTags":                         {"Tags": autoscalingTags},
	}
}

// named is the value of a member, by the end of its name.
func (w *world) named(service, name string) string {
	if service == "logs" && strings.EqualFold(name, "resourceArn") {
		return "arn:aws:logs:" + w.config.Region + ":" + account + ":log-group:live"
	}
	if service == "ecr" && strings.EqualFold(name, "resourceArn") {
		return "arn:aws:ecr:" + w.config.Region + ":" + account + ":repository/live"
	}
	if service == "events" && strings.EqualFold(name, "resourceARN") {
		return "arn:aws:events:" + w.config.Region + ":" + account + ":rule/live"
	}
	if service == "fis" && strings.EqualFold(name, "resourceArn") {
		return "arn:aws:fis:" + w.config.Region + ":" + account + ":experiment/EXPLIVE"
	}
	for _, known := range []struct{ suffix, value string }{
		{"ResourceIdentifier", "arn:aws:eks:" + w.config.Region + ":" + account + ":cluster/" + first},
		{"ZonalShiftId", "0b1c2d3e-4f50-4172-8394-a5b6c7d8e9f0"},
		{"QueueUrl", "https://sqs." + w.config.Region + ".amazonaws.com/" + account + "/live"},
		{"FileSystemId", "fs-0123456789abcdef0"},
		{"AccessPointId", "fsap-0123456789abcdef0"},
		{"MountTargetId", "fsmt-0123456789abcdef0"},
		{"ResourceId", "fs-0123456789abcdef0"},
		{"AliasName", "alias/live"},
		{"SubnetId", w.subnets[0]},
		{"PrincipalArn", "arn:aws:iam::" + account + ":user/admin"},
		{"PolicyArn", "arn:aws:eks::aws:cluster-access-policy/AmazonEKSViewPolicy"},
		{"ResourceArn", "arn:aws:eks:" + w.config.Region + ":" + account + ":cluster/" + first},
		{"RoleArn", "arn:aws:iam::" + account + ":role/eks"},
		{"NodeRole", "arn:aws:iam::" + account + ":role/muster-node"},
		{"ClusterName", first},
		{"NodegroupName", "default"},
		{"AddonName", "coredns"},
		{"AddonVersion", "v1.15.0-eksbuild.1"},
		{"CidrBlock", "10.99.0.0/16"},
		{"VpcId", "vpc-0123456789abcdef0"},
		{"InternetGatewayId", "igw-0123456789abcdef0"},
		{"NatGatewayId", "nat-0123456789abcdef0"},
		{"RouteTableId", "rtb-0123456789abcdef0"},
		{"NetworkAclId", "acl-0123456789abcdef0"},
		{"AllocationId", "eipalloc-0123456789abcdef0"},
		{"InstanceId", "i-0123456789abcdef0"},
		{"SpotInstanceRequestId", "sir-0123456789abcdef0"},
		{"ImageId", "ami-0123456789abcdef0"},
		{"SecurityGroupRuleId", "sgr-0123456789abcdef0"},
		{"GroupId", "sg-0123456789abcdef0"},
		{"LaunchTemplateId", "lt-0123456789abcdef0"},
		{"KeyId", "12345678-1234-1234-1234-123456789012"},
	} {
		if strings.HasSuffix(strings.ToLower(name), strings.ToLower(known.suffix)) {
			return known.value
		}
	}
	if service == "eks" && strings.EqualFold(name, "name") {
		return first
	}
	return "live"
}

// TestDenied sends every action that the account answers as a user without rights. Nothing happens, and the code is the
// service's own.
func TestDenied(t *testing.T) {
	w := newWorld(t)
	nobody := w.nobody()
	clients := map[string]any{"eks": nobody.eks, "ec2": nobody.ec2, "autoscaling": nobody.autoscaling, "ssm": nobody.ssm, "kms": nobody.kms, "logs": nobody.logs, "ecr": nobody.ecr, "elasticfilesystem": nobody.efs, "arc-zonal-shift": nobody.zonal, "sqs": nobody.sqs, "events": nobody.events, "pricing": nobody.pricing, "fis": nobody.fis, "cloudformation": nobody.stacks, "tagging": nobody.tagging, "elasticloadbalancing": nobody.classic, "elasticloadbalancingv2": nobody.balancers}
	for _, name := range answered() {
		t.Run(name, func(t *testing.T) {
			service, action, _ := strings.Cut(name, ":")
			method := reflect.ValueOf(clients[service]).MethodByName(action)
			if !method.IsValid() {
				t.Fatalf("the SDK's client of %s has no %s", service, action)
			}
			input := reflect.New(method.Type().In(1).Elem())
			w.fill(service, awstable.Service(service).Operation(action).Input, input.Elem())
			for field, value := range w.inputs()[name] {
				input.Elem().FieldByName(field).Set(reflect.ValueOf(value))
			}
			arguments := []reflect.Value{reflect.ValueOf(t.Context()), input}
			err, _ := reflect.TypeAssert[error](method.Call(arguments)[1])
			for end := time.Now().Add(time.Minute); strings.HasPrefix(codeOf(err), "Thrott") && time.Now().Before(end); err, _ = reflect.TypeAssert[error](method.Call(arguments)[1]) {
				<-time.After(100 * time.Millisecond) // one key asks for more actions than it may have at once, and waits as clients do
			}
			if got := codeOf(err); got != denial(service) {
				t.Errorf("got %q (%v), want %s; what the request needs to get to IAM is in inputs", got, err, denial(service))
			}
		})
	}
}

// nobody is a user without rights.
func (w *world) nobody() *world {
	w.Helper()
	defer w.fatal()
	name := aws.String("live-nobody")
	need(w.iam.CreateUser(w.ctx(), &iam.CreateUserInput{UserName: name}))
	key := need(w.iam.CreateAccessKey(w.ctx(), &iam.CreateAccessKeyInput{UserName: name})).AccessKey
	w.Cleanup(func() {
		ctx := context.WithoutCancel(w.Context())
		_, err := w.iam.DeleteAccessKey(ctx, &iam.DeleteAccessKeyInput{UserName: name, AccessKeyId: key.AccessKeyId})
		if err == nil {
			_, err = w.iam.DeleteUser(ctx, &iam.DeleteUserInput{UserName: name})
		}
		if err != nil {
			w.Error(err)
		}
	})
	c := w.config.Copy()
	c.Credentials = credentials.NewStaticCredentialsProvider(*key.AccessKeyId, *key.SecretAccessKey, "")
	return w.as(c)
}

// fill sets what an input must have.
func (w *world) fill(service string, shape *awsshape.Shape, v reflect.Value) {
	if shape == nil {
		return
	}
	for _, m := range shape.Members {
		if !m.Required {
			continue
		}
		field := v.FieldByNameFunc(func(name string) bool { return strings.EqualFold(name, m.Name) })
		if !field.IsValid() {
			w.Fatalf("%s has no field %s", v.Type(), m.Name)
		}
		w.set(service, m, field)
	}
}

func (w *world) set(service string, m *awsshape.Member, v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // others are left as they are
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		w.set(service, m, v.Elem())
	case reflect.String:
		value := w.named(service, m.Name)
		if values := v.MethodByName("Values"); values.IsValid() { // an enumeration
			value = values.Call(nil)[0].Index(0).String()
		}
		v.SetString(value)
	case reflect.Int32, reflect.Int64:
		v.SetInt(1)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("live"))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		item := v.Index(0)
		if item.Kind() == reflect.Struct {
			w.fill(service, m.Shape.Item, item)
			return
		}
		w.set(service, &awsshape.Member{Name: strings.TrimSuffix(m.Name, "s"), Shape: m.Shape.Item}, item)
	case reflect.Map:
		item := reflect.New(v.Type().Elem()).Elem()
		if item.Kind() == reflect.Struct {
			w.fill(service, m.Shape.Item, item)
		} else {
			item.SetString("x")
		}
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("live"), item)
	case reflect.Struct:
		w.fill(service, m.Shape, v)
	}
}

// TestDeniedIsAskedOfAll fails if a service has no client in TestDenied.
func TestDeniedIsAskedOfAll(t *testing.T) {
	asked := map[string]bool{}
	for _, name := range answered() {
		service, _, _ := strings.Cut(name, ":")
		asked[service] = true
	}
	for _, service := range slices.Sorted(maps.Keys(asked)) {
		if !slices.Contains([]string{"eks", "ec2", "autoscaling", "ssm", "kms", "logs", "ecr", "elasticfilesystem", "arc-zonal-shift", "sqs", "events", "pricing", "fis", "cloudformation", "tagging", "elasticloadbalancing", "elasticloadbalancingv2"}, service) {
			t.Errorf("%s has no client here", service)
		}
	}
}
