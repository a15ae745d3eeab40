// SPDX-License-Identifier: Apache-2.0

// Package awsfault has the errors that the account answers requests of AWS's tools with: a code that clients compare, and a message for
// people. The codecs of the protocols write them.
package awsfault

import "fmt"

// Error is a refusal. Its message is shown to the caller: no secrets, no inner errors.
type Error struct {
	Code    string
	Message string
	Status  int            // of HTTP; 0 is what the service declares for the code, or else 400
	Members map[string]any // beside the message, by their names, such as clusterName: a codec writes those that the service declares
	Cause   error          // for the log only
}

// Errorf makes an Error.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithStatus returns the error with another status.
func (e *Error) WithStatus(status int) *Error {
	other := *e
	other.Status = status
	return &other
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Unwrap returns the cause, which the answer does not tell.
func (e *Error) Unwrap() error { return e.Cause }

// HTTPStatus is the status of the answer, for those who do not know the service.
func (e *Error) HTTPStatus() int {
	if e.Status == 0 {
		return 400
	}
	return e.Status
}
