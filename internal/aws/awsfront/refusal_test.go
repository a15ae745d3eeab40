// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"testing"

	"muster.dev/muster/internal/aws/awsshape"
	"muster.dev/muster/internal/aws/awstable"
	"muster.dev/muster/internal/aws/iamfault"
)

// Each refusal of the gate is answered with what the service's clients compare. A code that IAM does not have could
// never be translated.
func TestRefusalsOfIAMInTheWordsOfServices(t *testing.T) {
	codes := []iamfault.Code{
		iamfault.AccessDenied, iamfault.InvalidClientTokenID, iamfault.SignatureDoesNotMatch, iamfault.IncompleteSignature, iamfault.MissingAuthenticationToken,
		iamfault.ExpiredToken, iamfault.Throttling, iamfault.ServiceUnavailable,
	}
	want := map[string]map[iamfault.Code]answered{
		"eks": {
			iamfault.AccessDenied: {"AccessDeniedException", 403}, iamfault.InvalidClientTokenID: {"UnrecognizedClientException", 403},
			iamfault.SignatureDoesNotMatch: {"InvalidSignatureException", 403}, iamfault.IncompleteSignature: {"IncompleteSignatureException", 403},
			iamfault.MissingAuthenticationToken: {"MissingAuthenticationTokenException", 403}, iamfault.ExpiredToken: {"ExpiredTokenException", 403},
			iamfault.Throttling: {"ThrottlingException", 429}, iamfault.ServiceUnavailable: {"ServiceUnavailableException", 503},
		},
		"kms": {iamfault.AccessDenied: {"AccessDeniedException", 400}, iamfault.Throttling: {"ThrottlingException", 400}, iamfault.ServiceUnavailable: {"ServiceUnavailableException", 503}},
		"ec2": {
			iamfault.AccessDenied: {"UnauthorizedOperation", 403}, iamfault.InvalidClientTokenID: {"AuthFailure", 401}, iamfault.SignatureDoesNotMatch: {"SignatureDoesNotMatch", 403},
			iamfault.IncompleteSignature: {"IncompleteSignature", 400}, iamfault.MissingAuthenticationToken: {"MissingAuthenticationToken", 403},
			iamfault.ExpiredToken: {"RequestExpired", 400}, iamfault.Throttling: {"RequestLimitExceeded", 503}, iamfault.ServiceUnavailable: {"Unavailable", 503},
		},
		"autoscaling": {iamfault.AccessDenied: {"AccessDenied", 403}, iamfault.Throttling: {"Throttling", 400}, iamfault.ServiceUnavailable: {"ServiceUnavailable", 503}},
	}
	for service, known := range want {
		for code, answer := range known {
			if got := refusal(awstable.Service(service), iamfault.Errorf(code, "no")); got.Code != answer.code || got.HTTPStatus() != answer.status {
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
