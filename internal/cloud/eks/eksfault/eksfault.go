// SPDX-License-Identifier: Apache-2.0

// Package eksfault has the errors of EKS's API: its codes, the names that EKS puts beside a message, and what the API
// server's errors become.
package eksfault

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
)

// The codes of EKS.
const (
	InvalidParameter = "InvalidParameterException"
	InvalidRequest   = "InvalidRequestException"
	InvalidState     = "InvalidStateException"
	InUse            = "ResourceInUseException"
	NotFound         = "ResourceNotFoundException"
	LimitExceeded    = "ResourceLimitExceededException"
)

// New is a refusal with the names that EKS puts beside its message.
func New(code, cluster, nodegroup, format string, args ...any) *awsfault.Error {
	members := map[string]any{}
	if cluster != "" {
		members["clusterName"] = cluster
	}
	if nodegroup != "" {
		members["nodegroupName"] = nodegroup
	}
	e := awsfault.Errorf(code, format, args...)
	e.Members = members
	return e
}

// Refuse makes the refusal of a request whose names it knows.
type Refuse func(format string, args ...any) error

// Invalid makes refusals of a parameter of a request about a cluster, and about a node group if its name is not empty.
func Invalid(cluster, nodegroup string) Refuse {
	return func(format string, args ...any) error {
		return New(InvalidParameter, cluster, nodegroup, format, args...)
	}
}

// Away turns what the API server says into an answer that clients try again where that helps.
func Away(err error) error {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return &awsfault.Error{Code: InvalidParameter, Message: err.Error(), Cause: err}
	case apierrors.IsConflict(err):
		return &awsfault.Error{Code: InUse, Message: "The resource was changed by somebody else meanwhile: try again", Cause: err}
	}
	return &awsfault.Error{Code: "ServiceUnavailableException", Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}

// NotMade says why the API server did not make an object: exists, if there is one of its name.
func NotMade(err error, exists *awsfault.Error) error {
	if apierrors.IsAlreadyExists(err) {
		return exists
	}
	if apierrors.IsForbidden(err) {
		return awsfault.Errorf(InvalidRequest, "%s", apierrors.ReasonForError(err))
	}
	return Away(err)
}
