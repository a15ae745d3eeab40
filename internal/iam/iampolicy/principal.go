// SPDX-License-Identifier: Apache-2.0

package iampolicy

import (
	"fmt"
	"slices"
	"strings"

	"muster.dev/muster/internal/aws/arn"
	"muster.dev/muster/internal/iam/iam"
)

// Directory knows the principals that exist. An empty path stands for any: a session's ARN does not say its role's.
type Directory interface {
	HasAccount(account string) bool
	UserID(account, path, name string) (id string, ok bool)
	RoleID(account, path, name string) (id string, ok bool)
	ARNOf(id string) (a arn.ARN, ok bool) // of a user or role that there is now
}

func parsePrincipals(n node) ([]Principal, error) {
	if n.kind == textNode && n.text == "*" {
		return []Principal{{Kind: Anyone}}, nil
	}
	if n.kind != objectNode || len(n.fields) == 0 {
		return nil, n.wrong(`it must be "*" or an object with AWS, Service or Federated`)
	}
	var all []Principal
	for _, f := range n.fields {
		read := map[string]func(string) (Principal, error){"AWS": awsPrincipal, "Service": servicePrincipal, "Federated": federatedPrincipal}[f.name]
		if read == nil {
			return nil, f.value.wrong("muster knows no such kind of principal: AWS, Service and Federated are there")
		}
		items, err := f.value.texts()
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			p, err := read(item.text)
			if err != nil {
				return nil, item.wrong(fmt.Sprintf("Invalid principal in policy: %q:%.200q: %v", f.name, item.text, err))
			}
			all = append(all, p)
		}
	}
	return all, nil
}

func awsPrincipal(text string) (Principal, error) {
	if text == "*" {
		return Principal{Anyone, text}, nil
	}
	if iam.CheckAccountID(text) == nil {
		return Principal{Account, text}, nil
	}
	if boundID(text) {
		return Principal{ByID, text}, nil
	}
	a, err := arn.Parse(text)
	if err != nil {
		return Principal{}, fmt.Errorf("it is not an account ID, a unique ID or an ARN: %w", err)
	}
	if strings.ContainsAny(text, "*?") {
		return Principal{}, fmt.Errorf("a principal has no wildcards: name the account and put ArnLike on aws:PrincipalArn into Condition")
	}
	if a.Partition != iam.Partition {
		return Principal{}, fmt.Errorf("its partition is %s, here it is %s", a.Partition, iam.Partition)
	}
	if a == iam.RootARN(a.Account) && iam.CheckAccountID(a.Account) == nil {
		return Principal{Account, a.Account}, nil
	}
	_, _, user := a.User()
	_, _, role := a.Role()
	if _, _, session := a.AssumedRole(); !user && !role && !session {
		return Principal{}, fmt.Errorf("it must name an account's root, a user, a role, or a session of a role")
	}
	return Principal{ByARN, text}, nil
}

// boundID reports whether text is a unique id of a user or role, or that of a role with a session.
func boundID(text string) bool {
	id, session, ok := strings.Cut(text, ":")
	return iam.IsID(iam.UserPrefix, id) && !ok || iam.IsID(iam.RolePrefix, id) && (!ok || iam.CheckSessionName(session) == nil)
}

func servicePrincipal(text string) (Principal, error) {
	name, ok := strings.CutSuffix(text, ".amazonaws.com")
	if !ok || name == "" || name[0] == '.' || strings.Contains(name, "..") || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" {
		return Principal{}, fmt.Errorf("a service has the form ec2.amazonaws.com")
	}
	return Principal{Service, text}, nil
}

func federatedPrincipal(text string) (Principal, error) {
	a, err := arn.Parse(text)
	kind, name, _ := strings.Cut(a.Resource, "/")
	if err != nil || a.Partition != iam.Partition || a.Service != "iam" || a.Region != "" || iam.CheckAccountID(a.Account) != nil ||
		kind != "oidc-provider" && kind != "saml-provider" || name == "" || strings.ContainsAny(name, "*?") {
		return Principal{}, fmt.Errorf("it must be the ARN of an oidc-provider or saml-provider of IAM, without wildcards")
	}
	return Principal{Federated, text}, nil
}

// mapPrincipals copies the document with other principals.
func (d Document) mapPrincipals(change func(Principal) (Principal, error)) (Document, error) {
	d.Statements = slices.Clone(d.Statements)
	for i := range d.Statements {
		s := &d.Statements[i]
		s.Principals = slices.Clone(s.Principals)
		for j, p := range s.Principals {
			changed, err := change(p)
			if err != nil {
				return Document{}, &Malformed{
					Path: fmt.Sprintf("$.Statement[%d].Principal.AWS", i),
					Why:  fmt.Sprintf(`Invalid principal in policy: "AWS":%q: %v`, p.Value, err),
				}
			}
			s.Principals[j] = changed
		}
	}
	return d, nil
}

// Bind puts the unique id of each user and role that a trust policy names in the place of its ARN. Keep Bind's result,
// never what was written: a user that is deleted and made again under the old name has another id, and is not trusted.
func (d Document) Bind(in Directory) (Document, error) {
	return d.mapPrincipals(func(p Principal) (Principal, error) {
		switch p.Kind {
		case Account:
			if !in.HasAccount(p.Value) {
				return p, fmt.Errorf("there is no such account")
			}
		case ByID:
			id, _, _ := strings.Cut(p.Value, ":")
			if _, ok := in.ARNOf(id); !ok {
				return p, fmt.Errorf("nobody has this id any more: remove it")
			}
		case ByARN:
			id, ok := idOf(p.Value, in)
			if !ok {
				return p, fmt.Errorf("there is no such user or role")
			}
			return Principal{ByID, id}, nil
		case Anyone, Service, Federated:
		}
		return p, nil
	})
}

func idOf(text string, in Directory) (string, bool) {
	a, err := arn.Parse(text)
	if err != nil {
		return "", false
	}
	if path, name, ok := a.User(); ok {
		return in.UserID(a.Account, path, name)
	}
	if path, name, ok := a.Role(); ok {
		return in.RoleID(a.Account, path, name)
	}
	if role, session, ok := a.AssumedRole(); ok {
		id, found := in.RoleID(a.Account, "", role)
		return id + ":" + session, found
	}
	return "", false
}

// Shown is the reverse of Bind, for people to read: ids whose owner there still is become ARNs, the others stay ids.
func (d Document) Shown(in Directory) Document {
	shown, _ := d.mapPrincipals(func(p Principal) (Principal, error) {
		if p.Kind != ByID {
			return p, nil
		}
		id, session, has := strings.Cut(p.Value, ":")
		a, ok := in.ARNOf(id)
		if _, name, role := a.Role(); ok && has && role {
			a = iam.Role{Account: a.Account, Name: name}.SessionARN(session)
		}
		if !ok {
			return p, nil
		}
		return Principal{ByARN, a.String()}, nil
	})
	return shown
}

// Bound reports whether no principal is still an ARN.
func (d Document) Bound() bool {
	return !slices.ContainsFunc(d.Statements, func(s Statement) bool {
		return slices.ContainsFunc(s.Principals, func(p Principal) bool { return p.Kind == ByARN })
	})
}

// names reports how the principal names the caller.
func (p Principal) names(c Caller) Naming {
	person := c.Service == "" && c.Federated == ""
	switch p.Kind {
	case Anyone:
		if person && c.Account != "" {
			return AsRoleOrAnyone
		}
	case Account:
		if person && c.Account == p.Value {
			return ByAccount
		}
	case ByID:
		id, session, one := strings.Cut(p.Value, ":")
		switch {
		case !person || c.ID == "" || c.ID != id || one && c.Session != session:
		case one || iam.IsID(iam.UserPrefix, id):
			return ByItself
		default:
			return AsRoleOrAnyone
		}
	case Service:
		if c.Service != "" && c.Service == p.Value {
			return ByItself
		}
	case Federated:
		if c.Federated != "" && c.Federated == p.Value {
			return ByItself
		}
	case ByARN:
	}
	return NotNamed
}
