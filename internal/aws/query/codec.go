// SPDX-License-Identifier: Apache-2.0

package query

import (
	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/queryvalue"
)

// Codec is the protocol.
type Codec struct{}

var _ awsshape.Codec = Codec{}

// The codes of requests that are refused before an action sees them.
const (
	InvalidAction   = "InvalidAction"
	MalformedInput  = "MalformedInput"
	MissingAction   = "MissingAction"
	ValidationError = "ValidationError"
)

// Route finds the operation by the parameters Action and Version, and the service if several share the endpoint.
func (Codec) Route(service *awsshape.Service, request awsshape.Request, limits awsshape.Limits) (awsshape.Call, error) {
	text, ok := queryvalue.FormOf(request)
	if !ok {
		return awsshape.Call{}, awsfault.Errorf(InvalidAction, "the method is %.20q: send a POST with a form, or a GET with a query", request.Method)
	}
	if beside := queryvalue.Beside(request); beside != "" {
		return awsshape.Call{}, awsfault.Errorf(MalformedInput, "a POST has its parameters in the body, and the URL has %.100q", beside)
	}
	form, err := queryvalue.Parse(text, limits, queryvalue.Codes{Malformed: MalformedInput, Value: MalformedInput})
	if err != nil {
		return awsshape.Call{}, err
	}
	if form.Action == "" {
		return awsshape.Call{}, awsfault.Errorf(MissingAction, "the parameter Action is missing")
	}
	want := service.Version
	for i, version := range service.Versions {
		if version.Version == form.Version {
			service, want = version, version.Version
			break
		}
		if i > 0 {
			want += " or " + version.Version
		}
	}
	op := service.Operation(form.Action)
	if op == nil || form.Version != service.Version {
		return awsshape.Call{Service: service}, awsfault.Errorf(InvalidAction, "could not find operation %.100s for version %.20s of %s (want version %s)",
			form.Action, form.Version, service.Name, want)
	}
	return awsshape.Call{Service: service, Operation: op, Input: func() (awsshape.Object, error) {
		object, _, err := form.Read(op.Input)
		if err != nil || op.Input == nil {
			return object, err
		}
		if missing := op.Input.Missing(object); len(missing) > 0 {
			return nil, awsfault.Nulls(ValidationError, missing)
		}
		return object, nil
	}}, nil
}

// Encode writes the output within an element for the result, and the request id behind it.
func (Codec) Encode(op *awsshape.Operation, requestID string, output any) (awsshape.Response, error) {
	body := append(make([]byte, 0, 1024), '<')
	body = append(body, op.Name+`Response xmlns="`+op.Service.Namespace+`"><`+op.Name+"Result>"...)
	if op.Output != nil {
		var err error
		if body, err = queryvalue.Append(body, op.Output, awsshape.ValueOf(output)); err != nil {
			return awsshape.Response{}, err
		}
	}
	body = append(body, "</"+op.Name+"Result><ResponseMetadata>"...)
	body = queryvalue.Element(body, "RequestId", requestID)
	body = append(body, "</ResponseMetadata></"+op.Name+"Response>"...)
	return awsshape.Response{Status: 200, Header: headers(requestID), Body: body}, nil
}

// EncodeError writes a refusal, and whose fault it is.
func (Codec) EncodeError(service *awsshape.Service, requestID string, problem *awsfault.Error) awsshape.Response {
	fault := "Receiver"
	if service.Status(problem) < 500 {
		fault = "Sender"
	}
	body := []byte(`<ErrorResponse xmlns="` + service.Namespace + `"><Error>`)
	body = queryvalue.Element(body, "Type", fault)
	body = queryvalue.Element(body, "Code", problem.Code)
	body = queryvalue.Element(body, "Message", problem.Message)
	body = append(body, "</Error>"...)
	body = queryvalue.Element(body, "RequestId", requestID)
	body = append(body, "</ErrorResponse>"...)
	return awsshape.Response{Status: service.Status(problem), Header: headers(requestID), Body: body}
}

func headers(requestID string) map[string]string {
	return map[string]string{"Content-Type": "text/xml", "X-Amzn-Requestid": requestID}
}
