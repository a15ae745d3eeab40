// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

const good = `{"subject":{"namespace":"shop","serviceAccount":"app"},"audience":"pods.eks.amazonaws.com","podIdentityAssociation":{"associationArn":"a","associationId":"a-1"},
"assumedRoleUser":{"arn":"arn:aws:sts::123456789012:assumed-role/app/x","assumeRoleId":"AROA:x"},
"credentials":{"sessionToken":"session","secretAccessKey":"secret","accessKeyId":"ASIA1","expiration":1.8E9}}`

// service is an EKS Auth that answers what it is told to, once each; the last answer again and again.
func service(t *testing.T, answers ...func(w http.ResponseWriter, r *http.Request)) (*EKSAuth, *int) {
	t.Helper()
	asked := new(int)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := answers[min(*asked, len(answers)-1)]
		*asked++
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &EKSAuth{
		Endpoint: server.URL, Region: "us-east-1", Cluster: func() string { return "demo" }, Authorities: file,
		Role: func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "ASIANODE", SecretAccessKey: "s", SessionToken: "node", CanExpire: true, Expires: time.Now().Add(time.Hour)}, nil
		},
	}, asked
}

func says(status int, code, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Amzn-Errortype", code)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestAsk(t *testing.T) {
	var path, signed, body string
	e, _ := service(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		path, signed, body = r.URL.Path, r.Header.Get("Authorization"), string(raw)
		_, _ = io.WriteString(w, good)
	})
	got, err := e.Ask(t.Context(), "token")
	if want := (Credentials{"ASIA1", "secret", "session", "123456789012", time.Unix(1_800_000_000, 0)}); err != nil || got != want {
		t.Errorf("%#v, %v", got, err)
	}
	if path != "/clusters/demo/assume-role-for-pod-identity" || body != `{"token":"token"}` || !strings.Contains(signed, "Credential=ASIANODE/") || !strings.Contains(signed, "/us-east-1/eks-auth/aws4_request") {
		t.Errorf("asked %s with %s, signed %s", path, body, signed)
	}
}

func TestAnswersOfEKSAuth(t *testing.T) {
	for name, c := range map[string]struct {
		answer  func(http.ResponseWriter, *http.Request)
		refused string // its code
		asked   int
	}{
		"no association":      {says(404, "ResourceNotFoundException", `{"message":"No association"}`), "ResourceNotFoundException", 1},
		"a token that is old": {says(400, "ExpiredTokenException", `{}`), "ExpiredTokenException", 1},
		"IAM says no":         {says(403, "AccessDeniedException", `{}`), "AccessDeniedException", 1},
		"too much":            {says(429, "ThrottlingException", `{}`), "", 1},
		"away":                {says(503, "ServiceUnavailableException", `{}`), "", 1},
		"a proxy":             {says(404, "", "<html>"), "", 1},
		"nothing":             {says(200, "", ``), "", 1},
		"half an answer":      {says(200, "", `{"credentials":{"accessKeyId":"a"}}`), "", 1},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		}, "", 1},
		"the machine's key": {says(403, "UnrecognizedClientException", `{}`), "", 2},
		"the machine's end": {says(403, "ExpiredTokenException", `{}`), "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			e, asked := service(t, c.answer)
			got, err := e.Ask(t.Context(), "token")
			refused, _ := errors.AsType[*Refused](err)
			if err == nil || got != (Credentials{}) || (refused != nil) != (c.refused != "") || refused != nil && refused.Code != c.refused || *asked != c.asked {
				t.Errorf("%v, %v after %d questions; want the refusal %q after %d", got, err, *asked, c.refused, c.asked)
			}
		})
	}
}

// Credentials of the machine that are not good any more are got anew.
func TestTheMachinesCredentialsAreReplaced(t *testing.T) {
	e, asked := service(t, says(403, "UnrecognizedClientException", `{}`), says(200, "", good))
	got := 0
	inner := e.Role
	e.Role = func(ctx context.Context) (aws.Credentials, error) { got++; return inner(ctx) }
	if _, err := e.Ask(t.Context(), "token"); err != nil || *asked != 2 || got != 2 {
		t.Errorf("%v after %d questions, with %d credentials", err, *asked, got)
	}
	if _, err := e.Ask(t.Context(), "token"); err != nil || got != 2 {
		t.Errorf("%v: the credentials of the machine were got %d times", err, got)
	}
	e.Now = func() time.Time { return time.Now().Add(56 * time.Minute) }
	if _, err := e.Ask(t.Context(), "token"); err != nil || got != 3 {
		t.Errorf("%v: shortly before their end they were got %d times", err, got)
	}
	e.Role = func(context.Context) (aws.Credentials, error) { return aws.Credentials{}, errors.New("none") }
	e.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	if _, err := e.Ask(t.Context(), "token"); err == nil || !strings.Contains(err.Error(), "role: none") {
		t.Errorf("%v", err)
	}
}

// Nobody is asked who cannot be verified.
func TestWithoutAnAuthority(t *testing.T) {
	e, asked := service(t, says(200, "", good))
	e.Authorities = filepath.Join(t.TempDir(), "none.pem")
	if _, err := e.Ask(t.Context(), "token"); err == nil {
		t.Error("without an authority")
	}
	if err := os.WriteFile(e.Authorities, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Ask(t.Context(), "token"); err == nil {
		t.Error("without a certificate")
	}
	if *asked != 0 {
		t.Errorf("asked %d times", *asked)
	}
}
