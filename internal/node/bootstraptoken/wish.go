// SPDX-License-Identifier: Apache-2.0

package bootstraptoken

import (
	"fmt"
	"net/netip"
	"time"

	"muster.dev/muster/internal/certificates/facts"
	"muster.dev/muster/internal/certificates/policy"
	"muster.dev/muster/internal/certificates/token"
)

// Wish is a request for a token, and for a host that is registered with it. An invalid field is a [WishError].
type Wish struct {
	TTL         time.Duration // 0 for a token that never expires
	Usages      []string
	Groups      []string // besides those that bind it
	Description string

	// Machine, NodeName, Group and Pattern bind the token; an empty one does not.
	Machine, NodeName, Group, Pattern string
	// Rejoin lets the node of that name join again.
	Rejoin bool

	// Addresses are the addresses of the host to register under NodeName. If it is empty, no host is registered.
	Addresses []string
}

// Bootstrap returns the token that is wished for, as of now, or an error that names the field at fault. It calls draw
// for the token itself, once the rest of the wish is known to be possible.
func (w Wish) Bootstrap(now time.Time, draw func() (token.Token, error)) (token.Bootstrap, error) {
	switch {
	case w.TTL < 0:
		return token.Bootstrap{}, wrong("invalid %s %s: must not be negative; 0 makes a token that never expires", FieldTTL, w.TTL)
	case w.TTL > 0 && w.TTL < time.Second:
		return token.Bootstrap{}, wrong("%s %s is too short: the end of a token is kept in whole seconds; give 1s or more, or 0 for a token without an end", FieldTTL, w.TTL)
	case w.Rejoin && w.NodeName == "":
		return token.Bootstrap{}, wrong("%s needs %s, the name of the node that may join again", FieldRejoin, FieldNodeName)
	}
	b := token.Bootstrap{Usages: w.Usages, Groups: w.Groups, Description: w.Description}
	if w.TTL > 0 {
		b.Expires = now.Add(w.TTL).UTC().Truncate(time.Second)
	}
	if err := b.Bind(w.scopes()...); err != nil {
		return token.Bootstrap{}, err
	}
	var err error
	if b.Token, err = draw(); err != nil {
		return token.Bootstrap{}, err
	}
	return b, b.Check()
}

// scopes are the bindings that are not empty.
func (w Wish) scopes() []token.Scope {
	again := ""
	if w.Rejoin {
		again = w.NodeName
	}
	var scopes []token.Scope
	for _, s := range []token.Scope{
		{Kind: token.ScopeMachine, Value: w.Machine},
		{Kind: token.ScopeName, Value: w.NodeName},
		{Kind: token.ScopeGroup, Value: w.Group},
		{Kind: token.ScopePattern, Value: w.Pattern},
		{Kind: token.ScopeRejoin, Value: again},
	} {
		if s.Value != "" {
			scopes = append(scopes, s)
		}
	}
	return scopes
}

// Host returns the machine to register, nil if there is none, or an error that names the field at fault.
func (w Wish) Host() (*policy.Machine, error) {
	switch {
	case len(w.Addresses) == 0:
		return nil, nil //nolint:nilnil // none is meant
	case w.NodeName == "":
		return nil, wrong("%s needs %s, the name of the host that it registers", FieldAddresses, FieldNodeName)
	case w.Machine != "":
		return nil, wrong("%s registers the host as machine %s, so %s can name no other one: leave it out", FieldAddresses, facts.HostID(w.NodeName), FieldMachine)
	}
	m := &policy.Machine{ID: facts.HostID(w.NodeName), NodeName: w.NodeName, Group: w.Group}
	for _, text := range w.Addresses {
		address, err := netip.ParseAddr(text)
		if err != nil || address.Zone() != "" {
			return nil, wrong("invalid %s %q: must be an IP address", FieldAddresses, text)
		}
		m.Addresses = append(m.Addresses, address)
	}
	// In a list of its own: a fault of the host alone is found before anything is written.
	if _, _, err := facts.AddMachine([]byte("machines: []"), *m); err != nil {
		return nil, fmt.Errorf("cannot register the host: %w", err)
	}
	return m, nil
}
