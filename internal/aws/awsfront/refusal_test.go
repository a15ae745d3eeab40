// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"testing"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/iam/awsquery"
)

// Each refusal of the gate is answered with what the service's clients compare. A code that IAM does not have could never be translated.
func TestRefusalsOfIAMInTheWordsOfServices(t *testing.T) {
	codes := []awsquery.Code{
		awsquery.AccessDenied, awsquery.InvalidClientTokenID, awsquery.SignatureDoesNotMatch, awsquery.IncompleteSignature, awsquery.MissingAuthenticationToken,
		awsquery.ExpiredToken, awsquery.Throttling, awsquery.ServiceUnavailable,
	}
	want := map[string]map[awsquery.Code]answered{
		"eks": {
			awsquery.AccessDenied: {"AccessDeniedException", 403}, awsquery.InvalidClientTokenID: {"UnrecognizedClientException", 403},
			awsquery.SignatureDoesNotMatch: {"InvalidSignatureException", 403}, awsquery.IncompleteSignature: {"IncompleteSignatureException", 403},
			awsquery.MissingAuthenticationToken: {"MissingAuthenticationTokenException", 403}, awsquery.ExpiredToken: {"ExpiredTokenException", 403},
			awsquery.Throttling: {"ThrottlingException", 429}, awsquery.ServiceUnavailable: {"ServiceUnavailableException", 503},
		},
		"kms": {awsquery.AccessDenied: {"AccessDeniedException", 400}, awsquery.Throttling: {"ThrottlingException", 400}, awsquery.ServiceUnavailable: {"ServiceUnavailableException", 503}},
		"ec2": {
			awsquery.AccessDenied: {"UnauthorizedOperation", 403}, awsquery.InvalidClientTokenID: {"AuthFailure", 401}, awsquery.SignatureDoesNotMatch: {"SignatureDoesNotMatch", 403},
			awsquery.IncompleteSignature: {"IncompleteSignature", 400}, awsquery.MissingAuthenticationToken: {"MissingAuthenticationToken", 403},
			awsquery.ExpiredToken: {"RequestExpired", 400}, awsquery.Throttling: {"RequestLimitExceeded", 503}, awsquery.ServiceUnavailable: {"Unavailable", 503},
		},
		"autoscaling": {awsquery.AccessDenied: {"AccessDenied", 403}, awsquery.Throttling: {"Throttling", 400}, awsquery.ServiceUnavailable: {"ServiceUnavailable", 503}},
	}
	for service, known := range want {
		for code, answer := range known {
			if got := refusal(awstable.Service(service), awsquery.Errorf(code, "no")); got.Code != answer.code || got.HTTPStatus() != answer.status {
				t.Errorf("%s: %s is answered as %s %d, want %+v", service, code, got.Code, got.HTTPStatus(), answer)
			}
		}
	}
	for _, protocol := range []awsshape.Protocol{awsshape.RestJSON, awsshape.EC2Query} {
		if len(gateCodes[protocol]) != len(codes) {
			t.Errorf("%s: %d codes are translated, want %d", protocol, len(gateCodes[protocol]), len(codes))
		}
		for _, code := range codes {
			if _, ok := gateCodes[protocol][string(code)]; !ok {
				t.Errorf("%s: %s is not translated", protocol, code)
			}
		}
	}
}
