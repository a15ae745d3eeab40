// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// list reads the entries of one list.
func (r *reader) list(name string, value any) {
	if value == nil {
		return
	}
	items, ok := value.([]any)
	if !ok {
		r.problem("", name, fault{fmt.Sprintf("is %s, and not a list", kindOf(value)), "begin each entry with a dash"}, true)
		return
	}
	if len(items) > maxEntries {
		r.problem("", name, fault{fmt.Sprintf("has %d entries", len(items)), fmt.Sprintf("at most %d are allowed; the others are left out", maxEntries)}, true)
		items = items[:maxEntries]
	}
	for i, item := range items {
		r.item(name, i, item)
	}
}

func (r *reader) item(name string, i int, value any) {
	e := &entryReader{reader: r, name: fmt.Sprintf("%s[%d]", name, i)}
	m := Mapping{Source: r.source, Entry: e.name}
	if name == mapAccounts {
		m.Kind = KindAccount
		if m.Account = e.account("", value); !e.broken {
			r.mappings = append(r.mappings, m)
		}
		return
	}
	fields, ok := value.(map[string]any)
	if !ok {
		e.refuse("", fault{fmt.Sprintf("is %s, and not an object with fields", kindOf(value)), "write " + example(name)})
		return
	}
	m.Kind = KindRole
	if name == mapUsers {
		m.Kind = KindUser
	}
	e.fields(&m, fields)
	if !e.broken {
		r.mappings = append(r.mappings, m)
	}
}

func example(list string) string {
	if list == mapUsers {
		return "userarn, username and groups"
	}
	return "rolearn, username and groups"
}

// entryReader reads the fields of one entry, and remembers whether one of them makes it unusable.
type entryReader struct {
	*reader
	name   string
	broken bool
}

func (e *entryReader) refuse(field string, f fault) {
	e.broken = true
	e.problem(e.name, field, f, true)
}

// fields reads what is in an entry of roles or users, whatever the case of the fields' names, as aws-iam-authenticator
// does.
func (e *entryReader) fields(m *Mapping, fields map[string]any) {
	arnField := string(m.Kind) + "arn"
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, lower := fields[name], strings.ToLower(name)
		if seen[lower] {
			e.refuse(name, fault{"is there twice, in different case", "remove one of the two"})
			continue
		}
		seen[lower] = true
		switch {
		case lower == arnField:
			m.ARN = strings.TrimSpace(e.text(name, value))
		case lower == "username":
			m.Username = e.text(name, value)
		case lower == "groups":
			m.Groups = e.texts(name, value)
		case lower == "userid":
			m.PrincipalID = e.text(name, value)
		case lower == "sso" && m.Kind == KindRole:
			m.SSO = e.sso(name, value)
		case lower == "rolearn":
			e.refuse(name, fault{"is of a role, in a list of users", "move the entry to mapRoles"})
		case lower == "userarn":
			e.refuse(name, fault{"is of a user, in a list of roles", "move the entry to mapUsers"})
		default:
			e.problem(e.name, clip(name), fault{"is not known, and not looked at", fmt.Sprintf("the fields are %s, username, groups and userid", arnField)}, false)
		}
	}
	if !seen["sso"] {
		return
	}
	m.Kind = KindSSO
	if seen[arnField] {
		e.refuse("sso", fault{"is there beside " + arnField, "write one of the two"})
	}
}

func (e *entryReader) sso(name string, value any) SSO {
	fields, ok := value.(map[string]any)
	if !ok {
		e.refuse(name, fault{fmt.Sprintf("is %s, and not an object with fields", kindOf(value)), "write permissionSetName, accountID and, if it is not the cluster's, partition"})
		return SSO{}
	}
	var s SSO
	seen := map[string]bool{}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		path, lower := name+"."+field, strings.ToLower(field)
		if seen[lower] {
			e.refuse(path, fault{"is there twice, in different case", "remove one of the two"})
		}
		seen[lower] = true
		switch lower {
		case "permissionsetname":
			s.PermissionSet = e.text(path, fields[field])
		case "accountid":
			s.Account = e.account(path, fields[field])
		case "partition":
			s.Partition = e.text(path, fields[field])
		default:
			e.refuse(clip(path), fault{"is not known", "the fields are permissionSetName, accountID and partition"})
		}
	}
	return s
}

func (e *entryReader) text(field string, value any) string {
	if s, ok := value.(string); ok {
		return s
	}
	if value != nil { // a missing field is reported by the code that needs it
		e.refuse(field, fault{fmt.Sprintf("is %s, and not text", kindOf(value)), "write it in quotes"})
	}
	return ""
}

func (e *entryReader) texts(field string, value any) []string {
	if value == nil {
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		e.refuse(field, fault{fmt.Sprintf("is %s, and not a list", kindOf(value)), "write each group on a line of its own, after a dash"})
		return nil
	}
	out := make([]string, 0, len(items))
	for i, item := range items {
		out = append(out, e.text(fmt.Sprintf("%s[%d]", field, i), item))
	}
	return out
}

// account reads 12 digits, also where YAML took them for a number. A number that began with a zero has lost it, and is
// not completed: YAML may have read it in base eight.
func (e *entryReader) account(field string, value any) string {
	if n, ok := value.(json.Number); ok && isAccount(n.String()) {
		return n.String()
	}
	s, ok := value.(string)
	if !ok {
		e.refuse(field, fault{fmt.Sprintf("is %s, and not an account", kindOf(value)), "write its 12 digits in quotes, so that YAML keeps zeros at its start"})
	}
	return s
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "empty"
	case string:
		return fmt.Sprintf("the text %q", clip(v))
	case json.Number:
		return "the number " + v.String()
	case bool:
		return fmt.Sprint(v)
	case []any:
		return "a list"
	default:
		return "an object with fields"
	}
}
