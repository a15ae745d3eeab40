// SPDX-License-Identifier: Apache-2.0

package token_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"muster.dev/muster/internal/certificates/token"
)

func TestGenerate(t *testing.T) {
	counts := map[rune]int{}
	const rounds = 5000
	seen := map[string]bool{}
	for range rounds {
		tok, err := token.Generate(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := token.Parse(tok.Reveal()); err != nil {
			t.Fatalf("%q: %v", tok.Reveal(), err)
		}
		if seen[tok.Reveal()] {
			t.Fatal("the same token twice")
		}
		seen[tok.Reveal()] = true
		for _, c := range strings.ReplaceAll(tok.Reveal(), ".", "") {
			counts[c]++
		}
	}
	const mean = rounds * 22 / 36.0
	for c, n := range counts {
		if math.Abs(float64(n)-mean) > 6*math.Sqrt(mean) { // six standard deviations
			t.Errorf("%q was drawn %d times, about %.0f expected", c, n, mean)
		}
	}
	if len(counts) != 36 {
		t.Errorf("%d characters occur", len(counts))
	}
}

func TestGenerateThrowsUnfairBytesAway(t *testing.T) {
	tok, err := token.Generate(bytes.NewReader(append(bytes.Repeat([]byte{252, 255}, 22), bytes.Repeat([]byte{1}, 44)...)))
	if err != nil {
		t.Fatal(err)
	}
	if got := tok.Reveal(); got != "bbbbbb.bbbbbbbbbbbbbbbb" {
		t.Errorf("got %s", got)
	}
}

func TestGenerateFailsWithoutRandomness(t *testing.T) {
	if tok, err := token.Generate(iotest.ErrReader(errors.New("dry"))); err == nil || !tok.IsZero() {
		t.Errorf("got %v, %v", tok, err)
	}
}

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		in string
		ok bool
	}{
		{"abcdef.0123456789abcdef", true},
		{"", false},
		{".", false},
		{"abcdef", false},
		{"abcdef.", false},
		{"abcdef.0123456789abcde", false},
		{"abcdef.0123456789abcdefg", false},
		{"abcde.0123456789abcdef", false},
		{"abcdefg.0123456789abcdef", false},
		{"ABCDEF.0123456789abcdef", false},
		{"abcdef.0123456789abcdeF", false},
		{"abcdef.0123456789abcde\n", false},
		{" abcdef.0123456789abcdef", false},
		{"abcdef.01234567.9abcdef0", false},
		{"äbcde.0123456789abcdef", false},
	} {
		tok, err := token.Parse(tc.in)
		if (err == nil) != tc.ok {
			t.Errorf("%q: %v", tc.in, err)
		}
		if err == nil && tok.Reveal() != tc.in {
			t.Errorf("%q became %q", tc.in, tok.Reveal())
		}
		if err != nil && !errors.Is(err, token.ErrFormat) {
			t.Errorf("%q: %v", tc.in, err)
		}
	}
}

func TestNothingPrintsTheSecret(t *testing.T) {
	tok, err := token.Parse("abcdef.s3cr3ts3cr3ts3cr")
	if err != nil {
		t.Fatal(err)
	}
	holder := struct {
		T  token.Token
		P  *token.Token
		In token.Bound
	}{tok, &tok, token.Bound{Token: tok}}
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%30s"} {
		fmt.Fprintf(&out, verb+verb+verb+"\n", tok, &tok, holder)
	}
	fmt.Fprintln(&out, tok, &tok, holder)
	slog.New(slog.NewTextHandler(&out, nil)).Info("token", "token", tok, "pointer", &tok, "holder", holder)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("token", "token", tok, "pointer", &tok, "holder", holder)
	if err := json.NewEncoder(&out).Encode(holder); err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{"s3cr3t", "733363723374"} {
		if strings.Contains(strings.ToLower(out.String()), leak) {
			t.Errorf("%s is in:\n%s", leak, out.String())
		}
	}
	if !strings.Contains(out.String(), "abcdef.<redacted>") {
		t.Error("the public half should be shown")
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"abcdef.0123456789abcdef", "", ".", "abcdef.", "ABCDEF.0123456789ABCDEF"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tok, err := token.Parse(s)
		switch {
		case err == nil && tok.Reveal() != s:
			t.Errorf("%q became %q", s, tok.Reveal())
		case err == nil && len(s) != 23:
			t.Errorf("accepted %q", s)
		case err != nil && !tok.IsZero():
			t.Errorf("%q was refused and returned", s)
		}
	})
}
