// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// The versions of the language.
const (
	Version2012 = "2012-10-17"
	Version2008 = "2008-10-17" // that of a document which names none: ${ is text in it
)

// maxText is how long a document may be with its white space, by IAM's API reference.
const maxText = 131072

// limit is how many characters a document of that kind may have. The limits of inline policies are for all inline
// policies of one user or role together.
func (k Kind) limit() int {
	switch k {
	case Managed:
		return 6144
	case RoleInline:
		return 10240
	case UserInline, Session, Trust:
		return 2048
	case OfResource:
		return 20480
	}
	return 0
}

// Size is how many characters count against the limit of a kind: IAM leaves white space out, and STS does not for
// session policies.
func Size(k Kind, text string) int {
	n := utf8.RuneCountInString(text)
	if k != Session {
		n -= strings.Count(text, " ") + strings.Count(text, "\t") + strings.Count(text, "\n") + strings.Count(text, "\r")
	}
	return n
}

// CheckTotal checks the inline policies of one user or role together.
func CheckTotal(k Kind, documents map[string]string) error {
	total := 0
	for _, text := range documents {
		total += Size(k, text)
	}
	if total > k.limit() {
		return &Malformed{Path: "$", TooLarge: true, Why: fmt.Sprintf("the inline policies have %d characters together without white space, %d are allowed: "+
			"make a managed policy of one", total, k.limit())}
	}
	return nil
}

// Parse reads a document strictly. Every error is a *Malformed.
func Parse(k Kind, text string) (Document, error) {
	if err := checkText(k, text); err != nil {
		return Document{}, err
	}
	root, err := readTree(text)
	if err != nil {
		return Document{}, err
	}
	if root.kind != objectNode {
		return Document{}, root.wrong("a policy is a JSON object")
	}
	d := Document{Kind: k}
	var statements []node
	for _, f := range root.fields {
		switch f.name {
		case "Version":
			if d.Version = f.value.text; f.value.kind != textNode || d.Version != Version2012 && d.Version != Version2008 {
				return Document{}, f.value.wrong("it must be " + Version2012 + " or " + Version2008)
			}
		case "Id":
			if d.ID = f.value.text; f.value.kind != textNode {
				return Document{}, f.value.wrong("it must be a text")
			}
		case "Statement":
			if statements = []node{f.value}; f.value.kind == listNode {
				statements = f.value.items
			}
		default:
			return Document{}, f.value.wrong("there is no such element: a policy has Version, Id and Statement")
		}
	}
	if len(statements) == 0 {
		return Document{}, root.wrong("the element Statement is missing or empty")
	}
	seen := map[string]bool{}
	for _, n := range statements {
		s, err := parseStatement(k, n, d.Version == Version2012)
		if err != nil {
			return Document{}, err
		}
		if s.SID != "" && seen[s.SID] {
			return Document{}, n.wrong(fmt.Sprintf("another statement has the Sid %q", s.SID))
		}
		seen[s.SID] = true
		d.Statements = append(d.Statements, s)
	}
	return d, nil
}

func checkText(k Kind, text string) error {
	limit := k.limit()
	switch {
	case limit == 0:
		return &Malformed{Path: "$", Why: "the kind of the policy is not known"}
	case len(text) > 2*maxText || utf8.RuneCountInString(text) > maxText:
		return &Malformed{Path: "$", TooLarge: true, Why: fmt.Sprintf("the document has more than %d characters", maxText)}
	case !utf8.ValidString(text):
		return &Malformed{Path: "$", Why: "the document is not UTF-8"}
	case strings.ContainsFunc(text, func(r rune) bool { return r > 0xff || r < 0x20 && r != '\t' && r != '\n' && r != '\r' }):
		return &Malformed{Path: "$", Why: "the document has a character outside tab, line ends and U+0020 to U+00FF"}
	}
	if size := Size(k, text); size > limit {
		return &Malformed{Path: "$", TooLarge: true, Why: fmt.Sprintf("the document has %d characters that count, %d are allowed", size, limit)}
	}
	return nil
}

func parseStatement(k Kind, n node, variables bool) (Statement, error) {
	if n.kind != objectNode {
		return Statement{}, n.wrong("a statement is an object")
	}
	var s Statement
	for _, f := range n.fields {
		if err := s.element(k, f, variables); err != nil {
			return Statement{}, err
		}
	}
	trust := k == Trust
	switch {
	case s.Effect == "":
		return Statement{}, n.wrong("the element Effect is missing: Allow or Deny")
	case (s.Actions == nil) == (s.NotActions == nil):
		return Statement{}, n.wrong("it needs one of Action and NotAction")
	case trust && s.Principals == nil:
		return Statement{}, n.wrong("a trust policy needs Principal: name the principals that may assume the role")
	case k.hasPrincipals() && s.Principals == nil:
		return Statement{}, n.wrong("the policy of a resource needs Principal: name the principals that the statement is about")
	case !trust && (s.Resources == nil) == (s.NotResources == nil):
		return Statement{}, n.wrong("it needs one of Resource and NotResource")
	}
	return s, nil
}

func (s *Statement) element(k Kind, f field, variables bool) (err error) {
	n := f.value
	trust := k == Trust
	switch f.name {
	case "Sid":
		if s.SID = n.text; n.kind != textNode || strings.ContainsFunc(n.text, func(r rune) bool { return !letterOrDigit(r) }) {
			return n.wrong("a Sid has letters and digits")
		}
	case "Effect":
		if s.Effect = Effect(n.text); n.kind != textNode || s.Effect != AllowEffect && s.Effect != DenyEffect {
			return n.wrong("it must be Allow or Deny")
		}
	case "Action":
		s.Actions, s.actions, err = parsePatterns(n, func(text string) (pattern, error) { return parseActionOf(k, text) })
	case "NotAction":
		if trust {
			return n.wrong("a trust policy names its actions by Action")
		}
		s.NotActions, s.notActions, err = parsePatterns(n, parseAction)
	case "Resource", "NotResource":
		if trust {
			return n.wrong("a trust policy has no resource: it is for the role that it belongs to")
		}
		read := func(text string) (pattern, error) { return parseARNPattern(text, variables) }
		if f.name == "Resource" {
			s.Resources, s.resources, err = parsePatterns(n, read)
		} else {
			s.NotResources, s.notResources, err = parsePatterns(n, read)
		}
	case "Principal":
		if !k.hasPrincipals() {
			return n.wrong("only trust policies and policies of resources have principals: this policy is for whomever it is attached to")
		}
		s.Principals, err = parsePrincipals(n)
	case "NotPrincipal":
		return n.wrong("NotPrincipal is not supported: name the allowed principals in Principal, or exclude some by a Deny with a condition on aws:PrincipalArn")
	case "Condition":
		err = s.parseConditions(n, variables)
	default:
		return n.wrong("there is no such element in a statement")
	}
	return err
}

func parsePatterns(n node, read func(string) (pattern, error)) ([]string, []pattern, error) {
	items, err := n.texts()
	if err != nil {
		return nil, nil, err
	}
	texts, patterns := make([]string, 0, len(items)), make([]pattern, 0, len(items))
	for _, item := range items {
		p, err := read(item.text)
		if err != nil {
			return nil, nil, item.wrong(fmt.Sprintf("%.100q: %v", item.text, err))
		}
		texts, patterns = append(texts, item.text), append(patterns, p)
	}
	return texts, patterns, nil
}

// parseActionOf keeps trust policies to the actions of STS.
func parseActionOf(k Kind, text string) (pattern, error) {
	if k == Trust && !strings.HasPrefix(strings.ToLower(text), "sts:") {
		return nil, fmt.Errorf("a trust policy has actions of STS only, such as sts:AssumeRole")
	}
	return parseAction(text)
}

func (s *Statement) parseConditions(n node, variables bool) error {
	if n.kind != objectNode {
		return n.wrong("it must be an object of operators")
	}
	for _, f := range n.fields {
		if f.value.kind != objectNode {
			return f.value.wrong("an operator has an object of condition keys")
		}
		if err := checkOperator(f); err != nil {
			return err
		}
		seen := map[string]bool{}
		for _, key := range f.value.fields {
			if lower := strings.ToLower(key.name); seen[lower] {
				return key.value.wrong("the key comes twice, in two spellings")
			} else {
				seen[lower] = true
			}
			written, ready, err := parseCondition(f.name, key, variables)
			if err != nil {
				return err
			}
			s.Conditions, s.conditions = append(s.Conditions, written), append(s.conditions, ready)
		}
	}
	return nil
}

// checkOperator refuses an unknown operator that has no keys. A known operator without keys is a condition that always
// holds, as on AWS.
func checkOperator(f field) error {
	if len(f.value.fields) > 0 {
		return nil // each of its keys is checked with it
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(f.name, "ForAllValues:"), "ForAnyValue:")
	if _, ok := operatorOf(strings.TrimSuffix(rest, "IfExists")); !ok {
		return f.value.wrong(fmt.Sprintf("muster knows no operator %.80q", f.name))
	}
	return nil
}

func parseCondition(name string, f field, variables bool) (Condition, condition, error) {
	none := func(why string) (Condition, condition, error) { return Condition{}, condition{}, f.value.wrong(why) }
	ready := condition{key: strings.ToLower(f.name)}
	rest := name
	if cut, ok := strings.CutPrefix(rest, "ForAllValues:"); ok {
		rest, ready.each = cut, "all"
	} else if cut, ok := strings.CutPrefix(rest, "ForAnyValue:"); ok {
		rest, ready.each = cut, "any"
	}
	rest, ready.ifExists = strings.CutSuffix(rest, "IfExists")
	var ok bool
	if ready.operator, ok = operatorOf(rest); !ok {
		return none(fmt.Sprintf("muster knows no operator %.80q", name))
	}
	if err := checkConditionKey(f.name); err != nil {
		return none(err.Error())
	}
	known, _ := keyOf(f.name)
	switch {
	case ready.family == nullFamily && (ready.ifExists || ready.each != ""):
		return none("Null stands alone, without IfExists and ForAllValues")
	case !ready.family.fitsKey(known.of):
		return none(fmt.Sprintf("the operator %s cannot compare this key", name))
	}
	items := []node{f.value}
	if f.value.kind == listNode {
		items = f.value.items
	}
	if len(items) == 0 || ready.family == nullFamily && len(items) > 1 {
		return none("it must have a value, and one only for Null")
	}
	written := Condition{Operator: name, Key: f.name}
	for _, item := range items {
		if item.kind != textNode && item.kind != boolNode && item.kind != numberNode {
			return Condition{}, condition{}, item.wrong("a value is a text, a number, true or false")
		}
		v, err := ready.parse(item.text, variables)
		if err != nil {
			return Condition{}, condition{}, item.wrong(err.Error())
		}
		written.Values, ready.values = append(written.Values, item.text), append(ready.values, v)
	}
	return written, ready, nil
}
