// SPDX-License-Identifier: Apache-2.0

package awsjson

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

var codec = Codec{Version: "1.1"}

func decode(method, target, body string) (string, awsshape.Object, error) {
	request := awsshape.Request{Method: method, Path: "/", Header: map[string][]string{"X-Amz-Target": {target}}, Body: []byte(body)}
	call, err := codec.Route(awstable.Service("ssm"), request, awsshape.DefaultLimits())
	if err != nil {
		return "", nil, err
	}
	input, err := call.Input()
	return call.Operation.Name, input, err
}

func TestRequests(t *testing.T) {
	operation, got, err := decode("POST", "AmazonSSM.GetParameter", `{"Name":"/a/b","WithDecryption":true,"Color":"red"}`)
	if err != nil || operation != "GetParameter" {
		t.Fatalf("got %s, %v", operation, err)
	}
	if diff := cmp.Diff(awsshape.Object{"Name": "/a/b", "WithDecryption": true}, got); diff != "" {
		t.Error(diff)
	}
	for name, c := range map[string]struct{ method, target, body, want string }{
		"method":          {"GET", "AmazonSSM.GetParameter", "", `UnknownOperationException: no operation of ssm is a GET`},
		"no target":       {"POST", "", "{}", `X-Amz-Target ""`},
		"another service": {"POST", "TrentService.GetParameter", "{}", "UnknownOperationException"},
		"no service":      {"POST", "GetParameter", "{}", `X-Amz-Target "GetParameter"`},
		"unknown":         {"POST", "AmazonSSM.Dance", "{}", `X-Amz-Target "AmazonSSM.Dance"`},
		"body":            {"POST", "AmazonSSM.GetParameter", "{", "SerializationException: the body is not JSON"},
		"value":           {"POST", "AmazonSSM.GetParameter", `{"Name":1}`, "SerializationException: Name: NUMBER_VALUE cannot be converted to a string"},
		"required":        {"POST", "AmazonSSM.GetParameter", ``, "ValidationException: 1 validation error detected: Value null at 'name'"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := decode(c.method, c.target, c.body)
			var refused *awsfault.Error
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), c.want) || awstable.Service("ssm").Status(refused) != 400 {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAnswers(t *testing.T) {
	service := awstable.Service("ssm")
	type parameter struct{ Name, Value string }
	response, err := codec.Encode(service.Operation("GetParameter"), "id", struct{ Parameter *parameter }{&parameter{Name: "/a", Value: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(`200 application/x-amz-json-1.1 id {"Parameter":{"Name":"/a","Value":"1"}}`, show(response)); diff != "" {
		t.Error(diff)
	}
	// CloudWatch Logs has operations that answer nothing at all.
	response, err = codec.Encode(awstable.Service("logs").Operation("CreateLogGroup"), "id", nil)
	if got := show(response); err != nil || got != "200 application/x-amz-json-1.1 id " {
		t.Errorf("got %s, %v", got, err)
	}
	got := show(codec.EncodeError(service, "id", awsfault.Errorf("ParameterNotFound", "no /a")))
	if diff := cmp.Diff(`400 application/x-amz-json-1.1 id {"__type":"ParameterNotFound","message":"no /a"}`, got); diff != "" {
		t.Error(diff)
	}
}

func show(r awsshape.Response) string {
	return fmt.Sprintf("%d %s %s %s", r.Status, r.Header["Content-Type"], r.Header["X-Amzn-Requestid"], r.Body)
}

// Whatever comes, the answer is an input or a refusal.
func FuzzRequest(f *testing.F) {
	f.Add("AmazonSSM.PutParameter", `{"Name":"/a","Value":"b","Tags":[{"Key":"a","Value":"b"}]}`)
	f.Add("AmazonSSM.GetParameters", `{"Names":["a"]}`)
	f.Fuzz(func(t *testing.T, target, body string) {
		_, _, err := decode("POST", target, body)
		var refused *awsfault.Error
		if err != nil && !errors.As(err, &refused) {
			t.Fatalf("%v is not an answer", err)
		}
	})
}

// Only JSON is read: AWS answers a form or XML as an operation that it does not know.
func TestContentTypes(t *testing.T) {
	for kind, fine := range map[string]bool{
		"application/x-amz-json-1.1": true, "application/x-amz-json-1.0": true, "application/json; charset=utf-8": true,
		"text/xml": false, "text/plain": false, "application/x-www-form-urlencoded": false, "nonsense": false, ";": false,
	} {
		request := awsshape.Request{Method: "POST", Path: "/", Header: map[string][]string{"X-Amz-Target": {"TrentService.ListKeys"}, "Content-Type": {kind}}, Body: []byte("{}")}
		_, err := codec.Route(awstable.Service("kms"), request, awsshape.DefaultLimits())
		var refused *awsfault.Error
		if fine != (err == nil) || !fine && (!errors.As(err, &refused) || refused.Code != UnknownOperationException) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// The model of KMS gives codes the statuses of what they mean, such as 404; the service answers 400 and 500, as its API
// reference says.
func TestStatuses(t *testing.T) {
	for code, want := range map[string]int{"NotFoundException": 400, "AlreadyExistsException": 400, "DisabledException": 400, "KMSInvalidStateException": 400, "TagException": 400, "KMSInternalException": 500, "DependencyTimeoutException": 500, "Unknown": 400} {
		if got := codec.EncodeError(awstable.Service("kms"), "id", &awsfault.Error{Code: code}).Status; got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
	if got := codec.EncodeError(awstable.Service("kms"), "id", &awsfault.Error{Code: "ServiceUnavailableException", Status: 503}).Status; got != 503 {
		t.Errorf("a status of the refusal's own: %d", got)
	}
}
