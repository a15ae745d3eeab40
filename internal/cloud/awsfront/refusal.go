// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/iam/awsquery"
)

// refusal turns any error into one that may be answered. An error that nobody meant for the caller becomes an InternalFailure, which tells
// nothing.
func refusal(table *awsshape.Service, err error) *awsfault.Error {
	var fault *awsfault.Error
	var gate *awsquery.Error
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &gate):
		return refusedAtGate(table, gate)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return refusedAtGate(table, &awsquery.Error{Code: awsquery.ServiceUnavailable, Message: "The answer took too long: try again", Cause: err})
	}
	return &awsfault.Error{
		Code: internalCode(table), Status: http.StatusInternalServerError, Cause: err,
		Message: "Something went wrong here; the log of the service has it under the request id",
	}
}

// internalCode is what a service calls its own fault.
func internalCode(table *awsshape.Service) string {
	for _, code := range []string{"ServerException", "InternalServerException", "InternalServerError", "KMSInternalException"} {
		if table.Fault(code) != nil {
			return code
		}
	}
	if table.Protocol == awsshape.EC2Query {
		return "InternalError"
	}
	return "InternalFailure"
}

type answered struct {
	code   string
	status int
}

// gateCodes are the codes of STS and IAM in those of other protocols. Clients compare them: to set their clock, to fetch new credentials,
// to wait.
var gateCodes = map[awsshape.Protocol]map[awsquery.Code]answered{
	awsshape.RestJSON: {
		awsquery.AccessDenied:               {"AccessDeniedException", 403},
		awsquery.InvalidClientTokenID:       {"UnrecognizedClientException", 403},
		awsquery.SignatureDoesNotMatch:      {"InvalidSignatureException", 403},
		awsquery.IncompleteSignature:        {"IncompleteSignatureException", 403},
		awsquery.MissingAuthenticationToken: {"MissingAuthenticationTokenException", 403},
		awsquery.ExpiredToken:               {"ExpiredTokenException", 403},
		awsquery.Throttling:                 {"ThrottlingException", 429},
		awsquery.ServiceUnavailable:         {"ServiceUnavailableException", 503},
	},
	awsshape.EC2Query: {
		awsquery.AccessDenied:               {"UnauthorizedOperation", 403},
		awsquery.InvalidClientTokenID:       {"AuthFailure", 401},
		awsquery.SignatureDoesNotMatch:      {"SignatureDoesNotMatch", 403},
		awsquery.IncompleteSignature:        {"IncompleteSignature", 400},
		awsquery.MissingAuthenticationToken: {"MissingAuthenticationToken", 403},
		awsquery.ExpiredToken:               {"RequestExpired", 400},
		awsquery.Throttling:                 {"RequestLimitExceeded", 503},
		awsquery.ServiceUnavailable:         {"Unavailable", 503},
	},
}

func refusedAtGate(table *awsshape.Service, e *awsquery.Error) *awsfault.Error {
	protocol := table.Protocol
	low := protocol == awsshape.JSON10 || protocol == awsshape.JSON11 // whose every refusal is a 400
	if low {
		protocol = awsshape.RestJSON
	}
	known, ok := gateCodes[protocol][e.Code]
	if !ok {
		known = answered{string(e.Code), e.Code.Status()}
	}
	if low && known.status < http.StatusInternalServerError {
		known.status = http.StatusBadRequest
	}
	message := e.Message
	if known.code == "UnauthorizedOperation" {
		message = "You are not authorized to perform this operation. " + message
	}
	return &awsfault.Error{Code: known.code, Message: message, Status: known.status, Cause: e.Cause}
}

// unsupported refuses parameters that an action would ignore in silence.
func unsupported(table *awsshape.Service, names []string) *awsfault.Error {
	code := "InvalidParameterValue"
	for _, declared := range []string{"InvalidParameterException", "InvalidRequestException", "BadRequest", "ValidationException", "UnsupportedOperationException"} {
		if table.Fault(declared) != nil {
			code = declared
			break
		}
	}
	return awsfault.Errorf(code, "Muster does not support %s: leave it out", strings.Join(names, ", "))
}
