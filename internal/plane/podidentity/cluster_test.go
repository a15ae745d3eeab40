// SPDX-License-Identifier: Apache-2.0

package podidentity_test

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/iam/tokenrefusal"
	"muster.dev/muster/internal/iam/webidentity"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/plane/podidentity/podidentitytest"
	"muster.dev/muster/internal/plane/podwatch"
)

func TestVerify(t *testing.T) {
	web := podidentitytest.Pod("shop", "web", "app", "node-1")
	host := podidentitytest.Pod("shop", "host", "app", "node-2")
	host.Spec.HostNetwork = true
	c, other := podidentitytest.New(t, web, host), podidentitytest.New(t, web)
	bound := func(claims map[string]any) map[string]any { return claims["kubernetes.io"].(map[string]any) }
	for name, tc := range map[string]struct {
		change func(claims map[string]any)
		token  func(claims map[string]any) string
		later  time.Duration
		rule   string // of the refusal
		gone   bool
	}{
		"as it is":            {},
		"another audience":    {change: func(c map[string]any) { c["aud"] = "sts.amazonaws.com" }, rule: webidentity.RuleAudience},
		"another issuer":      {change: func(c map[string]any) { c["iss"] = "https://elsewhere.example" }, rule: "issuer"},
		"another's key":       {token: func(claims map[string]any) string { return other.Token(t, claims) }, rule: webidentity.RuleKey},
		"a forged signature":  {token: func(claims map[string]any) string { return c.Forged(t, claims) }, rule: webidentity.RuleSignature},
		"not a token":         {token: func(map[string]any) string { return "x" }, rule: webidentity.RuleForm},
		"expired":             {later: 2 * time.Hour, rule: webidentity.RuleExpired},
		"no pod":              {change: func(c map[string]any) { delete(bound(c), "pod") }, rule: webidentity.RuleBound},
		"nothing is bound":    {change: func(c map[string]any) { delete(c, "kubernetes.io") }, rule: webidentity.RuleBound},
		"another subject":     {change: func(c map[string]any) { c["sub"] = "system:serviceaccount:shop:admin" }, rule: webidentity.RuleBound},
		"a pod before it":     {change: func(c map[string]any) { bound(c)["pod"] = map[string]any{"name": "web", "uid": "older"} }, gone: true},
		"an account before":   {change: func(c map[string]any) { bound(c)["serviceaccount"] = map[string]any{"name": "app", "uid": "older"} }, gone: true},
		"another namespace's": {change: func(c map[string]any) { bound(c)["namespace"], c["sub"] = "bank", "system:serviceaccount:bank:app" }, gone: true},
		"another node":        {change: func(c map[string]any) { bound(c)["node"] = map[string]any{"name": "node-2", "uid": "u"} }}, // the API server says which one
	} {
		t.Run(name, func(t *testing.T) {
			claims := c.Claims(web)
			if tc.change != nil {
				tc.change(claims)
			}
			if tc.token == nil {
				tc.token = func(claims map[string]any) string { return c.Token(t, claims) }
			}
			got, err := c.Verify(tc.token(claims), time.Now().Add(tc.later))
			refusal, _ := errors.AsType[*tokenrefusal.Refusal](err)
			switch {
			case tc.gone && !errors.Is(err, podwatch.ErrNoPod):
				t.Errorf("%+v, %v: want that the pod is gone", got, err)
			case tc.rule != "" && (refusal == nil || refusal.Rule != tc.rule):
				t.Errorf("%+v, %v: want the rule %q", got, err, tc.rule)
			case tc.rule == "" && !tc.gone && (err != nil || got.Node != "node-1" || got.Namespace != "shop" || got.Name != "web" || got.ServiceAccount != "app" || got.HostNetwork):
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
	if got, err := c.Verify(c.Token(t, c.Claims(host)), time.Now()); err != nil || !got.HostNetwork || got.Node != "node-2" {
		t.Errorf("%+v, %v", got, err)
	}
	if err := c.Client.CoreV1().Pods("shop").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	token := c.Token(t, c.Claims(web))
	podidentitytest.Eventually(t, func() bool { _, err := c.Verify(token, time.Now()); return errors.Is(err, podwatch.ErrNoPod) })
}

func TestNothingIsSaidBeforeItIsKnown(t *testing.T) {
	web := podidentitytest.Pod("shop", "web", "app", "node-1")
	c := podidentitytest.New(t, web)
	early := c.Cluster
	early.Pods = podwatch.New(c.Client, nil)
	if _, err := early.Verify(c.Token(t, c.Claims(web)), time.Now()); !errors.Is(err, podidentity.ErrNotReady) {
		t.Errorf("%v", err)
	}
	if err := early.Find(podidentity.Pod{}); !errors.Is(err, podidentity.ErrNotReady) {
		t.Errorf("%v", err)
	}
}
