// SPDX-License-Identifier: Apache-2.0

package eksclient_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/cloud/eks/eksclient"
)

// account is an EKS API that verifies signatures and answers each request alike.
type account struct {
	t      *testing.T
	status int
	answer string
	code   string
	asked  string // the last request: method, path, body
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	hash := sha256.Sum256(body)
	r.Header.Set("Content-Length", fmt.Sprint(r.ContentLength))
	request := sigv4.Request{Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery, Header: r.Header, PayloadHash: hex.EncodeToString(hash[:])}
	signed, err := sigv4.ReadHeader(request)
	if err == nil {
		err = signed.Verify(sigv4.Derive("secret", signed.Scope), request)
	}
	if scope := signed.Scope; err != nil || scope.Service != "eks" || scope.Region != "eu-west-1" || signed.AccessKeyID != "AKIAEXAMPLE" {
		a.t.Errorf("%s %s: %s, %v", r.Method, r.URL, signed.Credential, err)
	}
	a.asked = r.Method + " " + r.URL.EscapedPath() + " " + string(body)
	w.Header().Set("X-Amzn-Errortype", a.code)
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.answer)
}

// files are an account's configuration and credentials.
func files(t *testing.T, endpoint string, authority []byte) (config, credentials string) {
	t.Helper()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority})))
	return write("config", "[default]\nregion = eu-west-1\nendpoint_url = "+endpoint+"\nca_bundle = "+ca+"\n"),
		write("credentials", "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = secret\n")
}

func newAccount(t *testing.T) (*account, *eksclient.Client) {
	t.Helper()
	for name, value := range map[string]string{ // of another account: they do not count
		"AWS_ACCESS_KEY_ID": "AKIAOTHER", "AWS_SECRET_ACCESS_KEY": "other", "AWS_REGION": "us-west-2", "AWS_PROFILE": "work", "AWS_ENDPOINT_URL": "https://eks.example",
	} {
		t.Setenv(name, value)
	}
	a := &account{t: t, status: http.StatusOK, answer: `{"update":{"id":"u1","status":"InProgress"}}`}
	server := httptest.NewTLSServer(a)
	t.Cleanup(server.Close)
	config, credentials := files(t, server.URL, server.Certificate().Raw)
	client, err := eksclient.New(t.Context(), config, credentials)
	if err != nil {
		t.Fatal(err)
	}
	return a, client
}

func TestRequests(t *testing.T) {
	a, client := newAccount(t)
	ctx := t.Context()
	for want, ask := range map[string]func() (string, error){
		`POST /clusters/Blue_1/updates {"version":"1.37"}`: func() (string, error) {
			return client.UpdateClusterVersion(ctx, "Blue_1", "1.37", false)
		},
		`POST /clusters/Blue_1/updates {"force":true,"version":"1.37"}`: func() (string, error) {
			return client.UpdateClusterVersion(ctx, "Blue_1", "1.37", true)
		},
		`POST /clusters/Blue_1/node-groups/web%20%2F%20x/update-version {"version":"1.37"}`: func() (string, error) {
			return client.UpdateNodegroupVersion(ctx, "Blue_1", "web / x", "1.37")
		},
		`POST /clusters/Blue_1/addons/coredns/update {"addonVersion":"v1","serviceAccountRoleArn":"arn:r","resolveConflicts":"OVERWRITE"}`: func() (string, error) {
			return client.UpdateAddon(ctx, "Blue_1", "coredns", eksclient.AddonChange{Version: "v1", ServiceAccountRoleARN: "arn:r", ResolveConflicts: "OVERWRITE"})
		},
		`POST /clusters/Blue_1/addons/coredns/update {"addonVersion":"v1"}`: func() (string, error) {
			return client.UpdateAddon(ctx, "Blue_1", "coredns", eksclient.AddonChange{Version: "v1"})
		},
	} {
		if id, err := ask(); err != nil || id != "u1" || a.asked != want {
			t.Errorf("asked %s, not %s: %q, %v", a.asked, want, id, err)
		}
	}
}

func TestAnswers(t *testing.T) {
	a, client := newAccount(t)
	ask := func(status int, code, answer string) error {
		a.status, a.code, a.answer = status, code, answer
		id, err := client.UpdateClusterVersion(t.Context(), "Blue_1", "1.37", false)
		if id != "" {
			t.Errorf("%s is the update %s", answer, id)
		}
		return err
	}
	refusal := ask(400, "InvalidParameterException", `{"message":"Cluster is already at version 1.37","clusterName":"Blue_1"}`)
	if e, ok := errors.AsType[*eksclient.Error](refusal); !ok || e.Code != "InvalidParameterException" || refusal.Error() != "InvalidParameterException: Cluster is already at version 1.37" {
		t.Errorf("%v", refusal)
	}
	for _, c := range []struct {
		status             int
		code, answer, says string
	}{
		{502, "", "<html>", `502 Bad Gateway: "<html>"`},
		{500, "ServerException", "<html>", `500 Internal Server Error: "<html>"`},
		{200, "", "{}", "it names no update"},
		{200, "", "<html>", "reading the answer of EKS's API"},
	} {
		if err := ask(c.status, c.code, c.answer); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%d %s: %v, want %q", c.status, c.answer, err, c.says)
		}
	}
}

func TestAccountsThatCannotBeAsked(t *testing.T) {
	server := httptest.NewTLSServer(http.NotFoundHandler())
	server.Close()
	config, credentials := files(t, server.URL, server.Certificate().Raw)
	client, err := eksclient.New(t.Context(), config, credentials)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.UpdateClusterVersion(t.Context(), "Blue_1", "1.37", false); err == nil || !strings.Contains(err.Error(), "EKS's API does not answer") || !strings.Contains(err.Error(), server.URL) {
		t.Errorf("%v", err)
	}
	for file, says := range map[string]string{"config": "does not have the account's address", "credentials": "has no keys"} {
		config, credentials := files(t, server.URL, server.Certificate().Raw)
		empty := filepath.Join(filepath.Dir(config), file)
		if err := os.WriteFile(empty, []byte("[default]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := eksclient.New(t.Context(), config, credentials); err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), empty) {
			t.Errorf("%s: %v", empty, err)
		}
		if err := os.Remove(empty); err != nil {
			t.Fatal(err)
		}
		if _, err := eksclient.New(t.Context(), config, credentials); err == nil {
			t.Errorf("%s is missing, and nothing is said", empty)
		}
	}
}
