// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"errors"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/iamfault"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/iampolicy"
)

// answerable turns any error into one that may be answered. An unknown error becomes an InternalFailure that tells
// nothing.
func answerable(err error) error {
	var (
		known     *awsfault.Error
		invalid   *iam.Invalid
		outside   *iam.OutOfRange
		long      iam.TooLong
		many      iam.TooManyItems
		twice     *iam.DuplicateTag
		limit     *iam.Limit
		malformed *iampolicy.Malformed
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known):
		return known
	case errors.As(err, &invalid):
		return iamfault.Because(err, iamfault.ValidationError, invalid.Error())
	case errors.As(err, &outside):
		return iamfault.Because(err, iamfault.ValidationError, outside.Error())
	case errors.As(err, &long):
		return iamfault.Because(err, iamfault.ValidationError, long.Error())
	case errors.As(err, &many):
		return iamfault.Because(err, iamfault.ValidationError, many.Error())
	case errors.As(err, &twice):
		return iamfault.Because(err, iamfault.InvalidInput, twice.Error())
	case errors.As(err, &limit):
		return iamfault.Because(err, iamfault.LimitExceeded, limit.Error())
	case errors.As(err, &malformed):
		return iamfault.Because(err, malformedCode(malformed), malformed.Error())
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return iamfault.Because(err, iamfault.ServiceUnavailable, "the answer took too long, try again")
	}
	return iamfault.Because(err, iamfault.InternalFailure, "something went wrong here; the log has it under the request id")
}

// malformedCode is LimitExceeded for a document that is right but too large, as for IAM.
func malformedCode(e *iampolicy.Malformed) iamfault.Code {
	if e.TooLarge {
		return iamfault.LimitExceeded
	}
	return iamfault.MalformedPolicyDocument
}
