// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// roles is an identity service for tests: machines whose ids end in e have no role.
type roles struct {
	now   func() time.Time
	asked int
	err   error
}

func (r *roles) Role(_ context.Context, id string) (Role, error) {
	r.asked++
	switch {
	case r.err != nil:
		return Role{}, r.err
	case strings.HasSuffix(id, "e"):
		return Role{}, fmt.Errorf("%w: no instance profile", ErrNotFound)
	}
	return Role{
		Name: "muster-node", ProfileARN: "arn:aws:iam::000000000000:instance-profile/muster-node", ProfileID: "AIPAAAAAAAAAAAAAAAAAA",
		AccessKeyID: fmt.Sprintf("ASIA%s%d", id, r.asked), SecretAccessKey: "sesame", Token: "sealed",
		LastUpdated: r.now(), Expiration: r.now().Add(6 * time.Hour),
	}, nil
}

func withRoles(t *testing.T, log io.Writer) (*Server, *clock, *roles) {
	t.Helper()
	s, c := newServer(t, log)
	now := func() time.Time { return c.now }
	from := &roles{now: now}
	s.config.Credentials = NewRoleCache(from, now)
	return s, c, from
}

func get(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	w := ask(s, first, http.MethodGet, "/latest/meta-data/"+path, tokenHeader, token(t, s, first, 60))
	return w.Code, w.Body.String()
}

func TestRoleIsTold(t *testing.T) {
	s, _, _ := withRoles(t, io.Discard)
	for path, want := range map[string]string{
		"iam":                       "info\nsecurity-credentials/",
		"iam/":                      "info\nsecurity-credentials/",
		"iam/security-credentials":  "muster-node",
		"iam/security-credentials/": "muster-node",
	} {
		if code, got := get(t, s, path); code != http.StatusOK || got != want {
			t.Errorf("%s: %d %q, want %q", path, code, got, want)
		}
	}
	if _, got := get(t, s, ""); !strings.Contains(got, "\niam/\n") {
		t.Errorf("the list of all does not name it: %q", got)
	}
	if code, _ := get(t, s, "iam/security-credentials/other"); code != http.StatusNotFound {
		t.Errorf("another role: %d", code)
	}
	_, raw := get(t, s, "iam/security-credentials/muster-node")
	var got map[string]string
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"Code": "Success", "Type": "AWS-HMAC", "AccessKeyId": "ASIAi-0000000000000000a1", "SecretAccessKey": "sesame", "Token": "sealed",
		"LastUpdated": "2023-11-14T22:13:20Z", "Expiration": "2023-11-15T04:13:20Z",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if _, raw := get(t, s, "iam/info"); !strings.Contains(raw, `"InstanceProfileArn": "arn:aws:iam::000000000000:instance-profile/muster-node"`) ||
		!strings.Contains(raw, `"InstanceProfileId": "AIPAAAAAAAAAAAAAAAAAA"`) {
		t.Errorf("info: %s", raw)
	}
}

func TestRoleIsToldToItsMachineAlone(t *testing.T) {
	s, _, from := withRoles(t, io.Discard)
	const path = "/latest/meta-data/iam/security-credentials/muster-node"
	mine := token(t, s, first, 60)
	if w := ask(s, first, http.MethodGet, path); w.Code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", w.Code)
	}
	if w := ask(s, third, http.MethodGet, path, tokenHeader, mine); w.Code != http.StatusUnauthorized {
		t.Errorf("with another machine's token: %d", w.Code)
	}
	if w := ask(s, pod, http.MethodGet, path, tokenHeader, mine); w.Code != http.StatusNotFound {
		t.Errorf("from an address of no machine: %d", w.Code)
	}
	if from.asked != 0 {
		t.Errorf("credentials were made %d times for somebody who may not have them", from.asked)
	}
	if w := ask(s, third, http.MethodGet, path, tokenHeader, token(t, s, third, 60)); !strings.Contains(w.Body.String(), "ASIAi-0000000000000000f") {
		t.Errorf("another machine does not get its own: %s", w.Body)
	}
}

func TestNoRole(t *testing.T) {
	var log bytes.Buffer
	s, _, from := withRoles(t, &log)
	mine := token(t, s, second, 60)
	for _, path := range []string{"/latest/meta-data/iam/info", "/latest/meta-data/iam/security-credentials/", "/latest/meta-data/iam"} {
		if w := ask(s, second, http.MethodGet, path, tokenHeader, mine); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if !strings.Contains(log.String(), "no instance profile") {
		t.Errorf("the log does not say why: %s", &log)
	}
	w := ask(s, second, http.MethodGet, "/latest/meta-data", tokenHeader, mine)
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "iam") {
		t.Errorf("the list of all: %d %q", w.Code, w.Body)
	}
	from.err = errors.New("down")
	if code, _ := get(t, s, "iam/info"); code != http.StatusServiceUnavailable {
		t.Errorf("while nobody can tell: %d", code)
	}
	if code, got := get(t, s, "local-ipv4"); code != http.StatusOK || got != first.String() {
		t.Errorf("the rest: %d %q", code, got)
	}
}

func TestRoleCache(t *testing.T) {
	c := &clock{now: time.Unix(1700000000, 0)}
	from := &roles{now: func() time.Time { return c.now }}
	cache := NewRoleCache(from, from.now)
	ask := func(want string) {
		t.Helper()
		role, err := cache.Role(t.Context(), "i-a")
		if got := role.AccessKeyID; err != nil || got != want {
			t.Fatalf("%q, %v; want %q", got, err, want)
		}
	}
	ask("ASIAi-a1")
	c.now = c.now.Add(4*time.Hour - time.Second)
	ask("ASIAi-a1")
	c.now = c.now.Add(time.Second) // a third of its life is left
	from.err = errors.New("down")
	ask("ASIAi-a1")
	c.now = c.now.Add(2*time.Hour - time.Second) // the last second
	ask("ASIAi-a1")
	c.now = c.now.Add(time.Second)
	if _, err := cache.Role(t.Context(), "i-a"); err == nil {
		t.Fatal("credentials that ended were told")
	}
	from.err = nil
	ask("ASIAi-a5")
	cache.Changed()
	ask("ASIAi-a6")
	cache.Changed()
	from.err = errors.New("down")
	ask("ASIAi-a6") // a service that is shown them checks whether they are still good
	from.err = nil
	ask("ASIAi-a8") // but it is asked at each time
	ask("ASIAi-a8")
	c.now = c.now.Add(5 * time.Hour)
	from.err = fmt.Errorf("%w: the role is gone", ErrNotFound)
	if _, err := cache.Role(t.Context(), "i-a"); !errors.Is(err, ErrNotFound) {
		t.Fatalf("a role that is gone was told: %v", err)
	}
}

func TestRoleCacheIsBounded(t *testing.T) {
	c := &clock{now: time.Unix(1700000000, 0)}
	from := &roles{now: func() time.Time { return c.now }}
	cache := NewRoleCache(from, from.now)
	for round := range 3 {
		for i := range remembered {
			if _, err := cache.Role(t.Context(), fmt.Sprintf("i-%d-%d", round, i)); err != nil {
				t.Fatal(err)
			}
		}
		c.now = c.now.Add(7 * time.Hour)
	}
	if n := len(cache.known); n > remembered {
		t.Errorf("%d machines are remembered, most of them gone", n)
	}
	for i := range remembered {
		_, _ = cache.Role(t.Context(), fmt.Sprintf("i-gone-%de", i))
	}
	if n := len(cache.known); n > remembered {
		t.Errorf("%d machines are remembered, most of them without a role", n)
	}
}

func TestRoleIsNotShown(t *testing.T) {
	role := Role{Name: "r", AccessKeyID: "ASIA1", SecretAccessKey: "sesame", Token: "sealed"}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(verb, role); strings.Contains(text, "sesame") || strings.Contains(text, "sealed") {
			t.Errorf("%s shows %s", verb, text)
		}
	}
	if text := role.LogValue().String(); strings.Contains(text, "sesame") {
		t.Errorf("logs show %s", text)
	}
}
