// SPDX-License-Identifier: Apache-2.0

package restjson

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

func decode(method, target, body string) (string, awsshape.Object, error) {
	path, query, _ := strings.Cut(target, "?")
	call, err := Codec{}.Route(awstable.Service("eks"), awsshape.Request{Method: method, Path: path, Query: query, Body: []byte(body)}, awsshape.DefaultLimits())
	if err != nil {
		return "", nil, err
	}
	input, err := call.Input()
	return call.Operation.Name, input, err
}

func TestRequests(t *testing.T) {
	for name, c := range map[string]struct {
		method, target, body string
		operation            string
		want                 awsshape.Object
	}{
		"label":            {"GET", "/clusters/one", "", "DescribeCluster", awsshape.Object{"name": "one"}},
		"ARN in a label":   {"GET", "/tags/arn%3Aaws%3Aeks%3Ax%3A1%3Acluster%2Fone", "", "ListTagsForResource", awsshape.Object{"resourceArn": "arn:aws:eks:x:1:cluster/one"}},
		"colons are plain": {"GET", "/tags/arn:aws:eks:x:1:cluster%2Fone", "", "ListTagsForResource", awsshape.Object{"resourceArn": "arn:aws:eks:x:1:cluster/one"}},
		"query":            {"GET", "/clusters?include=all&maxResults=5&foo=1&foo=2", "", "ListClusters", awsshape.Object{"include": []any{"all"}, "maxResults": int64(5)}},
		"list in a query":  {"DELETE", "/tags/x?tagKeys=a&tagKeys=b%20c&tagKeys=d+e", "", "UntagResource", awsshape.Object{"resourceArn": "x", "tagKeys": []any{"a", "b c", "d e"}}},
		"body of a GET":    {"GET", "/clusters/one", "{", "DescribeCluster", awsshape.Object{"name": "one"}}, // no member is in the body, so nobody reads it
		"body": {
			"POST", "/clusters/one/update-config", `{"resourcesVpcConfig":{"endpointPublicAccess":false},"name":"two","x":1}`, "UpdateClusterConfig",
			awsshape.Object{"name": "one", "resourcesVpcConfig": awsshape.Object{"endpointPublicAccess": false}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			operation, got, err := decode(c.method, c.target, c.body)
			if err != nil || operation != c.operation {
				t.Fatalf("got %s, %v; want %s", operation, err, c.operation)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		method, target, body string
		code                 string
		status               int
		message              string
	}{
		"unknown path":       {"GET", "/klusters", "", "UnknownOperationException", 404, "no operation of eks"},
		"unknown method":     {"PUT", "/clusters", "", "UnknownOperationException", 404, "no operation of eks"},
		"slash in a label":   {"GET", "/tags/arn:aws:eks:x:1:cluster/one", "", "UnknownOperationException", 404, "no operation of eks"},
		"escape in a label":  {"GET", "/clusters/%zz", "", "SerializationException", 400, "name: the path has a %"},
		"not UTF-8":          {"GET", "/clusters/%ff", "", "SerializationException", 400, "name is not UTF-8"},
		"number in a query":  {"GET", "/clusters?maxResults=many", "", "SerializationException", 400, `maxResults: "many" is not a whole number`},
		"twice in a query":   {"GET", "/clusters?maxResults=1&maxResults=2", "", "SerializationException", 400, "maxResults comes 2 times"},
		"query":              {"GET", "/clusters?a=%", "", "SerializationException", 400, "query string"},
		"long query":         {"GET", "/clusters?" + strings.Repeat("a=1&", 4001), "", "SerializationException", 400, "more than 4000 parameters"},
		"body":               {"POST", "/clusters", "{", "SerializationException", 400, "not JSON"},
		"required":           {"POST", "/clusters", `{"name":"one"}`, "InvalidParameterException", 400, "roleArn, resourcesVpcConfig is required"},
		"required and empty": {"POST", "/clusters", ``, "InvalidParameterException", 400, "name, roleArn, resourcesVpcConfig is required"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decode(c.method, c.target, c.body)
			var refused *awsfault.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v", err)
			}
			if refused.Code != c.code || awstable.Service("eks").Status(refused) != c.status || !strings.Contains(refused.Message, c.message) {
				t.Errorf("got %d %v", awstable.Service("eks").Status(refused), refused)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	eks := awstable.Service("eks")
	type cluster struct{ Name, ARN string }
	response, err := Codec{}.Encode(eks.Operation("DescribeCluster"), "id-1", struct{ Cluster cluster }{cluster{Name: "one", ARN: "arn:x"}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(response), `200 application/json id-1  {"cluster":{"name":"one","arn":"arn:x"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for want, problem := range map[string]*awsfault.Error{
		`409 application/json id-2 ResourceInUseException {"__type":"ResourceInUseException","message":"busy","clusterName":"one"}`: {
			Code: "ResourceInUseException", Message: "busy", Members: map[string]any{"clusterName": "one", "color": "red"},
		},
		`404 application/json id-2 UnknownOperationException {"__type":"UnknownOperationException","message":"no"}`: {
			Code: "UnknownOperationException", Message: "no", Status: 404,
		},
	} {
		if got := show(Codec{}.EncodeError(eks, "id-2", problem)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if got, err := (Codec{}).Encode(eks.Operation("DescribeCluster"), "id", struct{ Clutser string }{}); err == nil {
		t.Errorf("a struct that does not fit was written: %s", got.Body)
	}
}

// EKS Auth's table is written by hand and the SDK's client is not to be had, so its wire form is pinned here: what the
// agent sends, and the members of the SDK's own snapshot of an answer.
func TestEKSAuth(t *testing.T) {
	auth := awstable.Service("eks-auth")
	request := awsshape.Request{Method: "POST", Path: "/clusters/one/assume-role-for-pod-identity", Body: []byte(`{"token":"a.b.c"}`)}
	call, err := Codec{}.Route(auth, request, awsshape.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	input, err := call.Input()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(awsshape.Object{"clusterName": "one", "token": "a.b.c"}, input); diff != "" {
		t.Error(diff)
	}
	response, err := Codec{}.Encode(call.Operation, "id", awsshape.Object{
		"subject": awsshape.Object{"namespace": "n", "serviceAccount": "s"}, "audience": "pods.eks.amazonaws.com",
		"podIdentityAssociation": awsshape.Object{"associationArn": "arn:p", "associationId": "a-1"},
		"assumedRoleUser":        awsshape.Object{"arn": "arn:r", "assumeRoleId": "AROA:x"},
		"credentials":            awsshape.Object{"sessionToken": "t", "secretAccessKey": "k", "accessKeyId": "ASIA", "expiration": time.Unix(946684800, 0)},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"subject":{"namespace":"n","serviceAccount":"s"},"audience":"pods.eks.amazonaws.com",` +
		`"podIdentityAssociation":{"associationArn":"arn:p","associationId":"a-1"},"assumedRoleUser":{"arn":"arn:r","assumeRoleId":"AROA:x"},` +
		`"credentials":{"sessionToken":"t","secretAccessKey":"k","accessKeyId":"ASIA","expiration":946684800}}`
	if diff := cmp.Diff(want, string(response.Body)); diff != "" {
		t.Error(diff)
	}
}

func show(r awsshape.Response) string {
	return fmt.Sprintf("%d %s %s %s %s", r.Status, r.Header["Content-Type"], r.Header["X-Amzn-Requestid"], r.Header["X-Amzn-Errortype"], r.Body)
}

// Whatever comes, the answer is an input or a refusal that can be written.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/clusters/one", "", "")
	f.Add("POST", "/clusters/a%2Fb/node-groups", "x=1", `{"nodegroupName":"n","subnets":["a"],"nodeRole":"r","taints":[{"key":"k"}]}`)
	f.Add("DELETE", "/tags/x", "tagKeys=a&tagKeys=%ff", "")
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		eks := awstable.Service("eks")
		call, err := Codec{}.Route(eks, awsshape.Request{Method: method, Path: path, Query: query, Body: []byte(body)}, awsshape.DefaultLimits())
		if err == nil {
			var input awsshape.Object
			if input, err = call.Input(); err == nil {
				if missing := call.Operation.Input.Missing(input); len(missing) > 0 {
					t.Fatalf("%v is missing and was let through", missing)
				}
				return
			}
		}
		var refused *awsfault.Error
		if !errors.As(err, &refused) {
			t.Fatalf("%v is not an answer", err)
		}
		if response := (Codec{}).EncodeError(eks, "id", refused); response.Status < 400 || response.Status > 499 {
			t.Fatalf("%v is answered with %d", err, response.Status)
		}
	})
}

func BenchmarkDescribeCluster(b *testing.B) {
	type cluster struct {
		Name, ARN, Endpoint, RoleARN, Version, PlatformVersion, Status string
		CreatedAt                                                      time.Time
		CertificateAuthority                                           struct{ Data string }
		ResourcesVPCConfig                                             struct {
			SubnetIDs, SecurityGroupIDs, PublicAccessCIDRs []string
			VPCID                                          string
			EndpointPublicAccess, EndpointPrivateAccess    bool
		}
		KubernetesNetworkConfig struct{ ServiceIPv4CIDR, IPFamily string }
		Tags                    map[string]string
	}
	c := cluster{Name: "one", ARN: "arn:aws:eks:us-east-1:000000000000:cluster/one", Endpoint: "https://10.0.0.2", Version: "1.36", Status: "ACTIVE", CreatedAt: time.Unix(1_700_000_000, 0)}
	c.CertificateAuthority.Data = strings.Repeat("LS0tLS1C", 180)
	c.ResourcesVPCConfig.SubnetIDs = []string{"subnet-0123456789abcdef0", "subnet-0123456789abcdef1"}
	c.ResourcesVPCConfig.VPCID = "vpc-0123456789abcdef0"
	c.KubernetesNetworkConfig.ServiceIPv4CIDR = "10.96.0.0/16"
	c.Tags = map[string]string{"team": "web", "stage": "test"}
	op := awstable.Service("eks").Operation("DescribeCluster")
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := decode("GET", "/clusters/one", ""); err != nil {
			b.Fatal(err)
		}
		if _, err := (Codec{}).Encode(op, "id", struct{ Cluster cluster }{c}); err != nil {
			b.Fatal(err)
		}
	}
}
