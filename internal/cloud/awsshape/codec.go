// SPDX-License-Identifier: Apache-2.0

package awsshape

import (
	"fmt"
	"net/url"
)

// Request is an HTTP request whose body has been read.
type Request struct {
	Method string
	Path   string // escaped, as it came: a label may hold %2F
	Query  string // raw
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

// Call is a request whose operation is known and whose input is not decoded yet: who may call the operation is decided between the two.
type Call struct {
	Operation *Operation
	// Input decodes the input and checks that required members are there. Every error is an *Error.
	Input func() (Object, error)
}

// Codec turns the requests and answers of one protocol into values. Every error of Route is an *Error.
type Codec interface {
	Route(service *Service, request Request, limits Limits) (Call, error)
	// Encode writes an answer. The output is an Object or a struct that Check accepts; nil writes an empty one.
	Encode(operation *Operation, requestID string, output any) (Response, error)
	// EncodeError writes a refusal.
	EncodeError(service *Service, requestID string, problem *Error) Response
}

// Limits bound what a request may hold. The reader of the body must bound it before it is here.
type Limits struct {
	Depth  int // levels of values in values
	Items  int // of one list or map
	Params int // of a form or a query string
	Value  int // bytes of one string
}

// DefaultLimits leave room for the largest inputs that the APIs know: a kilobyte of tags, user data of 16 KiB, filters with 200 values.
func DefaultLimits() Limits { return Limits{Depth: 24, Items: 2000, Params: 4000, Value: 256 << 10} }

// Error is a refusal. Its message is shown to the caller: no secrets, no inner errors.
type Error struct {
	Code    string
	Message string
	Status  int    // 0 means what the table says of the code, or else 400
	Members Object // beside the message: what the table declares for the code
	Cause   error  // for the log only
}

// Errorf makes an Error.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Unwrap returns the cause, which the answer does not tell.
func (e *Error) Unwrap() error { return e.Cause }

// HTTPStatus is the status of the answer.
func (e *Error) HTTPStatus(service *Service) int {
	if e.Status != 0 {
		return e.Status
	}
	if service != nil {
		if fault := service.Fault(e.Code); fault != nil {
			return fault.Status
		}
	}
	return 400
}

// Sender reports whether the error is the caller's fault.
func (e *Error) Sender(service *Service) bool { return e.HTTPStatus(service) < 500 }

// Unescape decodes a label of a path.
func Unescape(label string) (string, bool) {
	text, err := url.PathUnescape(label)
	return text, err == nil
}
