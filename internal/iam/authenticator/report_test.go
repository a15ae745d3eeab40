// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

func TestReports(t *testing.T) {
	var got []keyservice.Refused
	w := newWorld(t, func(c *Config) { c.Refused = func(r keyservice.Refused) { got = append(got, r) } })
	session := ststest.Session("node", "i-0123456789abcdef0", 1)
	refuse := func(err error) { w.verifier.set(func() { w.verifier.err = err }) }
	post := func(token string, header http.Header) {
		r := httptest.NewRequest(http.MethodPost, "/authenticate", strings.NewReader(tokenReview(t, "", token)))
		for name := range header {
			r.Header.Set(name, header.Get(name))
		}
		w.ServeHTTP(httptest.NewRecorder(), r)
	}
	good := func(k ststest.Key) string { return ststest.Token(t, k, cluster, w.start) }
	wrongHost := func(k ststest.Key) string {
		return ststest.TokenFor(t, k, cluster, "sts.example.internal", "eu-west-1", w.start)
	}

	post(good(session), nil) // let in
	refuse(&tokenverify.Unavailable{Asked: "sts", Err: errors.New("down")})
	post(good(ststest.Session("node", "i-0123456789abcdef0", 2)), nil)
	refuse(&tokenverify.Refused{Rule: "signature", Code: "SignatureDoesNotMatch", Saw: "s", Fix: "f"})
	post(good(ststest.User("alice", 3)), nil)                                          // no session
	post(wrongHost(session), http.Header{http.CanonicalHeaderKey(TrialHeader): {"1"}}) // on behalf of a machine
	post("k8s-aws-v1.nonsense", nil)
	post("nonsense", nil)
	if len(got) > 0 {
		t.Fatalf("reported %v", got)
	}

	post(wrongHost(session), nil)
	post(wrongHost(session), nil) // too soon
	if len(got) != 1 || got[0].AccessKeyID != session.ID || got[0].SessionToken != session.Session || got[0].Rule != "host" || got[0].Fix == "" {
		t.Fatalf("reported %v", got)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", got[0], got[0], got[0], got[0]); strings.Contains(text, "session-token") {
		t.Errorf("a session token is printed: %s", text)
	}
	w.advance(reportAgain)
	post(good(ststest.Session("node", "i-0123456789abcdef0", 4)), nil)
	post(good(ststest.Session("node", "i-0123456789abcdef0", 4)), nil) // remembered, and too soon
	if len(got) != 2 || got[1].Rule != "signature/SignatureDoesNotMatch" || got[1].Saw != "s" {
		t.Fatalf("reported %v", got)
	}

	got = nil
	w.advance(time.Minute)
	for n := range 3 * reportsASecond {
		post(wrongHost(ststest.Session("node", "x", 100+n)), nil)
	}
	if len(got) != reportsASecond {
		t.Errorf("%d reports in a moment, want %d", len(got), reportsASecond)
	}
	w.advance(time.Second)
	post(wrongHost(ststest.Session("node", "x", 999)), nil)
	if len(got) != reportsASecond+1 {
		t.Error("a flood is over, and nothing is reported any more")
	}
}
