// SPDX-License-Identifier: Apache-2.0

package restjson

import (
	"net/url"
	"strings"
	"unicode/utf8"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/jsonvalue"
)

// Codec is the protocol.
type Codec struct{}

var _ awsshape.Codec = Codec{}

// The codes of requests that are refused before an action sees them.
const (
	UnknownOperationException = "UnknownOperationException"
	ValidationException       = "ValidationException"
)

// Route finds the operation by method and path.
func (Codec) Route(service *awsshape.Service, request awsshape.Request, limits awsshape.Limits) (awsshape.Call, error) {
	op, labels := service.Match(request.Method, request.Path)
	if op == nil {
		return awsshape.Call{}, &awsfault.Error{
			Code: UnknownOperationException, Status: 404,
			Message: "no operation of " + service.Name + " has this method and path",
		}
	}
	return awsshape.Call{Operation: op, Input: func() (awsshape.Object, error) {
		return input(op, labels, request, limits)
	}}, nil
}

func input(op *awsshape.Operation, labels map[string]string, request awsshape.Request, limits awsshape.Limits) (awsshape.Object, error) {
	if op.Input == nil {
		return awsshape.Object{}, nil
	}
	object := awsshape.Object{}
	if hasBody(op.Input) {
		read, err := jsonvalue.Read(op.Input, request.Body, limits)
		if err != nil {
			return nil, err
		}
		object = read
	}
	parameters, err := query(request.Query, limits)
	if err != nil {
		return nil, err
	}
	for _, m := range op.Input.Members {
		var texts []string
		switch m.Place {
		case awsshape.Label:
			text, ok := awsshape.Unescape(labels[m.Name])
			if !ok {
				return nil, awsfault.Errorf(jsonvalue.SerializationException, "%s: the path has a %% without two hexadecimal digits behind it", m.Name)
			}
			texts = []string{text}
		case awsshape.Query:
			texts = parameters[m.In]
		case awsshape.Header:
			texts = request.Header[m.In]
		default:
			continue
		}
		if err := place(object, m, texts, limits); err != nil {
			return nil, err
		}
	}
	if missing := op.Input.Missing(object); len(missing) > 0 {
		return nil, awsfault.Errorf(missingCode(op.Service), "%s is required", strings.Join(missing, ", "))
	}
	return object, nil
}

// place puts a member that came as text into the object.
func place(object awsshape.Object, m *awsshape.Member, texts []string, limits awsshape.Limits) error {
	if len(texts) == 0 {
		return nil
	}
	format := m.Time
	if format == awsshape.Usual {
		format = awsshape.DateTime
		if m.Place == awsshape.Header {
			format = awsshape.HTTPDate
		}
	}
	shape := m.Shape
	if shape.Kind == awsshape.List {
		shape = shape.Item
	} else if len(texts) > 1 {
		return awsfault.Errorf(jsonvalue.SerializationException, "%s comes %d times: it is one value", m.Name, len(texts))
	}
	if len(texts) > limits.Items {
		return awsfault.Errorf(jsonvalue.SerializationException, "%s has more than %d items", m.Name, limits.Items)
	}
	values := make([]any, 0, len(texts))
	for _, text := range texts {
		if len(text) > limits.Value || !utf8.ValidString(text) {
			return awsfault.Errorf(jsonvalue.SerializationException, "%s is not UTF-8 of at most %d bytes", m.Name, limits.Value)
		}
		value, err := shape.Scalar(text, format)
		if err != nil {
			return awsfault.Errorf(jsonvalue.SerializationException, "%s: %v", m.Name, err)
		}
		values = append(values, value)
	}
	object[m.Name] = values[0]
	if m.Shape.Kind == awsshape.List {
		object[m.Name] = values
	}
	return nil
}

func query(raw string, limits awsshape.Limits) (url.Values, error) {
	if strings.Count(raw, "&") >= limits.Params {
		return nil, awsfault.Errorf(jsonvalue.SerializationException, "the query string has more than %d parameters", limits.Params)
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, &awsfault.Error{Code: jsonvalue.SerializationException, Message: "the query string cannot be read", Cause: err}
	}
	return values, nil
}

func hasBody(s *awsshape.Shape) bool {
	for _, m := range s.Members {
		if m.Place == awsshape.Body {
			return true
		}
	}
	return false
}

// missingCode is the error that a service declares for a request that is not valid.
func missingCode(service *awsshape.Service) string {
	for _, code := range []string{"InvalidParameterException", "InvalidRequestException", "BadRequestException", "BadRequest"} {
		if service.Fault(code) != nil {
			return code
		}
	}
	return ValidationException
}
