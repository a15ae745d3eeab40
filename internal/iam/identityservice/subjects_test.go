// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// The owner of a provider has any number of subjects: what access keys have left does not depend on them.
func TestSubjectsDoNotRenewRequestsOfKeys(t *testing.T) {
	const burst = 400 // a busy machine takes a while for the flood, in which some come back
	w, i := federationAt(t, 1, burst)
	asks := func(times int) (answered int) {
		for range times {
			if _, err := w.sts(w.admin()).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{}); err == nil {
				answered++
			}
		}
		return answered
	}
	for asks(1) > 0 { // until none is left
	}
	for n := range 4200 {
		form := url.Values{
			"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {*roleARN("app")}, "RoleSessionName": {"session"},
			"WebIdentityToken": {i.token(t, foreignURL, w.now(), map[string]any{"kubernetes.io": nil, "sub": "subject-" + strconv.Itoa(n)})},
		}.Encode()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		answer := httptest.NewRecorder()
		if w.front.ServeHTTP(answer, r); n == 0 && !strings.Contains(answer.Body.String(), "AccessDenied") {
			t.Fatalf("%d: %s", answer.Code, answer.Body)
		}
	}
	if got := asks(burst); got > burst/2 {
		t.Errorf("%d requests of a spent key were answered after a flood of subjects", got)
	}
}
