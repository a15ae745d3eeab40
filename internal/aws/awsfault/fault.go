// SPDX-License-Identifier: Apache-2.0

// Package awsfault has the errors that the account answers requests of AWS's tools with: a code that clients compare,
// and a message for people. The codecs of the protocols write them.
package awsfault

import (
	"fmt"
	"strings"
)

// Error is a refusal. Its message is shown to the caller: no secrets, no inner errors.
type Error struct {
	Code    string
	Message string
	Status  int            // of HTTP; 0 is what the service declares for the code, or else 400
	Members map[string]any // beside the message, by their names, such as clusterName: a codec writes those that the service declares
	Cause   error          // for the log only
	// OfIAM says that the code is one of IAM's or STS's: another service answers with what it calls that.
	OfIAM bool
}

// Errorf makes an Error.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Nulls refuses a request without required members, by their paths, in the words of the front of most services of AWS.
// Names there begin with a small letter.
func Nulls(code string, missing []string) *Error {
	told := make([]string, 0, len(missing))
	for _, path := range missing {
		parts := strings.Split(path, ".")
		for i, part := range parts {
			if part != "" {
				parts[i] = strings.ToLower(part[:1]) + part[1:]
			}
		}
		told = append(told, fmt.Sprintf("Value null at '%s' failed to satisfy constraint: Member must not be null", strings.Join(parts, ".")))
	}
	noun := "errors"
	if len(told) == 1 {
		noun = "error"
	}
	return Errorf(code, "%d validation %s detected: %s", len(told), noun, strings.Join(told, "; "))
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
