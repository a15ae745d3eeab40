// SPDX-License-Identifier: Apache-2.0

package stacktemplate_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster.dev/muster/internal/aws/cloudformation/stacktemplate"
)

// FuzzParse reads any body. A template that was read can be checked, ordered, rehearsed and described, and each error is an *Invalid.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.[jy]*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		body, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Add([]byte(withProperty(`{"Fn::Sub": ["${a}", {"a": {"Fn::Cidr": ["10.0.0.0/8", 1, 8]}}]}`)))
	f.Fuzz(func(t *testing.T, body []byte) {
		template, err := stacktemplate.Parse(body)
		if (template == nil) == (err == nil) {
			t.Fatalf("%v, %v", template, err)
		}
		problemsOf(t, err)
		if err != nil {
			return
		}
		problemsOf(t, template.Check(known))
		if _, err := template.Order(); err != nil {
			problemsOf(t, err)
		}
		template.Summary()
		env := environment()
		if env.Parameters, err = template.Arguments(nil); err != nil {
			problemsOf(t, err)
		}
		properties, err := template.Rehearse(env)
		problemsOf(t, err)
		for id := range properties {
			if _, err := json.Marshal(properties[id]); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// quoted is a text in JSON.
func quoted(t *testing.T, text string) string {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// property evaluates an expression, or returns false if it has no value.
func property(t *testing.T, expression string) (any, bool) {
	t.Helper()
	template, err := stacktemplate.Parse([]byte(withProperty(expression)))
	if err != nil {
		problemsOf(t, err)
		return nil, false
	}
	env := environment()
	env.Parameters, _ = template.Arguments(nil)
	properties, err := template.Properties(env, "R")
	problemsOf(t, err)
	return properties["P"], err == nil
}

// FuzzBase64 decodes what was encoded.
func FuzzBase64(f *testing.F) {
	f.Add("")
	f.Add("a")
	f.Add("#!/bin/bash\n\x00ä")
	f.Fuzz(func(t *testing.T, text string) {
		var want string
		if json.Unmarshal([]byte(quoted(t, text)), &want) != nil {
			t.Skip()
		}
		got, ok := property(t, `{"Fn::Base64": `+quoted(t, text)+`}`)
		if !ok {
			return
		}
		encoded, _ := got.(string)
		if decoded, err := base64.StdEncoding.DecodeString(encoded); err != nil || string(decoded) != want {
			t.Fatalf("%q becomes %q, %v", want, decoded, err)
		}
	})
}

// variable matches a variable of Fn::Sub that is not escaped and contains no other.
var variable = regexp.MustCompile(`\$\{[^!${}][^${}]*\}`)

// FuzzSub substitutes in any text. A text without ${ stays as it is, and an escaped text comes back as it was.
func FuzzSub(f *testing.F) {
	for _, text := range []string{"", "${Text}", "${!Text}", "$${Text}}", "${", "${!${!}}", "${a.b}", "${AWS::Region}${Nope}", "${Own.Key}"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want string
		if json.Unmarshal([]byte(quoted(t, text)), &want) != nil {
			t.Skip()
		}
		property(t, `{"Fn::Sub": [`+quoted(t, text)+`, {"Own.Key": "v"}]}`)
		if strings.Contains(want, "{{resolve:") {
			return
		}
		if got, ok := property(t, `{"Fn::Sub": `+quoted(t, text)+`}`); ok && !strings.Contains(want, "${") && got != want {
			t.Fatalf("%q becomes %q", want, got)
		}
		if !strings.Contains(variable.ReplaceAllString(want, ""), "${") {
			escaped := strings.ReplaceAll(want, "${", "${!")
			if got, ok := property(t, `{"Fn::Sub": `+quoted(t, escaped)+`}`); ok && got != want {
				t.Fatalf("%q becomes %q, want %q", escaped, got, want)
			}
		}
	})
}

// FuzzCidr divides any block. The results are blocks of the asked size, within the block, in order, without overlap.
func FuzzCidr(f *testing.F) {
	f.Add("10.0.0.0/16", 4, 8)
	f.Add("2001:db8::/56", 256, 64)
	f.Add("255.255.255.0/24", 256, 1)
	f.Add("::/0", 2, 128)
	f.Fuzz(func(t *testing.T, block string, count, bits int) {
		got, ok := property(t, `{"Fn::Cidr": [`+quoted(t, block)+`, `+jsonOf(t, count)+`, `+jsonOf(t, bits)+`]}`)
		if !ok {
			return
		}
		outer, err := netip.ParsePrefix(block)
		list, isList := got.([]any)
		if err != nil || !isList || len(list) != count {
			t.Fatalf("%v of %q, %v", got, block, err)
		}
		var before netip.Prefix
		for _, item := range list {
			text, _ := item.(string)
			inner, err := netip.ParsePrefix(text)
			if err != nil || inner != inner.Masked() || inner.Addr().BitLen()-inner.Bits() != bits || !outer.Masked().Contains(inner.Addr()) ||
				before.IsValid() && (before.Overlaps(inner) || !before.Addr().Less(inner.Addr())) {
				t.Fatalf("%v of %q, %v", got, block, errors.Join(err))
			}
			before = inner
		}
	})
}
