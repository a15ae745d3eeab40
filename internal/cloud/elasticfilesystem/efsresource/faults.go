// SPDX-License-Identifier: Apache-2.0

package efsresource

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
)

// The codes of EFS.
const (
	BadRequest          = "BadRequest"
	FileSystemNotFound  = "FileSystemNotFound"
	AccessPointNotFound = "AccessPointNotFound"
	WrongState          = "IncorrectFileSystemLifeCycleState"
)

// Fault is an error of EFS, which has its code in the body, too.
func Fault(code, format string, args ...any) *awsfault.Error {
	return &awsfault.Error{Code: code, Message: fmt.Sprintf(format, args...), Members: map[string]any{"ErrorCode": code}}
}

// With adds a member that an error declares.
func With(e *awsfault.Error, member, value string) *awsfault.Error {
	e.Members[member] = value
	return e
}

// Away turns what the API server says into an answer that clients try again where that helps. Refusals are passed on.
func Away(err error) error {
	fault, refused := err.(*awsfault.Error) //nolint:errorlint // the change returned it as it is
	switch {
	case err == nil:
		return nil
	case refused:
		return fault
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		e := Fault(BadRequest, "%s", err)
		e.Cause = err
		return e
	}
	return &awsfault.Error{Code: "ServiceUnavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}
