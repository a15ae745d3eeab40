// SPDX-License-Identifier: Apache-2.0

package clienttoken

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"
)

var key = Key{Account: "000000000000", Service: "ec2", Action: "RunInstances", Token: "9c1c6b3e-1"}

func TestDecide(t *testing.T) {
	mark := func(parameters string, index, count int) Mark { return Mark{parameters, index, count} }
	withoutToken := key
	withoutToken.Token = ""
	eks := key
	eks.Service = "eks"
	for name, c := range map[string]struct {
		key     Key
		request Request
		found   []Mark
		want    string
	}{
		"new":                      {key, Request{"a", 1}, nil, "missing [0], repeated false"},
		"again":                    {key, Request{"a", 1}, []Mark{mark("a", 0, 1)}, "missing [], repeated true"},
		"three":                    {key, Request{"a", 3}, nil, "missing [0 1 2], repeated false"},
		"killed after the first":   {key, Request{"a", 3}, []Mark{mark("a", 0, 3)}, "missing [1 2], repeated true"},
		"killed before the second": {key, Request{"a", 3}, []Mark{mark("a", 2, 3), mark("a", 0, 3)}, "missing [1], repeated true"},
		"other parameters":         {key, Request{"b", 1}, []Mark{mark("a", 0, 1)}, "IdempotentParameterMismatch"},
		"another count":            {key, Request{"a", 2}, []Mark{mark("a", 0, 1)}, "IdempotentParameterMismatch"},
		"one of another request":   {key, Request{"a", 2}, []Mark{mark("a", 0, 2), mark("b", 1, 2)}, "IdempotentParameterMismatch"},
		"in EKS's words":           {eks, Request{"b", 1}, []Mark{mark("a", 0, 1)}, "InvalidRequestException"},
		"no token":                 {withoutToken, Request{"a", 1}, []Mark{mark("a", 0, 1)}, "missing [0], repeated false"},
		"no count is one":          {key, Request{"a", 0}, []Mark{mark("a", 0, 1)}, "missing [], repeated true"},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := Decide(c.key, c.request, c.found)
			got := fmt.Sprintf("missing %v, repeated %v", d.Missing, d.Repeated)
			if err != nil {
				got, _, _ = strings.Cut(err.Error(), ":")
			}
			if got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A client that asks again and again while the service dies at any write gets each object once.
func TestEveryObjectIsMadeOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		request := Request{"a", 1 + random.IntN(5)}
		made := map[int]int{}
		var stored []string
		for attempt := 0; len(stored) < request.Count; attempt++ {
			if attempt > 1000 {
				t.Fatal("no progress")
			}
			var found []Mark
			for _, text := range stored {
				m, err := ParseMark(text)
				if err != nil {
					t.Fatal(err)
				}
				found = append(found, m)
			}
			d, err := Decide(key, request, found)
			if err != nil {
				t.Fatal(err)
			}
			for _, index := range d.Missing {
				if random.IntN(3) == 0 {
					break // kill -9
				}
				made[index]++
				stored = append(stored, request.Mark(index).String())
			}
		}
		for index := range request.Count {
			if made[index] != 1 {
				t.Fatalf("object %d of %d was made %d times", index, request.Count, made[index])
			}
		}
	}
}

func TestLabels(t *testing.T) {
	seen := map[string]Key{}
	for _, k := range []Key{
		key,
		{key.Account, key.Service, key.Action, "another"},
		{key.Account, key.Service, "CreateVpc", key.Token},
		{key.Account, "eks", key.Action, key.Token},
		{"111111111111", key.Service, key.Action, key.Token},
		{key.Account, key.Service, key.Action + "x", key.Token[1:]}, // nothing flows from one part into the next
		{key.Account + key.Service, "", key.Action, key.Token},
	} {
		label := k.Label()
		if other, ok := seen[label]; ok {
			t.Errorf("%v and %v have one label", other, k)
		}
		seen[label] = k
		if problems := validation.IsValidLabelValue(label); len(problems) > 0 || label == "" {
			t.Errorf("%q: %v", label, problems)
		}
		if strings.Contains(label, k.Token) {
			t.Errorf("%q has the token in it", label)
		}
	}
	if k := (Key{Account: "1", Service: "ec2", Action: "x"}); k.Label() != "" {
		t.Errorf("without a token the label is %q", k.Label())
	}
	if problems := slices.Concat(validation.IsQualifiedName(Label), validation.IsQualifiedName(Annotation)); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestHash(t *testing.T) {
	hash := func(parameters map[string]any) string {
		h, err := Hash(parameters, "ClientToken", "DryRun")
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	first := hash(map[string]any{"ImageId": "ami-1", "MinCount": int32(1), "Tags": []any{map[string]any{"Key": "a", "Value": "b"}}, "ClientToken": "x"})
	for name, c := range map[string]struct {
		parameters map[string]any
		same       bool
	}{
		"another order":   {map[string]any{"Tags": []any{map[string]any{"Value": "b", "Key": "a"}}, "MinCount": int32(1), "ImageId": "ami-1"}, true},
		"another token":   {map[string]any{"ImageId": "ami-1", "MinCount": int32(1), "Tags": []any{map[string]any{"Key": "a", "Value": "b"}}, "ClientToken": "y"}, true},
		"a dry run":       {map[string]any{"ImageId": "ami-1", "MinCount": int32(1), "Tags": []any{map[string]any{"Key": "a", "Value": "b"}}, "DryRun": true}, true},
		"another value":   {map[string]any{"ImageId": "ami-2", "MinCount": int32(1), "Tags": []any{map[string]any{"Key": "a", "Value": "b"}}}, false},
		"one less":        {map[string]any{"ImageId": "ami-1", "MinCount": int32(1)}, false},
		"one deep within": {map[string]any{"ImageId": "ami-1", "MinCount": int32(1), "Tags": []any{map[string]any{"Key": "a", "Value": "c"}}}, false},
	} {
		if got := hash(c.parameters); (got == first) != c.same {
			t.Errorf("%s: the same %v, want %v", name, got == first, c.same)
		}
	}
	if _, err := Hash(map[string]any{"x": func() {}}); err == nil {
		t.Error("a function has a hash")
	}
	given := map[string]any{"ClientToken": "x"}
	if _, err := Hash(given, "ClientToken"); err != nil || len(given) != 1 {
		t.Errorf("the parameters were changed: %v, %v", given, err)
	}
}

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		service, token string
		fine           bool
	}{
		{"ec2", "", true},
		{"ec2", strings.Repeat("x", 64), true},
		{"ec2", strings.Repeat("x", 65), false},
		{"eks", strings.Repeat("x", 128), true},
		{"eks", strings.Repeat("x", 129), false},
		{"ec2", "a b", false},
		{"ec2", "a\n", false},
		{"eks", "ä", false},
		{"eks", "a\x7f", false},
	} {
		if err := (Key{Service: c.service, Token: c.token}).Check(); (err == nil) != c.fine {
			t.Errorf("%s %q: %v", c.service, c.token, err)
		}
	}
}

func FuzzParseMark(f *testing.F) {
	f.Add("abc 0/1")
	f.Add("abc 10/11")
	f.Add("abc 1/1")
	f.Add(" 0/1")
	f.Add("abc 00/1")
	f.Add("abc 0/1000000000000")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParseMark(text)
		if err != nil {
			return
		}
		if m.String() != text || m.Index < 0 || m.Index >= m.Count || m.Count > MaxCount || m.Parameters == "" {
			t.Errorf("%q is read as %+v", text, m)
		}
		if d, err := Decide(key, Request{m.Parameters, m.Count}, []Mark{m}); err != nil || slices.Contains(d.Missing, m.Index) {
			t.Errorf("%+v: %+v, %v", m, d, err)
		}
	})
}
