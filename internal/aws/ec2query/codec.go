// SPDX-License-Identifier: Apache-2.0

package ec2query

import (
	"maps"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/queryvalue"
)

// Codec is the protocol.
type Codec struct{}

var _ awsshape.Codec = Codec{}

// The codes of requests that are refused before an action sees them.
const (
	InvalidAction         = "InvalidAction"
	InvalidParameterValue = "InvalidParameterValue"
	MalformedQueryString  = "MalformedQueryString"
	MissingAction         = "MissingAction"
	MissingParameter      = "MissingParameter"
	NoSuchVersion         = "NoSuchVersion"
	UnknownParameter      = "UnknownParameter"
)

// Route finds the operation by the parameters Action and Version.
func (Codec) Route(service *awsshape.Service, request awsshape.Request, limits awsshape.Limits) (awsshape.Call, error) {
	text, ok := queryvalue.FormOf(request)
	if !ok {
		return awsshape.Call{}, awsfault.Errorf(InvalidAction, "the method is %.20q: send a POST with a form, or a GET with a query", request.Method)
	}
	if beside := queryvalue.Beside(request); beside != "" {
		return awsshape.Call{}, awsfault.Errorf(MalformedQueryString, "a POST has its parameters in the body, and the URL has %.100q", beside)
	}
	form, err := queryvalue.Parse(text, limits, queryvalue.Codes{Malformed: MalformedQueryString, Value: InvalidParameterValue})
	if err != nil {
		return awsshape.Call{}, err
	}
	op := service.Operation(form.Action)
	switch {
	case form.Action == "":
		return awsshape.Call{}, awsfault.Errorf(MissingAction, "the parameter Action is missing")
	case form.Version != service.Version:
		return awsshape.Call{}, awsfault.Errorf(NoSuchVersion, "the requested version %.20q of %s does not exist: want %s", form.Version, service.Name, service.Version)
	case op == nil:
		return awsshape.Call{}, awsfault.Errorf(InvalidAction, "the action %.100s is not valid for this web service", form.Action)
	}
	return awsshape.Call{Operation: op, Input: func() (awsshape.Object, error) {
		object, unknown, err := form.Read(op.Input)
		if err != nil {
			return nil, err
		}
		if len(unknown) > 0 {
			return nil, awsfault.Errorf(UnknownParameter, "the parameter %.100s is not recognized", unknown[0])
		}
		if op.Input == nil {
			return object, nil
		}
		if missing := op.Input.Missing(given(object)); len(missing) > 0 {
			return nil, awsfault.Errorf(MissingParameter, "The request must contain the parameter %s", strings.ToLower(missing[0][:1])+missing[0][1:])
		}
		return object, nil
	}}, nil
}

// given are the parameters that have a value: EC2 takes one without for a missing one.
func given(object awsshape.Object) awsshape.Object {
	object = maps.Clone(object)
	maps.DeleteFunc(object, func(_ string, value any) bool { return value == "" })
	return object
}

// Encode writes the output. An operation without an output answers <return>true</return>.
func (Codec) Encode(op *awsshape.Operation, requestID string, output any) (awsshape.Response, error) {
	body := append(make([]byte, 0, 1024), '<')
	body = append(body, op.Name+`Response xmlns="`+op.Service.Namespace+`">`...)
	body = queryvalue.Element(body, "requestId", requestID)
	if op.Output == nil {
		body = queryvalue.Element(body, "return", "true")
	} else {
		var err error
		if body, err = queryvalue.Append(body, op.Output, awsshape.ValueOf(output)); err != nil {
			return awsshape.Response{}, err
		}
	}
	body = append(body, "</"+op.Name+"Response>"...)
	return awsshape.Response{Status: 200, Header: headers(requestID), Body: body}, nil
}

// EncodeError writes a refusal. It has no namespace, as EC2's.
func (Codec) EncodeError(service *awsshape.Service, requestID string, problem *awsfault.Error) awsshape.Response {
	body := []byte("<Response><Errors><Error>")
	body = queryvalue.Element(body, "Code", problem.Code)
	body = queryvalue.Element(body, "Message", problem.Message)
	body = append(body, "</Error></Errors>"...)
	body = queryvalue.Element(body, "RequestID", requestID)
	body = append(body, "</Response>"...)
	return awsshape.Response{Status: service.Status(problem), Header: headers(requestID), Body: body}
}

func headers(requestID string) map[string]string {
	return map[string]string{"Content-Type": "text/xml;charset=UTF-8", "X-Amzn-Requestid": requestID}
}
