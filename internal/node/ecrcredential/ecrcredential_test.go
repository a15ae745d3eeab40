// SPDX-License-Identifier: Apache-2.0

package ecrcredential

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const asked = `{"kind":"CredentialProviderRequest","apiVersion":"credentialprovider.kubelet.k8s.io/v1","image":%q}`

func TestAnswer(t *testing.T) {
	now := time.Unix(1000, 0)
	const image = "000000000000.dkr.ecr.us-east-1.amazonaws.com/team/app:1"
	for name, c := range map[string]struct {
		in, want string
		fails    error
	}{
		"a password":          {fmt.Sprintf(asked, image), `{"kind":"CredentialProviderResponse","apiVersion":"credentialprovider.kubelet.k8s.io/v1","cacheKeyType":"Registry","cacheDuration":"6h0m0s","auth":{"000000000000.dkr.ecr.us-east-1.amazonaws.com":{"username":"AWS","password":"p"}}}` + "\n", nil},
		"no role":             {fmt.Sprintf(asked, image), "", errors.New("no role")},
		"another account":     {fmt.Sprintf(asked, "111111111111.dkr.ecr.us-east-1.amazonaws.com/a"), "", nil},
		"another region":      {fmt.Sprintf(asked, "000000000000.dkr.ecr.eu-west-1.amazonaws.com/a"), "", nil},
		"another registry":    {fmt.Sprintf(asked, "docker.io/library/web"), "", nil},
		"a name that ends so": {fmt.Sprintf(asked, "000000000000.dkr.ecr.us-east-1.amazonaws.com.example.com/a"), "", nil},
		"a port":              {fmt.Sprintf(asked, "000000000000.dkr.ecr.us-east-1.amazonaws.com:5000/a"), "", nil},
		"another version":     {strings.ReplaceAll(fmt.Sprintf(asked, image), "/v1", "/v2"), "", nil},
		"no JSON":             {"x", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			err := Answer(t.Context(), strings.NewReader(c.in), &out, now, func(_ context.Context, r Registry) (Login, error) {
				if r.Host != r.Account+".dkr.ecr."+r.Region+".amazonaws.com" {
					t.Errorf("registry %+v", r)
				}
				return Login{"AWS", "p", now.Add(12 * time.Hour), "000000000000.dkr.ecr.us-east-1.amazonaws.com"}, c.fails
			})
			if out.String() != c.want || (err == nil) != (c.want != "") {
				t.Errorf("%s %v, want %s", out.String(), err, c.want)
			}
		})
	}
}

func TestGet(t *testing.T) {
	answer, status := "", http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); !strings.Contains(got, "/eu-west-1/ecr/aws4_request") {
			t.Errorf("Authorization %q", got)
		}
		w.WriteHeader(status)
		_, _ = w.Write([]byte(answer))
	}))
	defer server.Close()
	config := aws.Config{Credentials: credentials.NewStaticCredentialsProvider("AKIA", "s", ""), HTTPClient: server.Client()}
	ask := func() (Login, error) {
		return get(t.Context(), config, server.URL, Registry{Region: "eu-west-1"}, time.Now())
	}
	const host = "000000000000.dkr.ecr.eu-west-1.amazonaws.com"
	given := func(endpoint string) string {
		return `{"authorizationData":[{"authorizationToken":"` + base64.StdEncoding.EncodeToString([]byte("AWS:s3cret:x")) + `","expiresAt":1.7e9,"proxyEndpoint":"` + endpoint + `"}]}`
	}
	answer = given("https://" + host)
	login, err := ask()
	if err != nil || login.Host != host || login.User != "AWS" || login.Password != "s3cret:x" || !login.Expires.Equal(time.Unix(1.7e9, 0)) {
		t.Errorf("%+v %v", login.Expires, err)
	}
	if text := fmt.Sprintf("%v %+v %#v", login, login, login); strings.Contains(text, "s3cret") {
		t.Errorf("the password is printed: %s", text)
	}
	for _, bad := range []string{`{}`, `{"authorizationData":[{"authorizationToken":"?"}]}`, `{"authorizationData":[{"authorizationToken":"QVdT"}]}`, `x`, given(""), given(host), given("https://example.com"), given("https://" + host + ".example.com")} {
		answer = bad
		if _, err := ask(); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	answer, status = `{"__type":"AccessDeniedException","message":"no"}`, http.StatusBadRequest
	if _, err := ask(); err == nil || !strings.Contains(err.Error(), "AccessDeniedException") {
		t.Errorf("denied: %v", err)
	}
}

func FuzzRegistryOf(f *testing.F) {
	f.Add("000000000000.dkr.ecr.us-east-1.amazonaws.com/team/app:1")
	f.Add("docker.io/library/web")
	f.Fuzz(func(t *testing.T, image string) {
		r, err := RegistryOf(image)
		if err == nil && (!strings.HasPrefix(image, r.Host) || strings.ContainsAny(r.Region, "./:@") || r.Host != r.Account+".dkr.ecr."+r.Region+"."+r.Domain) {
			t.Errorf("%q: %+v", image, r)
		}
	})
}
