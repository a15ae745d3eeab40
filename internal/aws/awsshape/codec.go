// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"net/url"

	"muster.dev/muster/internal/aws/awsfault"
)

// Post is the method of all requests but those of restjson; the query protocols take Get, too.
const (
	Post = "POST"
	Get  = "GET"
)

// Request is an HTTP request whose body has been read.
type Request struct {
	Method string
	Path   string // escaped, as it came: a label may hold %2F
	Query  string // raw
	Asks   bool   // the target ends with a "?", and an empty query
	Header map[string][]string
	Body   []byte
}

// Get is the first value of a header, which is named in its canonical form.
func (r Request) Get(name string) string {
	if values := r.Header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Response is an HTTP answer.
type Response struct {
	Status int
	Header map[string]string
	Body   []byte
}

// Call is a request whose operation is known and whose input is not decoded yet: who may call the operation is decided
// between the two.
type Call struct {
	// Service is that of the operation, and is also known where the operation is not. Nil is the service that Route was
	// called with.
	Service   *Service
	Operation *Operation
	// Codec writes the answer, if the request asks for another form than its own. It is mostly nil.
	Codec Codec
	// Input decodes the input and checks that required members are there. Every error is an *awsfault.Error.
	Input func() (Object, error)
}

// Codec turns the requests and answers of one protocol into values. Every error of Route is an *awsfault.Error; the
// Call beside it says how to write it.
type Codec interface {
	Route(service *Service, request Request, limits Limits) (Call, error)
	// Encode writes an answer. The output is an Object or a struct that Check accepts; nil writes an empty one.
	Encode(operation *Operation, requestID string, output any) (Response, error)
	// EncodeError writes a refusal.
	EncodeError(service *Service, requestID string, problem *awsfault.Error) Response
}

// Limits bound what a request may hold. The reader of the body must bound it before it is here.
type Limits struct {
	Depth  int // levels of values in values
	Items  int // of one list or map
	Params int // of a form or a query string
	Value  int // bytes of one string
}

// DefaultLimits leave room for the largest inputs that the APIs know: a kilobyte of tags, user data of 16 KiB, filters
// with 200 values.
func DefaultLimits() Limits { return Limits{Depth: 24, Items: 2000, Params: 4000, Value: 256 << 10} }

// Limits are those of a service: a message of SQS and an event of CloudWatch Logs are larger than what other services take, and
// events come by the ten thousand.
func (s *Service) Limits() Limits {
	limits := DefaultLimits()
	switch s.Name {
	case "sqs":
		limits.Value = 2 << 20
	case "logs":
		limits.Value, limits.Items = 1<<20, 10_000
	}
	return limits
}

// Status is the status of an answer that is a refusal: its own, or what the table says of its code, or else 400. In the
// protocols with a target what the client has to change is a 400 whatever the code, and 500 what the service has: the
// models name other statuses, which AWS does not send.
func (s *Service) Status(problem *awsfault.Error) int {
	if problem.Status != 0 {
		return problem.HTTPStatus()
	}
	fault := s.Fault(problem.Code)
	switch {
	case fault == nil:
		return problem.HTTPStatus()
	case s.Protocol != JSON10 && s.Protocol != JSON11:
		return fault.Status
	case fault.Status < 500:
		return 400
	}
	return 500
}

// Unescape decodes a label of a path.
func Unescape(label string) (string, bool) {
	text, err := url.PathUnescape(label)
	return text, err == nil
}
