// SPDX-License-Identifier: Apache-2.0

package nexttoken

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/awsfault"
)

var scope = Scope{Account: "000000000000", Service: "ec2", Action: "DescribeInstances", Parameters: map[string]any{"Filters": []string{"a", "b"}, "Other": 1}}

func TestTokens(t *testing.T) {
	sealer := NewSealer([KeySize]byte{1})
	token, err := sealer.Seal(scope, "i-0a1b2c3d4e5f60718")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := NewSealer([KeySize]byte{1}).Seal(scope, "i-0a1b2c3d4e5f60718"); err != nil || again != token {
		t.Errorf("the next process makes %q of it, %v", again, err)
	}
	change := func(change func(*Scope)) Scope {
		s := scope
		change(&s)
		return s
	}
	flipped := []byte(token)
	flipped[len(flipped)/2] ^= 1
	raw, _ := base64.RawURLEncoding.DecodeString(token)
	forged := base64.RawURLEncoding.EncodeToString(append(raw[:1+macSize:1+macSize], "i-ffffffffffffffff0"...))
	for name, c := range map[string]struct {
		sealer *Sealer
		scope  Scope
		token  string
		want   string // the key, or the code
	}{
		"its own":            {sealer, scope, token, "i-0a1b2c3d4e5f60718"},
		"none":               {sealer, scope, "", ""},
		"another action":     {sealer, change(func(s *Scope) { s.Action = "DescribeVpcs" }), token, "InvalidNextToken"},
		"another account":    {sealer, change(func(s *Scope) { s.Account = "111111111111" }), token, "InvalidNextToken"},
		"another service":    {sealer, change(func(s *Scope) { s.Service = "eks" }), token, "InvalidParameterException"},
		"other parameters":   {sealer, change(func(s *Scope) { s.Parameters = map[string]any{"Filters": []string{"a"}} }), token, "InvalidNextToken"},
		"another key":        {NewSealer([KeySize]byte{2}), scope, token, "InvalidNextToken"},
		"a bit":              {sealer, scope, string(flipped), "InvalidNextToken"},
		"another item":       {sealer, scope, forged, "InvalidNextToken"},
		"cut off":            {sealer, scope, token[:20], "InvalidNextToken"},
		"not base64":         {sealer, scope, "not base64!", "InvalidNextToken"},
		"padding":            {sealer, scope, token + "=", "InvalidNextToken"},
		"line breaks":        {sealer, scope, token + "\n", "InvalidNextToken"},
		"far too long":       {sealer, scope, strings.Repeat("A", maxToken+1), "InvalidNextToken"},
		"of another version": {sealer, scope, "Ag" + token[2:], "InvalidNextToken"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := c.sealer.Open(c.scope, c.token)
			if fault, ok := errors.AsType[*awsfault.Error](err); ok {
				got = fault.Code
			}
			if got != c.want {
				t.Errorf("%q, %v, want %q", got, err, c.want)
			}
		})
	}
	if _, err := sealer.Seal(scope, ""); err == nil {
		t.Error("a token of no item was made")
	}
}

func TestSizes(t *testing.T) {
	for _, c := range []struct {
		service, action string
		asked           int32 // 0 is none
		want            int   // 0 is refused
		code            string
	}{
		{"ec2", "DescribeInstances", 0, 1000, ""},
		{"ec2", "DescribeInstances", 5, 5, ""},
		{"ec2", "DescribeInstances", 4, 0, "InvalidParameterValue"},
		{"ec2", "DescribeInstances", 1001, 0, "InvalidParameterValue"},
		{"ec2", "DescribeInstanceTypes", 101, 0, "InvalidParameterValue"},
		{"ec2", "DescribeLaunchTemplateVersions", 1, 1, ""},
		{"eks", "ListClusters", 0, 100, ""},
		{"eks", "ListClusters", 101, 0, "InvalidParameterException"},
		{"eks", "ListClusters", -1, 0, "InvalidParameterException"},
		{"autoscaling", "DescribeAutoScalingGroups", 0, 50, ""},
		{"autoscaling", "DescribeAutoScalingGroups", 100, 100, ""},
		{"autoscaling", "DescribeAutoScalingInstances", 51, 0, "ValidationError"},
		{"autoscaling", "DescribeScalingActivities", 0, 100, ""},
		{"ssm", "GetParametersByPath", 11, 0, "ValidationException"},
		{"kms", "ListResourceTags", 51, 0, "ValidationException"},
		{"kms", "ListAliases", 0, 50, ""},
		{"logs", "DescribeLogGroups", 51, 0, "InvalidParameterException"},
		{"iam", "ListRoles", 1001, 0, "ValidationError"},
	} {
		var asked *int32
		if c.asked != 0 {
			asked = &c.asked
		}
		got, err := LimitsOf(c.service, c.action).Size(asked)
		var fault *awsfault.Error
		if errors.As(err, &fault) != (c.code != "") || fault != nil && fault.Code != c.code || got != c.want {
			t.Errorf("%s:%s of %d: %d, %v, want %d %s", c.service, c.action, c.asked, got, err, c.want, c.code)
		}
	}
}

// Whatever comes and goes between pages, an item that stays is seen once, and none twice.
func TestPagesOfAChangingList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		list := map[string]bool{}
		for range random.IntN(40) {
			list[fmt.Sprintf("item-%03d", random.IntN(200))] = true
		}
		stays := map[string]bool{}
		for name := range list {
			stays[name] = true
		}
		seen := map[string]int{}
		size := 1 + random.IntN(7)
		for after, page := "", 0; ; page++ {
			if page > 300 {
				t.Fatal("the pages have no end")
			}
			names := []string{}
			for name := range list {
				names = append(names, name)
			}
			got := Cut(names, func(name string) string { return name }, after, size)
			if len(got.Items) > size || !slices.IsSorted(got.Items) {
				t.Fatalf("round %d: page %v of size %d", round, got.Items, size)
			}
			for _, name := range got.Items {
				seen[name]++
			}
			if after = got.Last; after == "" {
				break
			}
			for range random.IntN(6) {
				name := fmt.Sprintf("item-%03d", random.IntN(200))
				if list[name] {
					delete(list, name)
					delete(stays, name)
				} else {
					list[name] = true
				}
			}
			delete(list, after) // the very item that the token names
			if seen[after] == 1 {
				delete(stays, after)
			}
		}
		for name := range stays {
			if seen[name] != 1 {
				t.Errorf("round %d: %s was seen %d times", round, name, seen[name])
			}
		}
		for name, n := range seen {
			if n > 1 {
				t.Errorf("round %d: %s was seen %d times", round, name, n)
			}
		}
	}
}

func TestCut(t *testing.T) {
	items := []string{"c", "a", "b"}
	key := func(s string) string { return s }
	if p := Cut(items, key, "", 3); p.Last != "" || len(p.Items) != 3 {
		t.Errorf("a page that holds all: %+v", p)
	}
	if p := Cut(items, key, "", 2); p.Last != "b" || !slices.Equal(p.Items, []string{"a", "b"}) {
		t.Errorf("the first page: %+v", p)
	}
	if p := Cut(items, key, "aa", 2); p.Last != "" || !slices.Equal(p.Items, []string{"b", "c"}) {
		t.Errorf("behind an item that is gone: %+v", p)
	}
	if p := Cut(items, key, "b", 2); p.Last != "" || !slices.Equal(p.Items, []string{"c"}) {
		t.Errorf("behind an item that is there: %+v", p)
	}
	if items[0] != "c" {
		t.Error("the caller's list was sorted")
	}
}

func TestNewestFirst(t *testing.T) {
	at := time.Date(2026, 11, 22, 18, 0, 0, 0, time.UTC)
	keys := []string{NewestFirst(at, "b"), NewestFirst(at.Add(time.Nanosecond), "a"), NewestFirst(at, "a"), NewestFirst(at.Add(time.Hour), "z")}
	want := []string{keys[3], keys[1], keys[2], keys[0]}
	slices.Sort(keys)
	if !slices.Equal(keys, want) {
		t.Errorf("%q, want %q", keys, want)
	}
}

func FuzzOpen(f *testing.F) {
	sealer := NewSealer([KeySize]byte{7})
	token, err := sealer.Seal(scope, "i-1")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add("")
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, given string) {
		last, err := sealer.Open(scope, given)
		if err != nil || given == "" {
			return
		}
		// Only tokens that were made open, in the one spelling that they were made in.
		if again, err := sealer.Seal(scope, last); err != nil || again != given {
			t.Errorf("%q opens as %q, whose token is %q, %v", given, last, again, err)
		}
	})
}
