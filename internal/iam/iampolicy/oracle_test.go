// SPDX-License-Identifier: Apache-2.0

package iampolicy_test

import (
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster.dev/muster/internal/iam/iampolicy"
)

// The oracle judges documents as encoding/json reads them, by the tables of the IAM user guide and with other means
// than the package: path and regular expressions instead of globs, float64 instead of fractions. It knows documents of
// the generator alone.

type oracleStatement struct {
	Effect, Action string
	Resource       string
	Condition      map[string]map[string][]string `json:",omitempty"`
}

type oracleDocument struct {
	Version   string
	Statement []oracleStatement
}

// oracleLike is StringLike, with variables of which none is absent.
func oracleLike(pattern, text string) bool {
	quoted := regexp.QuoteMeta(pattern)
	quoted = strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(quoted)
	return regexp.MustCompile(`^(?s:` + quoted + `)$`).MatchString(text)
}

var oracleVariable = regexp.MustCompile(`\$\{([a-z0-9]+:[^},]+)(?:, '([^']*)')?\}`)

// oracleFill puts values in the place of variables; ok is false if one has none.
func oracleFill(text string, context map[string][]string) (filled string, ok bool) {
	ok = true
	filled = oracleVariable.ReplaceAllStringFunc(text, func(v string) string {
		parts := oracleVariable.FindStringSubmatch(v)
		switch values := context[parts[1]]; {
		case len(values) == 1:
			return values[0]
		case strings.Contains(v, ","):
			return parts[2]
		}
		ok = false
		return ""
	})
	return filled, ok
}

// oracleOne compares one value of the request with one of the policy, by the operator without its negation.
func oracleOne(operator, want, got string, context map[string][]string) (fits, unknown bool) {
	number := func(s string) float64 { f, _ := strconv.ParseFloat(s, 64); return f }
	date := func(s string) time.Time { d, _ := time.Parse(time.RFC3339, s); return d }
	switch operator {
	case "ArnEquals", "ArnLike": // another account is another ARN, whatever the variable in its last part
		filled, ok := oracleFill(want, context)
		before, _, _ := strings.Cut(want, "${")
		if parts := strings.Split(before, ":"); !ok {
			rest := strings.SplitN(got, ":", 6)
			return false, oracleARN(strings.Join(parts[:5], ":")+":*", strings.Join(rest[:5], ":")+":x")
		}
		return oracleARN(filled, got), false
	case "StringEquals", "StringEqualsIgnoreCase", "StringLike":
		filled, ok := oracleFill(want, context)
		switch {
		case !ok:
			return false, true
		case operator == "StringEquals":
			return filled == got, false
		case operator == "StringEqualsIgnoreCase":
			return strings.EqualFold(filled, got), false
		}
		return oracleLike(filled, got), false
	case "NumericEquals":
		return number(got) == number(want), false
	case "NumericLessThan":
		return number(got) < number(want), false
	case "NumericGreaterThanEquals":
		return number(got) >= number(want), false
	case "DateLessThan":
		return date(got).Before(date(want)), false
	case "DateGreaterThanEquals":
		return !date(got).Before(date(want)), false
	case "Bool":
		return got == want, false
	case "IpAddress": // of the generator: all of a /8, or one address
		prefix, all := strings.CutSuffix(want, ".0.0.0/8")
		return all && strings.HasPrefix(got, prefix+".") || got == want, false
	case "BinaryEquals":
		return got == want, false
	}
	panic(operator)
}

func oracleARN(pattern, text string) bool {
	if pattern == "*" {
		return true
	}
	want, got := strings.SplitN(pattern, ":", 6), strings.SplitN(text, ":", 6)
	return len(want) == len(got) && !slices.ContainsFunc([]int{0, 1, 2, 3, 4, 5}, func(i int) bool { return !oracleLike(want[i], got[i]) })
}

// oracleCondition says whether a condition holds; unknown is a negation of what cannot be told.
func oracleCondition(operator, key string, values []string, context map[string][]string) (holds, unknown bool) {
	got := context[strings.ToLower(key)]
	set := ""
	if before, after, ok := strings.Cut(operator, ":"); ok {
		set, operator = before, after
	}
	operator, optional := strings.CutSuffix(operator, "IfExists")
	if operator == "Null" {
		return (len(got) == 0) == (values[0] == "true"), false
	}
	negated := false
	for _, n := range [][2]string{{"StringNot", "String"}, {"ArnNot", "Arn"}, {"NumericNot", "Numeric"}, {"NotIpAddress", "IpAddress"}} {
		if rest, ok := strings.CutPrefix(operator, n[0]); ok {
			operator, negated = n[1]+rest, true
		}
	}
	if len(got) == 0 {
		switch {
		case optional, set == "ForAllValues":
			return true, false
		case set == "ForAnyValue":
			return false, false
		}
		return negated, false
	}
	if set == "" && len(got) > 1 {
		return false, true
	}
	hits := 0
	for _, g := range got {
		hit := false
		for _, want := range values {
			fits, absent := oracleOne(operator, want, g, context)
			if fits {
				hit = true
				break
			}
			if absent && negated {
				return false, true
			}
		}
		if hit != negated {
			hits++
			if set == "ForAnyValue" {
				return true, false
			}
		} else if set != "ForAnyValue" {
			return false, false
		}
	}
	return hits > 0, false
}

// oracle is "Allow", "Deny" or nothing for each document.
func oracle(text, action, resource string, context map[string][]string) string {
	var d oracleDocument
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		panic(err)
	}
	said := ""
	for _, s := range d.Statement {
		if ok, err := path.Match(strings.ToLower(s.Action), strings.ToLower(action)); err != nil || !ok {
			continue
		}
		if filled, ok := oracleFill(s.Resource, context); !ok || !oracleARN(filled, resource) {
			continue
		}
		// A condition that does not hold decides, whatever cannot be told besides. The package asks the conditions in
		// order, which does not show.
		all, unknown := true, false
		for operator, keys := range s.Condition {
			for key, values := range keys {
				holds, cannotTell := oracleCondition(operator, key, values, context)
				unknown = unknown || cannotTell
				all = all && (holds || cannotTell)
			}
		}
		switch {
		case unknown && !all: // either answer is a no
			if s.Effect == "Deny" {
				return "?"
			}
		case !all || unknown && s.Effect == "Allow":
		case s.Effect == "Deny":
			return "Deny"
		default:
			said = "Allow"
		}
	}
	return said
}

var (
	oracleText  = []string{"a", "A", "ab", "b", "a*", "?b", "*", "${aws:username}", "${aws:username}*", "${ec2:absent}", "${ec2:absent, 'a'}"}
	oracleNames = []string{"aws:username", "aws:PrincipalTag/Team", "aws:TagKeys", "ec2:absent", "x:given"}
	oracleARNs  = []string{"*", "arn:aws:iam::*:user/a", "arn:aws:iam::111122223333:*", "arn:aws:iam::111122223333:user/${aws:username}", "arn:aws:s3:::a/*", "arn:aws:iam::*:user/${ec2:absent}"}
)

func oracleConditions() *rapid.Generator[map[string]map[string][]string] {
	return rapid.Custom(func(t *rapid.T) map[string]map[string][]string {
		all := map[string]map[string][]string{}
		for range rapid.IntRange(0, 2).Draw(t, "conditions") {
			family := rapid.SampledFrom([]string{"String", "String", "String", "Numeric", "Date", "Bool", "Ip", "Arn", "Null", "Binary"}).Draw(t, "family")
			var operator, key string
			var values []string
			pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
			switch family {
			case "String":
				operator = pick("operator", "StringEquals", "StringNotEquals", "StringEqualsIgnoreCase", "StringNotEqualsIgnoreCase", "StringLike", "StringNotLike")
				key, values = pick("key", oracleNames...), rapid.SliceOfN(rapid.SampledFrom(oracleText), 1, 3).Draw(t, "values")
			case "Numeric":
				operator = pick("operator", "NumericEquals", "NumericNotEquals", "NumericLessThan", "NumericGreaterThanEquals")
				key, values = pick("key", "s3:max-keys", "ec2:absent"), rapid.SliceOfN(rapid.SampledFrom([]string{"1", "2", "2.5", "-3"}), 1, 2).Draw(t, "values")
			case "Date":
				operator = pick("operator", "DateLessThan", "DateGreaterThanEquals")
				key, values = pick("key", "aws:CurrentTime", "ec2:absent"), []string{pick("date", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z")}
			case "Bool":
				operator, key, values = "Bool", pick("key", "aws:SecureTransport", "ec2:absent"), []string{pick("value", "true", "false")}
			case "Ip":
				operator = pick("operator", "IpAddress", "NotIpAddress")
				key, values = pick("key", "aws:SourceIp", "ec2:absent"), rapid.SliceOfN(rapid.SampledFrom([]string{"10.0.0.0/8", "11.0.0.0/8", "10.1.2.3"}), 1, 2).Draw(t, "values")
			case "Arn":
				operator = pick("operator", "ArnEquals", "ArnLike", "ArnNotEquals", "ArnNotLike")
				key, values = pick("key", "aws:PrincipalArn", "aws:SourceArn"), rapid.SliceOfN(rapid.SampledFrom(oracleARNs), 1, 2).Draw(t, "values")
			case "Binary":
				operator, key, values = "BinaryEquals", pick("key", "x:bytes", "ec2:absent"), []string{pick("value", "QUJD", "AAAA")}
			case "Null":
				operator, key, values = "Null", pick("key", oracleNames...), []string{pick("value", "true", "false")}
			}
			if family != "Null" {
				operator = pick("set", "", "ForAllValues:", "ForAnyValue:") + operator + pick("optional", "", "", "IfExists")
			}
			if all[operator] == nil {
				all[operator] = map[string][]string{}
			}
			all[operator][key] = values
		}
		return all
	})
}

func oracleDocuments() *rapid.Generator[string] {
	statement := rapid.Custom(func(t *rapid.T) oracleStatement {
		return oracleStatement{
			Effect:   rapid.SampledFrom([]string{"Allow", "Allow", "Deny"}).Draw(t, "effect"),
			Action:   rapid.SampledFrom([]string{"*:*", "iam:*", "IAM:Get*", "iam:GetUser", "s3:*"}).Draw(t, "action"),
			Resource: rapid.SampledFrom(oracleARNs).Draw(t, "resource"), Condition: oracleConditions().Draw(t, "condition"),
		}
	})
	return rapid.Custom(func(t *rapid.T) string {
		raw, err := json.Marshal(oracleDocument{iampolicy.Version2012, rapid.SliceOfN(statement, 1, 3).Draw(t, "statements")})
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(string(raw), `"*:*"`, `"*"`)
	})
}

// optional are values of a key that may be absent.
func optional(t *rapid.T, key string, most int, from ...string) []string {
	values := rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, most, rapid.ID).Draw(t, key)
	if len(values) == 0 {
		return nil
	}
	return values
}

func TestAgainstAnOracle(t *testing.T) {
	for range 40 { // of a hundred cases each: some rules take two rare things at once
		rapid.Check(t, againstAnOracle)
	}
}

func againstAnOracle(t *rapid.T) {
	context := map[string][]string{}
	for key, values := range map[string][]string{
		"aws:username": optional(t, "username", 1, "a", "A", "ab", "b"), "aws:principaltag/team": optional(t, "team", 1, "a", "ab", "B"),
		"aws:tagkeys": optional(t, "tagkeys", 2, "a", "b", "ab"), "x:given": optional(t, "given", 2, "a", "b", "*"), "s3:max-keys": optional(t, "number", 1, "1", "2", "3"),
		"aws:currenttime": {"2026-06-01T00:00:00Z"}, "aws:securetransport": optional(t, "secure", 1, "true", "false"), "aws:sourceip": optional(t, "address", 1, "10.1.2.3", "11.0.0.1"),
		"aws:principalarn": optional(t, "principal", 1, "arn:aws:iam::111122223333:user/a", "arn:aws:iam::444455556666:user/b"), "x:bytes": optional(t, "bytes", 1, "QUJD", "AAAB"),
	} {
		if values != nil {
			context[key] = values
		}
	}
	r := iampolicy.Request{
		Action:   rapid.SampledFrom([]string{"iam:GetUser", "iam:CreateUser", "s3:GetObject"}).Draw(t, "asked"),
		Resource: rapid.SampledFrom([]string{"arn:aws:iam::111122223333:user/a", "arn:aws:s3:::a/b:c", "arn:aws:iam::111122223333:user/${aws:username}"}).Draw(t, "about"), Context: context,
	}
	verdicts := map[iampolicy.Verdict]string{iampolicy.Allow: "Allow", iampolicy.Deny: "Deny", iampolicy.Neutral: ""}
	var rights iampolicy.Rights
	read := func(what string) (iampolicy.Named, string) {
		text := oracleDocuments().Draw(t, what)
		d, err := iampolicy.Parse(iampolicy.Managed, text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := oracle(text, r.Action, r.Resource, context)
		if got := verdicts[d.Evaluate(r).Verdict]; got != want && want != "?" {
			t.Fatalf("%s\nabout %s on %s with %v: %q, want %q", text, r.Action, r.Resource, context, got, want)
		} else if want == "?" {
			want = got
		}
		return iampolicy.Named{Name: what, Document: d}, want
	}
	// Explicit deny, else boundary and identity and session policy.
	var layers [][]string
	identity := []string{}
	for i := range rapid.IntRange(0, 2).Draw(t, "identities") {
		p, said := read(fmt.Sprint("identity", i))
		rights.Identity, identity = append(rights.Identity, p), append(identity, said)
	}
	layers = append(layers, identity)
	if rapid.Bool().Draw(t, "bounded") {
		p, said := read("boundary")
		rights.Boundary, layers = &p, append(layers, []string{said})
	}
	if rights.Scoped = rapid.Bool().Draw(t, "scoped"); rights.Scoped {
		p, said := read("session")
		rights.Session, layers = []iampolicy.Named{p}, append(layers, []string{said})
	}
	want := "Allow"
	switch {
	case slices.ContainsFunc(layers, func(said []string) bool { return slices.Contains(said, "Deny") }):
		want = "Deny"
	case slices.ContainsFunc(layers, func(said []string) bool { return !slices.Contains(said, "Allow") }):
		want = ""
	}
	if got := verdicts[rights.Decide(r).Verdict]; got != want {
		t.Fatalf("together %q, want %q of %q", got, want, layers)
	}
}
