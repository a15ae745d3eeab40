// SPDX-License-Identifier: Apache-2.0

package ekstoken_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/ekstoken"
	"muster.dev/muster/internal/iam/ststoken"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// alone takes everything from the environment that AWS's SDK would find, and gives it what the test says.
func alone(t *testing.T, variables ...string) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for i := 0; i+1 < len(variables); i += 2 {
		t.Setenv(variables[i], variables[i+1])
	}
}

func keys(more ...string) []string {
	return append([]string{"AWS_ACCESS_KEY_ID", "AKIAAAAAAAAAAAAAAAAA", "AWS_SECRET_ACCESS_KEY", "sesame", "AWS_REGION", "eu-west-1"}, more...)
}

func hosts(t *testing.T, endpoints ...string) ststoken.Hosts {
	t.Helper()
	h, err := ststoken.NewHosts("aws", []string{"eu-west-1"}, endpoints)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestTokensAreWhatAuthenticatorsTake(t *testing.T) {
	for _, test := range []struct {
		name        string
		environment []string
		request     ekstoken.Request
		endpoints   []string
		host        string
	}{
		{"from the environment", keys(), ekstoken.Request{Cluster: "muster"}, nil, "sts.eu-west-1.amazonaws.com"},
		{"with a session token", keys("AWS_SESSION_TOKEN", "a+b/c=="), ekstoken.Request{Cluster: "muster"}, nil, "sts.eu-west-1.amazonaws.com"},
		{"for another region", keys(), ekstoken.Request{Cluster: "muster", Region: "eu-central-1"}, nil, "sts.eu-central-1.amazonaws.com"},
		{"at an endpoint", keys("AWS_ENDPOINT_URL_STS", "https://127.0.0.1:8443"), ekstoken.Request{Cluster: "muster"}, []string{"https://127.0.0.1:8443=eu-west-1"}, "127.0.0.1:8443"},
	} {
		t.Run(test.name, func(t *testing.T) {
			alone(t, test.environment...)
			token, err := ekstoken.Make(t.Context(), test.request, now)
			if err != nil {
				t.Fatal(err)
			}
			read, err := ststoken.Parse(token.Reveal(), "muster", hosts(t, test.endpoints...), now)
			if err != nil {
				t.Fatal(err)
			}
			if read.Host != test.host || read.Signed.AccessKeyID != "AKIAAAAAAAAAAAAAAAAA" {
				t.Errorf("token for %s by %s", read.Host, read.Signed.AccessKeyID)
			}
			if want := now.Add(14 * time.Minute); !token.Expires.Equal(want) {
				t.Errorf("it says it ends at %s, want %s", token.Expires, want)
			}
			if text := fmt.Sprintf("%v %+v %#v %s", token, token, token, token.LogValue()); strings.Contains(text, ststoken.Prefix) {
				t.Errorf("a token shows itself: %s", text)
			}
		})
	}
}

func TestNoToken(t *testing.T) {
	for _, test := range []struct {
		name        string
		environment []string
		request     ekstoken.Request
		want        string
	}{
		{"no cluster", keys(), ekstoken.Request{Cluster: " "}, "give its name"},
		{"no region", []string{"AWS_ACCESS_KEY_ID", "a", "AWS_SECRET_ACCESS_KEY", "b"}, ekstoken.Request{Cluster: "c"}, "AWS_REGION"},
		{"no credentials", []string{"AWS_REGION", "eu-west-1"}, ekstoken.Request{Cluster: "c"}, "finding AWS credentials"},
		{"no role", keys(), ekstoken.Request{Cluster: "c", RoleARN: "arn:aws:iam::000000000000:user/admin"}, "not the ARN of a role"},
		{"an endpoint without TLS", keys("AWS_ENDPOINT_URL", "http://127.0.0.1:1"), ekstoken.Request{Cluster: "c"}, "https"},
	} {
		t.Run(test.name, func(t *testing.T) {
			alone(t, test.environment...)
			_, err := ekstoken.Make(t.Context(), test.request, now)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// stsServer answers AssumeRole and GetCallerIdentity, and remembers what it was asked.
func stsServer(t *testing.T) (url string, asked *[]string) {
	t.Helper()
	asked = new([]string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		action := r.Form.Get("Action")
		*asked = append(*asked, action+" "+r.Form.Get("RoleArn")+" "+r.Form.Get("RoleSessionName")+" "+r.Form.Get("ExternalId"))
		if action == "GetCallerIdentity" {
			_, _ = fmt.Fprint(w, `<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>arn:aws:sts::000000000000:assumed-role/ci/build-7</Arn></GetCallerIdentityResult></GetCallerIdentityResponse>`)
			return
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIABBBBBBBBBBBBBBBB</AccessKeyId><SecretAccessKey>s</SecretAccessKey>`+
			`<SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(server.Close)
	return server.URL, asked
}

func TestAssumedRole(t *testing.T) {
	const role = "arn:aws:iam::000000000000:role/teams/developers"
	for _, test := range []struct {
		name    string
		request ekstoken.Request
		want    []string
	}{
		{"by name", ekstoken.Request{Cluster: "c", RoleARN: role, SessionName: "alice", ExternalID: "x"}, []string{"AssumeRole " + role + " alice x"}},
		{"forwarded", ekstoken.Request{Cluster: "c", RoleARN: role, ForwardSessionName: true}, []string{"GetCallerIdentity   ", "AssumeRole " + role + " build-7 "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			url, asked := stsServer(t)
			alone(t, keys("AWS_ENDPOINT_URL_STS", url)...)
			_, err := ekstoken.Make(t.Context(), test.request, now)
			if err == nil || !strings.Contains(err.Error(), "https") { // the server of the test has no TLS
				t.Errorf("got %v", err)
			}
			if got := fmt.Sprintf("%q", *asked); got != fmt.Sprintf("%q", test.want) {
				t.Errorf("asked %s, want %q", got, test.want)
			}
		})
	}
}

func TestFilesInsteadOfTheUsualOnes(t *testing.T) {
	alone(t)
	dir := t.TempDir()
	files := &ekstoken.Files{Config: filepath.Join(dir, "config"), Credentials: filepath.Join(dir, "credentials")}
	for path, text := range map[string]string{
		files.Config:      "[default]\nregion = eu-west-1\nendpoint_url = https://127.0.0.1:9443\n",
		files.Credentials: "[default]\naws_access_key_id = AKIACCCCCCCCCCCCCCCC\naws_secret_access_key = s\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	token, err := ekstoken.Make(t.Context(), ekstoken.Request{Cluster: "c", Files: files}, now)
	if err != nil {
		t.Fatal(err)
	}
	read, err := ststoken.Parse(token.Reveal(), "c", hosts(t, "https://127.0.0.1:9443=eu-west-1"), now)
	if err != nil || read.Signed.AccessKeyID != "AKIACCCCCCCCCCCCCCCC" || read.Host != "127.0.0.1:9443" {
		t.Errorf("%s by %s: %v", read.Host, read.Signed.AccessKeyID, err)
	}
}

func TestVersions(t *testing.T) {
	for _, test := range []struct{ info, want, problem string }{
		{"", ekstoken.V1Beta1, ""},
		{`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","spec":{"interactive":false}}`, ekstoken.V1, ""},
		{`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"}`, ekstoken.V1Beta1, ""},
		{`{"apiVersion":"client.authentication.k8s.io/v1","later":true}`, ekstoken.V1, ""},
		{`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1alpha1"}`, "", "v1beta1, as apiVersion"},
		{`{"kind":"Pod","apiVersion":"client.authentication.k8s.io/v1"}`, "", "not an ExecCredential"},
		{`{}`, "", "the client asks for"},
		{`v1`, "", "is not JSON"},
		{strings.Repeat(" ", 1<<20+1), "", "more than"},
	} {
		got, err := ekstoken.Version(test.info)
		if got != test.want || (err == nil) != (test.problem == "") || err != nil && !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%.80q: %q, %v; want %q, %q", test.info, got, err, test.want, test.problem)
		}
	}
}

func FuzzVersion(f *testing.F) {
	f.Add(`{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1"}`)
	f.Add(`{"apiVersion":1}`)
	f.Fuzz(func(t *testing.T, info string) {
		if v, err := ekstoken.Version(info); (v == ekstoken.V1 || v == ekstoken.V1Beta1) != (err == nil) {
			t.Errorf("%q, %v", v, err)
		}
	})
}

func TestCache(t *testing.T) {
	alone(t, keys()...)
	cache := ekstoken.Cache{Dir: filepath.Join(t.TempDir(), "a", "b"), Environ: []string{"AWS_PROFILE=a", "TERM=x"}}
	request := ekstoken.Request{Cluster: "muster", RoleARN: "arn:aws:iam::000000000000:role/r"}
	token, err := ekstoken.Make(t.Context(), ekstoken.Request{Cluster: "muster"}, now)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := cache.Get(request, now); ok || err != nil {
		t.Fatalf("an empty cache: %v, %v", ok, err)
	}
	if err := cache.Put(request, token); err != nil {
		t.Fatal(err)
	}
	found := func(c ekstoken.Cache, r ekstoken.Request, at time.Time) bool {
		t.Helper()
		got, ok, err := c.Get(r, at)
		if err != nil {
			t.Fatal(err)
		}
		return ok && got.Reveal() == token.Reveal() && got.Expires.Equal(token.Expires)
	}
	for name, test := range map[string]struct {
		cache   ekstoken.Cache
		request ekstoken.Request
		at      time.Time
		want    bool
	}{
		"the same":               {cache, request, now, true},
		"the last moment":        {cache, request, now.Add(13 * time.Minute), true},
		"too late":               {cache, request, now.Add(13*time.Minute + time.Second), false},
		"before it was made":     {cache, request, now.Add(-time.Second), false},
		"another terminal":       {ekstoken.Cache{Dir: cache.Dir, Environ: []string{"TERM=y", "AWS_PROFILE=a"}}, request, now, true},
		"another profile":        {ekstoken.Cache{Dir: cache.Dir, Environ: []string{"AWS_PROFILE=b"}}, request, now, false},
		"another key":            {ekstoken.Cache{Dir: cache.Dir, Environ: cache.Environ, KeyID: "AKIA2"}, request, now, false},
		"another cluster":        {cache, ekstoken.Request{Cluster: "other", RoleARN: request.RoleARN}, now, false},
		"no role":                {cache, ekstoken.Request{Cluster: "muster"}, now, false},
		"other files":            {cache, ekstoken.Request{Cluster: "muster", RoleARN: request.RoleARN, Files: &ekstoken.Files{}}, now, false},
		"fields that run on":     {cache, ekstoken.Request{Cluster: "must", Region: "er", RoleARN: request.RoleARN}, now, false},
		"another session's name": {cache, ekstoken.Request{Cluster: "muster", RoleARN: request.RoleARN, SessionName: "a"}, now, false},
	} {
		if got := found(test.cache, test.request, test.at); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	files, err := filepath.Glob(filepath.Join(cache.Dir, "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if info, err := os.Stat(cache.Dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(files[0], 0o644); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := cache.Get(request, now); ok || err == nil || !strings.Contains(err.Error(), "open to others") {
		t.Errorf("a file that others can read: %v, %v", ok, err)
	}
	other := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(files[0], other); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, files[0]); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := cache.Get(request, now); ok || err == nil {
		t.Errorf("a link: %v, %v", ok, err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(files[0], []byte(`{"token":"x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := cache.Get(request, now); ok || err == nil {
		t.Errorf("something else: %v, %v", ok, err)
	}
}

func TestAnswer(t *testing.T) {
	alone(t, keys()...)
	token, err := ekstoken.Make(t.Context(), ekstoken.Request{Cluster: "muster"}, now)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ekstoken.Answer(ekstoken.V1, token)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, APIVersion string
		Status           struct{ ExpirationTimestamp, Token string }
	}
	if err := json.Unmarshal(raw, &got); err != nil || got.Kind != "ExecCredential" || got.APIVersion != ekstoken.V1 ||
		got.Status.ExpirationTimestamp != "2026-11-21T12:14:00Z" || got.Status.Token != token.Reveal() {
		t.Errorf("%v: %s", err, raw)
	}
}
