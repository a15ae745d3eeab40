// SPDX-License-Identifier: Apache-2.0

package query

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

func decode(method, body string) (string, awsshape.Object, error) {
	call, err := Codec{}.Route(awstable.Service("autoscaling"), awsshape.Request{Method: method, Path: "/", Body: []byte(body)}, awsshape.DefaultLimits())
	if err != nil {
		return "", nil, err
	}
	input, err := call.Input()
	return call.Operation.Name, input, err
}

func TestRequests(t *testing.T) {
	operation, got, err := decode("POST", "Action=SetDesiredCapacity&Version=2011-01-01&AutoScalingGroupName=web&DesiredCapacity=3&HonorCooldown=false&Color=red")
	if err != nil || operation != "SetDesiredCapacity" {
		t.Fatalf("got %s, %v", operation, err)
	}
	if diff := cmp.Diff(awsshape.Object{"AutoScalingGroupName": "web", "DesiredCapacity": int64(3), "HonorCooldown": false}, got); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct{ method, body, want string }{
		"method":    {"PUT", "", `InvalidAction: the method is "PUT"`},
		"body":      {"GET", "Action=SetDesiredCapacity", `InvalidAction: the method is "GET"`},
		"no action": {"POST", "Version=2011-01-01", "MissingAction"},
		"unknown":   {"POST", "Action=Dance&Version=2011-01-01", "InvalidAction: could not find operation Dance for version 2011-01-01"},
		"version":   {"POST", "Action=SetDesiredCapacity&Version=2009", "InvalidAction: could not find operation SetDesiredCapacity for version 2009"},
		"form":      {"POST", "Action=%", "MalformedInput"},
		"value":     {"POST", "Action=SetDesiredCapacity&Version=2011-01-01&DesiredCapacity=x", "MalformedInput: the parameter DesiredCapacity"},
		"required":  {"POST", "Action=SetDesiredCapacity&Version=2011-01-01", "ValidationError: 2 validation errors detected: Value null at 'autoScalingGroupName' failed to satisfy constraint: Member must not be null; Value null at 'desiredCapacity'"},
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

// Whatever comes, the answer is an input or a refusal.
func FuzzRequest(f *testing.F) {
	f.Add("Action=SetDesiredCapacity&Version=2011-01-01&AutoScalingGroupName=web&DesiredCapacity=3")
	f.Add("Action=CreateOrUpdateTags&Version=2011-01-01&Tags.member.1.Key=a&Tags.member.1.Value=b&Tags.member.1.PropagateAtLaunch=true")
	f.Fuzz(func(t *testing.T, body string) {
		_, _, err := decode("POST", body)
		var refused *awsfault.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("%v is not an answer", err)
		}
	})
}

// AWS takes a GET, too, whose form is the query; presigned, it has the parameters of the signature beside it.
func TestGetRequests(t *testing.T) {
	for _, more := range []string{"", "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=a&X-Amz-Date=b&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Security-Token=c&X-Amz-Signature=d"} {
		call, err := Codec{}.Route(awstable.Service("autoscaling"), awsshape.Request{Method: "GET", Path: "/", Query: "Action=SetDesiredCapacity&Version=2011-01-01&AutoScalingGroupName=web&DesiredCapacity=3" + more}, awsshape.DefaultLimits())
		if err != nil || call.Operation.Name != "SetDesiredCapacity" {
			t.Fatalf("%v, %v", call.Operation, err)
		}
		got, err := call.Input()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(awsshape.Object{"AutoScalingGroupName": "web", "DesiredCapacity": int64(3)}, got); diff != "" {
			t.Error(diff)
		}
	}
}

// A POST whose URL has parameters, too, might mean them: it is refused. The parameters of a signature may be there.
func TestParametersBesideAForm(t *testing.T) {
	const signature = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=d"
	for query, want := range map[string]string{
		"": "", signature: "",
		"HonorCooldown=true": `MalformedInput: a POST has its parameters in the body, and the URL has "HonorCooldown=true"`, signature + "&HonorCooldown=true": "MalformedInput",
	} {
		request := awsshape.Request{Method: "POST", Path: "/", Query: query, Body: []byte("Action=SetDesiredCapacity&Version=2011-01-01&AutoScalingGroupName=web&DesiredCapacity=3")}
		_, err := Codec{}.Route(awstable.Service("autoscaling"), request, awsshape.DefaultLimits())
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", query, err, want)
		}
	}
}

func TestAnswers(t *testing.T) {
	service := awstable.Service("autoscaling")
	type group struct {
		AutoScalingGroupName string
		DesiredCapacity      int
	}
	for want, c := range map[string]struct {
		operation string
		output    any
	}{
		`<SetDesiredCapacityResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><SetDesiredCapacityResult></SetDesiredCapacityResult><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></SetDesiredCapacityResponse>`: {"SetDesiredCapacity", nil},
		`<DescribeAutoScalingGroupsResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><DescribeAutoScalingGroupsResult><AutoScalingGroups><member><AutoScalingGroupName>web</AutoScalingGroupName><DesiredCapacity>0</DesiredCapacity></member></AutoScalingGroups></DescribeAutoScalingGroupsResult><ResponseMetadata><RequestId>id</RequestId></ResponseMetadata></DescribeAutoScalingGroupsResponse>`: {
			"DescribeAutoScalingGroups", struct{ AutoScalingGroups []group }{[]group{{AutoScalingGroupName: "web"}}},
		},
	} {
		response, err := Codec{}.Encode(service.Operation(c.operation), "id", c.output)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff("200 text/xml id "+want, show(response)); diff != "" {
			t.Error(diff)
		}
	}
	for want, problem := range map[string]*awsfault.Error{
		`400 text/xml id <ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Sender</Type><Code>AlreadyExists</Code><Message>a &amp; b</Message></Error><RequestId>id</RequestId></ErrorResponse>`: awsfault.Errorf("AlreadyExists", "a & b"),
		`500 text/xml id <ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Receiver</Type><Code>ResourceContention</Code><Message>m</Message></Error><RequestId>id</RequestId></ErrorResponse>`:  awsfault.Errorf("ResourceContention", "m"),
	} {
		if diff := cmp.Diff(want, show(Codec{}.EncodeError(service, "id", problem))); diff != "" {
			t.Error(diff)
		}
	}
}

func show(r awsshape.Response) string {
	return fmt.Sprintf("%d %s %s %s", r.Status, r.Header["Content-Type"], r.Header["X-Amzn-Requestid"], r.Body)
}
