// SPDX-License-Identifier: Apache-2.0

// Package iamfault has the error codes of STS and IAM. Gates of the other services refuse with them, too: awsfront
// answers each service's clients in the service's own codes.
package iamfault

import (
	"fmt"

	"muster.dev/muster/internal/aws/awsfault"
)

// Code is an error code of the protocol, as SDKs compare it.
type Code string

// The codes.
const (
	NoSuchEntity            Code = "NoSuchEntity"
	EntityAlreadyExists     Code = "EntityAlreadyExists"
	DeleteConflict          Code = "DeleteConflict"
	LimitExceeded           Code = "LimitExceeded"
	ConcurrentModification  Code = "ConcurrentModification"
	UnmodifiableEntity      Code = "UnmodifiableEntity"
	InvalidInput            Code = "InvalidInput"
	MalformedPolicyDocument Code = "MalformedPolicyDocument"
	PackedPolicyTooLarge    Code = "PackedPolicyTooLarge"
	PolicyNotAttachable     Code = "PolicyNotAttachable"
	ValidationError         Code = "ValidationError"

	AccessDenied               Code = "AccessDenied"
	InvalidClientTokenID       Code = "InvalidClientTokenId"
	SignatureDoesNotMatch      Code = "SignatureDoesNotMatch"
	ExpiredToken               Code = "ExpiredToken"
	ExpiredTokenException      Code = "ExpiredTokenException" // of web identity tokens
	InvalidIdentityToken       Code = "InvalidIdentityToken"
	IDPRejectedClaim           Code = "IDPRejectedClaim"
	IDPCommunicationError      Code = "IDPCommunicationError" // SDKs try again
	IncompleteSignature        Code = "IncompleteSignature"
	MissingAuthenticationToken Code = "MissingAuthenticationToken"

	InvalidAction         Code = "InvalidAction"
	InvalidParameterValue Code = "InvalidParameterValue"
	InvalidQueryParameter Code = "InvalidQueryParameter"
	MalformedQueryString  Code = "MalformedQueryString"
	MissingAction         Code = "MissingAction"
	RequestEntityTooLarge Code = "RequestEntityTooLarge"
	UnsupportedOperation  Code = "UnsupportedOperation"

	Throttling         Code = "Throttling"
	ServiceUnavailable Code = "ServiceUnavailable"
	InternalFailure    Code = "InternalFailure"
)

// Status is the HTTP status that goes with the code; 400 for those that are not listed, as for AWS.
func (c Code) Status() int {
	switch c {
	case NoSuchEntity:
		return 404
	case EntityAlreadyExists, DeleteConflict, LimitExceeded, ConcurrentModification:
		return 409
	case AccessDenied, InvalidClientTokenID, SignatureDoesNotMatch, ExpiredToken, MissingAuthenticationToken, IDPRejectedClaim:
		return 403
	case RequestEntityTooLarge:
		return 413
	case ServiceUnavailable:
		return 503
	case InternalFailure:
		return 500
	default:
		return 400
	}
}

// Errorf makes a refusal of STS or IAM.
func Errorf(code Code, format string, args ...any) *awsfault.Error {
	return Because(nil, code, fmt.Sprintf(format, args...))
}

// Because makes a refusal of STS or IAM whose cause is told to the log alone.
func Because(cause error, code Code, message string) *awsfault.Error {
	return &awsfault.Error{Code: string(code), Status: code.Status(), Message: message, Cause: cause, OfIAM: true}
}
