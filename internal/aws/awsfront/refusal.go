// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"muster.dev/muster/internal/aws/awsfault"
	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/query"
)

// refusal turns any error into one that may be answered. An error that nobody meant for the caller becomes an
// InternalFailure, which tells nothing.
func refusal(table *awsshape.Service, err error) *awsfault.Error {
	var fault *awsfault.Error
	switch {
	case errors.As(err, &fault) && fault.OfIAM:
		return refusedByIAM(table, fault)
	case fault != nil:
		return fault
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return refusedByIAM(table, &awsfault.Error{Code: serviceUnavailable, Status: http.StatusServiceUnavailable, Message: "The answer took too long: try again", Cause: err})
	}
	return &awsfault.Error{
		Code: internalCode(table), Status: http.StatusInternalServerError, Cause: err,
		Message: "Something went wrong here; the log of the service has it under the request id",
	}
}

// internalCode is what a service calls its own fault.
func internalCode(table *awsshape.Service) string {
	for _, code := range []string{"ServerException", "InternalServerException", "InternalServerError", "InternalServiceException", "KMSInternalException"} {
		if table.Fault(code) != nil {
			return code
		}
	}
	if table.Protocol == awsshape.EC2Query {
		return "InternalError"
	}
	return "InternalFailure"
}

// serviceUnavailable is IAM's code where it cannot be asked.
const serviceUnavailable = "ServiceUnavailable"

type answered struct {
	code   string
	status int
}

// gateCodes are the codes of STS and IAM in those of other protocols. Clients compare them: to set their clock, to
// fetch new credentials, to wait.
var gateCodes = map[awsshape.Protocol]map[string]answered{
	awsshape.RestJSON: {
		"AccessDenied":               {"AccessDeniedException", 403},
		"InvalidClientTokenId":       {"UnrecognizedClientException", 403},
		"SignatureDoesNotMatch":      {"InvalidSignatureException", 403},
		"IncompleteSignature":        {"IncompleteSignatureException", 403},
		"MissingAuthenticationToken": {"MissingAuthenticationTokenException", 403},
		"ExpiredToken":               {"ExpiredTokenException", 403},
		"Throttling":                 {"ThrottlingException", 429},
		serviceUnavailable:           {"ServiceUnavailableException", 503},
	},
	awsshape.EC2Query: {
		"AccessDenied":               {"UnauthorizedOperation", 403},
		"InvalidClientTokenId":       {"AuthFailure", 401},
		"SignatureDoesNotMatch":      {"SignatureDoesNotMatch", 403},
		"IncompleteSignature":        {"IncompleteSignature", 400},
		"MissingAuthenticationToken": {"MissingAuthenticationToken", 403},
		"ExpiredToken":               {"RequestExpired", 400},
		"Throttling":                 {"RequestLimitExceeded", 503},
		serviceUnavailable:           {"Unavailable", 503},
	},
}

func refusedByIAM(table *awsshape.Service, e *awsfault.Error) *awsfault.Error {
	protocol := table.Protocol
	low := protocol == awsshape.JSON10 || protocol == awsshape.JSON11 // whose every refusal is a 400
	if low {
		protocol = awsshape.RestJSON
	}
	known, ok := gateCodes[protocol][e.Code]
	if !ok {
		known = answered{e.Code, e.HTTPStatus()}
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

// tooLarge refuses a request by its length.
func tooLarge(table *awsshape.Service) *awsfault.Error {
	words := "The request has more than %d bytes"
	if table.Identity {
		words = "the body is larger than %d bytes"
	}
	return awsfault.Errorf("RequestEntityTooLarge", words, table.MaxBody()).WithStatus(http.StatusRequestEntityTooLarge)
}

// unsupported refuses parameters that an action would ignore in silence.
func unsupported(table *awsshape.Service, names []string) *awsfault.Error {
	if table.Identity {
		return query.Unknown(names[0])
	}
	code := "InvalidParameterValue"
	for _, declared := range []string{"InvalidParameterException", "InvalidRequestException", "BadRequest", "ValidationException", "UnsupportedOperationException"} {
		if table.Fault(declared) != nil {
			code = declared
			break
		}
	}
	return awsfault.Errorf(code, "Muster does not support %s: leave it out", strings.Join(names, ", "))
}
