// SPDX-License-Identifier: Apache-2.0

// Package awsfault has the errors that the account answers requests of AWS's tools with: a code that clients compare, and a message for
// people. The codecs of the protocols write them.
package awsfault

import "fmt"

// Error is a refusal. Its message is shown to the caller: no secrets, no inner errors.
type Error struct {
	Code    string
	Message string
	Status  int // of HTTP; 0 is 400
}

// Errorf makes an Error.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithStatus returns the error with another status.
func (e *Error) WithStatus(status int) *Error {
	return &Error{Code: e.Code, Message: e.Message, Status: status}
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// HTTPStatus is the status of the answer.
func (e *Error) HTTPStatus() int {
	if e.Status == 0 {
		return 400
	}
	return e.Status
}
