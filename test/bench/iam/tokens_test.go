// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/sigv4"
	"muster.dev/muster/internal/iam/ststoken"
	"muster.dev/muster/internal/iam/tokenrefusal"
)

func hostsOf(t *testing.T) ststoken.Hosts {
	t.Helper()
	h, err := ststoken.NewHosts("aws", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestGoodTokensAreGoodAndNoTwoAreTheSame(t *testing.T) {
	tokens, err := newTokens(t.Context(), 2000, 2) // so many of one key that their dates differ, too
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, raw := range tokens {
		if seen[raw] {
			t.Fatal("a token is there twice")
		}
		seen[raw] = true
		token, err := ststoken.Parse(raw, cluster, hostsOf(t), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if err := token.Verify(sigv4.Derive(secretOf(token.Signed.AccessKeyID), token.Signed.Scope), cluster); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBadTokensAreBadInTheirOwnWay(t *testing.T) {
	maker, err := newBadTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string]struct {
		rule string // of the form; "" if that is right
		key  string
	}{badForm: {rule: ststoken.RuleHost}, badSignature: {key: goodKey}, badKey: {key: unknownKey}} {
		if maker.make(kind, 1) == maker.make(kind, 2) {
			t.Errorf("%s: two are the same", kind)
		}
		token, err := ststoken.Parse(maker.make(kind, 3), cluster, hostsOf(t), time.Now())
		refusal, ok := errors.AsType[*tokenrefusal.Refusal](err)
		if (want.rule != "") != ok || ok && refusal.Rule != want.rule {
			t.Errorf("%s: %v", kind, err)
		}
		if ok {
			continue
		}
		if !strings.HasPrefix(token.Signed.AccessKeyID, want.key) {
			t.Errorf("%s: it is of key %s", kind, token.Signed.AccessKeyID)
		}
		if token.Verify(sigv4.Derive(secretOf(token.Signed.AccessKeyID), token.Signed.Scope), cluster) == nil {
			t.Errorf("%s: its signature is right", kind)
		}
	}
}

func TestTheFakeSTSTellsGoodFromBad(t *testing.T) {
	maker, err := newBadTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]int{maker.first: http.StatusOK, maker.make(badSignature, 1): http.StatusForbidden, maker.make(badKey, 1): http.StatusForbidden} {
		token, err := ststoken.Parse(raw, cluster, hostsOf(t), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		w := httptest.NewRecorder()
		answerSTS(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, token.URL(), http.NoBody))
		if w.Code != want {
			t.Errorf("%s is answered %d, not %d", token, w.Code, want)
		}
	}
}
