// SPDX-License-Identifier: Apache-2.0

package ec2query

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

func decode(method, body string) (string, awsshape.Object, error) {
	call, err := Codec{}.Route(awstable.Service("ec2"), awsshape.Request{Method: method, Path: "/", Body: []byte(body)}, awsshape.DefaultLimits())
	if err != nil {
		return "", nil, err
	}
	input, err := call.Input()
	return call.Operation.Name, input, err
}

func TestRequests(t *testing.T) {
	operation, got, err := decode("POST", "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=tag%3Aa&Filter.1.Value.1=b&Filter.1.Value.2=c&InstanceId.1=i-1&MaxResults=5&DryRun=true")
	if err != nil || operation != "DescribeInstances" {
		t.Fatalf("got %s, %v", operation, err)
	}
	want := awsshape.Object{
		"Filters":     []any{awsshape.Object{"Name": "tag:a", "Values": []any{"b", "c"}}},
		"InstanceIds": []any{"i-1"}, "MaxResults": int64(5), "DryRun": true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	const version = "&Version=2016-11-15"
	for name, c := range map[string]struct{ method, body, want string }{
		"method":            {"PUT", "", `InvalidAction: the method is "PUT"`},
		"a GET with a body": {"GET", "Action=DescribeInstances", `InvalidAction: the method is "GET"`},
		"no action":         {"POST", "Version=2016-11-15", "MissingAction"},
		"unknown":           {"POST", "Action=Dance" + version, "InvalidAction: the action Dance is not valid for this web service"},
		"version":           {"POST", "Action=RunInstances&Version=2010-01-01", `NoSuchVersion: the requested version "2010-01-01" of ec2 does not exist`},
		"form":              {"POST", "Action=%", "MalformedQueryString"},
		"value":             {"POST", "Action=DescribeInstances&MaxResults=x" + version, "InvalidParameterValue: the parameter MaxResults"},
		"unknown parameter": {"POST", "Action=DescribeInstances&Color=red" + version, "UnknownParameter: the parameter Color is not recognized"},
		"the table's name":  {"POST", "Action=DescribeInstances&Filters.1.Name=a" + version, "UnknownParameter: the parameter Filters.1.Name"},
		"required":          {"POST", "Action=RunInstances&MinCount=1" + version, "MissingParameter: The request must contain the parameter maxCount"},
		"without a value":   {"POST", "Action=DeleteSubnet&SubnetId=" + version, "MissingParameter: The request must contain the parameter subnetId"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decode(c.method, c.body)
			var refused *awsfault.Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// AWS takes a GET, too, whose form is the query; presigned, it has the parameters of the signature beside it.
func TestGetRequests(t *testing.T) {
	for _, more := range []string{"", "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Date=b&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Security-Token=c&X-Amz-Signature=d"} {
		call, err := Codec{}.Route(awstable.Service("ec2"), awsshape.Request{Method: "GET", Path: "/", Query: "Action=DescribeInstances&Version=2016-11-15&InstanceId.1=i-1" + more}, awsshape.DefaultLimits())
		if err != nil || call.Operation.Name != "DescribeInstances" {
			t.Fatalf("%v, %v", call.Operation, err)
		}
		got, err := call.Input()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(awsshape.Object{"InstanceIds": []any{"i-1"}}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// A POST whose URL has parameters, too, might mean them: it is refused. The parameters of a signature may be there.
func TestParametersBesideAForm(t *testing.T) {
	const signature = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=d"
	for query, want := range map[string]string{
		"": "", signature: "",
		"DryRun=true": `MalformedQueryString: a POST has its parameters in the body, and the URL has "DryRun=true"`, signature + "&DryRun=true": "MalformedQueryString",
	} {
		request := awsshape.Request{Method: "POST", Path: "/", Query: query, Body: []byte("Action=TerminateInstances&Version=2016-11-15&InstanceId.1=i-1")}
		_, err := Codec{}.Route(awstable.Service("ec2"), request, awsshape.DefaultLimits())
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", query, err, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	service := awstable.Service("ec2")
	type vpc struct{ VPCID, CIDRBlock string }
	for want, c := range map[string]struct {
		operation string
		output    any
	}{
		`<CreateTagsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>id</requestId><return>true</return></CreateTagsResponse>`: {"CreateTags", nil},
		`<DescribeVpcsResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>id</requestId><vpcSet><item><cidrBlock>10.0.0.0/16</cidrBlock><vpcId>vpc-1</vpcId></item></vpcSet></DescribeVpcsResponse>`: {
			"DescribeVpcs", struct{ Vpcs []vpc }{[]vpc{{VPCID: "vpc-1", CIDRBlock: "10.0.0.0/16"}}},
		},
	} {
		response, err := Codec{}.Encode(service.Operation(c.operation), "id", c.output)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("200 text/xml;charset=UTF-8 id "+want, show(response)); diff != "" {
			t.Error(diff)
		}
	}
	got := show(Codec{}.EncodeError(service, "id", &awsfault.Error{Code: "DryRunOperation", Message: "it would have worked", Status: 412}))
	want := `412 text/xml;charset=UTF-8 id <Response><Errors><Error><Code>DryRunOperation</Code><Message>it would have worked</Message></Error></Errors><RequestID>id</RequestID></Response>`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func show(r awsshape.Response) string {
	return fmt.Sprintf("%d %s %s %s", r.Status, r.Header["Content-Type"], r.Header["X-Amzn-Requestid"], r.Body)
}

// Whatever comes, the answer is an input or a refusal.
func FuzzRequest(f *testing.F) {
	f.Add("Action=RunInstances&Version=2016-11-15&MinCount=1&MaxCount=1&BlockDeviceMapping.1.Ebs.VolumeSize=8&TagSpecification.1.Tag.1.Key=a")
	f.Add("Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=a&Filter.1.Value.1=b")
	f.Fuzz(func(t *testing.T, body string) {
		_, _, err := decode("POST", body)
		var refused *awsfault.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("%v is not an answer", err)
		}
	})
}

type ec2Tag struct{ Key, Value string }

type instance struct {
	InstanceID, ImageID, InstanceType, PrivateDNSName, PrivateIPAddress, SubnetID, VPCID string
	LaunchTime                                                                           time.Time
	State                                                                                struct {
		Code int32
		Name string
	}
	Placement         struct{ AvailabilityZone, Tenancy string }
	SecurityGroups    []struct{ GroupID, GroupName string }
	NetworkInterfaces []struct {
		NetworkInterfaceID, MACAddress, PrivateIPAddress, Status string
		PrivateIPAddresses                                       []struct {
			Primary          bool
			PrivateIPAddress string
		}
	}
	Tags []ec2Tag
}

func BenchmarkDescribeInstances(b *testing.B) {
	type reservation struct {
		ReservationID, OwnerID string
		Instances              []instance
	}
	var output struct{ Reservations []reservation }
	for n := range 1000 {
		i := instance{InstanceID: fmt.Sprintf("i-%017x", n), ImageID: "ami-0123456789abcdef0", InstanceType: "m5.large", VPCID: "vpc-0123456789abcdef0", LaunchTime: time.Unix(1_700_000_000, 0)}
		i.PrivateDNSName, i.PrivateIPAddress, i.SubnetID = "ip-10-0-1-5.ec2.internal", "10.0.1.5", "subnet-0123456789abcdef0"
		i.State.Code, i.State.Name, i.Placement.AvailabilityZone, i.Placement.Tenancy = 16, "running", "us-east-1a", "default"
		i.SecurityGroups = append(i.SecurityGroups, struct{ GroupID, GroupName string }{"sg-0123456789abcdef0", "eks-cluster-sg"})
		i.NetworkInterfaces = append(i.NetworkInterfaces, struct {
			NetworkInterfaceID, MACAddress, PrivateIPAddress, Status string
			PrivateIPAddresses                                       []struct {
				Primary          bool
				PrivateIPAddress string
			}
		}{NetworkInterfaceID: "eni-0123456789abcdef0", MACAddress: "02:00:00:00:00:01", PrivateIPAddress: "10.0.1.5", Status: "in-use"})
		for t := range 5 {
			i.Tags = append(i.Tags, ec2Tag{fmt.Sprintf("kubernetes.io/cluster/%d", t), "owned"})
		}
		output.Reservations = append(output.Reservations, reservation{ReservationID: "r-0123456789abcdef0", OwnerID: "000000000000", Instances: []instance{i}})
	}
	op := awstable.Service("ec2").Operation("DescribeInstances")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decode("POST", "Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=instance-state-name&Filter.1.Value.1=running&MaxResults=1000"); err != nil {
			b.Fatal(err)
		}
		response, err := Codec{}.Encode(op, "id", output)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(response.Body)))
	}
}
