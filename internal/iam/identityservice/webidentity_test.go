// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	jose "gopkg.in/go-jose/go-jose.v2"

	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/webidentity"
)

const (
	ownURL     = "https://127.9.8.7/id/0123456789ABCDEF0123456789ABCDEF"
	secondURL  = "https://127.9.8.7/id/FEDCBA9876543210FEDCBA9876543210"
	foreignURL = "https://gitlab.example.com"
)

// issuers are two clusters of the account and a GitLab, with a key each, that fail on demand.
type issuers struct {
	keys map[string]*ecdsa.PrivateKey
	read map[string]webidentity.Keys // the keys that they publish

	mu      sync.Mutex
	gone    map[webidentity.Bound]bool
	unknown error                                           // of Exists
	away    error                                           // of Keys
	exists  func(issuer string, to webidentity.Bound) error // instead of the two above, if it is there
}

func newIssuers(t testing.TB) *issuers {
	t.Helper()
	i := &issuers{keys: map[string]*ecdsa.PrivateKey{}, read: map[string]webidentity.Keys{}, gone: map[webidentity.Bound]bool{}}
	for _, url := range []string{ownURL, secondURL, foreignURL} {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1"}}})
		if err != nil {
			t.Fatal(err)
		}
		if i.read[url], err = webidentity.ParseKeys(raw); err != nil {
			t.Fatal(err)
		}
		i.keys[url] = key
	}
	return i
}

func (i *issuers) Keys(_ context.Context, issuer, _ string) (webidentity.Keys, bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	keys, ok := i.read[issuer]
	if i.away != nil || !ok {
		return webidentity.Keys{}, false, errors.Join(errors.New("no keys"), i.away)
	}
	return keys, issuer != foreignURL, nil
}

func (i *issuers) Exists(issuer string, to webidentity.Bound, _ time.Time) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.exists != nil {
		return i.exists(issuer, to)
	}
	to.Node, to.NodeUID = "", ""
	if i.gone[to] {
		return identityservice.ErrGone
	}
	return i.unknown
}

var podBound = webidentity.Bound{Namespace: "default", ServiceAccount: "app", ServiceAccountUID: "s-1", Pod: "app-1", PodUID: "p-1"}

func (i *issuers) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// token is what a pod has in its file.
func (i *issuers) token(t testing.TB, from string, now time.Time, change map[string]any) string {
	t.Helper()
	claims := map[string]any{
		"iss": from, "aud": []string{"sts.amazonaws.com"}, "sub": "system:serviceaccount:default:app", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
		"kubernetes.io": map[string]any{
			"namespace": "default", "pod": map[string]any{"name": "app-1", "uid": "p-1"}, "serviceaccount": map[string]any{"name": "app", "uid": "s-1"},
		},
	}
	maps.Copy(claims, change)
	key := i.keys[from]
	if key == nil {
		key = i.keys[ownURL]
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func oidcARN(url string) string {
	return "arn:aws:iam::" + account + ":oidc-provider/" + strings.TrimPrefix(url, "https://")
}

// federated is the trust policy that guides write for a service account.
func federated(url, conditions string) string {
	return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":"` + oidcARN(url) + `"},"Action":"sts:AssumeRoleWithWebIdentity","Condition":{` +
		strings.ReplaceAll(conditions, "ISSUER", strings.TrimPrefix(url, "https://")) + `}}]}`
}

const (
	equals   = `"StringEquals":{"ISSUER:sub":"system:serviceaccount:default:app","ISSUER:aud":"sts.amazonaws.com"}`
	tagTrust = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Federated":"arn:aws:iam::` + account + `:oidc-provider/gitlab.example.com"},"Action":["sts:AssumeRoleWithWebIdentity","sts:TagSession","sts:SetSourceIdentity"],"Condition":{"StringEquals":{"aws:RequestTag/team":"a","sts:SourceIdentity":"alice"}}}]}`
)

// federation is a world with two providers and their roles.
func federation(t testing.TB) (*world, *issuers) {
	t.Helper()
	return federationAt(t, 1e6, 1e6)
}

// federationAt allows each key and each subject so many requests a second, and at once.
func federationAt(t testing.TB, perSecond, burst int) (*world, *issuers) {
	t.Helper()
	i := newIssuers(t)
	w := newWorld(t, func(c *identityservice.Config) { c.Issuers, c.Rate, c.Burst = i, perSecond, burst })
	for _, url := range []string{ownURL, foreignURL} {
		if _, err := w.iam(w.admin()).CreateOpenIDConnectProvider(t.Context(), &iam.CreateOpenIDConnectProviderInput{Url: &url, ClientIDList: []string{"sts.amazonaws.com"}}); err != nil {
			t.Fatal(err)
		}
	}
	w.role("app", federated(ownURL, equals))
	w.role("like", federated(ownURL, `"StringLike":{"ISSUER:sub":"system:serviceaccount:default:*"}`))
	w.role("other", federated(ownURL, strings.Replace(equals, "default:app", "kube-system:app", 1)))
	w.role("audience", federated(ownURL, strings.Replace(equals, "sts.amazonaws.com", "vault", 1)))
	w.role("lab", federated(foreignURL, equals))
	w.role("tagged", tagTrust)
	w.role("instances", trusting("Service", "ec2.amazonaws.com"))
	w.role("denied", strings.Replace(federated(ownURL, equals), `"Statement":[`, `"Statement":[{"Effect":"Deny","Principal":"*","Action":"sts:*"},`, 1))
	w.role("anyone", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sts:*"}]}`)
	return w, i
}

func (w *world) exchange(role, token string, change func(*sts.AssumeRoleWithWebIdentityInput)) (*sts.AssumeRoleWithWebIdentityOutput, error) {
	w.t.Helper()
	in := &sts.AssumeRoleWithWebIdentityInput{RoleArn: roleARN(role), RoleSessionName: aws.String("session"), WebIdentityToken: &token}
	if change != nil {
		change(in)
	}
	config := w.config(signer{})
	config.Credentials = nil // the SDK signs nothing
	return sts.NewFromConfig(config).AssumeRoleWithWebIdentity(w.t.Context(), in)
}

func TestAssumeRoleWithWebIdentity(t *testing.T) {
	w, i := federation(t)
	got, err := w.exchange("app", i.token(t, ownURL, w.now(), nil), nil)
	if err != nil {
		t.Fatal(err)
	}
	if *got.SubjectFromWebIdentityToken != "system:serviceaccount:default:app" || *got.Audience != "sts.amazonaws.com" || *got.Provider != oidcARN(ownURL) ||
		*got.AssumedRoleUser.Arn != "arn:aws:sts::"+account+":assumed-role/app/session" || got.SourceIdentity != nil || got.PackedPolicySize != nil || //nolint:staticcheck // what AWS answered until now
		got.Credentials.Expiration.Sub(w.now()).Round(time.Minute) != time.Hour {
		t.Errorf("%+v", got)
	}
	who, err := w.sts(session(got.Credentials)).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
	if err != nil || *who.Arn != *got.AssumedRoleUser.Arn {
		t.Fatal(who, err)
	}
	for _, want := range []string{"action=AssumeRoleWithWebIdentity", "principal=" + oidcARN(ownURL) + ":system:serviceaccount:default:app"} {
		if !strings.Contains(w.log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, w.log)
		}
	}
	if _, err := w.exchange("like", i.token(t, ownURL, w.now(), nil), nil); err != nil {
		t.Error(err)
	}
	if _, err := w.exchange("lab", i.token(t, foreignURL, w.now(), map[string]any{"kubernetes.io": nil}), nil); err != nil {
		t.Error(err)
	}
}

func TestTokensThatYieldNothing(t *testing.T) {
	w, i := federation(t)
	now := w.now()
	token := func(from string, change map[string]any) string { return i.token(t, from, now, change) }
	stranger := newIssuers(t)
	for name, test := range map[string]struct{ role, token, want string }{
		"another namespace's role":  {"other", token(ownURL, nil), "AccessDenied"},
		"another audience's role":   {"audience", token(ownURL, nil), "AccessDenied"},
		"another issuer's role":     {"lab", token(ownURL, nil), "AccessDenied"},
		"a role of instances":       {"instances", token(ownURL, nil), "AccessDenied"},
		"a role that denies":        {"denied", token(ownURL, nil), "AccessDenied"},
		"a role for everybody":      {"anyone", token(ownURL, nil), "AccessDenied"},
		"a role that is not there":  {"nobody", token(ownURL, nil), "AccessDenied"},
		"another audience":          {"app", token(ownURL, map[string]any{"aud": []string{"vault"}}), "InvalidIdentityToken"},
		"a client of its own":       {"app", token(ownURL, map[string]any{"azp": "vault"}), "InvalidIdentityToken"},
		"two audiences":             {"app", token(ownURL, map[string]any{"aud": []string{"sts.amazonaws.com", "vault"}}), "AccessDenied"},
		"no provider":               {"app", token("https://other.example.com", nil), "InvalidIdentityToken"},
		"an issuer with a port":     {"app", token(strings.Replace(ownURL, "/id", ":8443/id", 1), nil), "InvalidIdentityToken"},
		"an issuer in small":        {"app", token(strings.ToLower(ownURL), nil), "InvalidIdentityToken"},
		"an issuer by http":         {"app", token(strings.Replace(ownURL, "https", "http", 1), nil), "InvalidIdentityToken"},
		"another's signature":       {"app", stranger.token(t, ownURL, now, nil), "InvalidIdentityToken"},
		"a token that has ended":    {"app", token(ownURL, map[string]any{"exp": now.Add(-time.Second).Unix()}), "ExpiredTokenException"},
		"a token of tomorrow":       {"app", token(ownURL, map[string]any{"iat": now.Add(time.Hour).Unix()}), "InvalidIdentityToken"},
		"no subject":                {"app", token(ownURL, map[string]any{"sub": ""}), "InvalidIdentityToken"},
		"not bound":                 {"app", token(ownURL, map[string]any{"kubernetes.io": nil}), "InvalidIdentityToken"},
		"bound to another account":  {"other", token(ownURL, map[string]any{"sub": "system:serviceaccount:kube-system:app"}), "InvalidIdentityToken"},
		"something else":            {"app", "no token", "InvalidIdentityToken"},
		"too long":                  {"app", strings.Repeat("a", 20_001), "InvalidIdentityToken"},
		"a source that is not one":  {"app", token(ownURL, map[string]any{"https://aws.amazon.com/source_identity": "a b"}), "InvalidIdentityToken"},
		"a source without a right":  {"app", token(ownURL, map[string]any{"https://aws.amazon.com/source_identity": "alice"}), "AccessDenied"},
		"tags without a right":      {"app", token(ownURL, map[string]any{"https://aws.amazon.com/tags": map[string]any{"principal_tags": map[string]any{"team": []string{"a"}}}}), "AccessDenied"},
		"a transitive tag too many": {"tagged", token(foreignURL, map[string]any{"https://aws.amazon.com/tags": map[string]any{"transitive_tag_keys": []string{"team"}}}), "InvalidParameterValue"},
	} {
		_, err := w.exchange(test.role, test.token, nil)
		w.wants(name, err, test.want)
	}
	for name, change := range map[string]func(*sts.AssumeRoleWithWebIdentityInput){
		"an instance's name": func(in *sts.AssumeRoleWithWebIdentityInput) { in.RoleSessionName = aws.String("i-0123456789abcdef0") },
		"a bad name":         func(in *sts.AssumeRoleWithWebIdentityInput) { in.RoleSessionName = aws.String("a b") },
		"a long session":     func(in *sts.AssumeRoleWithWebIdentityInput) { in.DurationSeconds = aws.Int32(7200) },
		"an OAuth provider":  func(in *sts.AssumeRoleWithWebIdentityInput) { in.ProviderId = aws.String("www.amazon.com") },
		"a role that is a user": func(in *sts.AssumeRoleWithWebIdentityInput) {
			in.RoleArn = aws.String("arn:aws:iam::" + account + ":user/admin")
		},
	} {
		_, err := w.exchange("app", token(ownURL, nil), change)
		w.wants(name, err, "ValidationError")
	}
	i.set(func() { i.away = errors.New("timeout") })
	_, err := w.exchange("app", token(ownURL, nil), nil)
	w.wants("keys that cannot be had", err, "IDPCommunicationError")
}

// Nobody learns from a refusal which roles there are: not by a duration, either, that the role would not grant.
func TestRolesThatAreNobodysBusiness(t *testing.T) {
	w, i := federation(t)
	mallory := w.user("mallory")
	for _, seconds := range []int32{1, 900, 43_200, -1} {
		said := map[string]bool{}
		for _, name := range []string{"lab", "none"} {
			_, err := w.exchange(name, i.token(t, ownURL, w.now(), nil), func(in *sts.AssumeRoleWithWebIdentityInput) { in.DurationSeconds = &seconds })
			said[code(err)] = true
			_, err = w.sts(mallory).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN(name), RoleSessionName: aws.String("session"), DurationSeconds: &seconds})
			said[code(err)] = true
		}
		if len(said) != 1 || !said["AccessDenied"] {
			t.Errorf("%d seconds: %v", seconds, said)
		}
	}
	long := int32(43_200)
	_, err := w.exchange("app", i.token(t, ownURL, w.now(), nil), func(in *sts.AssumeRoleWithWebIdentityInput) { in.DurationSeconds = &long })
	w.wants("a role that lets it in", err, "ValidationError")
}

func TestTagsAndSourceOfAToken(t *testing.T) {
	w, i := federation(t)
	got, err := w.exchange("tagged", i.token(t, foreignURL, w.now(), map[string]any{
		"https://aws.amazon.com/tags":            map[string]any{"principal_tags": map[string]any{"team": []string{"a"}}, "transitive_tag_keys": []string{"team"}},
		"https://aws.amazon.com/source_identity": "alice",
	}), nil)
	if err != nil || *got.SourceIdentity != "alice" || got.PackedPolicySize == nil { //nolint:staticcheck // as above
		t.Fatal(got, err)
	}
	// A role that is taken with the session's credentials sees both.
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"sts:*","Resource":"*"},{"Effect":"Allow","Action":"iam:ListUsers","Resource":"*","Condition":{"StringEquals":{"aws:SourceIdentity":"alice","aws:PrincipalTag/team":"a"}}}]}`
	if _, err := w.iam(w.admin()).PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{RoleName: aws.String("tagged"), PolicyName: aws.String("p"), PolicyDocument: &policy}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.iam(session(got.Credentials)).ListUsers(t.Context(), &iam.ListUsersInput{}); err != nil {
		t.Error(err)
	}
	allow := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:role/tagged"},"Action":["sts:AssumeRole","sts:TagSession"ALSO]}]}`
	w.role("next", strings.Replace(allow, "ALSO", "", 1))
	_, err = w.sts(session(got.Credentials)).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("next"), RoleSessionName: aws.String("x1")})
	w.wants("a role that takes no source identity", err, "AccessDenied")
	w.role("last", strings.Replace(allow, "ALSO", `,"sts:SetSourceIdentity"`, 1))
	if _, err := w.sts(session(got.Credentials)).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("last"), RoleSessionName: aws.String("x1")}); err != nil {
		t.Error(err)
	}
}

// Sessions end with the object that their token was bound to, and with everything else that they rest on.
func TestSessionsEndWithWhatTheyRestOn(t *testing.T) {
	for name, end := range map[string]struct {
		do   func(*world, *issuers) error
		want string
	}{
		"the pod": {func(_ *world, i *issuers) error { i.set(func() { i.gone[podBound] = true }); return nil }, "InvalidClientTokenId"},
		"nobody can tell": {func(_ *world, i *issuers) error {
			i.set(func() { i.unknown = errors.New("the API server is away") })
			return nil
		}, "ServiceUnavailable"},
		"the provider": {func(w *world, _ *issuers) error {
			_, err := w.iam(w.admin()).DeleteOpenIDConnectProvider(w.t.Context(), &iam.DeleteOpenIDConnectProviderInput{OpenIDConnectProviderArn: aws.String(oidcARN(ownURL))})
			return err
		}, "InvalidClientTokenId"},
		"the role": {func(w *world, _ *issuers) error {
			_, err := w.iam(w.admin()).DeleteRole(w.t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("app")})
			return err
		}, "InvalidClientTokenId"},
	} {
		w, i := federation(t)
		got, err := w.exchange("app", i.token(t, ownURL, w.now(), nil), nil)
		if err != nil {
			t.Fatal(name, err)
		}
		chain := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"arn:aws:iam::` + account + `:role/app"},"Action":"sts:AssumeRole"}]}`
		w.role("next", chain)
		next, err := w.sts(session(got.Credentials)).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: roleARN("next"), RoleSessionName: aws.String("x1")})
		if err != nil {
			t.Fatal(name, err)
		}
		if err := end.do(w, i); err != nil {
			t.Fatal(name, err)
		}
		for what, who := range map[string]signer{"the session": session(got.Credentials), "one made with it": session(next.Credentials)} {
			_, err := w.sts(who).GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
			w.wants(name+", "+what, err, end.want)
		}
	}
	w, i := federation(t)
	i.set(func() { i.gone[podBound] = true })
	_, err := w.exchange("app", i.token(t, ownURL, w.now(), nil), nil)
	w.wants("the token of a pod that is gone", err, "IDPRejectedClaim")
	i.set(func() { i.gone, i.unknown = map[webidentity.Bound]bool{}, errors.New("away") })
	_, err = w.exchange("app", i.token(t, ownURL, w.now(), nil), nil)
	w.wants("a pod that nobody can tell of", err, "IDPCommunicationError")
}

// BenchmarkAssumeRoleWithWebIdentity is the service's share of a request, beside the check of the token's signature,
// which is the floor.
func BenchmarkAssumeRoleWithWebIdentity(b *testing.B) {
	w, i := federation(b)
	token := i.token(b, ownURL, w.now(), nil)
	form := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {*roleARN("app")}, "RoleSessionName": {"session"}, "WebIdentityToken": {token},
	}.Encode()
	b.Run("request", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/", strings.NewReader(form))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				answer := httptest.NewRecorder()
				if w.front.ServeHTTP(answer, r); answer.Code != http.StatusOK {
					b.Errorf("%d: %s", answer.Code, answer.Body)
					return
				}
			}
		})
	})
	keys, _, err := i.Keys(b.Context(), ownURL, "1")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("signature", func(b *testing.B) {
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				read, err := webidentity.Read(token)
				if err == nil {
					_, err = read.Verify(keys, w.now())
				}
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	})
}
