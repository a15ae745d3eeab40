// SPDX-License-Identifier: Apache-2.0

package elasticfilesystem

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/aws/awsfault"
)

// The codes of EFS.
const (
	badRequest                  = "BadRequest"
	fileSystemNotFound          = "FileSystemNotFound"
	fileSystemExists            = "FileSystemAlreadyExists"
	fileSystemInUse             = "FileSystemInUse"
	wrongState                  = "IncorrectFileSystemLifeCycleState"
	accessPointNotFound         = "AccessPointNotFound"
	accessPointExists           = "AccessPointAlreadyExists"
	mountTargetNotFound         = "MountTargetNotFound"
	mountTargetConflict         = "MountTargetConflict"
	subnetNotFound              = "SubnetNotFound"
	securityGroupNotFound       = "SecurityGroupNotFound"
	tooManySecurityGroups       = "SecurityGroupLimitExceeded"
	noPolicy                    = "PolicyNotFound"
	maxSecurityGroups           = 5
	maxToken                    = 64
	maxPosixID            int64 = 1<<32 - 1
)

// refusal is an error of EFS, which has its code in the body, too.
func refusal(code, format string, args ...any) *awsfault.Error {
	return &awsfault.Error{Code: code, Message: fmt.Sprintf(format, args...), Members: map[string]any{"ErrorCode": code}}
}

// with adds a member that an error declares.
func with(e *awsfault.Error, member, value string) *awsfault.Error {
	e.Members[member] = value
	return e
}

// away turns what the API server says into an answer that clients try again where that helps. Refusals are passed on.
func away(err error) error {
	fault, refused := err.(*awsfault.Error) //nolint:errorlint // the change returned it as it is
	switch {
	case err == nil:
		return nil
	case refused:
		return fault
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		e := refusal(badRequest, "%s", err)
		e.Cause = err
		return e
	}
	return &awsfault.Error{Code: "ServiceUnavailable", Status: 503, Message: "The management plane does not answer: try again, or see `muster status`", Cause: err}
}
