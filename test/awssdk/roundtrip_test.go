// SPDX-License-Identifier: Apache-2.0

package awssdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/awscodec"
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
)

const requestID = "5d1b2f0c-0000-4000-8000-1234567890ab"

// server answers with what the test sets, and keeps what it was asked.
type server struct {
	service *awsshape.Service
	codec   awsshape.Codec

	operation *awsshape.Operation
	input     awsshape.Object
	problem   error

	output  any
	refusal *awsfault.Error
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.problem = err
		return
	}
	request := awsshape.Request{Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header, Body: body}
	call, err := s.codec.Route(s.service, request, awsshape.DefaultLimits())
	if err == nil {
		s.operation = call.Operation
		s.input, err = call.Input()
	}
	if err != nil {
		s.problem = err
		var refused *awsfault.Error
		errors.As(err, &refused)
		send(w, s.codec.EncodeError(s.service, requestID, refused))
		return
	}
	if s.refusal != nil {
		send(w, s.codec.EncodeError(s.service, requestID, s.refusal))
		return
	}
	response, err := s.codec.Encode(call.Operation, requestID, s.output)
	if err != nil {
		s.problem = err
		response.Status = http.StatusInternalServerError
	}
	send(w, response)
}

func send(w http.ResponseWriter, response awsshape.Response) {
	for name, value := range response.Header {
		w.Header().Set(name, value)
	}
	w.WriteHeader(response.Status)
	_, _ = w.Write(response.Body)
}

// client makes the client of a service, and says what fills its unions.
type client struct {
	service string
	make    func(aws.Config) any
	unions  map[reflect.Type]any
}

func start(t *testing.T, c client) (*server, any) {
	t.Helper()
	service := awstable.Service(c.service)
	s := &server{service: service, codec: awscodec.For(service)}
	listener := httptest.NewServer(s)
	t.Cleanup(listener.Close)
	return s, c.make(aws.Config{
		Region: "eu-central-1", BaseEndpoint: &listener.URL,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "secret"}, nil
		}),
		Retryer:    func() aws.Retryer { return aws.NopRetryer{} },
		HTTPClient: plain{},
	})
}

// plain sends requests whose bodies have no WriteTo. The SDK closes a body when the head of the answer is there, and
// its WriteTo reports io.EOF then; if net/http looks for the body's end after that, it takes this for a failure and
// closes the connection before the answer is read (smithy-go v1.28.8, transport/http/internal/io/safe.go; one request
// in 200 with a server as quick as this).
type plain struct{}

func (plain) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		r.Body = struct{ io.ReadCloser }{r.Body}
	}
	return http.DefaultClient.Do(r)
}

// call sends an input through the client.
func call(t *testing.T, client any, operation string, input reflect.Value) (output reflect.Value, err error) {
	t.Helper()
	results := reflect.ValueOf(client).MethodByName(operation).Call([]reflect.Value{reflect.ValueOf(t.Context()), input})
	err, _ = reflect.TypeAssert[error](results[1])
	return results[0], err
}

func TestEveryTableHasAClient(t *testing.T) {
	got := []string{"eks-auth"} // whose module is not to be had; package restjson has a test of it
	for _, c := range clients() {
		got = append(got, c.service)
	}
	slices.Sort(got)
	if want := awstable.Names(); !slices.Equal(got, want) {
		t.Errorf("there are clients for %v, and tables of %v", got, want)
	}
}

func TestEveryFieldBothWays(t *testing.T) {
	for _, c := range clients() {
		t.Run(c.service, func(t *testing.T) {
			s, made := start(t, c)
			if len(s.service.Operations) == 0 {
				t.Fatal("the table has no operations")
			}
			for _, op := range s.service.Operations {
				t.Run(op.Name, func(t *testing.T) { roundTrip(t, c, s, made, op) })
			}
		})
	}
}

func roundTrip(t *testing.T, c client, s *server, made any, op *awsshape.Operation) {
	method := reflect.ValueOf(made).MethodByName(op.Name)
	if !method.IsValid() {
		t.Fatalf("the SDK's client has no operation %s", op.Name)
	}
	f := filler{t: t, unions: c.unions}
	input := reflect.New(method.Type().In(1).Elem())
	f.fill(input.Elem(), nil)
	output := reflect.New(method.Type().Out(0).Elem())
	f.fill(output.Elem(), nil)

	wantInput, wantOutput := awsshape.Object{}, awsshape.Object{}
	if op.Input != nil {
		wantInput = treeOfStruct(t, op.Input, input.Elem())
	}
	if op.Output != nil {
		wantOutput = treeOfStruct(t, op.Output, output.Elem())
	}
	s.operation, s.input, s.problem, s.output, s.refusal = nil, nil, nil, wantOutput, nil
	got, err := call(t, made, op.Name, input)
	if s.problem != nil {
		t.Fatalf("the server: %v", s.problem)
	}
	if err != nil {
		t.Fatalf("the client: %v", err)
	}
	if s.operation != op {
		t.Errorf("the request was taken for %v", s.operation)
	}
	if diff := cmp.Diff(wantInput, s.input); diff != "" {
		t.Errorf("the input as it was decoded (-sent +decoded):\n%s", diff)
	}
	if op.Output == nil {
		output.Elem().SetZero()
	}
	metadata := got.Elem().FieldByName("ResultMetadata")
	if id, _ := awsmiddleware.GetRequestIDMetadata(metadata.Interface().(middleware.Metadata)); id != requestID {
		t.Errorf("the request id is %q", id)
	}
	metadata.SetZero()
	if diff := cmp.Diff(output.Interface(), got.Interface(), exported); diff != "" {
		t.Errorf("the output as the client read it (-sent +read):\n%s", diff)
	}
}

// exported leaves unexported fields out of comparisons.
var exported = cmp.FilterPath(func(p cmp.Path) bool {
	field, ok := p.Last().(cmp.StructField)
	return ok && field.Name() != "" && strings.ToLower(field.Name()[:1]) == field.Name()[:1]
}, cmp.Ignore())

func TestEveryError(t *testing.T) {
	for _, c := range clients() {
		t.Run(c.service, func(t *testing.T) {
			s, made := start(t, c)
			for _, fault := range s.service.Faults {
				t.Run(fault.Code, func(t *testing.T) { faultTrip(t, c, s, made, fault) })
			}
			t.Run("one that is not declared", func(t *testing.T) {
				faultTrip(t, c, s, made, &awsshape.Fault{Code: "OfMustersOwn", Status: 418})
			})
		})
	}
}

// sent is the status that AWS sends with an error: that of the model, but in the protocols with a target 400 or 500, as
// the API references of these services say of each of their errors.
func sent(service *awsshape.Service, fault *awsshape.Fault) int {
	switch {
	case service.Fault(fault.Code) == nil || service.Protocol != awsshape.JSON10 && service.Protocol != awsshape.JSON11:
		return fault.Status
	case fault.Status >= http.StatusInternalServerError:
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

// codeOf is the code that a client takes an error for: that of the model, but SQS's own of before it spoke JSON, which its
// API reference gives for these.
func codeOf(service *awsshape.Service, fault *awsshape.Fault) string {
	before := map[string]string{
		"QueueDoesNotExist": "AWS.SimpleQueueService.NonExistentQueue", "QueueNameExists": "QueueAlreadyExists",
		"BatchEntryIdsNotDistinct": "AWS.SimpleQueueService.BatchEntryIdsNotDistinct", "EmptyBatchRequest": "AWS.SimpleQueueService.EmptyBatchRequest",
		"InvalidBatchEntryId": "AWS.SimpleQueueService.InvalidBatchEntryId", "TooManyEntriesInBatchRequest": "AWS.SimpleQueueService.TooManyEntriesInBatchRequest",
		"MessageNotInflight": "AWS.SimpleQueueService.MessageNotInflight",
	}[fault.Code]
	if service.Name == "sqs" && before != "" {
		return before
	}
	return fault.Code
}

// faultTrip sends an error through the client. Where the client knows an error by the operation, it takes the first
// that knows it.
func faultTrip(t *testing.T, c client, s *server, made any, fault *awsshape.Fault) {
	const message = `the group "web" is <busy> & has nodes: é`
	s.problem, s.output = nil, nil
	s.refusal = &awsfault.Error{Code: fault.Code, Message: message, Status: fault.Status, Members: map[string]any{}}
	want, wantMessage := awsshape.Object{}, message
	if fault.Shape != nil {
		wantMessage = "" // some errors of SSM have none
		for i, m := range fault.Shape.Members {
			switch {
			case strings.EqualFold(m.Name, "message"):
				want[m.Name], wantMessage = message, message
				continue
			case m.Shape.Kind == awsshape.String:
				want[m.Name] = fmt.Sprintf("said-%d", i)
			case m.Shape.Kind == awsshape.Integer:
				want[m.Name] = int64(i)
			default:
				continue
			}
			s.refusal.Members[m.Name] = want[m.Name]
		}
	}
	if s.service.Fault(fault.Code) != nil {
		s.refusal.Status = 0 // the table knows
	}
	var api smithy.APIError
	for _, op := range s.service.Operations {
		f := filler{t: t, unions: c.unions}
		input := reflect.New(reflect.ValueOf(made).MethodByName(op.Name).Type().In(1).Elem())
		f.fill(input.Elem(), nil)
		_, err := call(t, made, op.Name, input)
		if s.problem != nil {
			t.Fatalf("the server: %v", s.problem)
		}
		if !errors.As(err, &api) {
			t.Fatalf("got %v, want an error of the API", err)
		}
		if api.ErrorCode() != codeOf(s.service, fault) || api.ErrorMessage() != wantMessage {
			t.Errorf("got code %q and message %q", api.ErrorCode(), api.ErrorMessage())
		}
		var response *awshttp.ResponseError
		if !errors.As(err, &response) || response.RequestID != requestID || response.HTTPStatusCode() != sent(s.service, fault) {
			t.Errorf("got status or request id of another answer: %v", err)
		}
		if _, generic := api.(*smithy.GenericAPIError); !generic || fault.Shape == nil {
			break
		}
	}
	if fault.Shape == nil {
		return
	}
	if name := reflect.TypeOf(api).Elem().Name(); name != fault.Shape.Name {
		t.Fatalf("got a %s, want a %s", name, fault.Shape.Name)
	}
	if diff := cmp.Diff(want, treeOfStruct(t, fault.Shape, reflect.ValueOf(api).Elem())); diff != "" {
		t.Errorf("what the error says (-sent +read):\n%s", diff)
	}
}
