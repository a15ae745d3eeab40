// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/smithy-go"
	"pgregory.net/rapid"

	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/webidentity"
)

// anyToken is a token that somebody could show, and the role that it is shown for.
type anyToken struct {
	issuer, signer     string // who it says made it, and who did
	audience           []string
	namespace, account string // of its subject
	boundTo            string // the namespace that it says its pod is in
	pod                string
	ends               time.Duration
	roleIssuer         string
	roleSubject        string
}

var (
	namespaces = []string{"default", "shop"}
	accounts   = []string{"app", "web"}
	tokenURLs  = []string{ownURL, secondURL, foreignURL}
)

func subject(namespace, account string) string {
	return "system:serviceaccount:" + namespace + ":" + account
}

// roleFor is the name of the role that trusts one subject of one issuer, for STS.
func roleFor(issuer, subject string) string {
	all := []string{}
	for _, namespace := range namespaces {
		for _, account := range accounts {
			all = append(all, "system:serviceaccount:"+namespace+":"+account)
		}
	}
	return fmt.Sprintf("role-%d-%d", slices.Index(tokenURLs, issuer), slices.Index(all, subject))
}

// good is the whole rule, in one line each.
func (a anyToken) good(lives map[string]bool) bool {
	isSigned := a.signer == a.issuer && slices.Contains(tokenURLs, a.issuer)
	isForSTS := slices.Equal(a.audience, []string{"sts.amazonaws.com"})
	isForRole := a.roleIssuer == a.issuer && a.roleSubject == subject(a.namespace, a.account)
	isThere := a.issuer == foreignURL || a.boundTo == a.namespace && lives[a.issuer+a.namespace+a.account+a.pod]
	return isSigned && isForSTS && isForRole && isThere && a.ends > 0
}

// TestNoTokenButTheOneYieldsCredentials shows tokens of any issuer, signed by anybody, for any audience, of any
// namespace and of pods that are there or not, for roles that trust one service account each. Credentials come of those
// by which all of it fits, and of no other.
func TestNoTokenButTheOneYieldsCredentials(t *testing.T) {
	w, i := federation(t)
	second := secondURL
	if _, err := w.iam(w.admin()).CreateOpenIDConnectProvider(t.Context(), &iam.CreateOpenIDConnectProviderInput{Url: &second, ClientIDList: []string{"sts.amazonaws.com"}}); err != nil {
		t.Fatal(err)
	}
	for _, issuer := range tokenURLs {
		for _, namespace := range namespaces {
			for _, account := range accounts {
				s := subject(namespace, account)
				w.role(roleFor(issuer, s), federated(issuer, `"StringEquals":{"ISSUER:sub":"`+s+`","ISSUER:aud":"sts.amazonaws.com"}`))
			}
		}
	}
	// A stranger has a key of its own under the name of each issuer.
	stranger := newIssuers(t)
	granted, refused := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		lives := map[string]bool{}
		for _, issuer := range tokenURLs[:2] {
			for _, namespace := range namespaces {
				for _, account := range accounts {
					lives[issuer+namespace+account+"pod-1"] = rapid.Bool().Draw(t, "lives")
				}
			}
		}
		i.set(func() {
			i.exists = func(issuer string, to webidentity.Bound) error {
				if !lives[issuer+to.Namespace+to.ServiceAccount+to.Pod] {
					return identityservice.ErrGone
				}
				return nil
			}
		})
		// Most of a token fits, so that each rule alone is what it fails by.
		issuer, namespace, account := rapid.SampledFrom(tokenURLs).Draw(t, "issuer"), rapid.SampledFrom(namespaces).Draw(t, "namespace"), rapid.SampledFrom(accounts).Draw(t, "account")
		a := anyToken{issuer, issuer, []string{"sts.amazonaws.com"}, namespace, account, namespace, "pod-1", time.Hour, issuer, subject(namespace, account)}
		for range rapid.IntRange(0, 2).Draw(t, "changes") {
			switch rapid.IntRange(0, 7).Draw(t, "change") {
			case 0:
				a.signer = rapid.SampledFrom(append([]string{"stranger"}, tokenURLs...)).Draw(t, "signer")
			case 1:
				a.audience = rapid.SampledFrom([][]string{{"vault"}, {"sts.amazonaws.com", "vault"}, {"pods.eks.amazonaws.com"}, {"https://kubernetes.default.svc"}, {}, {"STS.amazonaws.com"}}).Draw(t, "audience")
			case 2:
				a.boundTo = rapid.SampledFrom(namespaces).Draw(t, "bound to")
			case 3:
				a.pod = rapid.SampledFrom([]string{"pod-1", "pod-2", ""}).Draw(t, "pod")
			case 4:
				a.ends = rapid.SampledFrom([]time.Duration{-time.Hour, -time.Second, time.Minute}).Draw(t, "ends")
			case 5:
				a.roleIssuer = rapid.SampledFrom(tokenURLs).Draw(t, "role's issuer")
			case 6:
				a.roleSubject = subject(rapid.SampledFrom(namespaces).Draw(t, "role's namespace"), rapid.SampledFrom(accounts).Draw(t, "role's account"))
			case 7:
				a.issuer = rapid.SampledFrom([]string{ownURL, secondURL, foreignURL, "https://127.9.8.7/id/00000000000000000000000000000000"}).Draw(t, "says")
			}
		}
		now := w.now()
		pod := map[string]any{"name": a.pod, "uid": "uid-" + a.pod}
		if a.pod == "" {
			pod = nil
		}
		kubernetes := map[string]any{"namespace": a.boundTo, "serviceaccount": map[string]any{"name": a.account, "uid": "s-1"}, "pod": pod}
		if pod == nil {
			delete(kubernetes, "pod")
		}
		by, from := i, a.signer
		if a.signer == "stranger" {
			by, from = stranger, a.issuer
		}
		text := by.token(w.t, from, now, map[string]any{
			"iss": a.issuer, "aud": a.audience, "sub": subject(a.namespace, a.account), "exp": now.Add(a.ends).Unix(), "iat": now.Add(-2 * time.Hour).Unix(), "kubernetes.io": kubernetes,
		})
		_, err := w.exchange(roleFor(a.roleIssuer, a.roleSubject), text, nil)
		var code smithy.APIError
		switch want := a.good(lives); {
		case want && err != nil:
			t.Fatalf("%+v is refused: %v", a, err)
		case !want && err == nil:
			t.Fatalf("%+v yields credentials", a)
		case want:
			granted++
		case !errors.As(err, &code) || code.ErrorFault() == smithy.FaultServer:
			t.Fatalf("%+v: %v is not a refusal", a, err)
		default:
			refused++
		}
	})
	if granted == 0 || refused == 0 {
		t.Errorf("%d granted, %d refused", granted, refused)
	}
	t.Logf("%d granted, %d refused", granted, refused)
}
