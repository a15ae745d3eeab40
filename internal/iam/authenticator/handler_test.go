// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/iam/tokenverify"
	"muster.dev/muster/internal/iam/tokenverify/ststest"
)

// update has golden files written.
var update = flag.Bool("update", false, "write golden files")

func tokenReview(t testing.TB, version, token string, audiences ...string) string {
	t.Helper()
	r := map[string]any{"spec": map[string]any{"token": token, "audiences": audiences}, "metadata": map[string]any{"creationTimestamp": nil}, "status": map[string]any{"user": map[string]any{}}}
	if version != "" {
		r["apiVersion"], r["kind"] = version, "TokenReview"
	}
	raw, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (w *world) post(body string) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	w.ServeHTTP(recorder, httptest.NewRequest(http.MethodPost, "/authenticate", strings.NewReader(body)))
	return recorder
}

func TestAnswersToTokenReviews(t *testing.T) {
	const v1, b1 = "authentication.k8s.io/v1", "authentication.k8s.io/v1beta1"
	for _, tc := range []struct {
		name, version string
		status        int
		asked, own    []string
		verifier      func(*believer)
		user          string
	}{
		{name: "granted-v1", version: v1, status: 200, user: "alice"},
		{name: "granted-v1beta1", version: b1, status: 200, user: "alice"},
		{name: "granted-no-version", version: "", status: 200, user: "alice"},
		{name: "granted-audiences-left-to-the-api-server", version: v1, status: 200, user: "alice", asked: []string{"https://kubernetes.default.svc"}},
		{name: "granted-audiences", version: v1, status: 200, user: "alice", asked: []string{"vault", "https://kubernetes.default.svc"}, own: []string{"https://kubernetes.default.svc"}},
		{name: "granted-no-audiences-asked", version: v1, status: 200, user: "alice", own: []string{"https://kubernetes.default.svc"}},
		{name: "denied-audiences", version: v1, status: 403, user: "alice", asked: []string{"vault"}, own: []string{"https://kubernetes.default.svc"}},
		{name: "denied-v1", version: v1, status: 403, verifier: func(b *believer) { b.err = &tokenverify.Refused{Rule: "sts", Saw: "nothing good"} }},
		{name: "denied-v1beta1", version: b1, status: 403, verifier: func(b *believer) { b.err = &tokenverify.Refused{Rule: "sts"} }},
		{name: "denied-not-mapped", version: v1, status: 403},
		{name: "throttled", version: v1, status: 429, verifier: func(b *believer) { b.err = tokenverify.ErrThrottled }},
		{name: "unavailable", version: b1, status: 503, verifier: func(b *believer) { b.err = &tokenverify.Unavailable{Asked: "sts", Err: errors.New("down")} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Audiences = tc.own })
			w.mapTo(t, tc.user)
			if tc.verifier != nil {
				tc.verifier(w.verifier)
			}
			got := w.post(tokenReview(t, tc.version, w.token(t, "alice", 1), tc.asked...))
			if got.Code != tc.status || got.Header().Get("Retry-After") != "" {
				t.Errorf("status %d, want %d; headers %v", got.Code, tc.status, got.Header())
			}
			var indented any
			if err := json.Unmarshal(got.Body.Bytes(), &indented); err != nil {
				t.Fatal(err)
			}
			raw, err := json.MarshalIndent(indented, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, tc.name+".json", append(raw, '\n'))
		})
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got), rewritten by -update:\n%s", path, diff)
	}
}

func TestWhatIsNoTokenReview(t *testing.T) {
	token := "k8s-aws-v1.secret"
	for _, tc := range []struct {
		name, method, body string
		status             int
	}{
		{"GET", http.MethodGet, "", 405},
		{"PUT", http.MethodPut, tokenReview(t, "authentication.k8s.io/v1", token), 405},
		{"nothing", http.MethodPost, "", 400},
		{"no JSON", http.MethodPost, "token=" + token, 400},
		{"JSON of another kind", http.MethodPost, `["` + token + `"]`, 400},
		{"two documents", http.MethodPost, tokenReview(t, "authentication.k8s.io/v1", token) + "{}", 400},
		{"another kind", http.MethodPost, `{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview","spec":{"token":"` + token + `"}}`, 400},
		{"another version", http.MethodPost, tokenReview(t, "authentication.k8s.io/v2", token), 400},
		{"no token", http.MethodPost, tokenReview(t, "authentication.k8s.io/v1", ""), 400},
		{"a token behind a space", http.MethodPost, tokenReview(t, "authentication.k8s.io/v1", " "+token), 400},
		{"a token before a line's end", http.MethodPost, tokenReview(t, "authentication.k8s.io/v1", token+"\n"), 400},
		{"a body without end", http.MethodPost, `{"spec":{"token":"` + strings.Repeat("x", MaxBody) + `"}}`, 413},
		{"a token of another kind", http.MethodPost, tokenReview(t, "authentication.k8s.io/v1", "eyJhbGciOi"), 403},
		{"a token that is too large", http.MethodPost, tokenReview(t, "authentication.k8s.io/v1", "k8s-aws-v1."+strings.Repeat("x", 5000)), 403},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, nil)
			recorder := httptest.NewRecorder()
			w.ServeHTTP(recorder, httptest.NewRequest(tc.method, "/authenticate", strings.NewReader(tc.body)))
			if recorder.Code != tc.status {
				t.Errorf("status %d, want %d: %s", recorder.Code, tc.status, recorder.Body)
			}
			for where, text := range map[string]string{"answer": recorder.Body.String(), "log": w.logs.String()} {
				if strings.Contains(text, token) || strings.Contains(text, "xxxxxxxx") {
					t.Errorf("the %s repeats the token: %s", where, text)
				}
			}
			if recorder.Code == 405 && recorder.Header().Get("Allow") != "POST" {
				t.Errorf("405 without Allow: %v", recorder.Header())
			}
		})
	}
}

func TestOneLineForEachDecisionAndNoSecretInIt(t *testing.T) {
	w := newWorld(t, nil)
	token := w.token(t, "alice", 1)
	w.post(tokenReview(t, "authentication.k8s.io/v1", token))
	w.mapTo(t, "")
	w.post(tokenReview(t, "authentication.k8s.io/v1", token))
	w.verifier.set(func() {
		w.verifier.err = &tokenverify.Refused{Rule: "sts", Code: "ExpiredToken", Saw: "it is expired", Fix: "get new credentials"}
	})
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 2)))
	lines := strings.Split(strings.TrimSpace(w.logs.String()), "\n")
	wants := [][]string{
		{
			`level=INFO`, `msg="access granted"`, `result=success`, `username=alice`, `groups=[devs]`, `arn=arn:aws:iam::111122223333:user/alice`,
			`uid=aws-iam-authenticator:111122223333:AIDA0000000000000001`, `source=aws-auth`, `entry=mapUsers[0]`, `cached=false`, `access_key_id=AKIA0000000000000001`,
		},
		{`level=WARN`, `msg="access denied"`, `result=uknown_user`, `cached=true`, `rule=no-entry cause=M-IAM-01 `, `fix=`},
		{`msg="access denied"`, `result=sts_error`, `rule=sts/ExpiredToken`, `saw="it is expired"`, `fix="get new credentials"`},
	}
	if len(lines) != len(wants) {
		t.Fatalf("%d lines: %s", len(lines), w.logs.String())
	}
	for n, want := range wants {
		for _, part := range want {
			if !strings.Contains(lines[n], part) {
				t.Errorf("line %d lacks %s: %s", n, part, lines[n])
			}
		}
	}
	parsed := ststest.Parsed(t, token, cluster, w.start)
	for _, secret := range append(ststest.Secrets(t, parsed), token, parsed.Query) {
		if strings.Contains(w.logs.String(), secret) {
			t.Errorf("the log has a secret: %s", w.logs.String())
		}
	}
}

func TestOfScrubbedAccountsNothingIsLogged(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Scrubbed = []string{"111122223333"} })
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1)))
	w.mapTo(t, "")
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1)))
	if text := w.logs.String(); strings.Count(text, "scrubbed=true") != 2 || strings.Contains(text, "alice") || strings.Contains(text, "AIDA") || strings.Contains(text, "111122223333") {
		t.Errorf("the log says: %s", text)
	}
}

func TestLinesAboutTokensOfNobodyAreLimited(t *testing.T) {
	w := newWorld(t, nil)
	for range 250 {
		w.post(tokenReview(t, "authentication.k8s.io/v1", "nonsense"))
	}
	if n := strings.Count(w.logs.String(), "\n"); n != linesPerKind {
		t.Errorf("%d lines", n)
	}
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1)))
	if !strings.Contains(w.logs.String(), "access granted") {
		t.Error("a decision about somebody is not logged because of others")
	}
	w.advance(1e9)
	w.post(tokenReview(t, "authentication.k8s.io/v1", "nonsense"))
	if !strings.Contains(w.logs.String(), "left_out_before=150") {
		t.Errorf("nobody says that lines were left out")
	}
}

func TestNoFloodHidesThatAKeyWasRevoked(t *testing.T) {
	w := newWorld(t, nil)
	if got := w.user(t, w.token(t, "alice", 1)); got != "alice" {
		t.Fatal(got)
	}
	w.verifier.set(func() {
		w.verifier.err = &tokenverify.Refused{Rule: "access-key", Code: "InvalidClientTokenId", Saw: "revoked"}
	})
	w.Forget(keyservice.Change{All: true})
	for n := range 300 { // of strangers, and of one that knows the id of another key
		w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "mallory", 100+n)))
	}
	_ = w.user(t, w.token(t, "bob", 2))
	w.verifier.Admit(ststest.User("bob", 2).ID)
	for range 50 {
		w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "bob", 2)))
	}
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1))) // the token is verified
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1))) // and the answer remembered
	text := w.logs.String()
	if n := strings.Count(text, "claimed_access_key_id="+ststest.User("alice", 1).ID); n != 2 {
		t.Errorf("%d of 2 lines tell that alice's key was revoked", n)
	}
	if all, bobs := strings.Count(text, "access denied"), strings.Count(text, ststest.User("bob", 2).ID); all != linesPerKind+linesPerWho+2 || bobs != linesPerWho {
		t.Errorf("%d lines, %d about bob", all, bobs)
	}
}

func TestPeopleOfAnAccountWhoAreNotLetInDoNotFillTheDisk(t *testing.T) {
	w := newWorld(t, nil)
	w.mapTo(t, "")
	account := "111122223333"
	w.verifier.more = func(id *tokenverify.Identity) { id.Account = account }
	for range 50 {
		w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1)))
	}
	if n := strings.Count(w.logs.String(), "access denied"); n != linesPerWho {
		t.Errorf("%d lines about one account in a second, want %d", n, linesPerWho)
	}
	for n := range 50 {
		account = fmt.Sprintf("%012d", n)
		for range 5 {
			w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", n)))
		}
	}
	if n := strings.Count(w.logs.String(), "access denied"); n != linesPerKind {
		t.Errorf("%d lines about all accounts in a second, want %d", n, linesPerKind)
	}
}

func TestMetricsUnderTheirKnownNames(t *testing.T) {
	w := newWorld(t, nil)
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1)))
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1)))
	w.post(tokenReview(t, "authentication.k8s.io/v1", "nonsense"))
	w.post("")
	w.mapTo(t, "")
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 1)))
	w.verifier.err = tokenverify.ErrThrottled
	w.post(tokenReview(t, "authentication.k8s.io/v1", w.token(t, "alice", 2)))
	m := w.config.Metrics
	for n := range 200 { // that there are not
		m.Observed(tokenverify.Observation{Region: fmt.Sprintf("us-none-%d", n), Status: 0})
	}
	for n := range 200 {
		m.Observed(tokenverify.Observation{Region: fmt.Sprintf("eu-some-%d", n), Status: 200, Known: true})
	}
	m.Observed(tokenverify.Observation{Region: "eu-some-1", Status: 403, Code: "RegionDisabledException", Known: true})
	m.Observed(tokenverify.Observation{Region: "eu-some-1", Status: 400, Code: "Throttling", Known: true})
	m.DescribedInstances()
	m.Busy(true)
	m.built(3, []identity.Problem{{Source: identity.SourceAWSAuth}}, 1)
	gathered, err := w.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	series := 0
	for _, family := range gathered {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, l := range metric.GetLabel() {
				name += " " + l.GetName() + "=" + l.GetValue()
			}
			series++
			got[name] = metric.GetCounter().GetValue() + metric.GetGauge().GetValue() + float64(metric.GetHistogram().GetSampleCount())
		}
	}
	for name, want := range map[string]float64{
		"aws_iam_authenticator_authenticate_latency_seconds result=success":           2,
		"aws_iam_authenticator_authenticate_latency_seconds result=invalid_token":     1,
		"aws_iam_authenticator_authenticate_latency_seconds result=malformed_request": 1,
		"aws_iam_authenticator_authenticate_latency_seconds result=uknown_user":       1,
		"aws_iam_authenticator_authenticate_latency_seconds result=sts_throttling":    1,
		"aws_iam_authenticator_sts_connection_failures_total StsRegion=other":         200,
		"aws_iam_authenticator_sts_throttling_total StsRegion=eu-some-1":              1,
		"aws_iam_authenticator_sts_responses_total ResponseCode=200 StsRegion=other":  200 - mostRegions,
		"aws_iam_authenticator_sts_disabled_region_call":                              1,
		"aws_iam_authenticator_ec2_describe_instances_calls_total":                    1,
		"aws_iam_authenticator_configmap_watch_failures_total":                        0,
		"muster_authenticator_lookups_total result=hit":                               2,
		"muster_authenticator_remembered_tokens what=identity":                        1,
		"muster_authenticator_mapping_problems source=aws-auth":                       1,
		"muster_authenticator_mapping_problems source=file":                           0,
		"muster_authenticator_questions_refused_total key=known":                      1,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s is %v, want %v", name, value, want)
		}
	}
	if series > 150 {
		t.Errorf("%d series: labels are not bounded", series)
	}
}
